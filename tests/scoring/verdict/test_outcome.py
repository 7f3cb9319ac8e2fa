"""Outcomes that are remembered are those that would be reckoned."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.result.result import (
    Blocker,
    Effect,
    Failed,
    Judgement,
    NotApplicable,
    Scored,
    Unavailable,
    at_least,
)
from sidejudge.scoring.verdict.outcome import OutcomeMemo
from sidejudge.scoring.verdict.rubric import Criterion, Rubric
from sidejudge.scoring.verdict.verdict import reach_verdict

CASE = Case(case_id="c", model_output={})
IDS = ("gate", "a", "b", "guard")
SHARED = (Scored(value=1.0), Scored(value=0.0), Unavailable("nothing there"), NotApplicable("not asked"))
FRESH = (lambda: Scored(value=0.7), lambda: Unavailable("nothing there"), lambda: Failed("broke"))


def _rubric():
    def metric(name):
        return Metric(
            id=name, title=name, meaning="m", formula="f", source="s", measure=lambda _: SHARED[0],
            bands=at_least(good=0.9, acceptable=0.5),
        )  # fmt: skip

    gate, a, b, guard = map(metric, IDS)
    return Rubric(
        id="r",
        title="R",
        source="s",
        formula="f",
        criteria=(
            Criterion(metric=gate, prerequisite=True),
            Criterion(metric=a, weight=0.6),
            Criterion(metric=b, weight=0.4),
            Criterion(metric=guard, blocker=Blocker(effect=Effect.DISQUALIFIED, below=0.5)),
        ),
        pass_mark=0.7,
    )


RUBRIC = _rubric()


def reached(memo, results, judgements=None):
    at = "2026-01-01T00:00:00Z"
    verdict = reach_verdict(RUBRIC, CASE, results, judgements=judgements, created_at=at, memo=memo)
    return repr(verdict), verdict.to_json()


one = st.sampled_from(SHARED) | st.sampled_from(FRESH).map(lambda make: make())


@given(st.lists(st.tuples(one, one, one, one), min_size=1, max_size=60))
def test_whatever_came_before_a_verdict_is_the_one_that_is_reached_without_memory(cases):
    memo = OutcomeMemo()
    for results in cases:
        found = dict(zip(IDS, results, strict=True))
        assert reached(memo, found) == reached(None, found)
        assert reached(memo, dict(reversed(found.items()))) == reached(None, found)


def test_the_outcomes_of_two_rubrics_are_kept_apart():
    memo, other = OutcomeMemo(), replace(RUBRIC, pass_mark=1.0)
    found = {**dict.fromkeys(IDS, Scored(value=0.8)), "gate": SHARED[0]}
    assert memo.outcome(RUBRIC, found, {}).passed is True
    assert memo.outcome(other, found, {}).passed is False


def test_what_judges_were_asked_is_never_taken_from_an_earlier_verdict():
    memo, found = OutcomeMemo(), dict.fromkeys(IDS, SHARED[2])
    unasked = reached(memo, found)
    paid = {"a": (Judgement("model", "prompt", cost_usd=0.5, call="1"),)}
    assert reached(memo, found, paid) == reached(None, found, paid) != unasked
    assert reached(memo, found) == unasked


def test_equal_results_are_reckoned_once_and_only_the_latest_outcomes_are_kept():
    memo, found = OutcomeMemo(), dict.fromkeys(IDS, Scored(value=1.0))
    first = memo.outcome(RUBRIC, found, {})
    memo.outcome(RUBRIC, dict(found, a=Scored(value=0.5)), {})
    assert memo.outcome(RUBRIC, found, {}) is first
    for _ in range(100):
        memo.outcome(RUBRIC, {name: Scored(value=1.0) for name in IDS}, {})
    assert memo.outcome(RUBRIC, found, {}) is not first


@pytest.mark.parametrize(("composite", "stated"), [(0.9, "the composite is enough"), (0.6, "the composite of ")])
def test_the_reason_of_a_failure_without_a_failing_metric_is_true(composite, stated):
    rubric = replace(RUBRIC, passes=lambda *_: False)
    results = {name: Scored(value=1.0 if name in ("gate", "guard") else composite) for name in IDS}
    verdict = reach_verdict(rubric, CASE, results, created_at="2026-01-01T00:00:00Z")
    assert verdict.passed is False
    assert verdict.reason.startswith(stated)
    if composite < RUBRIC.pass_mark:
        assert verdict.reason.endswith(f"is below the pass mark of {RUBRIC.pass_mark:g}; most of it is lost by a")
    assert verdict.reason.shown() == verdict.reason


@pytest.mark.parametrize(("short", "stated"), [(1e-3, "0.899 is"), (1e-7, "0.8999999 is"), (2e-9, "0.899999998 is")])
def test_a_composite_that_fails_reads_below_its_mark(short, stated):
    rubric = replace(RUBRIC, pass_mark=0.9)
    results = {name: Scored(value=1.0 if name in ("gate", "guard") else 0.9 - short) for name in IDS}
    verdict = reach_verdict(rubric, CASE, results, created_at="2026-01-01T00:00:00Z")
    assert verdict.passed is False
    assert f"the composite of {stated} below the pass mark of 0.9;" in verdict.reason


def test_what_a_composite_lacks_most_is_named_by_weight_and_loss_together():
    rubric = replace(RUBRIC, pass_mark=0.9)
    for a, b, most in ((0.7, 0.5, "b"), (0.6, 0.5, "a"), (0.5, 0.0, "b")):
        found = dict(zip(IDS, (Scored(value=each) for each in (1.0, a, b, 1.0)), strict=True))
        named = replace(rubric, criteria=[replace(c, metric=replace(c.metric, bands=None)) for c in rubric.criteria])
        outcome = OutcomeMemo().outcome(named, found, {})
        assert outcome.passed is False
        assert f"most of it is lost by {most}" in str(outcome.reason)


def test_a_composite_on_another_scale_is_the_same_share_of_it():
    found, percent = dict.fromkeys(IDS, Scored(value=1.0)), replace(RUBRIC, scale=100.0, pass_mark=70.0)
    outcome = OutcomeMemo().outcome(percent, {**found, "a": Scored(value=0.5)}, {})
    assert (outcome.composite, outcome.composite_norm) == (70.0, 0.7)


def test_the_reason_names_the_first_unmet_prerequisite_and_each_one_that_decides():
    *others, guard = RUBRIC.criteria
    two = replace(RUBRIC, criteria=(*others, replace(guard, blocker=None, prerequisite=True)))
    outcome = OutcomeMemo().outcome(two, dict.fromkeys(IDS, SHARED[1]), {})
    assert (outcome.blockers, str(outcome.results["b"].reason)) == (("gate", "guard"), "gate is 0")
    outcome = OutcomeMemo().outcome(RUBRIC, {**dict.fromkeys(IDS, SHARED[0]), "guard": SHARED[1]}, {})
    assert str(outcome.reason) == "guard: blocker", "a hit without words of its own is named by its rating"


def test_what_weighs_nothing_and_checks_nothing_is_named_only_where_nothing_else_is_missing():
    beside = Criterion(metric=replace(RUBRIC.criteria[0].metric, id="beside"))
    rubric = replace(RUBRIC, criteria=(*RUBRIC.criteria, beside), passes=lambda *_: None)
    found = {**dict.fromkeys(IDS, SHARED[0]), "beside": SHARED[2]}
    assert str(OutcomeMemo().outcome(rubric, found, {}).reason) == "beside unavailable: nothing there"
    reason = str(OutcomeMemo().outcome(rubric, {**found, "b": Unavailable("no judge")}, {}).reason)
    assert reason == "b unavailable: no judge"
