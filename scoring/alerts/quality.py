"""Conditions on quality: the pass ratio, its change, blockers, metrics and workflows of the monitored services.

Also conditions on continuous metrics: latency, cost, tokens and graded scores beyond their limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypedDict

from sidejudge.scoring.lexical.shown_text import label_of
from sidejudge.scoring.statistics.estimate import Estimate
from sidejudge.scoring.status.metric_status import Level, MetricStatus
from sidejudge.scoring.status.service_status import RELEASED, ServiceStatus, StatusChange
from sidejudge.scoring.status.status import UNKNOWN, Policy, Status, lies_below, may_turn, mostly_waits
from sidejudge.scoring.trace.time_units import DAY_NS

from .condition import PLACE, VIOLATION, AlertFinding, BeyondLimit, Condition, Labels, Observed, Severity
from .declaration import Declaration

PASS_RATES: Final = ("pass_rate_critical", "pass_rate_warning", "pass_rate_change")
"""Conditions on a pass ratio."""
FORGOTTEN_NS: Final = 7 * DAY_NS
"""A service without a verdict for this long no longer raises the alert on missing verdicts."""


def quality(declared: Declaration) -> tuple[Condition, ...]:
    """The conditions on quality under this declaration, the most severe first."""
    limits, policy = declared.limits, declared.policy
    bounds = policy.thresholds
    number = {"adaptive": "pass ratio since it fell", "point": "pass ratio", "bound": "upper bound of the pass ratio"}
    guards = enough = f"; at least {policy.min_samples:g} effective samples"
    if policy.mode == "bound":
        guards += f" and {policy.min_failures} failures"
    elif policy.mode == "adaptive":
        guards = f", or confidence sequence wholly below; {declared.false_alarms:g} false alarms a month in all"
    below = f"{number[policy.mode]} below"

    def share(of: str, limit: float) -> str:
        if policy.mode == "adaptive" and is_followed(limit):
            rarity = (
                f"all such shares together, each at its limit, raise it {declared.share_false_alarms:g} times a month"
            )
            return f"CUSUM of the share {of} above {limit:g}; {rarity}"
        return f"lower bound of the share {of} above {limit:g}{enough} and {policy.min_failures} of these"

    return (
        Condition(
            id="pass_rate_critical", severity=Severity.CRITICAL, scope=PLACE, unit="ratio",
            title="Too few traces pass",
            when=f"{below} {bounds.critical:g}{guards}",
            meaning="users are served badly now; look at the worst traces and at what was deployed",
            limit=bounds.critical, find=_status({Status.CRITICAL}, declared, "critical"), examples=True,
        ),
        Condition(
            id="pass_rate_warning", severity=Severity.WARNING, scope=PLACE, unit="ratio",
            title="Fewer traces pass than should",
            when=f"{below} {bounds.warning:g}{guards}",
            meaning="quality has slipped below what was promised",
            limit=bounds.warning, find=_status({Status.WARNING, Status.CRITICAL}, declared, "warning"),
            muted_by="pass_rate_critical", examples=True,
        ),
        Condition(
            id="pass_rate_change", severity=declared.change.severity, scope=PLACE, unit="ratio",
            title="The pass rate seems to be falling",
            when=f"CUSUM against {_good_and_bad(declared)}{_measured(declared)}; {_rarity(declared)}, or more rarely",
            meaning="early warning, before the window shows it; it names the time since when",
            find=_changed, muted_by="pass_rate_warning", examples=True,
        ),
        Condition(
            id="scenario_drift", severity=Severity.INFO, scope=PLACE, unit="ratio",
            title="Behaviour seems to drift from its scenario",
            when=f"CUSUM of the runs that keep to their scenario, {declared.change.drift_good:.3g} (good) against "
            f"{declared.change.drift_bad:.3g} (bad){_measured(declared)}; {_drift_rarity(declared)}, or more rarely",
            meaning="early warning: new tools, vanished steps or new orders since the scenario was written or learned, "
            "whether its lines or only its signs ask for them",
            find=_drifting, muted_by="workflow_violation_rate", examples=True,
        ),
        Condition(
            id="traffic_stopped", severity=declared.silence_severity, scope=PLACE, unit="seconds",
            title="Verdicts no longer come",
            when="no verdict passed or failed for longer than is plausible for this service at this hour of the week, "
            f"and for {declared.window_ns / 60e9:g} minutes at least; for a week at most",
            meaning="the application has stopped, or what it sends is not judged; nothing is known of it meanwhile",
            find=_silent,
        ),
        Condition(
            id="version_worse", severity=Severity.WARNING, scope=(*PLACE, "slice", "value"), unit="ratio",
            title="A version is worse than the others",
            when="of one version, prompt or model fewer verdicts pass than of all others at the same time, by bets on "
            f"the difference; {_slice_rarity(declared)}",
            meaning="a release is worse than what it replaces: stop the rollout, or roll back",
            keep_ns=limits.keep_ns, find=lambda facts: _sliced(facts, released=True),
            muted_by="pass_rate_warning", examples=True,
        ),
        Condition(
            id="slice_worse", severity=Severity.WARNING, scope=(*PLACE, "slice", "value"), unit="ratio",
            title="A part of the traffic is served worse than was promised",
            when="CUSUM of one name or value of metadata, against what is usual there: pass ratio since it fell below "
            f"{bounds.warning:g}, and lower than that of all others; {_slice_rarity(declared)}",
            meaning="one tenant or route is served badly, which the pass ratio of all does not show",
            keep_ns=limits.keep_ns, find=lambda facts: _sliced(facts, released=False),
            muted_by="pass_rate_warning", examples=True,
        ),
        Condition(
            id="blocker_rate", severity=Severity.WARNING, scope=(*PLACE, "metric"), unit="ratio",
            title="A blocker hits too many traces",
            when=share("that the metric blocks", limits.blocker_ratio),
            meaning="one metric alone disqualifies answers: it names what is wrong",
            limit=limits.blocker_ratio, for_ns=limits.for_ns, keep_ns=limits.keep_ns, examples=True,
            find=lambda facts: _blocked(facts, limits.blocker_ratio, policy),
            muted_by="pass_rate_critical",
        ),
        Condition(
            id="metric_mean_low", severity=Severity.WARNING, scope=(*PLACE, "metric"), unit="metric",
            title="A metric is below its acceptable band",
            when=f"even the favourable bound of the mean is outside the acceptable band{enough}",
            meaning="answers are poor in this respect on average, whether or not they pass",
            for_ns=limits.for_ns, keep_ns=limits.keep_ns, find=lambda facts: _means(facts, policy),
            muted_by="pass_rate_critical",
        ),
        Condition(
            id="workflow_violation_rate", severity=Severity.WARNING, scope=PLACE, unit="ratio",
            title="Traces depart from their scenario",
            when=share("of traces with a violation", limits.violation_ratio),
            meaning="wrong agents or tools are used, in a wrong order, too often, or with wrong arguments",
            limit=limits.violation_ratio, for_ns=limits.for_ns, keep_ns=limits.keep_ns, examples=True,
            find=lambda facts: _violating(facts, limits.violation_ratio, policy),
            muted_by="pass_rate_critical",
        ),
    )  # fmt: skip


def place(status: ServiceStatus) -> Labels:
    """The labels of a status."""
    return place_of(status.service, status.environment, status.rubric)


def place_of(service: str, environment: str, rubric: str) -> Labels:
    """The labels of a service, an environment and a rubric."""
    return (("service", label_of(service)), ("environment", label_of(environment)), ("rubric", rubric))


def is_followed(limit: float) -> bool:
    """Whether mode ``adaptive`` has a chart for this limit of a share: any event passes 0, and none passes 1."""
    return 0 < limit < 1


def share_found(
    labels: Labels, events: Estimate | None, limit: float, policy: Policy, what: str,
    *, name: str = VIOLATION, beyond: Mapping[str, BeyondLimit] | None = None, waiting: float = 0.0,
) -> AlertFinding:  # fmt: skip
    """The finding on a share of events: its lower bound against its limit, with the guards of the pass ratio.

    Where ``beyond`` is given, it alone decides, and an alert states the share since the change: the whole window also
    holds what was before, and may be within the limit. ``waiting`` traces, without an answer, count both ways.
    """
    beyond = beyond if is_followed(limit) else None
    proven = (beyond or {}).get(name)
    if events is not None and proven is not None:
        waits = may_turn(events, waiting, round(1 - limit, 9), below=True)
        return AlertFinding(
            labels=labels, breached=None if waits else True, undecided=waits, value=proven.share, limit=limit,
            changed_ns=proven.since_ns, measured_ns=proven.since_ns,
            stated=f"{what}: {proven.share:.1%} of the verdicts since it rose, the limit is {limit:.1%}",
        )  # fmt: skip
    if events is None or (beyond is None and events.effective_n < policy.min_samples):
        n = 0 if events is None else events.n
        return AlertFinding(labels=labels, breached=None, stated=f"too few verdicts: {n}", n=n, limit=limit)
    apart = events.one_sided
    share, lower, upper = 1 - events.pass_ratio, 1 - apart.upper, 1 - apart.lower
    breached = beyond is None and round(lower, 9) > limit and events.failures >= policy.min_failures
    waits = may_turn(events, waiting, round(1 - limit, 9), below=breached)
    return AlertFinding(
        labels=labels, breached=None if waits else breached, undecided=waits, value=share, lower=lower, upper=upper,
        n=events.n, limit=limit,
        stated=f"{what}: {share:.1%} (at least {lower:.1%}) of {events.n} verdicts, the limit is {limit:.1%}",
    )  # fmt: skip


class _Figures(TypedDict):
    value: float | None
    lower: float | None
    upper: float | None
    n: int
    failures: int


def _figures(estimate: Estimate | None) -> _Figures:
    """A finding's pass ratio with its bounds; without an estimate none of them, from 0 verdicts."""
    if estimate is None:
        return {"value": None, "lower": None, "upper": None, "n": 0, "failures": 0}
    return {
        "value": estimate.pass_ratio, "lower": estimate.lower, "upper": estimate.upper, "n": estimate.n,
        "failures": estimate.failures,
    }  # fmt: skip


