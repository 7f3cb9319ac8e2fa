"""The pages of a real monitor in a real browser: hostile contents, ten thousand verdicts, keyboard, contrast, live."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.verdict import Score, State, Verdict
from tests.chromium import Browser
from tests.needs import CHROMIUM
from tests.otlp_requests import S, request, span, trace
from tests.running import Running

PAYLOADS = [
    "<script>window.hit=1</script>",
    '"><img src=x onerror=window.hit=1>',
    "' onfocus='window.hit=1' autofocus='",
    "</style></title><svg onload=window.hit=1>",
    "<iframe srcdoc='<script>parent.hit=1</script>'>",
    "javascript:window.hit=1//\u202e",
    "</noscript></script><body onload=window.hit=1>",
]
CONFIG = {
    "scenarios": {"any": {"tools_should_include": ["lookup"]}},
    "routes": [{"rubrics": ["workflow", "answer"], "scenario": "any"}],
}
MANY = 10_000
HOURS = 22


def hostile(number: int, text: str) -> bytes:
    """A trace that says ``text`` wherever it may say anything."""
    now_ns, root = time.time_ns(), span(10 * number + 1)
    stated = {
        "langfuse.trace.name": text, "langfuse.session.id": text, "langfuse.user.id": text,
        "langfuse.environment": text, "langfuse.trace.tags": text, "langfuse.observation.input": f"When? {text}",
        "langfuse.observation.output": f"Never. {text}", "langfuse.trace.metadata.note": text,
    }  # fmt: skip
    call = {
        "langfuse.observation.type": "tool", "langfuse.observation.input": text, "langfuse.observation.output": text,
        "langfuse.observation.status_message": text, "langfuse.observation.level": "ERROR",
    }  # fmt: skip
    common = {"trace_id": trace(number), "service": text, "end_ns": now_ns}
    return request([
        S(span_id=root, name=text, attributes=stated, start_ns=now_ns - 10**9, **common),
        S(span_id=span(10 * number + 2), parent_id=root, name=text, attributes=call, start_ns=now_ns - 10**8, **common),
    ])  # fmt: skip


async def fill(path: Path, now_ns: int) -> None:
    """Ten thousand verdicts of the last day: they get worse, and for some hours there were few."""
    store = Store(path)
    endings = []
    for number in range(MANY):
        share = number / MANY
        if 0.4 < share < 0.5 and number % 40:
            continue
        at_ns = now_ns - int((1 - share) * HOURS * 3600 * 10**9) - 60 * 10**9
        failed = number % 20 in (range(1) if share < 0.6 else range(6))
        case = number.to_bytes(16, "big").hex()
        score = Score(metric="accuracy", weight=1.0, result=Scored(value=float(not failed), reason="why"), rating=None)
        verdict = Verdict(
            case_id=case, trace_id=case, rubric="qa", rubric_version=RUBRICS["qa"].version, composite=0.5,
            composite_norm=0.5, coverage=1.0, state=State.VALID, passed=not failed, rating="fail" if failed else "good",
            blockers=(),
            pass_mark=0.87, scores=(score,), sampling_probability=0.25, service=f"shop-{number % 3}",
            environment="prod", reason="accuracy: why",
            created_at=datetime.fromtimestamp(at_ns / 1e9, UTC).isoformat(timespec="milliseconds"),
        )  # fmt: skip
        endings.append(FinishedTrace(
            trace_id=bytes.fromhex(case), service=verdict.service, reason="scored", completion="root_ended", revision=1,
            details={"spans": 1}, verdicts=[verdict.to_json()], closed_ns=at_ns,
        ))  # fmt: skip
    for begin in range(0, len(endings), 500):
        await asyncio.gather(*(store.finish(each) for each in endings[begin : begin + 500]))
    store.close()


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A monitor with ten thousand verdicts of the past, which took in one hostile trace of each kind."""
    CHROMIUM.path()
    folder = tmp_path_factory.mktemp("pages")
    asyncio.run(fill(folder / "state.sqlite", time.time_ns()))
    running = Running(folder, CONFIG).start()
    for number, text in enumerate(PAYLOADS, 1):
        assert running.post(hostile(number, text)).status_code == 200
    running.settled(len(PAYLOADS))
    yield running
    running.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, monitor: Running) -> Iterator[Browser]:
    opened = Browser(tmp_path_factory.mktemp("browser"))
    opened.open(monitor.link)  # one click: it shows contents from then on
    yield opened
    opened.close()


def addresses() -> list[str]:
    stories = [f"/traces/{trace(number).hex()}" for number in range(1, len(PAYLOADS) + 1)]
    return ["/", "/verdicts", "/verdicts?rubric=workflow&passed=false", "/configuration", "/docs", *stories, *FURTHER]


