"""The summary against the seed's own, and what it adds: incomplete tests, errors, repeats."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.rubrics.dimensions import RUBRIC
from sidejudge.scoring.runs.summary import NO_OUTPUT, EvaluatedTest, RunSummary, evaluated, repeats, summarize
from tests.scoring.runs.seed_runner import SeedRunner

WEIGHTS = {criterion.metric.id: criterion.weight for criterion in RUBRIC.criteria}
scores = st.fixed_dictionaries({name: st.sampled_from([1.0, 0.8, 0.6, 0.3, 0.0]) for name in WEIGHTS})


def verdict(rubric: str, composite: float | None, values: dict[str, float | None], *, passed: bool | None) -> dict:
    listed = [{"metric": name, "value": value} for name, value in values.items()]
    return {"rubric": rubric, "passed": passed, "composite_norm": composite, "scores": listed}


def judged(values: dict[str, float]) -> EvaluatedTest:
    """As the rubric ``dimensions`` judges: the weighted mean, passed from 0.7 on."""
    overall = sum(WEIGHTS[name] * value for name, value in values.items())
    return evaluated([verdict("dimensions", overall, values, passed=overall >= 0.7)])


def outcome(evaluation: EvaluatedTest, *, number: int = 0, run: int = 1, error: str | None = None) -> RunSummary:
    return RunSummary(test={"id": f"t{number}"}, output="o", evaluation=evaluation, run=run, error=error)


@given(st.lists(scores, max_size=12))
def test_where_every_test_was_answered_and_judged_the_summary_is_the_seeds(found) -> None:
    results = [outcome(judged(values), number=number) for number, values in enumerate(found)]
    seed = SeedRunner(WEIGHTS, [result.to_json() for result in results]).summarize()
    ours = summarize(results)
    if not results:
        assert ours == seed == {"error": "No results"}
        return
    assert (ours.pop("incomplete"), ours.pop("errors")) == (0, 0)
    assert ours.pop("dimension_averages") == pytest.approx(seed.pop("dimension_averages"))
    assert ours == seed


def test_an_incomplete_test_neither_passes_nor_fails_and_is_no_failure() -> None:
    unknown = evaluated([verdict("dimensions", None, {"completeness": None}, passed=None)])
    reported = summarize([outcome(judged(dict.fromkeys(WEIGHTS, 1.0))), outcome(unknown)])
    assert (reported["total_tests"], reported["passed"], reported["failed"], reported["incomplete"]) == (2, 1, 0, 1)
    assert (reported["pass_rate"], reported["failures"]) == (1.0, [])
    assert summarize([outcome(unknown)])["pass_rate"] is None


def test_a_test_without_an_output_failed_and_its_reason_stands_among_the_failures() -> None:
    reported = summarize([outcome(NO_OUTPUT, error="it answered 500"), outcome(judged(dict.fromkeys(WEIGHTS, 1.0)))])
    assert (reported["failed"], reported["errors"], reported["pass_rate"]) == (1, 1, 0.5)
    (failure,) = reported["failures"]
    assert failure["error"] == "it answered 500"
    assert failure["evaluation"] == {"overall_score": None, "dimension_scores": {}, "passed": False}


def test_a_test_passes_when_every_rubric_passes_and_fails_when_one_fails() -> None:
    yes, no, open_ = (
        verdict(name, c, {"m": c}, passed=p) for name, c, p in (("a", 1, True), ("b", 0, False), ("c", None, None))
    )
    assert evaluated([yes, yes]).passed is True
    assert evaluated([yes, no, open_]).passed is False
    assert evaluated([yes, open_]).passed is None
    assert evaluated([]).passed is None
    assert evaluated([yes, no]).overall_score == 0.5
    assert evaluated([yes, open_]).overall_score is None


def test_metrics_of_two_rubrics_with_one_name_are_not_mixed() -> None:
    found = evaluated([verdict("dimensions", 1, {"completeness": 1.0}, passed=True),
                       verdict("quality", 0.2, {"completeness": 0.2}, passed=False)])  # fmt: skip
    assert found.dimension_scores == {"completeness": 1.0, "quality_completeness": 0.2}


@given(st.lists(st.lists(st.booleans(), min_size=2, max_size=2), min_size=1, max_size=6))
def test_repeats_are_the_sample_standard_deviation_of_three_runs_or_more(runs) -> None:
    results = [
        outcome(EvaluatedTest(overall_score=float(passed), dimension_scores={}, passed=passed), run=number)
        for number, run in enumerate(runs, 1)
        for passed in run
    ]
    reported = repeats(results)["pass_rate"]
    rates = [sum(run) / 2 for run in runs]
    assert reported["each"] == rates
    if len(runs) < 3:
        assert (reported["mean"], reported["sd"]) == (None, None)
    else:
        assert (reported["mean"], reported["sd"]) == (
            pytest.approx(statistics.mean(rates)), pytest.approx(statistics.stdev(rates)),
        )  # fmt: skip
