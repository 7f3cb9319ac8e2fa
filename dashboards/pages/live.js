// Keeps a page up to date: asks for it again, and puts in place what is new. Rests while nobody sees the page.
(() => {
  "use strict";
  const EVERY_MS = 5000;
  const main = document.getElementById("main");
  if (!main.hasAttribute("data-live")) return;
  const essence = (html) => html.replace(/(<time\b[^>]*>)[^<]*/g, "$1");
  const written = new Map([...main.children].map((part) => [part.id, essence(part.outerHTML)]));
  let etag = null, timer = null, paused = false, offset = 0, overall = document.title;

  const bar = document.createElement("div");
  bar.className = "live";
  const state = document.createElement("span");
  const button = document.createElement("button");
  button.type = "button";
  const news = document.createElement("span");
  news.className = "unseen";
  news.setAttribute("role", "status");
  bar.append(state, button, news);
  document.querySelector("header.bar").append(bar);

  const indicate = (kind, text) => {
    bar.dataset.state = kind;
    state.textContent = text;
    button.textContent = paused ? "Resume updates" : "Pause updates";
  };

  const span = (seconds) => {
    const parts = [];
    let left = Math.max(0, Math.round(seconds));
    for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]]) {
      const count = Math.floor(left / size);
      left -= count * size;
      if (count) parts.push(`${count} ${unit}`);
    }
    return parts.slice(0, 2).join(" ") || "0 s";
  };

  const grow = () => {
    const now = Date.now() + offset;
    for (const each of main.querySelectorAll("time.ago, time.for")) {
      const text = span((now - Date.parse(each.dateTime)) / 1000);
      each.textContent = each.className === "ago" ? `${text} ago` : text;
    }
  };

  const asOf = (date) => {
    if (Number.isNaN(date.getTime())) return;
    offset = date.getTime() - Date.now();
    const each = main.querySelector("#as-of time");
    if (!each) return;
    each.textContent = `${date.toISOString().slice(0, 19).replace("T", " ")}Z`;
  };

  const isRead = (part) => {
    const chosen = getSelection();
    return !chosen.isCollapsed && chosen.containsNode(part, true);
  };

  const replace = (old, part) => {
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const link = focused && focused.getAttribute("href");
    const unfolded = [...old.querySelectorAll("details")].map((each) => each.open);
    old.replaceWith(part);
    part.querySelectorAll("details").forEach((each, at) => { each.open = Boolean(unfolded[at]); });
    if (!focused) return;
    const again = link && part.querySelector(`[href="${CSS.escape(link)}"]`);
    (again || part).focus({ preventScroll: true });
  };

  const show = (fresh) => {
    const style = fresh.querySelector("style"), next = fresh.getElementById("main");
    if (!style || !next || style.textContent !== document.querySelector("style").textContent) {
      location.reload(); // another version of the monitor, whose pages are laid out by other means
      return;
    }
    document.title = fresh.title;
    document.querySelector("link[rel=icon]").href = fresh.querySelector("link[rel=icon]").href;
    const held = new Map([...main.children].map((part) => [part.id, part]));
    [...next.children].forEach((part, place) => {
      const old = held.get(part.id), text = essence(part.outerHTML);
      held.delete(part.id);
      const changed = written.get(part.id) !== text;
      if (!old) main.insertBefore(document.importNode(part, true), main.children[place] || null);
      else if (changed && isRead(old)) return;
      else if (changed) {
        const taken = document.importNode(part, true);
        taken.tabIndex = -1;
        replace(old, taken);
      }
      written.set(part.id, text);
    });
    for (const [id, gone] of held) {
      gone.remove();
      written.delete(id);
    }
    main.dispatchEvent(new Event("shown"));
    if (document.title !== overall) news.textContent = overall = document.title;
  };

  const look = async () => {
    clearTimeout(timer);
    if (paused || document.hidden) return;
    try {
      const answer = await fetch(location.pathname + location.search, {
        headers: etag ? { "If-None-Match": etag } : {}, cache: "no-store", signal: AbortSignal.timeout(10000),
      });
      if (answer.status === 200) {
        show(new DOMParser().parseFromString(await answer.text(), "text/html"));
        etag = answer.headers.get("etag");
      } else if (answer.status !== 304) throw new Error(String(answer.status));
      asOf(new Date(answer.headers.get("date")));
      grow();
      indicate("live", "live");
    } catch {
      indicate("lost", "not reachable; this is how things stood");
    }
    timer = setTimeout(look, EVERY_MS);
  };

  button.addEventListener("click", () => {
    paused = !paused;
    indicate(paused ? "paused" : "live", paused ? "paused" : "live");
    if (!paused) look();
    else clearTimeout(timer);
  });
  document.addEventListener("visibilitychange", look);
  indicate("live", "live");
  timer = setTimeout(look, EVERY_MS);
})();