def _status(breaching: set[Status], declared: Declaration, level: str) -> Callable[[Observed], Iterator[AlertFinding]]:
    def find(facts: Observed) -> Iterator[AlertFinding]:
        for window in facts.windows:
            status = window.status
            estimate, state = status.estimate, status.appraisal.status
            known = state not in UNKNOWN
            limit = getattr(declared.policy_of(status.rubric).thresholds, level)
            # What lies wholly below the threshold is no recovery, also where evidence for an alarm is missing.
            is_below = known and lies_below(estimate, limit)
            contested = state not in breaching and (is_below or status.appraisal.contested in breaching)
            yield AlertFinding(
                labels=place(status),
                breached=state in breaching if known and not contested else None,
                stated=status.appraisal.reason,
                limit=limit,
                **_figures(estimate),
                changed_ns=status.change.since_ns if status.change and status.change.alarmed else None,
                measured_ns=_measured_ns(status, facts.now_ns),
                undecided=contested or (not known and status.appraisal.undecided),
                shown=estimate is None or round(estimate.pass_ratio, 9) < limit,
            )

    return find


def _changed(facts: Observed) -> Iterator[AlertFinding]:
    for window in facts.windows:
        change, estimate = window.status.change, window.status.estimate
        if change is not None:
            yield AlertFinding(
                labels=place(window.status), breached=_alarmed(change, window.status),
                stated=_moved(change, "pass"), **_figures(estimate),
                changed_ns=change.since_ns, measured_ns=_measured_ns(window.status, facts.now_ns),
                shown=estimate is None or estimate.upper < change.good,
            )  # fmt: skip


