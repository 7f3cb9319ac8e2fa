"""How far deliveries to one destination have come at one moment. Metrics, API and status page show the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ExportState: TypeAlias = Literal["starting", "ok", "retrying", "stopped"]
"""Nothing was sent yet; it takes what it is sent; waiting helps; only a person can help (keys, address)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """One queue: ``waiting`` items, the oldest since ``oldest_ns`` (ns since the epoch; None when none waits).

    ``parked`` items were refused or lost; ``reason`` is why the last of them was.
    """

    waiting: int = 0
    oldest_ns: int | None = None
    parked: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSnapshot:
    """One destination. ``reason`` is why it is not ok, empty when it is. Times in s since the epoch, None for never.

    ``server`` names what answers there and ``project`` where scores go to, once known. ``waiting`` items are not taken
    yet, the oldest since ``oldest_s``; ``unseen`` ones are taken and not read back yet; ``dead`` ones are given up.
    ``unarrived`` ones were taken, and something else is shown there, or nothing. ``held`` ones, among those that wait,
    are of traces that upstream has not taken.
    """

    destination: str
    state: ExportState
    reason: str = ""
    server: str | None = None
    project: str | None = None
    waiting: int = 0
    oldest_s: float | None = None
    unseen: int = 0
    dead: int = 0
    unarrived: int = 0
    held: int = 0
    last_success_s: float | None = None
