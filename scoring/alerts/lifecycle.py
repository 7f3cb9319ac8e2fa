"""Lifecycle: from findings to alerts, as in Prometheus (``for``, ``keep_firing_for``), with one more stage.

A breach is *pending* until it has lasted for the condition's ``for``, then *fires*. It resolves once looks found no
breach for ``keep``. Without enough data it does neither: a firing alert becomes *unknown*, with an event, because
silence is not recovery; it fires again once figures show the breach. After a day without findings it expires, with an
event too.

``Posted`` is an alert at one moment with its condition, as metrics, API and pages show it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from msgspec import convert

from sidejudge.scoring.trace.span import JsonRecord
from sidejudge.scoring.trace.time_units import DAY_NS

from .condition import AlertFinding, Condition, Labels, Severity

FORGET_NS = DAY_NS
"""How long an alert outlasts its last finding."""


class Stage(StrEnum):
    """The stage of an alert; a condition that is not breached has no alert."""

    PENDING = "pending"
    FIRING = "firing"
    UNKNOWN = "unknown"


class AlertTransition(StrEnum):
    """What an event reports: the alert began (or goes on after a gap), became unknown, resolved, or expired."""

    FIRING = "firing"
    UNKNOWN = "unknown"
    RESOLVED = "resolved"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One instance of a condition that is or recently was breached. Times in ns since the epoch.

    ``since_ns``: first breached; ``fired_ns``: began to fire; ``breached_ns``: last seen breached. ``finding`` is the
    last breach or, where a later look has a finding that ends nothing, what is known now; ``reported`` counts the
    events sent.
    """

    condition: str
    labels: Labels
    stage: Stage
    since_ns: int
    breached_ns: int
    finding: AlertFinding
    fired_ns: int | None = None
    reported: int = 0

    @property
    def held(self) -> bool:
        """Whether it fires on although what is known now does not show that it still holds."""
        return self.stage is Stage.FIRING and not self.finding.breached

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        found = self.finding
        return {
            "condition": self.condition, "labels": [list(each) for each in self.labels], "stage": self.stage.value,
            "since_ns": self.since_ns, "breached_ns": self.breached_ns, "fired_ns": self.fired_ns,
            "told": self.reported,
            "finding": {
                "breached": found.breached, "said": found.stated, "value": found.value, "lower": found.lower,
                "upper": found.upper, "n": found.n, "failures": found.failures, "limit": found.limit,
                "changed_ns": found.changed_ns, "measured_ns": found.measured_ns,
            },
        }  # fmt: skip

    @classmethod
    def of_json(cls, record: JsonRecord) -> Alert:
        """Read what ``to_json`` wrote."""
        found = record["finding"]
        finding = {**found, "stated": found["said"], "labels": record["labels"]}
        return convert({**record, "finding": finding, "reported": record["told"]}, cls)


def advance(
    alert: Alert | None, finding: AlertFinding | None, now_ns: int, condition: Condition
) -> tuple[Alert | None, AlertTransition | None]:
    """The alert after one look, and the event to send. ``finding`` is ``None`` when the look has no finding on it."""
    breached = finding.breached if finding is not None else None
    if alert is None:
        if not breached or finding is None:
            return None, None
        alert = Alert(
            condition=condition.id, labels=finding.labels, stage=Stage.PENDING, since_ns=now_ns,
            breached_ns=now_ns, finding=finding,
        )  # fmt: skip
    elif alert.breached_ns > now_ns:  # the clock was set back
        since_ns = min(alert.since_ns, now_ns) if alert.stage is Stage.PENDING else alert.since_ns
        alert = replace(alert, since_ns=since_ns, breached_ns=now_ns)
    if breached and finding is not None:
        return _breached(replace(alert, finding=finding, breached_ns=now_ns), now_ns, condition)
    if alert.stage is Stage.PENDING:
        return None, None
    if breached is None:
        return _not_known(alert, finding, now_ns)
    if now_ns - alert.breached_ns >= condition.keep_ns:
        return None, AlertTransition.RESOLVED
    return _of_now(alert, finding), None


def _of_now(alert: Alert, finding: AlertFinding | None) -> Alert:
    """The alert with what is known now; when it began is known from its breach."""
    return alert if finding is None else replace(alert, finding=replace(finding, changed_ns=alert.finding.changed_ns))


def _not_known(alert: Alert, finding: AlertFinding | None, now_ns: int) -> tuple[Alert | None, AlertTransition | None]:
    if now_ns - alert.breached_ns >= FORGET_NS:
        return None, AlertTransition.EXPIRED
    if alert.stage is Stage.UNKNOWN:
        return alert, None
    if finding is not None and finding.undecided:
        return _of_now(alert, finding), None
    return replace(alert, stage=Stage.UNKNOWN, reported=alert.reported + 1), AlertTransition.UNKNOWN


def _breached(alert: Alert, now_ns: int, condition: Condition) -> tuple[Alert, AlertTransition | None]:
    if alert.stage is Stage.FIRING:
        return alert, None
    if alert.stage is Stage.UNKNOWN:
        if not alert.finding.shown:
            return alert, None
        return replace(alert, stage=Stage.FIRING, reported=alert.reported + 1), AlertTransition.FIRING
    if now_ns - alert.since_ns < condition.for_ns:
        return alert, None
    return replace(alert, stage=Stage.FIRING, fired_ns=now_ns, reported=alert.reported + 1), AlertTransition.FIRING


_SEVERITIES = tuple(Severity)
_STAGES = (Stage.FIRING, Stage.UNKNOWN, Stage.PENDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """One alert with its condition. ``muted``: one more severe about the same thing fires or did; it was not sent.

    ``unsent``: it has fired without ever being sent.
    """

    condition: Condition
    alert: Alert
    muted: bool
    unsent: bool = False


def in_order(posted: Iterable[Posted]) -> list[Posted]:
    """The most important first: firing, then unknown, then pending; within these by severity, then by age."""
    return sorted(
        posted,
        key=lambda each: (
            _STAGES.index(each.alert.stage),
            each.muted,
            _SEVERITIES.index(each.condition.severity),
            each.alert.since_ns,
            each.alert.labels,
        ),
    )
