"""Finding: what one look at one instance of a condition found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""The labels that distinguish the instances of a condition: (name, value) in the condition's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFinding:
    """``breached`` is ``None`` when there is too little data; that is neither a breach nor a recovery.

    ``undecided``: there is data, which contradicts itself; an alert that stands goes on as it was.

    ``value``, ``lower``, ``upper`` and ``limit`` are in the condition's unit, ``None`` where there is none; ``n``
    counts what the value was made of. ``stated`` is one sentence. ``changed_ns`` is the estimated time of the change.
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
    undecided: bool = False
