"""Event: one change of an alert, for notification. It is complete: a receiver needs no further lookup.

Of an alert's events each time that it fired makes one incident, a line for people.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Self

from msgspec import convert

from sidejudge.scoring.trace.span import JsonRecord

from .condition import Condition, Labels, Severity, Unit
from .explanation import Explanation
from .lifecycle import Alert, AlertTransition


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A failing trace that shows what is wrong.

    ``reason`` holds nothing that people or models wrote. ``quoted`` is the whole reason, ``nameless`` the reason
    without names of the application's parts; each is None where it equals ``reason``. All come from the trace: escape
    them where they are shown.
    """

    trace_id: str
    reason: str
    composite: float | None
    closed_ns: int
    quoted: str | None = None
    nameless: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MainFailure:
    """What most of the latest failures have in common: ``count`` of ``of`` failing traces.

    ``reason``, ``quoted`` and ``nameless`` are as in ``Example``.
    """

    reason: str
    count: int
    of: int
    quoted: str | None = None
    nameless: str | None = None


def shown_json(shown: Example | MainFailure) -> dict[str, object]:
    """The fields as JSON; the other forms of the reason only where they differ."""
    return {name: each for name, each in asdict(shown).items() if each is not None or name == "composite"}


_NAMES: Final = {"transition": "turn", "stated": "said"}
"""Fields that have another name in JSON."""


