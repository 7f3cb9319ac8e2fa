"""Board: the alerts of one moment, as metrics, API and pages show them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .condition import Condition, Severity
from .lifecycle import Alert, Stage

_SEVERITIES = tuple(Severity)
_STAGES = (Stage.FIRING, Stage.UNKNOWN, Stage.PENDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """One alert with its condition. ``muted``: a more severe alert about the same thing fires."""

    condition: Condition
    alert: Alert
    muted: bool


def in_order(posted: Iterable[Posted]) -> list[Posted]:
    """What matters most first: firing before what is not known and what is pending, then by severity, then by age."""
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
