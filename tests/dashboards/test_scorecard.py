"""The scorecard as Markdown and as a page: every row, what is unknown, hostile texts, and a real browser."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.dashboards.scorecard import inert, markdown, scorecard_page
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.runs.verdict_line import read_verdict
from sidejudge.scoring.scorecards.scorecard import Scorecard, empty_tally, scorecard
from sidejudge.scoring.scorecards.template import ROWS, RowKind
from tests.dashboards.outline import Outline
from tests.needs import CHROMIUM
from tests.verdict_lines import invalid_line, metric_line, verdict_line


def card(models: dict[str, list[dict]], **extra: object) -> Scorecard:
    tallies = {}
    for name, lines in models.items():
        tallies[name] = empty_tally()
        for line in lines:
            tallies[name].add(read_verdict(line))
    return scorecard(tallies, **extra)


def full(value: float, n: int = 2) -> list[dict]:
    """Verdicts that fill every row of a model."""
    lines = []
    for rubric in ("qa", "entity", "text", "translation", "benchmarks"):
        metrics = [row.metric for row in ROWS if row.rubric == rubric and row.metric]
        scores = [metric_line(metric, value, raw=value) for metric in metrics]
        lines += [verdict_line(str(i), rubric, value, scores=scores, cost_usd=0.002) for i in range(n)]
    return lines


def cells(text: str, title: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {title} |"))
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[2:-2]]


def test_the_table_has_the_templates_rows_and_a_column_for_each_model() -> None:
    text = markdown(card({"A": full(0.96), "B": full(0.9), "C": full(0.5), "D": full(0.1)}))
    table = [line for line in text.splitlines() if line.startswith("|")][: len(ROWS) + 2]
    assert table[0] == "| Metric | A | B | C | D | Threshold |"
    for row, line in zip(ROWS, table[2:], strict=True):
        found = re.split(r"(?<!\\)\|", line)
        assert found[1].strip().replace("*", "").removeprefix("[!] ") == row.title
        assert found[-2].strip().replace("\\|", "|") == row.threshold
        assert len(found) == 8
        assert all(cell.strip() for cell in found[2:-2]) is (row.kind is not RowKind.HEADING)


def test_percentages_are_shown_as_the_seed_shows_them() -> None:
    lines = [
        verdict_line("1", scores=[metric_line("compliance_false_pass_rate", 0.012)]),
        verdict_line("1", "benchmarks", scores=[metric_line("hallucination_rate", 1.0, raw=0.0125)]),
    ]
    text = markdown(card({"A": lines}))
    assert cells(text, "[!] Compliance False Pass Rate") == ["1.2% ~"]
    assert "(raw 1.2%)" in cells(text, "Hallucination Rate")[0]


def test_rounding_never_carries_a_value_over_a_bound() -> None:
    lines = [
        verdict_line(
            "1", scores=[metric_line("question_score_accuracy", 0.94999), metric_line("score_gap_accuracy", 0.9)]
        )
    ]
    text = markdown(card({"A": lines}))
    assert cells(text, "Question Score Accuracy") == ["0.94999 ~"]
    assert cells(text, "Score Gap Accuracy") == ["0.900 ✓"]


def test_neither_a_score_nor_a_blocked_mean_is_rounded_over_its_bound() -> None:
    lines = [
        verdict_line("1", "qa", 0.86996),
        verdict_line("1", "text", 0.9, scores=[metric_line("fabrication_free_rate", 0.96996)]),
        verdict_line("1", "benchmarks", 0.79996),
    ]
    text = markdown(card({"A": lines}))
    assert [cells(text, f"**{name}**")[0].split(" ")[0] for name in ("QA Score", "Benchmark Score")] == [
        "0.86996", "0.79996",
    ]  # fmt: skip
    assert "| 0.96996 [!]" in next(line for line in text.splitlines() if "Fabrication-Free Rate" in line)


def test_what_is_unknown_is_a_dash_with_its_reason_below_and_never_a_zero() -> None:
    text = markdown(card({"A": full(0.96), "B": [verdict_line("1")]}))
    assert cells(text, "**Text Score**")[1].startswith("— [^")
    number = re.search(r"\[\^(\d+)\]", cells(text, "**Text Score**")[1])[1]
    assert f"[^{number}]: no verdict of rubric text" in text
    assert cells(text, "Cost-Adjusted Rank")[1].startswith("— [^")
    for _, cell in re.findall(r"\[\^(\d+)\](?!:)|(\|)", text):
        assert cell in ("|", "")
    used, reported = set(re.findall(r"\[\^(\d+)\](?!:)", text)), set(re.findall(r"^\[\^(\d+)\]:", text, re.MULTILINE))
    assert used == reported


def test_a_blocked_case_is_marked_in_words_and_not_by_colour_alone() -> None:
    lines = [*full(1.0, 3), invalid_line("9")]
    text = markdown(card({"A": lines}))
    assert cells(text, "[!] Response Structure Compliance")[0].startswith("0.750 [!]")
    assert cells(text, "Any Blocker Triggered?")[0].startswith("Yes [!]")
    page = scorecard_page(card({"A": lines}))
    assert re.search(r'<td class="blocker"[^>]*><span class="value">Yes</span><span class="sign">\[!\]</span>', page)


def test_aligned_says_the_same_in_columns() -> None:
    known = card({"A": full(0.96), "B": [verdict_line("1")]})
    plain, aligned = markdown(known), markdown(known, aligned=True)
    assert re.sub(r" +|-+", "", aligned) == re.sub(r" +|-+", "", plain)
    assert len({len(line) for line in aligned.splitlines()[4 : len(ROWS) + 6]}) == 1


def test_the_page_has_every_row_every_note_and_loads_nothing() -> None:
    known = card({"A": full(0.96), "B": [verdict_line("1")]})
    text = scorecard_page(known)
    page = Outline(text)
    assert page.open == []
    assert "script" not in page.tags
    assert all(link.startswith(("#note-", "data:image/svg+xml,")) for link in page.loads)
    assert all(f'id="{link[1:]}"' in text for link in page.loads if link.startswith("#"))
    for row in ROWS:
        assert row.title.replace(">", "&gt;").replace("<", "&lt;") in text
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    assert f"style-src 'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'" in html.unescape(
        text
    )
    assert not re.search(r"url\(|@import|https?:(?!//www\.w3\.org/2000/svg)", text)


hostile = st.one_of(
    st.text(st.characters(), min_size=1, max_size=80),
    st.sampled_from(
        [
            "<script>alert(1)</script>", "'\"><img src=x onerror=alert(1)>", "</style><b>", "a|b\\|c\\", "[x](http://e.org)",
            "![x](//e.org/p.png)", "line\nbreak\r\n| new | row |", "\x00\u2028\u202e", "`code", "[^1]: mine", "\x1b[2J",
            "<!-- ", "https://e.org www.e.org a@e.org", "\\", "-" * 60,
        ]
    ),
)  # fmt: skip


@given(hostile, hostile)
def test_no_name_and_no_reason_can_add_a_tag_a_link_a_row_or_a_column(name, reason) -> None:
    def of(model: str, why: str) -> Scorecard:
        gap = metric_line("target_language_fluency", None, "unavailable", why)
        return card({model: [verdict_line("1", "translation", scores=[gap], rubric_version=why)]})

    plain, found = Outline(scorecard_page(of("A", "why"))), Outline(scorecard_page(of(name, reason)))
    assert found.tags == plain.tags
    assert len(found.loads) == len(plain.loads)
    quiet, loud = markdown(of("A", "why")).splitlines(), markdown(of(name, reason)).splitlines()
    assert len(loud) == len(quiet)
    unescaped = re.compile(r"(?:[^\\|]|\\.)*")
    for one, other in zip(quiet, loud, strict=True):
        if one.startswith("|"):
            assert len(unescaped.findall(other)) == len(unescaped.findall(one))
    "\n".join(loud).encode()


@given(hostile)
def test_inert_text_holds_nothing_that_markdown_would_act_upon(text) -> None:
    left = re.sub(r"\\[^\w\s]", "", inert(text))
    assert not set(left) & set("`*<|[]~@\n\r\x1b")
    assert "://" not in left
    assert "www." not in left


HARNESS = b"""<!DOCTYPE html><title>measuring</title><iframe id="page" src="/page" width="1280" height="900"></iframe>
<script>
document.getElementById("page").onload = (event) => {
  const root = event.target.contentDocument.documentElement;
  const head = event.target.contentDocument.querySelector("table.scorecard thead th");
  event.target.contentWindow.scrollTo(0, 900);
  document.title = [root.scrollWidth, root.clientWidth, Math.round(head.getBoundingClientRect().top)].join(" ");
};
</script>"""


@pytest.mark.parametrize("models", [1, 3, 8])
def test_a_real_browser_shows_it_without_sideways_scrolling_under_a_head_that_stays_and_asks_nobody(
    models: int, tmp_path: Path
) -> None:
    browser = CHROMIUM.path()
    page = scorecard_page(card({f"provider/model-{n}@2026": full(0.9 + n / 100) for n in range(models)})).encode()
    requested: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.append(self.path)
            body = {"/": HARNESS, "/page": page}.get(self.path)
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body or b"")

        def do_CONNECT(self) -> None:
            requested.append(self.path)
            self.send_error(403)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    at = f"127.0.0.1:{server.server_address[1]}"
    try:
        done = subprocess.run(
            [
                browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
                "--no-first-run", f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1400,1000",
                "--virtual-time-budget=4000", "--dump-dom", f"http://{at}/",
            ],
            capture_output=True, text=True, timeout=100, check=True,
        )  # fmt: skip
    finally:
        server.shutdown()
        server.server_close()
    measured = re.search(r"<title>(\d+) (\d+) (-?\d+)</title>", done.stdout)
    assert measured, done.stdout[:300]
    needed, there, head = map(int, measured.groups())
    assert needed <= there
    assert head == 0
    assert set(requested) - {"/favicon.ico"} == {"/", "/page"}


def test_every_rubric_of_the_scorecard_that_exists_is_rated() -> None:
    known = card({"A": full(1.0)})
    for row, found in known.rows:
        if row.kind in (RowKind.METRIC, RowKind.BENCHMARK) and row.rubric in RUBRICS:
            assert found[0].rating is not None, row.title