def _alarmed(change: StatusChange, status: ServiceStatus) -> bool | None:
    """Whether the detector has raised its alarm; None in a silence, and before the detector has seen a verdict."""
    if status.silence is not None or (status.estimate is None and not change.alarmed):
        return None
    return change.alarmed


def _measured_ns(status: ServiceStatus, now_ns: int) -> int | None:
    return None if status.reach_ns is None else now_ns - status.reach_ns


def _moved(change: StatusChange, what: str) -> str:
    """The change detector's evidence, in a sentence."""
    evidence = f"{change.share:.1f} times" if change.share >= 1 else f"{change.share:.0%} of"
    usual = f"usually {change.good:.1%} {what}; the evidence for a fall to {change.bad:.1%}"
    return f"{usual} is {evidence} what raises the early warning"


def _silent(facts: Observed) -> Iterator[AlertFinding]:
    for window in facts.windows:
        silence = window.status.silence
        if silence is None:
            yield AlertFinding(labels=place(window.status), breached=False, stated="verdicts come")
        elif facts.now_ns - silence.since_ns < FORGOTTEN_NS:
            yield AlertFinding(
                labels=place(window.status), breached=True, stated=silence.stated(facts.now_ns),
                value=(facts.now_ns - silence.since_ns) / 1e9,
            )  # fmt: skip


