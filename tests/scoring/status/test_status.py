from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.statistics.estimate import estimate
from sidejudge.scoring.statistics.sequence import ConfidenceSequence
from sidejudge.scoring.status.status import Appraisal, Drops, Policy, Status, Thresholds, appraise, ruled_out
from tests.seed_policy import SEED


def of(passes: int, failures: int, weight: float = 1.0):
    return estimate([(True, weight)] * passes + [(False, weight)] * failures)


def seed_status(passed: int, total: int) -> str:
    """Seed 004's ProductionMonitor, as it is written."""
    if not total:
        return "insufficient_data"
    pass_rate = passed / total
    if pass_rate < 0.70:
        return "critical"
    if pass_rate < 0.85:
        return "warning"
    return "healthy"


@given(st.integers(0, 400), st.integers(0, 400), st.sampled_from([1.0, 100.0, 1 / 0.3, 1 / 0.07]))
def test_point_mode_from_the_first_sample_is_the_seeds_monitor(passes, failures, weight):
    assert appraise(of(passes, failures, weight), SEED).status == seed_status(passes, passes + failures)


@pytest.mark.parametrize(
    ("passes", "failures", "expected"),
    [(0, 0, "insufficient_data"), (1, 0, "healthy"), (0, 1, "critical"), (17, 3, "healthy"), (84, 16, "warning"),
     (7, 3, "warning"), (69, 31, "critical"), (85, 15, "healthy"), (70, 30, "warning")],
)  # fmt: skip
def test_seed_examples_at_and_around_the_thresholds(passes, failures, expected):
    assert appraise(of(passes, failures), SEED).status == expected


def test_below_min_samples_nothing_is_said():
    policy = Policy(mode="point", min_samples=30)
    assert appraise(of(0, 29), policy).status is Status.INSUFFICIENT_DATA
    assert appraise(of(0, 30), policy).status is Status.CRITICAL
    assert appraise(of(0, 30, weight=1 / 0.3), policy).status is Status.CRITICAL


def test_min_samples_counts_effective_samples_not_verdicts():
    lopsided = estimate([(False, 1.0)] * 60 + [(True, 1000.0)])
    assert appraise(lopsided, Policy(min_samples=30)).status is Status.INSUFFICIENT_DATA


def test_bound_mode_waits_until_even_the_upper_bound_is_below():
    # 23 of 30 is 0.77, below 0.85, but the truth may well be 0.87.
    found = [appraise(of(*counts), Policy()).status for counts in ((23, 7), (20, 10), (230, 70), (15, 15))]
    assert found == [Status.HEALTHY, Status.WARNING, Status.WARNING, Status.CRITICAL]


def test_bound_mode_needs_failures_not_only_samples():
    strict = Thresholds(warning=1.0, critical=0.99)
    lucky = Policy(thresholds=strict, min_samples=1, min_failures=3)
    assert appraise(of(0, 2), lucky).status is Status.INSUFFICIENT_DATA  # the interval rules healthy out
    assert appraise(of(0, 2), lucky).undecided
    assert "only 2 of the 3 failures" in appraise(of(0, 2), lucky).reason
    assert appraise(of(0, 3), lucky).status is Status.CRITICAL


@given(st.integers(0, 200), st.integers(0, 200))
def test_bound_mode_never_speaks_up_where_point_mode_is_silent(passes, failures):
    order = [Status.HEALTHY, Status.WARNING, Status.CRITICAL]
    sample = of(passes, failures)
    point = appraise(sample, Policy(mode="point")).status
    bound = appraise(sample, Policy(mode="bound")).status
    if point is Status.INSUFFICIENT_DATA:
        assert bound is Status.INSUFFICIENT_DATA
    else:
        assert bound is Status.INSUFFICIENT_DATA or order.index(bound) <= order.index(point)


@given(st.integers(0, 200), st.integers(0, 200))
def test_a_failure_turned_pass_never_makes_it_worse(passes, failures):
    order = [Status.HEALTHY, Status.INSUFFICIENT_DATA, Status.WARNING, Status.CRITICAL]
    for mode in ("point", "bound"):
        policy = Policy(mode=mode, min_samples=1, min_failures=1)
        before = appraise(of(passes, failures + 1), policy).status
        after = appraise(of(passes + 1, failures), policy).status
        assert order.index(after) <= order.index(before)