SERVICE = "/services?service=shop-0&environment=prod&rubric=qa&last=1d"
FURTHER = [SERVICE, SERVICE + "&metric=accuracy", "/help", "/help/how-to/sampling", "/traces"]

LOOKS = [(SERVICE, "light"), (SERVICE, "dark"), ("/help/how-to/sampling", "light"), ("/help/how-to/sampling", "dark"),
         ("/", "light"), ("/", "dark"), ("/verdicts?passed=false", "light"), ("/verdicts?passed=false", "dark"),
         (f"/traces/{trace(1).hex()}", "light"), (f"/traces/{trace(1).hex()}", "dark"),
         ("/configuration", "light"), ("/configuration", "dark"), ("/docs", "light"), ("/docs", "dark")]  # fmt: skip

_INJECTED = """(() => {
  const all = [...document.querySelectorAll("*")];
  return {
    hit: window.hit === undefined ? null : window.hit,
    foreign: [...document.querySelectorAll("iframe, img, object, embed, base")].map((e) => e.outerHTML),
    scripts: document.scripts.length,
    attributes: all.flatMap((e) => [...e.attributes]).map((a) => a.name).filter((n) => /^(on.*|style)$/.test(n)),
    links: [...document.links].map((a) => a.href),
  };
})()"""


def test_nothing_that_traces_say_runs_loads_or_becomes_markup(monitor: Running, browser: Browser) -> None:
    browser.look()
    browser.stated.clear()
    browser.requested.clear()
    for path in addresses():
        browser.open(monitor.api + path)
        found = browser.ask(_INJECTED)
        assert found["hit"] is None, path
        assert found["foreign"] == [], path
        assert found["attributes"] == [], path
        assert found["scripts"] <= 1, path
        assert all(link.startswith(monitor.api + "/") for link in found["links"]), path
        if path.startswith("/traces/"):
            text = PAYLOADS[addresses().index(path) - 5].replace("\u202e", " ").rstrip()
            assert browser.ask("document.body.textContent").count(text) >= 5, path
    assert browser.dialogs == []
    assert browser.stated == [], "a blocked script, style or address would be told here"
    own = urlsplit(monitor.api).netloc
    assert {urlsplit(each).netloc for each in browser.requested if not each.startswith("data:")} == {own}


def test_the_script_of_the_pages_is_the_only_one_that_could_run(monitor: Running, browser: Browser) -> None:
    browser.look()
    browser.open(monitor.api + "/")
    browser.stated.clear()
    browser.ask("""(() => {
      const script = document.createElement("script");
      script.textContent = "window.hit = 2";
      document.body.append(script);
      const markup = "<img src=x onerror='window.hit=3'><p style='color:red' id=styled>";
      document.body.insertAdjacentHTML("beforeend", markup);
    })()""")
    browser.until("getComputedStyle(document.getElementById('styled')).color !== 'rgb(255, 0, 0)'")
    assert browser.ask("window.hit === undefined")


def test_ten_thousand_verdicts_are_told_a_page_at_a_time(monitor: Running, browser: Browser) -> None:
    browser.look()
    browser.open(monitor.api + "/verdicts")
    rows = "[...document.querySelectorAll('tbody tr th a')].map((a) => a.getAttribute('href'))"
    first = browser.ask(rows)
    assert len(first) == 50
    browser.open(browser.ask("document.querySelector('a[rel=next]').href"))
    second = browser.ask(rows)
    assert len(second) == 50
    assert not set(first) & set(second)
    browser.open(monitor.api + "/verdicts?service=shop-1&passed=false")
    assert browser.ask("document.querySelector('#service').value") == "shop-1"
    assert browser.ask("new Set([...document.querySelectorAll('tbody .pill')].map((e) => e.textContent)).size") == 1
    for path in ("/", "/verdicts"):
        assert len(monitor.http.get(monitor.api + path).content) < 200_000, path


def test_a_click_sorts_a_table_and_copies_an_id(monitor: Running, browser: Browser) -> None:
    browser.look()
    browser.open(monitor.api + SERVICE)
    ids = "[...document.querySelectorAll('#worst tbody th a')].map((e) => e.getAttribute('href'))"
    before = browser.ask(ids)
    head = "[...document.querySelectorAll('#worst thead th')].find((e) => e.textContent.startsWith('When'))"
    browser.ask(f"{head}.querySelector('button').click()")
    assert browser.ask(f"{head}.getAttribute('aria-sort')") == "ascending"
    ages = browser.ask("[...document.querySelectorAll('#worst time')].map((e) => e.dateTime)")
    assert ages == sorted(ages, reverse=True)
    assert sorted(browser.ask(ids)) == sorted(before)
    browser.ask(
        "document.execCommand = () => true; navigator.clipboard.writeText = async (text) => { window.got = text; }"
    )
    browser.ask("document.querySelector('#worst button.copy').click()")
    browser.until("window.got && window.got.length === 32")