def _sliced(facts: Observed, *, released: bool) -> Iterator[AlertFinding]:
    for window in facts.windows:
        for each in window.status.slices:
            if (each.by in RELEASED) is not released:
                continue
            yield AlertFinding(
                labels=(*place(window.status), ("slice", each.by), ("value", label_of(each.value))),
                breached=each.worse if window.status.silence is None else None, stated=each.stated,
                changed_ns=each.since_ns, **_figures(each.estimate),
            )  # fmt: skip


def _drifting(facts: Observed) -> Iterator[AlertFinding]:
    for window in facts.windows:
        drift, departing = window.status.drift, window.keeping
        if drift is not None:
            yield AlertFinding(
                labels=place(window.status), breached=_alarmed(drift, window.status),
                stated=_moved(drift, "keep to their scenario"), **_figures(departing),
                changed_ns=drift.since_ns, shown=departing is None or departing.upper < drift.good,
            )  # fmt: skip


def _blocked(facts: Observed, limit: float, policy: Policy) -> Iterator[AlertFinding]:
    for window in facts.windows:
        for metric, events in window.blocked.items():
            yield share_found(
                (*place(window.status), ("metric", metric)), events, limit, policy, f"blocked by {metric}",
                name=metric, beyond=window.beyond, waiting=window.status.waiting,
            )  # fmt: skip


def _means(facts: Observed, policy: Policy) -> Iterator[AlertFinding]:
    for window in facts.windows:
        for metric, estimate in window.means.items():
            if metric not in window.acceptable:
                continue
            bound, higher_is_better = window.acceptable[metric]
            labels = (*place(window.status), ("metric", metric))
            favourable = estimate.upper if higher_is_better else estimate.lower
            apart = round(favourable, 9) - round(bound, 9)
            worse = apart < 0 if higher_is_better else apart > 0
            waits = mostly_waits(window.status.estimate, window.status.waiting)
            enough = estimate.effective_n >= policy.min_samples and not waits
            yield AlertFinding(
                labels=labels, breached=worse if enough else None, undecided=waits, value=estimate.mean,
                lower=estimate.lower, upper=estimate.upper, n=estimate.n, limit=bound,
                stated=f"mean of {metric} {estimate.mean:.4g}, between {estimate.lower:.4g} and {estimate.upper:.4g} "
                f"of {estimate.n}; acceptable is {'at least' if higher_is_better else 'at most'} {bound:g}",
            )  # fmt: skip