def test_reasons_name_the_numbers():
    assert appraise(None, Policy()) == Appraisal(Status.INSUFFICIENT_DATA, "no verdict in the window")
    assert appraise(of(3, 1), Policy()).reason == "4 verdicts, 30 are needed"
    assert appraise(of(1, 0), Policy()).reason == "1 verdict, 30 are needed"
    assert appraise(of(3, 1), Policy(), incomplete=1).reason == "4 verdicts, 30 are needed; 1 is incomplete"
    assert appraise(None, Policy(), incomplete=40, judge_failed=40).reason == (
        "no verdict in the window passed or failed; 40 are incomplete, because an evaluator failed"
    )
    assert appraise(None, Policy(), incomplete=1_200, judge_failed=3).reason == (
        "no verdict in the window passed or failed; 1,200 are incomplete, 3 of them because an evaluator failed"
    )
    assert appraise(of(15, 15), Policy()).reason == (
        "pass ratio 0.500: the upper end of its 95 % interval 0.683 is below the critical threshold 0.7"
    )
    assert appraise(of(30, 0), SEED).reason == "pass ratio 1.000 is not below the warning threshold 0.85"


def test_a_figure_is_shown_on_the_side_of_the_threshold_that_decides():
    assert appraise(of(1699, 301), Policy(mode="point")).reason == (
        "pass ratio 0.8495 is below the warning threshold 0.85"
    )


@pytest.mark.parametrize("pair", [(0.7, 0.85), (1.1, 0.5), (0.5, -0.1)])
def test_thresholds_out_of_order_are_refused(pair):
    warning, critical = pair
    with pytest.raises(ValueError, match="critical <= warning"):
        Thresholds(warning=warning, critical=critical)


ADAPTIVE = Policy(mode="adaptive")


@pytest.mark.parametrize(
    ("estimate", "drops", "expected"),
    [
        (of(40, 0), None, "healthy"),
        (of(20, 0), None, "insufficient_data"),
        (None, Drops(fall=0.5), "insufficient_data"),
        (of(20, 0), Drops(fall=0.8), "warning"),
        (of(60, 20), Drops(), "insufficient_data"),
        (of(60, 20), Drops(fall=0.86), "insufficient_data"),
        (of(60, 20), Drops(fall=0.86, collapse=0.75), "insufficient_data"),
        (of(66, 14), Drops(fall=0.86, collapse=0.75), "healthy"),
        (of(60, 20), Drops(slide=0.84), "warning"),
        (of(60, 20), Drops(slide=0.86), "insufficient_data"),
        (of(80, 2), Drops(slide=0.84), "insufficient_data"),
        (of(60, 20), Drops(fall=0.75, collapse=0.75), "warning"),
        (of(40, 40), Drops(fall=0.5, collapse=0.5), "critical"),
    ],
)
def test_adaptive_mode_goes_by_the_ratio_since_a_drop_began_and_needs_no_minimum_for_it(estimate, drops, expected):
    assert appraise(estimate, ADAPTIVE, None, drops).status == expected


def test_adaptive_mode_asks_a_sequence_for_as_much_more_as_there_are_series():
    sequence = ConfidenceSequence((0.85, 0.7), error=0.1, period_ns=100)
    while sequence.evidence(0.85) < 2:
        sequence.add(passed=sequence.n % 2 == 0, weight=1.0, at_ns=sequence.n)
    assert appraise(of(40, 40), ADAPTIVE, sequence, Drops(series=1)).status == "warning"
    assert appraise(of(40, 40), ADAPTIVE, sequence, Drops(series=4)).undecided
    assert appraise(of(80, 2), ADAPTIVE, sequence, Drops(series=1)).undecided, "the window contradicts the evidence"


def test_a_healthy_service_is_told_with_the_lower_end_of_its_interval():
    assert "may be as low as 0.79" in appraise(of(170, 30), ADAPTIVE).reason
    assert "at least 0.96" in appraise(of(300, 4), ADAPTIVE).reason
    undecided = appraise(of(81, 32), ADAPTIVE)
    assert (undecided.status, undecided.undecided) == ("insufficient_data", True)
    assert "between 0.62 and 0.80: undecided" in undecided.reason


_RATIOS = st.none() | st.floats(0, 1)


