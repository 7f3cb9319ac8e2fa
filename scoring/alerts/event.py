"""Event: one change of an alert that people are notified of. It is complete: a receiver needs no further lookup."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from scoring.trace.span import JsonRecord

from .condition import Severity, Unit
from .finding import Labels
from .lifecycle import AlertTransition


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A failing trace that shows what is wrong.

    ``reason`` holds nothing that people or models wrote. ``quoted`` is the whole reason, None where that is the same;
    it comes from the trace: escape it where it is shown.
    """

    trace_id: str
    reason: str
    composite: float | None
    closed_ns: int
    quoted: str | None = None

    def to_json(self) -> dict[str, object]:
        """The example for a wire."""
        stated: dict[str, object] = {
            "trace_id": self.trace_id, "reason": self.reason, "composite": self.composite, "closed_ns": self.closed_ns,
        }  # fmt: skip
        return stated if self.quoted is None else {**stated, "quoted": self.quoted}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertEvent:
    """What happened to an alert at ``at_ns``.

    ``value`` with its bounds and ``n`` is measured, in ``unit``; ``limit`` is agreed; ``since_ns`` is since when
    it is so, ``changed_ns`` since when the change detector thinks it is. ``examples`` are at most three, the worst
    first. ``number`` counts the events of this alert, from 1. ``muted``: a more severe alert about the
    same thing fires, so that this one is not sent. Names and reasons may come from traces: bounded, but
    untrusted.
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
    muted: bool = False
    examples: tuple[Example, ...] = ()

    @property
    def fingerprint(self) -> str:
        """The alert's identity, 16 hex digits: equal for all events of one condition with the same labels."""
        return fingerprint(self.condition, self.labels)

    @property
    def id(self) -> str:
        """The event's identity: an event that is sent again after a crash has the same."""
        return f"{self.fingerprint}-{self.since_ns}-{self.number}"

    def to_json(self) -> Mapping[str, object]:
        """The event for a wire: times in ns since the epoch, what is not known null."""
        return {
            "id": self.id, "fingerprint": self.fingerprint, "turn": self.transition.value, "condition": self.condition,
            "severity": self.severity.value, "title": self.title, "meaning": self.meaning, "runbook": self.runbook,
            "labels": dict(self.labels), "said": self.stated, "unit": self.unit, "value": self.value,
            "lower": self.lower, "upper": self.upper, "n": self.n, "limit": self.limit,
            "since_ns": self.since_ns, "at_ns": self.at_ns, "number": self.number,
            "changed_ns": self.changed_ns, "muted": self.muted,
            "examples": [example.to_json() for example in self.examples],
        }  # fmt: skip


def event_of_json(record: JsonRecord) -> AlertEvent:
    """The event that ``to_json`` wrote."""
    known = {key: value for key, value in record.items() if key not in {"id", "fingerprint", "said", "turn"}}
    return AlertEvent(
        **{
            **known, "transition": AlertTransition(record["turn"]), "severity": Severity(record["severity"]),
            "stated": record["said"],
            "labels": tuple(record["labels"].items()),
            "examples": tuple(Example(**each) for each in record["examples"]),
        }
    )  # fmt: skip


def fingerprint(condition: str, labels: Labels) -> str:
    """The identity of an alert, 16 hex digits."""
    return hashlib.sha256(repr((condition, labels)).encode("utf-8", "replace")).hexdigest()[:16]
