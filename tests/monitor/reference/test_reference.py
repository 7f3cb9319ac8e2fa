"""The generated pages say what the declarations say."""

from __future__ import annotations

from sidejudge.monitor.config import resolve
from sidejudge.monitor.config.environment import name_of
from sidejudge.monitor.config.summary import summary
from sidejudge.monitor.config.validation_messages import walk
from sidejudge.monitor.reference import REFERENCE, pages
from sidejudge.scoring.rubrics import RUBRICS


def test_the_generated_pages_are_up_to_date() -> None:
    stale = [str(page) for page, text in pages().items() if page.read_text(encoding="utf-8") != text]
    assert stale == [], "run 'make reference'"


def test_every_metric_of_every_rubric_has_its_card() -> None:
    page = pages()[REFERENCE / "metrics.md"]
    for rubric in RUBRICS.values():
        assert f"## {rubric.id}\n" in page
        for criterion in rubric.criteria:
            assert f"### {rubric.id} {criterion.metric.id}\n" in page
            assert criterion.metric.formula in page


def test_every_key_has_its_line_with_its_variable() -> None:
    page = pages()[REFERENCE / "configuration.md"]
    leaves = [
        path
        for path, _ in walk()
        if not any(len(other) > len(path) and other[: len(path)] == path for other, _ in walk())
    ]
    for path in leaves:
        if path != ("evaluators", "lexical"):
            assert f"`{'.'.join(path)}`" in page
            assert f"`{name_of(path)}`" in page


def test_the_summary_shows_every_key_once() -> None:
    shown = [key for key, _, _ in summary(resolve(None, {}))]
    assert len(shown) == len(set(shown))
    assert "alerts.thresholds.critical" in shown
