"""Conditions on continuous metrics: latency, cost, tokens and graded scores beyond their limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sidejudge.scoring.status.metric_status import Level, MetricStatus
from sidejudge.scoring.status.status import Status

from .condition import PLACE, AlertFinding, Condition, Severity
from .declaration import Declaration
from .observed import Observed
from .quality import place_of

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
                yield _finding(each, limit, bad)

    return find


def _finding(each: MetricStatus, limit: float, bad: set[Status]) -> AlertFinding:
    known, status = each.estimate, each.appraisal.status
    place = place_of(each.service, each.environment, each.limit.rubric)  # the application's figures have no rubric
    return AlertFinding(
        labels=tuple((name, value) for name, value in (*place, ("metric", each.limit.name)) if value),
        breached=None if status is Status.INSUFFICIENT_DATA else status in bad,
        stated=each.appraisal.reason,
        value=known.value if known else None, lower=known.lower if known else None,
        upper=known.upper if known else None, n=known.n if known else 0, limit=limit,
    )  # fmt: skip
