// Tables that a click on a column sorts, and ids that a click copies. Pages are whole without either.
(() => {
  "use strict";
  const main = document.getElementById("main");
  const chosen = new Map(); // by the table's caption: the column and whether the order is reversed

  const button = (text, label) => {
    const made = document.createElement("button");
    made.type = "button";
    const about = document.createElement("span");
    about.className = "unseen";
    about.textContent = label;
    made.append(text, about);
    return made;
  };

  const worth = (cell) => {
    const text = cell.innerText.trim(), time = cell.querySelector("time[datetime]");
    if (time) return -Date.parse(time.dateTime); // an age: the latest is the least
    if (!cell.classList.contains("number")) return text.toLowerCase() || null;
    const number = parseFloat(text.replace(/[$,%]/g, ""));
    return Number.isNaN(number) ? null : number;
  };

  // What has no value stays last in either order.
  const order = (a, b, reversed) => {
    if (a === null || b === null) return (a === null) - (b === null);
    const found = typeof a === "number" && typeof b === "number" ? a - b
      : String(a).localeCompare(String(b), "en", { numeric: true });
    return reversed ? -found : found;
  };

  const sort = (table, column, reversed) => {
    const rows = [...table.tBodies[0].rows].map((row) => [worth(row.cells[column]), row]);
    rows.sort(([a], [b]) => order(a, b, reversed));
    table.tBodies[0].append(...rows.map(([, row]) => row));
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      if (at === column) head.setAttribute("aria-sort", reversed ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  };

  const sortable = (table) => {
    const about = table.caption.textContent;
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const by = button("", `sort by ${head.textContent.trim()}`);
      by.className = "sort";
      head.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const reversed = now ? now === "ascending" : head.classList.contains("number"); // numbers: the largest first
        chosen.set(about, [column, reversed]);
        sort(table, column, reversed);
      });
      head.append(by);
      head.classList.add("sorts");
    });
    if (chosen.has(about)) sort(table, ...chosen.get(about));
  };

  const copy = async (text) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = document.createElement("textarea"); // without TLS there is no other way
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  };

  const copyable = (cell) => {
    const made = button("copy", ` ${cell.dataset.copy}`);
    made.className = "copy";
    made.addEventListener("click", async () => {
      try {
        await copy(cell.dataset.copy);
        made.firstChild.data = "copied";
      } catch {
        made.firstChild.data = "not allowed";
      }
      setTimeout(() => { made.firstChild.data = "copy"; }, 1500);
      made.focus();
    });
    cell.append(" ", made);
  };

  const enhance = () => {
    for (const table of main.querySelectorAll("table.sortable:not([data-ready])")) {
      table.dataset.ready = "";
      if (table.tBodies[0].rows.length > 2) sortable(table);
    }
    for (const cell of main.querySelectorAll("[data-copy]:not([data-ready])")) {
      cell.dataset.ready = "";
      copyable(cell);
    }
  };

  main.addEventListener("shown", enhance);
  enhance();
})();