def _named(record: AlertEvent | Incident) -> dict[str, object]:
    return {_NAMES.get(name, name): getattr(record, name) for name in record.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertEvent:
    """What happened to an alert at ``at_ns``.

    ``value`` with its bounds and ``n`` is measured since ``measured_ns``, in ``unit``; ``limit`` is the agreed limit.
    ``failures`` of n verdicts failed, where it is a pass ratio. ``since_ns`` is when the state began, ``changed_ns``
    when it began by the change detector's estimate, and ``measured_ns`` equals it where the value covers only what came
    since. ``examples`` are at most three, the worst first; ``failure`` is what most of the latest failures have in
    common, ``explained`` where and since when there are more failures than before. ``number`` counts the events of this
    alert, from 1. ``muted``: a more severe alert on the same labels fires, so that this one is not sent. ``held``: it
    fires on although what is known now, ``stated``, does not show that it still holds. ``shared``: it is an alert of
    all monitors together, so that any of them ends it.
    Names and reasons may come from traces: bounded, but untrusted.
    """

    transition: AlertTransition
    condition: str
    severity: Severity
    title: str
    meaning: str
    runbook: str
    labels: Labels
    stated: str
    unit: Unit
    value: float | None
    lower: float | None
    upper: float | None
    n: int | None
    limit: float | None
    since_ns: int
    at_ns: int
    number: int
    changed_ns: int | None = None
    measured_ns: int | None = None
    failures: int | None = None
    muted: bool = False
    held: bool = False
    shared: bool = False
    examples: tuple[Example, ...] = ()
    failure: MainFailure | None = None
    explained: Explanation | None = None

    @classmethod
    def of(
        cls, condition: Condition, alert: Alert, transition: AlertTransition, at_ns: int, *, muted: bool = False
    ) -> Self:
        """What happened to an alert under this condition, with its last finding."""
        found = alert.finding
        return cls(
            transition=transition, condition=condition.id, severity=condition.severity, title=condition.title,
            meaning=condition.meaning, runbook=condition.runbook, labels=alert.labels, stated=found.stated,
            unit=condition.unit, value=found.value, lower=found.lower, upper=found.upper, n=found.n,
            limit=found.limit, since_ns=alert.since_ns, at_ns=at_ns, number=alert.reported,
            changed_ns=found.changed_ns, measured_ns=found.measured_ns, failures=found.failures, muted=muted,
            held=alert.held and transition is AlertTransition.FIRING,
        )  # fmt: skip

    @property
    def fingerprint(self) -> str:
        """The alert's identity, 16 hex digits: equal for all events of one condition with the same labels."""
        return fingerprint(self.condition, self.labels)

    @property
    def id(self) -> str:
        """The event's identity; an event that is sent again after a crash keeps it."""
        return f"{self.fingerprint}-{self.since_ns}-{self.number}"

    @property
    def bare(self) -> Self:
        """The event without its illustration: example traces and details of their failures."""
        return replace(self, examples=(), failure=None, explained=None)

    def to_json(self) -> Mapping[str, object]:
        """The event as JSON: times in ns since the epoch, unknown values null."""
        stated = _named(self)
        if not self.shared:
            del stated["shared"]
        return {
            "id": self.id, "fingerprint": self.fingerprint, **stated, "turn": self.transition.value,
            "severity": self.severity.value, "labels": dict(self.labels),
            "examples": list(map(shown_json, self.examples)),
            "failure": shown_json(self.failure) if self.failure is not None else None,
            "explained": asdict(self.explained) if self.explained is not None else None,
        }  # fmt: skip


def event_of_json(record: JsonRecord) -> AlertEvent:
    """The event that ``to_json`` wrote."""
    renamed = {"transition": record["turn"], "stated": record["said"], "labels": tuple(record["labels"].items())}
    return convert({**record, **renamed}, AlertEvent)


def fingerprint(condition: str, labels: Labels) -> str:
    """The identity of an alert, 16 hex digits."""
    return hashlib.sha256(repr((condition, labels)).encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """An alert from when it fired to its end, in ns since the epoch; ``ended_ns`` is ``None`` while it lasts.

    ``value`` with its bounds and ``n`` raised it, in the condition's unit; ``changed_ns`` is when it began by the
    change detector's estimate. ``silent``: for a while, or until its end, there was too little data. ``muted``: a more
    severe alert on the same labels fired whenever this one was to be sent.
    """

    condition: str
    severity: Severity
    title: str
    labels: Labels
    began_ns: int
    ended_ns: int | None = None
    stated: str
    value: float | None
    lower: float | None
    upper: float | None
    n: int | None
    limit: float | None
    changed_ns: int | None = None
    silent: bool = False
    muted: bool = False

    def to_json(self) -> dict[str, object]:
        """The incident as JSON: times in ns since the epoch, unknown values null."""
        return {**_named(self), "severity": self.severity.value, "labels": dict(self.labels)}


@dataclass(slots=True)
class Incidents:
    """Takes events in order and returns their incidents."""

    _over: list[Incident] = field(default_factory=list)
    _open: dict[str, Incident] = field(default_factory=dict)

    def add(self, event: AlertEvent) -> None:
        """Take one event."""
        known = self._open.get(event.fingerprint)
        if known is None:
            if event.transition is AlertTransition.FIRING:
                self._open[event.fingerprint] = _begun(event)
        elif event.transition is AlertTransition.FIRING:  # it goes on after a gap, or is sent after all
            self._open[event.fingerprint] = replace(known, muted=known.muted and event.muted)
        elif event.transition is AlertTransition.UNKNOWN:
            self._open[event.fingerprint] = replace(known, silent=True)
        else:
            expired = event.transition is AlertTransition.EXPIRED
            self._over.append(replace(known, ended_ns=event.at_ns, silent=known.silent or expired))
            del self._open[event.fingerprint]

    def reported(self) -> Sequence[Incident]:
        """All incidents by their beginning, the most severe first."""
        order = list(Severity)
        found = [*self._over, *self._open.values()]
        return sorted(found, key=lambda each: (each.began_ns, order.index(each.severity), each.labels))


def _begun(event: AlertEvent) -> Incident:
    return Incident(
        condition=event.condition, severity=event.severity, title=event.title, labels=event.labels,
        began_ns=event.at_ns, stated=event.stated, value=event.value, lower=event.lower, upper=event.upper, n=event.n,
        limit=event.limit, changed_ns=event.changed_ns, muted=event.muted,
    )  # fmt: skip
