"""What a limit asks of a value, and when it is passed; small rules of snapshots that several rooms rely on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidejudge.scoring.statistics.quantile import Measured
from sidejudge.scoring.status.metric_status import (
    MetricEvidence,
    MetricLimit,
    appraise_metric,
    metric_estimate,
    metric_ruled_out,
)
from sidejudge.scoring.status.snapshots import JudgeModelSnapshot, JudgeSnapshot
from sidejudge.scoring.status.status import Policy, Status, Thresholds

SLOW = MetricLimit(name="latency_p90", measure="latency", quantile=0.9, critical=5.0, unit="seconds")
FEW = replace(SLOW, name="tokens_p10", quantile=0.1, below=True)
GRADE = MetricLimit(name="grade_mean", measure="grade", critical=3.0, below=True, bounds=(1.0, 5.0))
ERRORS = replace(GRADE, name="errors_mean", below=False)


@pytest.mark.parametrize(
    ("limit", "kept", "threshold"),
    [
        (SLOW, {4.9: 1.0, 5.0: 1.0, 5.1: 0.0}, 0.9),
        (FEW, {4.9: 0.0, 5.0: 1.0, 5.1: 1.0}, 0.9),
        (GRADE, {1.0: 0.0, 2.0: 0.25, 5.0: 1.0, 9.0: 1.0}, 0.5),
        (ERRORS, {1.0: 1.0, 2.0: 0.75, 5.0: 0.0, -9.0: 1.0}, 0.5),
    ],
)
def test_how_far_a_value_keeps_to_a_limit_and_what_is_wanted_of_the_mean(limit, kept, threshold):
    assert {value: limit.kept(value, 5.0) for value in kept} == kept
    assert limit.threshold(limit.critical) == pytest.approx(threshold)


def test_a_mean_has_bounds_on_its_own_scale_and_fewer_values_where_they_belong_together():
    values = [Measured(value, 1.0, None) for value in (2.0, 4.0) * 50]
    found = metric_estimate(GRADE, values, design_effect=4.0)
    assert (found.value, found.n, found.effective_n) == (3.0, 100, 25.0)
    assert 2.0 < found.lower < 3.0 < found.upper < 4.0


def test_a_scale_that_ends_at_zero_shows_its_mean():
    loss = replace(GRADE, name="loss_mean", critical=-0.2, bounds=(-1.0, 0.0))
    found = appraise_metric(loss, metric_estimate(loss, [Measured(-0.5, 1.0, None)] * 50), Policy(mode="point"), {})
    assert (found.status, "the mean is -0.5 in the window" in found.reason) == (Status.CRITICAL, True)


@pytest.mark.parametrize(
    ("since", "margin", "status"),
    [
        (0.49, 0.0, "critical"),
        (0.5, 0.0, "healthy"),
        (0.54, 0.1, "critical"),
        (0.55, 0.1, "healthy"),
        (None, 0.1, "healthy"),
    ],
)
def test_a_status_gets_better_only_once_a_part_of_the_way_to_one_is_regained(since, margin, status):
    estimate = metric_estimate(GRADE, [Measured(3.4, 1.0, None)] * 50)
    evidence = {"critical": MetricEvidence(since=since)}
    found = appraise_metric(GRADE, estimate, Policy(mode="adaptive"), evidence, margin=margin)
    assert found.status is Status(status)
    if status == "critical":
        assert f"the mean is {1 + 4 * since:.4g} since it changed" in found.reason


def test_both_thresholds_are_raised_by_the_margin():
    assert Thresholds(warning=0.85, critical=0.7).raised(0.02) == Thresholds(warning=0.87, critical=0.72)


@pytest.mark.parametrize(("circuits", "named"), [("co", "b"), ("oo", "a, b"), ("coc", ""), ("", "")])
def test_a_panel_is_unreachable_where_half_of_it_is(circuits, named):
    models = tuple(
        JudgeModelSnapshot(model=name, circuit={"c": "closed", "o": "open"}[each], reason="down")
        for name, each in zip("abc", circuits, strict=False)
    )
    found = JudgeSnapshot(name="j", models=models, outage=None, spending=(), shares={}, under_way=0, waiting=0)
    assert ", ".join(part.partition(":")[0] for part in (found.unreachable or "").split("; ")) == named


ADAPTIVE = Policy(mode="adaptive")
BOTH, LATE = replace(GRADE, warning=4.0), replace(SLOW, warning=5.0, critical=10.0)


def test_a_window_wholly_beyond_a_limit_without_evidence_is_undecided_and_not_healthy():
    poor = metric_estimate(BOTH, [Measured(2.0, 1.0, None)] * 60)
    found = appraise_metric(BOTH, poor, ADAPTIVE, {})
    assert (found.status, found.undecided) == (Status.INSUFFICIENT_DATA, True)
    assert "undecided; it lies beyond the limit" in found.reason
    about = metric_estimate(BOTH, [Measured(value, 1.0, None) for value in (3.0, 5.0)] * 30)
    assert appraise_metric(BOTH, about, ADAPTIVE, {}).status is Status.HEALTHY


def test_evidence_that_the_window_contradicts_is_undecided_and_a_drop_that_the_values_since_contradict_is_over():
    good = metric_estimate(BOTH, [Measured(4.8, 1.0, None)] * 60)
    poor = metric_estimate(BOTH, [Measured(2.0, 1.0, None)] * 9)
    of_days = {"critical": MetricEvidence(sequence=5.0), "warning": MetricEvidence(sequence=9.0)}
    found = appraise_metric(BOTH, good, ADAPTIVE, of_days, series=2)
    assert (found.status, found.undecided) == (Status.INSUFFICIENT_DATA, True)
    assert appraise_metric(BOTH, poor, ADAPTIVE, of_days, series=2).status is Status.CRITICAL
    dropped = {"warning": MetricEvidence(since=0.5, fallen=good)}
    assert appraise_metric(BOTH, good, ADAPTIVE, dropped).status is Status.HEALTHY
    dropped = {"warning": MetricEvidence(since=0.5, fallen=poor)}
    assert appraise_metric(BOTH, good, ADAPTIVE, dropped).status is Status.WARNING


@pytest.mark.parametrize(
    ("limit", "values", "ruled_out"),
    [
        (BOTH, [4.9] * 80, Status.WARNING),
        (BOTH, [3.4] * 200, Status.CRITICAL),
        (BOTH, [3.0, 3.4] * 30, None),
        (LATE, [1.0] * 200, Status.WARNING),
        (LATE, [7.0] * 200, Status.CRITICAL),
        (LATE, [20.0] * 200, None),
        (LATE, [1.0] * 10, None),
    ],
)
def test_the_alarms_that_an_interval_rules_out(limit, values, ruled_out):
    estimate = metric_estimate(limit, [Measured(value, 1.0, None) for value in values])
    assert metric_ruled_out(limit, estimate) is ruled_out
    assert metric_ruled_out(limit, None) is None
