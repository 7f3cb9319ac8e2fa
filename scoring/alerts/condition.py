"""Condition: one thing that is watched, as a value with one function.

Finding: what one look at one instance of a condition found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from .observed import Observed

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""The labels that distinguish the instances of a condition: (name, value) in the condition's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFinding:
    """``breached`` is ``None`` when there is too little data, which is neither a breach nor a recovery.

    ``undecided``: the data contradict themselves, and an alert that exists stays as it was.

    ``value``, ``lower``, ``upper`` and ``limit`` are in the condition's unit, ``None`` where there is none; ``n`` is
    the sample size since ``measured_ns``. ``stated`` is one sentence. ``changed_ns`` is the estimated time of the
    change.
    """

    labels: Labels
    breached: bool | None
    stated: str
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    n: int | None = None
    limit: float | None = None
    changed_ns: int | None = None
    measured_ns: int | None = None
    undecided: bool = False


Unit: TypeAlias = Literal["ratio", "seconds", "bytes", "count", "metric"]
"""The unit of the value and the limit; ``metric`` stands for the unit of the metric that the label names."""
Scope: TypeAlias = tuple[
    Literal[
        "service", "environment", "rubric", "metric", "model", "period", "slice", "value", "connection", "code", "kind"
    ],
    ...,
]
"""The labels that distinguish its instances; without labels there is one instance."""

PLACE: Scope = ("service", "environment", "rubric")


class Severity(StrEnum):
    """``critical`` wakes somebody, ``warning`` waits for the morning, ``info`` is for people who look.

    The monitor's own troubles are never critical: nobody is woken because of the monitor.
    """

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A watched condition and its alert.

    ``when`` describes when it is breached, with the limits in force; ``meaning`` describes what that means to people;
    ``runbook`` is the slug of the runbook page. The alert fires once the condition was breached for ``for_ns`` and
    resolves once it was not breached for ``keep_ns``. ``limit`` is set where one number holds for all instances. While
    ``muted_by`` (an id) fires for the same labels, this alert is muted. ``examples``: failing traces illustrate it.
    """

    id: str
    severity: Severity
    scope: Scope
    title: str
    when: str
    meaning: str
    unit: Unit
    find: Callable[[Observed], Iterable[AlertFinding]]
    limit: float | None = None
    for_ns: int = 0
    keep_ns: int = 0
    muted_by: str | None = None
    examples: bool = False

    @property
    def runbook(self) -> str:
        """The slug of its runbook: ``pass-rate-critical``."""
        return self.id.replace("_", "-")

    @property
    def alert_name(self) -> str:
        """Its name among Prometheus' alerts: ``SidejudgePassRateCritical``."""
        return alert_name(self.id)


def alert_name(condition: str) -> str:
    """The name of a condition's alert among Prometheus' alerts.

    >>> alert_name("pass_rate_critical")
    'SidejudgePassRateCritical'
    """
    return "Sidejudge" + "".join(word.capitalize() for word in condition.split("_"))
