"""What every rubric's verdict must keep to, whatever the results: the algebra of composites, rubric by rubric."""

from __future__ import annotations

import random
from functools import cache, partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.result import Failed, NotApplicable, Scored, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.verdict import State, reach_verdict

EACH = pytest.mark.parametrize("rubric", RUBRICS.values(), ids=list(RUBRICS))
BLOCKED = pytest.mark.parametrize(
    ("rubric", "criterion"),
    [
        pytest.param(rubric, criterion, id=f"{rubric.id}-{criterion.metric.id}")
        for rubric in RUBRICS.values()
        for criterion in rubric.criteria
        if criterion.blocker or criterion.prerequisite
    ],
)
WEIGHED = pytest.mark.parametrize(
    ("rubric", "gone"),
    [
        pytest.param(rubric, criterion, id=f"{rubric.id}-{criterion.metric.id}")
        for rubric in RUBRICS.values()
        for criterion in rubric.criteria
        if 0 < criterion.weight < 1  # what has all the weight leaves no others
    ],
)
REACH = partial(reach_verdict, case=Case(case_id="c", model_output="x"), created_at="2026-01-01T00:00:00Z")
often = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def reach(rubric, results):
    return REACH(rubric, results=results)


def best(criterion):
    """The best value of a metric: the end of its bounds that its component, or its bands, prefer."""
    low, high = criterion.metric.bounds
    high = 1e6 if high is None else high
    if criterion.weight:
        return low if criterion.component(low) > criterion.component(high) else high
    bands = criterion.metric.bands
    return low if bands is not None and not bands.higher_is_better else high


def worst(criterion):
    low, high = criterion.metric.bounds
    high = 1e6 if high is None else high
    return high if best(criterion) == low else low


def perfect(rubric):
    return {criterion.metric.id: Scored(value=best(criterion)) for criterion in rubric.criteria}


def results_of(rubric, draw, *, missing=True):
    """Results for every metric: mostly values within its bounds, and the three ways to have none."""
    return draw(_results(rubric.id, missing))


@cache
def _results(rubric, missing):
    found = {}
    for criterion in RUBRICS[rubric].criteria:
        low, high = criterion.metric.bounds
        value = st.floats(low, 10_000.0 if high is None else high).map(lambda each: Scored(value=each))
        none = st.sampled_from([Unavailable("u"), Failed("f"), NotApplicable("n")])
        found[criterion.metric.id] = st.one_of(value, value, value, none) if missing else value
    return st.fixed_dictionaries(found)


@EACH
@often
@given(data=st.data())
def test_composite_and_coverage_stay_in_bounds_and_agree_with_state_and_pass(rubric, data):
    found = reach(rubric, results_of(rubric, data.draw))
    assert 0 <= found.coverage <= 1 + 1e-12
    assert found.composite is None or -1e-9 <= found.composite <= rubric.scale + 1e-9
    assert found.composite_norm is None or found.composite_norm == pytest.approx(found.composite / rubric.scale)
    assert found.composite is not None or found.state in {State.INVALID, State.INCOMPLETE, State.DISQUALIFIED}
    assert found.composite is None or found.state not in {State.INVALID, State.INCOMPLETE}
    assert (found.passed is None) == (found.state is State.INCOMPLETE)
    assert not (found.passed and found.state in {State.INVALID, State.DISQUALIFIED})
    assert not found.passed or not found.blockers
    if found.passed and rubric.pass_mark is not None:
        assert round(found.composite, 9) >= rubric.pass_mark


@EACH
@often
@given(data=st.data(), chance=st.randoms(use_true_random=False))
def test_the_order_of_results_is_irrelevant(rubric, data, chance: random.Random):
    found = results_of(rubric, data.draw)
    rows = list(found.items())
    chance.shuffle(rows)
    assert reach(rubric, dict(rows)).to_json() == reach(rubric, found).to_json()


