"""The conditions: each with a story that breaches it, one that does not, and one that cannot be told."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from sidejudge.scoring.alerts.condition import Agreement, MonitorFacts, Observed, Severity, WindowFacts
from sidejudge.scoring.alerts.conditions import conditions
from sidejudge.scoring.alerts.declaration import ChangeRule, Declaration
from sidejudge.scoring.alerts.quality import place_of
from sidejudge.scoring.statistics.estimate import MeanEstimate, estimate, mean_estimate
from sidejudge.scoring.statistics.judge_drift import JudgeDrift
from sidejudge.scoring.status.metric_status import MetricEstimate, MetricLimit, MetricStatus
from sidejudge.scoring.status.service_status import ServiceStatus, Silence, SilenceCause, SliceStatus, StatusChange
from sidejudge.scoring.status.snapshots import CircuitName, JudgeModelSnapshot, JudgeSnapshot, Spending
from sidejudge.scoring.status.status import Appraisal, Policy, Status, Thresholds

DECLARED = Declaration(policy=Policy())
ALL = conditions(DECLARED)
QUALITY = {"pass_rate_critical", "pass_rate_warning", "pass_rate_change", "scenario_drift", "blocker_rate",
           "traffic_stopped", "version_worse", "slice_worse", "metric_mean_low", "metric_critical", "metric_warning",
           "workflow_violation_rate"}  # fmt: skip


def standing(status=Status.HEALTHY, *, passes=90, failures=10, change=None, drift=None, silence=None, slices=()):
    return ServiceStatus(
        service="shop", environment="prod", rubric="qa", appraisal=Appraisal(status, "because"), change=change,
        drift=drift, silence=silence, slices=slices,
        estimate=estimate([(True, 1.0)] * passes + [(False, 1.0)] * failures),
    )  # fmt: skip


def change(*, alarmed: bool) -> StatusChange:
    return StatusChange(share=1.0 if alarmed else 0.2, alarmed=alarmed, good=0.9, bad=0.75, run_length=1e4, since_ns=5)


def events(hit: int, n: int):
    return estimate([(True, 1.0)] * (n - hit) + [(False, 1.0)] * hit)


def window(**more) -> Observed:
    more.setdefault("status", standing())
    return Observed(now_ns=0, windows=[WindowFacts(**more)])


def judge(*circuits: CircuitName, spent: float = 0.0, limit: float | None = 1.0) -> JudgeSnapshot:
    return JudgeSnapshot(
        name="m", models=tuple(JudgeModelSnapshot(model=f"m{n}", circuit=each, reason="timeout" * (each != "closed"))
                               for n, each in enumerate(circuits)),
        outage=None, shares={}, under_way=0, waiting=7,
        spending=(Spending(period="hour", spent_usd=spent, limit_usd=limit),),
    )  # fmt: skip


def at(value: float) -> MeanEstimate:
    return MeanEstimate(n=40, effective_n=40.0, mean=value, lower=value, upper=value)


def mean(value: float, n: int = 100):
    return mean_estimate([(value - 0.05, 1.0), (value + 0.05, 1.0)] * (n // 2))


def limited(status: Status) -> Observed:
    limit = MetricLimit(name="gap_p95", measure="gap", rubric="qa", quantile=0.95, warning=5.0, critical=10.0)
    known = MetricEstimate(value=7.0, lower=6.0, upper=None, n=100, effective_n=80.0)
    found = MetricStatus(
        service="shop", environment="prod", limit=limit, estimate=known, appraisal=Appraisal(status, "too slow")
    )
    return Observed(now_ns=0, metrics=[found])


def part(by: str, *, worse: bool) -> tuple[SliceStatus, ...]:
    return (SliceStatus(by=by, value="x", estimate=events(20, 40), others=events(4, 100), worse=worse, since_ns=5),)


STOPPED = Silence(since_ns=-(10**12), cause=SilenceCause.NO_SPANS)
ACCEPTABLE = {"accuracy": (0.8, True), "error_rate": (0.1, False)}
STORIES = {
    "pass_rate_critical": [
        (window(status=standing(Status.CRITICAL)), True),
        (window(status=standing(Status.WARNING)), False),
        (window(status=standing(Status.INSUFFICIENT_DATA)), None),
    ],
    "pass_rate_warning": [
        (window(status=standing(Status.CRITICAL)), True),
        (window(status=standing(Status.WARNING)), True),
        (window(), False),
        (window(status=standing(Status.INSUFFICIENT_DATA)), None),
        (window(status=standing(Status.NO_DATA, silence=STOPPED)), None),
    ],
    "pass_rate_change": [
        (window(status=standing(change=change(alarmed=True))), True),
        (window(status=standing(Status.NO_DATA, change=change(alarmed=True), silence=STOPPED)), None),
        (window(status=standing(change=change(alarmed=False))), False),
    ],
    "scenario_drift": [
        (window(status=standing(drift=change(alarmed=True))), True),
        (window(status=standing(Status.NO_DATA, drift=change(alarmed=True), silence=STOPPED)), None),
        (window(status=standing(drift=change(alarmed=False))), False),
    ],
    "traffic_stopped": [
        (window(status=standing(Status.NO_DATA, silence=STOPPED)), True),
        (window(), False),
        (window(status=standing(Status.INSUFFICIENT_DATA)), False),
    ],
    "version_worse": [
        (window(status=standing(slices=part("prompt", worse=True))), True),
        (window(status=standing(slices=part("version", worse=False))), False),
        (window(status=standing(Status.NO_DATA, slices=part("model", worse=True), silence=STOPPED)), None),
    ],
    "slice_worse": [
        (window(status=standing(slices=part("metadata.tenant", worse=True))), True),
        (window(status=standing(slices=part("name", worse=False))), False),
        (window(status=standing(Status.NO_DATA, slices=part("name", worse=True), silence=STOPPED)), None),
    ],
    "blocker_rate": [
        (window(blocked={"accuracy": events(20, 100)}), True),
        (window(blocked={"accuracy": events(6, 100)}), False),  # above the limit, but it may be chance
        (window(blocked={"accuracy": events(2, 2)}), None),
    ],
    "metric_critical": [
        (limited(Status.CRITICAL), True), (limited(Status.WARNING), False), (limited(Status.INSUFFICIENT_DATA), None),
    ],
    "metric_warning": [
        (limited(Status.CRITICAL), True), (limited(Status.WARNING), True), (limited(Status.HEALTHY), False),
        (limited(Status.INSUFFICIENT_DATA), None),
    ],
    "metric_mean_low": [
        (window(means={"accuracy": mean(0.7)}, acceptable=ACCEPTABLE), True),
        (window(means={"error_rate": mean(0.2)}, acceptable=ACCEPTABLE), True),
        (window(means={"accuracy": mean(0.799, 40)}, acceptable=ACCEPTABLE), False),
        (window(means={"error_rate": mean(0.05)}, acceptable=ACCEPTABLE), False),
        (window(means={"accuracy": mean(0.1, 4)}, acceptable=ACCEPTABLE), None),
        (window(means={"accuracy": at(0.8 - 1e-12)}, acceptable=ACCEPTABLE), False),
    ],
    "workflow_violation_rate": [
        (window(violating=events(30, 100)), True),
        (window(violating=events(12, 100)), False),
        (window(violating=events(5, 10)), None),
    ],
    "store_trouble": [
        (Observed(now_ns=0, monitor=MonitorFacts(trouble="the disk is full")), True),
        (Observed(now_ns=0, monitor=MonitorFacts()), False),
    ],
    "connection_stalled": [
        (Observed(now_ns=0, monitor=MonitorFacts(unusable={"langfuse": "401"})), True),
        (Observed(now_ns=0, monitor=MonitorFacts(unusable={"langfuse": ""})), False),
    ],
    "exports_waiting": [
        (Observed(now_ns=0, monitor=MonitorFacts(waiting_s={"langfuse": 3601.0})), True),
        (Observed(now_ns=0, monitor=MonitorFacts(waiting_s={"langfuse": 3600.0})), False),
    ],
    "requests_refused": [
        (Observed(now_ns=0, monitor=MonitorFacts(refused={"503": 5})), True),
        (Observed(now_ns=0, monitor=MonitorFacts(refused={"503": 4})), False),
    ],
    "traffic_suspected": [
        (Observed(now_ns=0, monitor=MonitorFacts(odd={"skewed_sampling": "ids count up"})), True),
        (Observed(now_ns=0, monitor=MonitorFacts(odd={"disbelieved_claims": ""})), False),
    ],
    "judge_failure_rate": [
        (window(judge_failed=events(30, 100)), True),
        (window(judge_failed=events(0, 100)), False),
        (window(judge_failed=None), None),
    ],
    "judge_unreachable": [
        (Observed(now_ns=0, judge=judge("open")), True),
        (Observed(now_ns=0, judge=judge("half_open")), True),  # a probe is under way: it is not back yet
        (Observed(now_ns=0, judge=judge("closed")), False),
        (Observed(now_ns=0, judge=judge("closed", "open", "closed")), False),
        (Observed(now_ns=0, judge=judge("closed", "open", "half_open")), True),
        (Observed(now_ns=0, judge=judge("closed", "open")), True),  # two of two are a majority
    ],
    "judge_agreement_low": [
        (Observed(now_ns=0, agreements=[Agreement(rubric="qa", kappa=0.3, upper=0.5, n=100)]), True),
        (Observed(now_ns=0, agreements=[Agreement(rubric="qa", kappa=0.5, upper=0.7, n=100)]), False),
        (Observed(now_ns=0), None),
        (Observed(now_ns=0, agreements=[Agreement(rubric="qa", kappa=0.1, upper=0.2, n=5)]), None),
    ],
    "judge_drift": [
        (Observed(now_ns=0, drifts=[JudgeDrift(metric="a", n=30, higher=0, lower=15, p=6e-5, error=1e-3)]), True),
        (Observed(now_ns=0, drifts=[JudgeDrift(metric="a", n=30, higher=4, lower=5, p=1.0, error=1e-3)]), False),
        (Observed(now_ns=0, drifts=[JudgeDrift(metric="a", n=9, higher=0, lower=9, p=4e-3, error=1e-2)]), None),
    ],
    "judge_budget": [
        (Observed(now_ns=0, judge=judge(spent=0.95)), True),
        (Observed(now_ns=0, judge=judge(spent=0.5)), False),
    ],
    "evaluation_lag": [
        (Observed(now_ns=0, monitor=MonitorFacts(behind_s=301.0)), True),  # what is stuck has no lag
        (Observed(now_ns=0, lag_s=400.0, lag_n=50), True),
        (Observed(now_ns=0, lag_s=4.0, lag_n=50), False),
        (Observed(now_ns=0, lag_s=400.0, lag_n=1), None),
        (Observed(now_ns=0), None),
    ],
    "spool_large": [
        (Observed(now_ns=0, spool_bytes=2**31), True),
        (Observed(now_ns=0, spool_bytes=2**20), False),
        (Observed(now_ns=0), None),
    ],
}  # fmt: skip


@pytest.mark.parametrize("condition", ALL, ids=lambda condition: condition.id)
def test_every_condition_has_stories_and_they_end_as_told(condition):
    assert condition.id in STORIES, "add what it finds, breached and not, to STORIES"
    for facts, breached in STORIES[condition.id]:
        (found,) = condition.find(facts)
        assert found.breached is breached
        assert found.stated
        if found.labels:
            assert tuple(name for name, _ in found.labels) == condition.scope


@pytest.mark.parametrize("condition", ALL, ids=lambda condition: condition.id)
def test_every_condition_is_fit_to_be_a_rule_a_page_and_a_metric(condition):
    assert re.fullmatch(r"[a-z][a-z_]+", condition.id)
    assert condition.runbook == condition.id.replace("_", "-")
    assert re.fullmatch(r"Sidejudge([A-Z][a-z]+)+", condition.alert_name)
    assert condition.title
    assert condition.when
    assert condition.meaning
    assert condition.muted_by in {None, *(other.id for other in ALL)}


def test_ids_are_unique_and_only_limits_that_people_set_wake_them():
    assert len({condition.id for condition in ALL}) == len(ALL)
    assert [c.id for c in ALL if c.severity is Severity.CRITICAL] == ["pass_rate_critical", "metric_critical"]


def test_a_judge_that_is_out_breaches_nothing_about_quality():
    facts = replace(window(judge_failed=events(100, 100)), judge=judge("open"))
    breached = {c.id for c in ALL for found in c.find(facts) if found.breached}
    assert breached == {"judge_failure_rate", "judge_unreachable"}
    assert not breached & QUALITY


def test_without_a_judge_nothing_is_said_of_one():
    assert [c.id for c in ALL if list(c.find(Observed(now_ns=0))) and c.id.startswith("judge_")] == [
        "judge_agreement_low"
    ]
    assert not list(next(c for c in ALL if c.id == "judge_budget").find(Observed(now_ns=0, judge=judge(limit=None))))


def test_thresholds_may_be_a_rubrics_own():
    declared = Declaration(thresholds={"qa": Thresholds(warning=0.95, critical=0.9)})
    warning = next(c for c in conditions(declared) if c.id == "pass_rate_warning")
    (found,) = warning.find(window())
    assert found.limit == 0.95
    assert declared.policy_of("text") == declared.policy


def test_long_names_that_begin_alike_stay_apart_and_hostile_ones_stay_short():
    one, other = place_of("x" * 100 + "1", "e", "qa"), place_of("x" * 100 + "2", "e", "qa")
    assert one != other
    assert all(len(value) <= 70 for _, value in place_of("\ud800" * 10**6, "\ud800", "qa"))


def test_good_and_bad_follow_the_thresholds_and_stay_in_order():
    assert DECLARED.good_and_bad("qa") == pytest.approx((0.90, 0.775))
    for warning, critical in ((1.0, 0.99), (0.5, 0.1), (0.02, 0.01), (0.85, 0.0)):
        declared = Declaration(policy=Policy(thresholds=Thresholds(warning=warning, critical=critical)))
        good, bad = declared.good_and_bad("qa")
        assert 0 < bad < good < 1
        assert declared.chart("qa", 100).run_length >= 100 * 24 * 30
    assert replace(DECLARED, change=ChangeRule(good=0.8, bad=0.6)).good_and_bad("qa") == (0.8, 0.6)


def test_the_run_length_is_a_months_worth_of_the_windows_verdicts_and_moves_in_powers_of_two():
    for n in (0, 5, 30, 120, 1200):
        length = DECLARED.chart("qa", n).run_length
        assert max(32, n) * 720 <= length < 2 * max(32, n) * 720
    assert DECLARED.chart("qa", 100) == DECLARED.chart("qa", 110)


def test_a_pass_ratio_has_one_interval_in_statuses_reasons_and_alerts():
    shown = standing(Status.CRITICAL, change=change(alarmed=True), drift=change(alarmed=True))
    departing = shown.estimate
    facts = window(status=shown, keeping=departing)
    for name in ("pass_rate_critical", "pass_rate_warning", "pass_rate_change", "scenario_drift"):
        (found,) = next(each for each in ALL if each.id == name).find(facts)
        assert (found.lower, found.upper) == (departing.lower, departing.upper)
    part_of = window(status=standing(slices=part("version", worse=True)))
    (found,) = next(each for each in ALL if each.id == "version_worse").find(part_of)
    assert (found.lower, found.upper) == (events(20, 40).lower, events(20, 40).upper)


@pytest.mark.parametrize(
    ("alarmed", "share", "said"),
    [
        (True, 1.07, "usually 90.0% pass; the evidence for a fall to 75.0% is 1.1 times what"),
        (True, 0.4, "usually 90.0% pass; the evidence for a fall to 75.0% is 40% of what"),
        (False, 0.0, "usually 90.0% pass; the evidence for a fall to 75.0% is 0% of what"),
    ],
)
def test_a_change_is_said_in_words_that_a_tired_person_understands(alarmed, share, said):
    moved = replace(change(alarmed=alarmed), share=share)
    (found,) = next(each for each in ALL if each.id == "pass_rate_change").find(window(status=standing(change=moved)))
    assert found.stated == f"{said} raises the early warning"


def test_a_critical_pass_rate_speaks_for_all_that_it_explains():
    by_id = {condition.id: condition for condition in ALL}

    def above(name):
        muted_by = by_id[name].muted_by
        return set() if muted_by is None else {muted_by, *above(muted_by)}

    explained = {"pass_rate_warning", "pass_rate_change", "scenario_drift", "workflow_violation_rate", "blocker_rate",
                 "metric_mean_low", "version_worse", "slice_worse"}  # fmt: skip
    assert {name for name in by_id if "pass_rate_critical" in above(name)} == explained