def test_the_trend_shows_where_it_went_and_a_gap_where_too_little_is_known(monitor: Running, browser: Browser) -> None:
    browser.look()
    browser.open(monitor.api + "/")
    row = "[...document.querySelectorAll('#services tbody tr')].find((e) => e.textContent.includes('shop-0'))"
    title = browser.ask(f"{row}.querySelector('svg.trend title').textContent")
    assert re.fullmatch(
        r"last 1 d in steps of 1 h: from 9\d\.\d% to \d\d\.\d%, lowest \d\d\.\d%, highest \d+\.\d%; \d of 24 .*", title
    ), title
    assert browser.ask(f"{row}.querySelectorAll('polyline').length") == 2
    assert browser.ask(f"{row}.querySelectorAll('.thin').length") > 0


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/verdicts?passed=false",
        "/configuration",
        "/docs",
        "story",
        SERVICE,
        "/help/how-to/sampling",
        "/help/reference/configuration",
    ],
)
@pytest.mark.parametrize("width", [360, 1280])
def test_a_page_fits_a_phone_and_a_desk(path: str, width: int, monitor: Running, browser: Browser) -> None:
    browser.look(width=width, height=800)
    browser.open(monitor.api + (f"/traces/{trace(2).hex()}" if path == "story" else path))
    assert browser.ask("document.documentElement.scrollWidth") <= width


_CONTRAST = """(() => {
  const parse = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(e).backgroundColor);
      if (a === 1 && r !== undefined) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const found = {};
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = texts.nextNode());) {
    const e = node.parentElement;
    if (!node.data.trim() || !e.checkVisibility()) continue;
    if (e.closest("script, style, noscript, .unseen, .skip, svg")) continue;
    const [one, other] = [light(parse(getComputedStyle(e).color)), light(ground(e))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    const name = `${e.tagName}.${e.className}`;
    found[name] = Math.min(found[name] ?? 21, ratio);
  }
  return found;
})()"""


