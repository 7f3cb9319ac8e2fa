"""The page of a service: what its verdicts add up to."""

from __future__ import annotations

import tracemalloc

from sidejudge.dashboards.pages.rendering import metric_card, stylesheet
from sidejudge.dashboards.pages.service_page import (
    ServicePage,
    histogram,
    metric_rows,
    service_page,
    value_in,
    version_rows,
)
from sidejudge.scoring.statistics.estimate import from_sums
from sidejudge.scoring.status.status import Thresholds
from sidejudge.scoring.status.trend import Trend

NOW = 1_790_000_000 * 10**9


def verdict(number: int, value: float | None, *, passed: bool | None, version: str = "qa@1") -> dict[str, object]:
    rating = None if value is None else "good" if passed else "fail"
    scores = [{"metric": "accuracy", "value": value, "rating": rating, "status": "scored" if rating else "unavailable"}]
    return {
        "trace_id": f"{number:032x}", "rubric": "qa", "rubric_version": version, "passed": passed, "scores": scores,
        "composite_norm": value, "closed_ns": NOW - number * 10**9, "name": "<b>call</b>", "reason": "why",
    }  # fmt: skip


VERDICTS = [
    verdict(1, 0.95, passed=True), verdict(2, 0.2, passed=False), verdict(3, None, passed=None),
    verdict(4, 1.0, passed=True, version="qa@0"),
]  # fmt: skip


def page(**more: object) -> str:
    estimate = from_sums(n=40, failures=4, weight=40.0, failed_weight=4.0, squared_weight=40.0)
    trend = Trend(until_ns=NOW, step_ns=3600 * 10**9, estimates=(None,) * 12 + (estimate,) * 12, enough=5)
    values = {
        "service": "shop", "environment": "prod", "rubric": "qa", "last": "1d", "now_ns": NOW, "status": None,
        "thresholds": Thresholds(), "trend": trend, "verdicts": VERDICTS,
    }  # fmt: skip
    return service_page(ServicePage(**{**values, **more}))


def test_metrics_are_counted_with_those_that_fail_first() -> None:
    (row,) = metric_rows(VERDICTS)
    assert (row.metric, row.scored, row.failing, row.missing) == ("accuracy", 3, 1, 1)
    assert row.mean is not None
    assert round(row.mean, 4) == 0.7167


def test_values_are_spread_over_the_whole_range_and_the_largest_is_in_the_last_bar() -> None:
    bars = histogram([0.0, 0.05, 1.0, 1.0], (0.0, 1.0))
    assert [bar.count for bar in bars] == [1, 1, *([0] * 17), 2]
    assert (bars[0].low, bars[-1].high) == ("0", "1")
    assert bars[-1].height == max(bar.height for bar in bars)
    assert sum(bar.count for bar in histogram([3.0, 900.0, 5000.0], (0.0, None))) == 3
    assert histogram([], (0.0, 1.0)) == []


def test_versions_are_apart_the_latest_first() -> None:
    rows = version_rows(VERDICTS)
    assert [(row.version, row.count, row.passed, row.decided) for row in rows] == [("qa@1", 3, 1, 2), ("qa@0", 1, 1, 1)]


def test_a_truth_value_is_no_number() -> None:
    assert value_in({"composite_norm": True}, "") is None
    assert value_in(VERDICTS[0], "accuracy") == 0.95
    assert value_in(VERDICTS[0], "other") is None


def test_the_worst_trace_stands_first_and_everything_is_escaped() -> None:
    text = page(metric="accuracy")
    worst = text.partition('id="worst"')[2]
    assert worst.partition("/traces/")[2].startswith(f"{2:032x}")
    assert "<b>call" not in text
    assert '<a href="/help/reference/metrics#' not in text, "qa has no metric accuracy"


def test_of_a_metric_whose_failures_are_large_the_largest_is_the_worst() -> None:
    slow = [verdict(1, 900.0, passed=True), verdict(2, 9000.0, passed=False)]
    worst = page(metric="accuracy", verdicts=slow, bounds=(0.0, None)).partition('id="worst"')[2]
    assert worst.index("9000") < worst.index(">900<")


def test_the_style_sheet_is_the_one_that_the_policy_allows() -> None:
    assert f"<style>{stylesheet()}</style>" in page()


def test_the_chart_has_axes_and_the_range_is_in_every_address() -> None:
    text = page(last="6h")
    assert 'class="trend chart"' in text
    assert ">100 %</text>" in text
    assert 'href="/services?service=shop&amp;environment=prod&amp;rubric=qa&amp;last=6h" aria-current="page"' in text
    assert "metric=accuracy&amp;last=6h" in text
    assert "/verdicts?service=shop&amp;environment=prod&amp;rubric=qa&amp;passed=false&amp;last=6h" in text


def test_without_a_verdict_the_page_says_what_to_do() -> None:
    assert "No verdict in this time" in page(verdicts=[], trend=None)


def test_metrics_that_addresses_name_and_no_rubric_has_are_not_remembered() -> None:
    assert metric_card("qa", "question_score_accuracy") == "/help/reference/metrics#qa-question_score_accuracy"
    assert metric_card("my own", "a metric") == "/rubrics/my%20own#a%20metric"
    tracemalloc.start()
    for number in range(2_000):
        assert metric_card("qa", f"{number:0200d}") == ""
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 50_000