def _violating(facts: Observed, limit: float, policy: Policy) -> Iterator[AlertFinding]:
    for window in facts.windows:
        if window.violating is not None:
            yield share_found(
                place(window.status), window.violating, limit, policy, "departing from the scenario",
                beyond=window.beyond, waiting=window.status.waiting,
            )  # fmt: skip


def _good_and_bad(declared: Declaration) -> str:
    good, bad = declared.good_and_bad("")
    return f"{good:.3g} (good) and {bad:.3g} (bad)"


def _rarity(declared: Declaration) -> str:
    if declared.policy.mode == "adaptive":
        return f"all good services together raise it {declared.false_alarms:g} times a month"
    return f"a good service raises it once in {_days(declared.change.false_alarm_every_ns)} at its traffic"


def _slice_rarity(declared: Declaration) -> str:
    return f"all slices of all services that are not raise it {declared.slice_false_alarms:g} times a month, or less"


def _measured(declared: Declaration) -> str:
    return ", good being what is usual there" if declared.policy.mode == "adaptive" else ""


def _drift_rarity(declared: Declaration) -> str:
    if declared.policy.mode == "adaptive":
        return f"behaviour that is as it was raises it in a tenth of the {declared.false_alarms:g} false alarms a month"
    return f"behaviour that is as it was raises it once in {_days(declared.change.false_alarm_every_ns)} at its traffic"


def _days(ns: int) -> str:
    days = ns / DAY_NS
    return f"{days:.3g} days"


_SCOPE = (*PLACE, "metric")


def metric_conditions(declared: Declaration) -> tuple[Condition, ...]:
    """The conditions on metrics with limits under this declaration, the most severe first."""
    how = {
        "adaptive": f"convincingly beyond its limit; {declared.false_alarms:g} false alarms a month with all others",
        "bound": "beyond its limit by the one-sided 95 % bound",
        "point": "beyond its limit in the window",
    }[declared.policy.mode]
    limited = ", ".join(dict.fromkeys(limit.name for limit in declared.metrics)) or "none is configured"
    return (
        Condition(
            id="metric_critical", severity=Severity.CRITICAL, scope=_SCOPE, unit="metric",
            title="A metric is beyond its critical limit",
            when=f"a metric of alerts.metrics ({limited}) {how}",
            meaning="the application is too slow, too dear or too poor in this respect, whether or not answers pass",
            find=_beyond({Status.CRITICAL}, "critical"),
        ),
        Condition(
            id="metric_warning", severity=Severity.WARNING, scope=_SCOPE, unit="metric",
            title="A metric is beyond its limit",
            when=f"a metric of alerts.metrics ({limited}) {how}",
            meaning="the application has become slower, dearer or poorer in this respect than was promised",
            find=_beyond({Status.WARNING, Status.CRITICAL}, "warning"), muted_by="metric_critical",
        ),
    )  # fmt: skip


def _beyond(bad: set[Status], level: Level) -> Callable[[Observed], Iterator[AlertFinding]]:
    def find(facts: Observed) -> Iterator[AlertFinding]:
        for each in facts.metrics:
            limit = dict(each.limit.levels).get(level)
            # Beyond the critical limit alone is beyond no warning that nobody set.
            if limit is not None:
                yield _finding(each, level, limit, bad)

    return find


def _finding(each: MetricStatus, level: Level, limit: float, bad: set[Status]) -> AlertFinding:
    known, status = each.estimate, each.appraisal.status
    kept = known.kept.get(level) if known else None
    place = place_of(each.service, each.environment, each.limit.rubric)  # the application's figures have no rubric
    return AlertFinding(
        labels=tuple((name, value) for name, value in (*place, ("metric", each.limit.name)) if value),
        breached=None if status is Status.INSUFFICIENT_DATA else status in bad,
        stated=each.appraisal.reason,
        value=known.value if known else None, lower=known.lower if known else None,
        upper=known.upper if known else None, n=known.n if known else 0, limit=limit,
        undecided=each.appraisal.undecided,
        shown=kept is None or round(kept.share, 9) < each.limit.threshold(limit),
    )  # fmt: skip
