"""Incidents: from the events of an alert to one line for each time that it fired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .condition import Severity
from .event import AlertEvent
from .finding import Labels
from .lifecycle import AlertTransition


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """An alert from when it fired to its end, in ns since the epoch; ``ended_ns`` is ``None`` while it stands.

    ``value`` with its bounds and ``n`` is what it was raised on, in the condition's unit; ``changed_ns`` since when the
    change detector thinks it was so. ``silent``: for a while, or until its end, there was too little data.
    ``muted``: a more severe alert about the same thing fired whenever this one was to be sent.
    """

    condition: str
    severity: Severity
    title: str
    labels: Labels
    began_ns: int
    stated: str
    value: float | None
    lower: float | None
    upper: float | None
    n: int | None
    limit: float | None
    changed_ns: int | None = None
    ended_ns: int | None = None
    silent: bool = False
    muted: bool = False

    def to_json(self) -> dict[str, object]:
        """For a wire: times in ns since the epoch, what is not known null."""
        return {
            "condition": self.condition, "severity": self.severity.value, "title": self.title,
            "labels": dict(self.labels), "began_ns": self.began_ns, "ended_ns": self.ended_ns, "said": self.stated,
            "value": self.value, "lower": self.lower, "upper": self.upper, "n": self.n, "limit": self.limit,
            "changed_ns": self.changed_ns, "silent": self.silent, "muted": self.muted,
        }  # fmt: skip


@dataclass(slots=True)
class Incidents:
    """Takes events in order, and describes their incidents."""

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
        """All of them, by when they began, the most severe first."""
        order = list(Severity)
        found = [*self._over, *self._open.values()]
        return sorted(found, key=lambda each: (each.began_ns, order.index(each.severity), each.labels))


def _begun(event: AlertEvent) -> Incident:
    return Incident(
        condition=event.condition, severity=event.severity, title=event.title, labels=event.labels,
        began_ns=event.at_ns, stated=event.stated, value=event.value, lower=event.lower, upper=event.upper, n=event.n,
        limit=event.limit, changed_ns=event.changed_ns, muted=event.muted,
    )  # fmt: skip