@given(
    passed=st.integers(0, 400), failed=st.integers(0, 400), fall=_RATIOS, collapse=_RATIOS, slide=_RATIOS,
    evidence=st.integers(0, 60),
)  # fmt: skip
def test_no_status_says_what_its_own_interval_rules_out(passed, failed, fall, collapse, slide, evidence):
    if not passed + failed:
        return
    found, drops = of(passed, failed), Drops(fall=fall, collapse=collapse, slide=slide)
    sequence = ConfidenceSequence((0.85, 0.7), error=0.1, period_ns=100)
    for number in range(evidence):
        sequence.add(passed=False, weight=1.0, at_ns=number)
    status = appraise(found, ADAPTIVE, sequence, drops).status
    if status == "healthy":
        assert found.upper >= 0.85
    if status == "critical":
        assert (collapse is not None and collapse < 0.7) or found.lower <= 0.7
    if status == "warning":
        assert (fall is not None and fall < 0.85) or found.lower <= 0.85


class Evidence:
    """A confidence sequence of which only the evidence below each threshold counts."""

    def __init__(self, critical: float, warning: float) -> None:
        self._of = {0.70: critical, 0.85: warning}

    def evidence(self, threshold: float) -> float:
        return self._of[threshold]


ADAPTIVE = Policy(mode="adaptive")
HIGH, MIDDLE, LOW = of(190, 10), of(160, 40), of(60, 40)
"""Their intervals lie above both thresholds, above the critical one, and about it."""


@pytest.mark.parametrize(
    ("estimate", "critical", "drops", "contested"),
    [
        (MIDDLE, 0.49, Drops(), None), (MIDDLE, 0.5, Drops(), Status.CRITICAL), (MIDDLE, 3.0, Drops(), Status.CRITICAL),
        (MIDDLE, 0.0, Drops(collapse=0.5), Status.CRITICAL), (LOW, 0.6, Drops(), None),
    ],
)  # fmt: skip
def test_a_worse_status_that_the_window_rules_out_is_contested(estimate, critical, drops, contested):
    found = appraise(estimate, ADAPTIVE, Evidence(critical, 1.0), drops)
    assert (found.status, found.contested) == (Status.WARNING, contested)


def test_evidence_that_just_convinces_raises_and_a_slide_has_words_of_its_own():
    assert appraise(LOW, ADAPTIVE, Evidence(1.0, 1.0), Drops()).status is Status.CRITICAL
    slid = appraise(MIDDLE, ADAPTIVE, Evidence(0.0, 0.0), Drops(slide=0.8))
    assert (slid.status, "slid from what it was a week ago" in slid.reason) == (Status.WARNING, True)
    for evidence in (1.0, 1.5, 2.5):
        convinced = appraise(MIDDLE, ADAPTIVE, Evidence(0.0, evidence), Drops(slide=0.8))
        assert convinced.reason.endswith(f"the warning threshold 0.85 is {evidence:.1f} times what convinces")
    assert appraise(MIDDLE, ADAPTIVE, Evidence(0.0, 0.0), Drops(slide=0.85)).status is Status.HEALTHY


@pytest.mark.parametrize("drops", [Drops(fall=0.8), Drops(slide=0.8)])
def test_a_drop_that_the_window_rules_out_leaves_it_undecided(drops):
    found = appraise(HIGH, ADAPTIVE, Evidence(0.0, 0.0), drops)
    assert (found.status, found.undecided, found.contested) == (Status.INSUFFICIENT_DATA, True, None)


def test_an_interval_rules_out_what_lies_wholly_below_it_and_not_what_it_touches():
    levels = Thresholds()
    assert [ruled_out(each, levels) for each in (HIGH, MIDDLE, LOW, None)] == [
        Status.WARNING,
        Status.CRITICAL,
        None,
        None,
    ]
    touched = Thresholds(warning=round(HIGH.lower, 9), critical=0.7)
    assert ruled_out(HIGH, touched) is Status.CRITICAL
    policy = Policy(mode="adaptive", thresholds=Thresholds(warning=round(LOW.upper, 9), critical=0.1))
    assert appraise(LOW, policy).undecided is False


def test_a_recovery_is_held_against_the_ratio_and_thresholds_end_at_1():
    raised = {mode: Policy(mode=mode).raised(0.02).mode for mode in ("bound", "point", "adaptive")}
    assert raised == {"bound": "point", "point": "point", "adaptive": "adaptive"}
    assert Thresholds(warning=0.99, critical=0.98).raised(0.05) == Thresholds(warning=1.0, critical=1.0)