@pytest.mark.parametrize(("path", "scheme"), LOOKS)
def test_every_text_stands_out_from_its_ground(path: str, scheme: str, monitor: Running, browser: Browser) -> None:
    browser.look(scheme=scheme)
    browser.open(monitor.api + path)
    browser.ask("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    found = browser.ask(_CONTRAST)
    assert len(found) > 5
    assert {name: round(ratio, 2) for name, ratio in found.items() if ratio < 4.5} == {}


_OUTLINE = """(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const levels = all("h1, h2, h3, h4").map((e) => Number(e.tagName[1]));
  return {
    mains: all("main").length, banners: all("body > header").length, lang: document.documentElement.lang,
    firsts: levels.filter((level) => level === 1).length,
    skipped: levels.filter((level, i) => i && level > levels[i - 1] + 1).length,
    unnamed: [
      ...all("nav:not([aria-label])"), ...all("svg:not([aria-hidden])").filter((e) => !e.querySelector("title")),
      ...all("section").filter((e) => !document.getElementById(e.getAttribute("aria-labelledby"))),
      ...all("table:not(.plain)").filter((e) => !e.caption), ...all("table:not(.plain) th:not([scope])"),
      ...all("input, select").filter((e) => !e.labels.length),
      ...all("a, button").filter((e) => !e.textContent.trim()),
    ].map((e) => e.outerHTML.slice(0, 200)),
    doubled: all("[id]").map((e) => e.id).filter((id, i, ids) => ids.indexOf(id) !== i),
  };
})()"""


@pytest.mark.parametrize("path", [path for path, scheme in LOOKS if scheme == "light"])
def test_landmarks_headings_tables_and_fields_are_named(path: str, monitor: Running, browser: Browser) -> None:
    browser.look()
    browser.open(monitor.api + path)
    assert browser.ask(_OUTLINE) == {
        "mains": 1, "banners": 1, "lang": "en", "firsts": 1, "skipped": 0, "unnamed": [], "doubled": [],
    }  # fmt: skip


@pytest.mark.parametrize("path", ["/", "/verdicts", f"/traces/{trace(1).hex()}"])
def test_the_keyboard_reaches_everything_in_order_and_shows_where_it_is(
    path: str, monitor: Running, browser: Browser
) -> None:
    browser.look()
    browser.open(monitor.api + path)
    wanted = browser.ask(
        "[...document.querySelectorAll('a[href], button, input, select, summary')]"
        ".filter((e) => e.checkVisibility()).map((e) => e.textContent + (e.getAttribute('href') || e.id || ''))"
    )
    reached = []
    for _ in wanted[:40]:
        browser.press("Tab")
        reported = browser.ask("""(() => {
          const e = document.activeElement, style = getComputedStyle(e);
          const name = e.textContent + (e.getAttribute("href") || e.id || "");
          return [name, style.outlineStyle, parseFloat(style.outlineWidth)];
        })()""")
        reached.append(reported[0])
        assert (reported[1] != "none", reported[2] >= 2) == (True, True), reported
    assert reached == wanted[:40]
    assert reached[0].startswith("Skip to the content")


def test_the_page_keeps_itself_up_to_date_until_it_is_told_to_rest(monitor: Running, browser: Browser) -> None:
    browser.look()
    browser.open(monitor.api + "/")
    browser.ask("window.same = true")
    seen = "Number(document.querySelector('#tiles dd').textContent.replace(',', ''))"
    before = browser.ask(seen)
    assert monitor.post(hostile(1000, "calm")).status_code == 200
    browser.until(f"{seen} > {before}")
    assert browser.ask("window.same"), "it was not loaded again"
    browser.until("document.querySelector('#failures').textContent.includes('calm')")
    assert browser.ask(_INJECTED)["hit"] is None
    browser.ask("document.querySelector('.live button').focus()")
    browser.press("Enter")
    assert browser.ask("document.querySelector('.live').dataset.state") == "paused"
    assert browser.ask("document.querySelector('.live button').textContent") == "Resume updates"


def test_a_page_that_nobody_sees_asks_for_nothing(monitor: Running, browser: Browser) -> None:
    browser.look()
    browser.open(monitor.api + "/")
    requested = browser.ask("""(() => {
      let asked = 0;
      const fetched = window.fetch;
      window.fetch = (...all) => { asked += 1; return fetched(...all); };
      const turn = (hidden) => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
        return asked;
      };
      return [turn(true), turn(false)];
    })()""")
    assert requested == [0, 1]


def test_without_scripts_the_page_is_whole_and_is_loaded_again(monitor: Running, browser: Browser) -> None:
    browser.look(scripts=False)
    browser.requested.clear()
    browser.open(monitor.api + "/")
    body = browser.call("DOM.getDocument", depth=-1)["root"]
    reported = browser.call("DOM.getOuterHTML", nodeId=body["nodeId"])["outerHTML"]
    assert "Pass ratio" in reported
    assert "shop-1" in reported
    end = time.monotonic() + 60
    while browser.requested.count(monitor.api + "/") < 2:
        assert time.monotonic() < end, "it was not loaded again"
        time.sleep(0.1)
    browser.look()


def test_a_story_is_found_by_its_id(monitor: Running, browser: Browser) -> None:
    browser.look()
    browser.open(monitor.api + "/verdicts")
    browser.ask(f"document.getElementById('id').value = ' {trace(1).hex().upper()} '")
    browser.ask("document.getElementById('id').focus()")
    browser.press("Enter")
    browser.until(f"location.pathname === '/traces/{trace(1).hex()}' && document.querySelector('h1')")
    assert "<script>window.hit=1</script>" in browser.ask("document.querySelector('h1').textContent")


def test_when_the_monitor_is_gone_the_page_says_that_it_is_old(
    serving: Callable[..., Running], browser: Browser
) -> None:
    browser.look()
    monitor = serving()
    browser.open(monitor.api + "/")
    monitor.stop()
    browser.ask("document.dispatchEvent(new Event('visibilitychange'))")
    browser.until("document.querySelector('.live').dataset.state === 'lost'")
    assert "Services" in browser.ask("document.body.innerText")


def test_a_service_has_a_chart_with_axes_a_distribution_and_the_worst_traces(
    monitor: Running, browser: Browser
) -> None:
    browser.look()
    browser.open(monitor.api + SERVICE)
    assert browser.ask("getComputedStyle(document.querySelector('svg.chart .band')).opacity") == "0.09"
    assert browser.ask("[...document.querySelectorAll('svg.trend.chart .axis')].some((e) => e.textContent === '90 %')")
    assert browser.ask("document.querySelectorAll('#distribution rect.bar').length") == 20
    browser.open(browser.ask("document.querySelector('#metrics tbody a').href"))
    assert browser.ask("document.querySelector('h1').textContent").endswith("accuracy")
    browser.open(browser.ask("document.querySelector('#worst tbody a').href"))
    assert browser.ask("document.querySelector('main .card h2').textContent") == "qa"


def test_verdicts_are_narrowed_by_the_form_alone(monitor: Running, browser: Browser) -> None:
    browser.look(scripts=False)
    browser.open(monitor.api + "/verdicts?service=shop-1")
    browser.look()
    browser.ask("document.querySelector('#passed').value = 'false'; document.querySelector('#last').value = '6h'")
    browser.ask("document.querySelector('form.filters').submit()")
    browser.until("location.search.includes('passed=false') && document.querySelector('#last')?.value === '6h'")
    assert browser.ask("document.querySelector('#service').value") == "shop-1"
    assert browser.ask("new Set([...document.querySelectorAll('tbody .pill')].map((e) => e.textContent)).size") == 1
