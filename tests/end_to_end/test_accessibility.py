"""Accessibility: axe-core finds nothing wrong with any page, on a phone and a desk, light and dark."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sidejudge.monitor.demo.scene import CONFIG
from sidejudge.monitor.demo.traffic import SampleTraffic
from tests.chromium import Browser
from tests.needs import CHROMIUM
from tests.running import Running

AXE = (Path(__file__).parents[1] / "data" / "axe" / "axe.min.js").read_text(encoding="utf-8")
TRACES = 40
SERVICE = "/services?service=call-quality&environment=demo&rubric=qa&last=1d"
PAGES = [
    "/", "/verdicts", "/verdicts?passed=false", "/verdicts?passed=maybe", "/traces", "trace", SERVICE,
    SERVICE + "&metric=question_score_accuracy", "/compare", "/compare?service=call-quality&by=release",
    "/configuration", "/docs", "/rubrics/qa", "/help", "/help?q=threshold", "/help?q=zxqvy", "/help/how-to/sampling",
    "/help/reference/configuration", "/help/reference/cli", "/nowhere",
]  # fmt: skip
ALL, COLOURS = "", 'runOnly: ["color-contrast", "link-in-text-block"],'
LOOKS = [(1280, "light", ALL), (360, "dark", ALL), (1280, "dark", COLOURS), (360, "light", COLOURS)]
"""Each width and each scheme is looked at by all rules; those on colours look at both widths in both schemes."""
_RUN = """axe.run(document, {%s resultTypes: ["violations"]}).then((found) => found.violations.map((each) =>
  [each.id, each.impact, each.help, each.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]))"""


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A monitor that has judged traffic of agents and of a call centre, a part of it wrong."""
    CHROMIUM.path()
    running = Running(tmp_path_factory.mktemp("pages"), yaml.safe_load(CONFIG.read_text())).start()
    traffic = SampleTraffic()
    for _ in range(TRACES):
        assert running.post(traffic.next(time.time_ns(), 0.5).body).status_code == 200
    running.settled(TRACES)
    yield running
    running.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_wrong(path: str, monitor: Running, browser: Browser) -> None:
    if path == "trace":
        path = f"/traces/{monitor.verdicts(passed=False)[0]['trace_id']}"
    browser.open(monitor.api + path)
    browser.ask(f"{AXE}; 0")
    for width, scheme, rules in LOOKS:  # no script of a page asks for either, so it need not be loaded again
        browser.look(width=width, scheme=scheme)
        browser.until(f"matchMedia('(width: {width}px) and (prefers-color-scheme: {scheme})').matches")
        found = browser.ask(_RUN % rules)
        assert found == [], f"{path} at {width}, {scheme}: {json.dumps(found, indent=1)}"


def test_axe_finds_what_is_wrong(monitor: Running, browser: Browser) -> None:
    """The engine runs, whatever the pages' policy on scripts is: a page without a language, a name and a contrast."""
    browser.look()
    browser.open(monitor.api + "/")
    broken = "<button></button><img src='data:,'><p style='color:#999;background:#aaa'>pale</p>"
    browser.ask(f"document.documentElement.removeAttribute('lang'); document.body.innerHTML = {json.dumps(broken)}")
    browser.ask(f"{AXE}; 0")
    found = {each[0] for each in browser.ask(_RUN % ALL)}
    assert {"html-has-lang", "button-name", "image-alt"} <= found
