"""Fleet snapshot: how the fleet of monitors looks from one of them, at one moment.

Metrics, API and status page show the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

FleetState: TypeAlias = Literal["starting", "ok", "wrong_clock", "retrying", "stopped"]
"""Not reached yet; all well; reached, and this monitor's clock is off; the database is away and waiting helps; only a
person can (address, rights, schema)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSnapshot:
    """One monitor's part. ``reason`` is why it is not ok, empty when it is.

    ``database`` is its address without credentials. ``monitors`` is how many were there in the latest round that
    reached it, this one included, and ``leases`` what this one alone may do. ``away_s`` is for how long it has been
    away, in s. ``read_s`` is when a round was last whole, s since the epoch. ``rounds`` counts since the start, by how
    each ended. ``clock_offset_s`` is by how much this monitor's clock is ahead of the database's, in s, negative when
    it is behind; None until it was read. ``wrong_clock`` is what to do about it, empty where it is right.
    """

    name: str
    database: str
    state: FleetState
    reason: str = ""
    away_s: float = 0.0
    monitors: int = 1
    leases: tuple[str, ...] = ()
    schema_version: int | None = None
    read_s: float | None = None
    rounds: tuple[tuple[str, int], ...] = ()
    clock_offset_s: float | None = None
    wrong_clock: str = ""