@EACH
@often
@given(data=st.data())
def test_a_better_value_never_lowers_the_composite_and_never_costs_the_pass(rubric, data):
    found = results_of(rubric, data.draw, missing=False)
    criterion = data.draw(st.sampled_from(rubric.criteria))
    share = data.draw(st.floats(0, 1))
    value = found[criterion.metric.id].value
    better = {**found, criterion.metric.id: Scored(value=value + share * (best(criterion) - value))}
    before, after = reach(rubric, found), reach(rubric, better)
    if before.composite is not None:
        assert after.composite >= before.composite - 1e-9
    assert after.passed or not before.passed


@EACH
def test_the_best_values_everywhere_are_a_perfect_valid_composite_that_passes(rubric):
    found = reach(rubric, perfect(rubric))
    assert found.composite == pytest.approx(rubric.scale)
    assert (found.state, found.passed, found.blockers) == (State.VALID, True, ())


@EACH
def test_the_worst_values_everywhere_do_not_pass(rubric):
    found = reach(rubric, {criterion.metric.id: Scored(value=worst(criterion)) for criterion in rubric.criteria})
    assert found.passed is False


@WEIGHED
@pytest.mark.parametrize("why", [Unavailable("u"), Failed("f")], ids=["unavailable", "error"])
def test_a_missing_part_costs_coverage_and_the_others_keep_their_proportions(rubric, gone, why):
    halves = {}
    for criterion in rubric.criteria:
        low, high = criterion.metric.bounds
        middle = best(criterion) if not criterion.weight or high is None else (low + high) / 2
        halves[criterion.metric.id] = Scored(value=middle)
    found = reach(rubric.with_overrides(min_coverage=0.0), {**halves, gone.metric.id: why})
    rest = [c for c in rubric.criteria if c.weight and c is not gone]
    left = sum(c.weight for c in rest)
    assert found.coverage == pytest.approx(left)
    mean = sum(c.weight * c.component(halves[c.metric.id].value) for c in rest) / left
    if found.composite is not None:
        assert found.composite_norm == pytest.approx(mean)
    whole = reach(rubric, {**halves, gone.metric.id: why})
    assert (whole.composite is not None) <= (left >= rubric.min_coverage - 1e-9)


@WEIGHED
def test_a_part_that_does_not_apply_costs_nothing(rubric, gone):
    found = reach(rubric, {**perfect(rubric), gone.metric.id: NotApplicable("n")})
    assert found.coverage == pytest.approx(1.0)
    assert found.composite is None or found.composite == pytest.approx(rubric.scale)
    assert found.composite is not None or found.passed is None


@EACH
@often
@given(data=st.data())
def test_a_blocker_or_an_unmet_prerequisite_never_passes(rubric, data):
    gappy, whole = results_of(rubric, data.draw), results_of(rubric, data.draw, missing=False)
    for criterion in rubric.criteria:
        if not (criterion.blocker or criterion.prerequisite):
            continue
        blocked = {criterion.metric.id: Scored(value=worst(criterion))}
        assert not reach(rubric, {**gappy, **blocked}).passed
        found = reach(rubric, {**whole, **blocked})
        assert found.passed is False
        assert found.state in {State.INVALID, State.DISQUALIFIED}
        assert found.rating == "blocker"
        assert found.blockers


@BLOCKED
@pytest.mark.parametrize("why", [Unavailable("u"), Failed("f")], ids=["unavailable", "error"])
def test_a_blocker_that_was_not_checked_is_never_called_valid(rubric, criterion, why):
    found = reach(rubric, {**perfect(rubric), criterion.metric.id: why})
    assert found.state in {State.PARTIAL, State.INCOMPLETE}
    assert criterion.metric.id in found.reason


@EACH
def test_without_any_value_there_is_neither_pass_nor_fail(rubric):
    for why in (Unavailable("u"), Failed("f"), NotApplicable("n")):
        found = reach(rubric, {criterion.metric.id: why for criterion in rubric.criteria})
        assert (found.composite, found.passed, found.state) == (None, None, State.INCOMPLETE)
