"""Fleet report: the status of the whole fleet, who belongs to it, and what this monitor adds to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .service_status import ServiceStatus

MonitorState: TypeAlias = Literal["working", "quiet", "left", "gone"]
"""There, with verdicts in the window; there, without any; ended in order; not seen though it did not end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMonitor:
    """One monitor. ``seen_s`` is how long ago it was last there; ``verdicts`` are its part of the fleet's window."""

    name: str
    version: str
    host: str
    started_s: float
    seen_s: float
    state: MonitorState
    verdicts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetReport:
    """The fleet from one monitor, ``name``.

    ``services`` are the fleet's, reached by ``leader`` at ``at_ns``. While no status of the fleet is known they are
    this monitor's own, ``leader`` and ``at_ns`` are None, and ``alone`` is why. ``own`` are always its own: its share.
    ``other_settings`` is what to do where the leader has watched by another configuration for long.
    """

    name: str
    monitors: Sequence[FleetMonitor]
    services: Sequence[ServiceStatus]
    own: Sequence[ServiceStatus]
    leader: str | None = None
    at_ns: int | None = None
    alone: str | None = None
    other_settings: str | None = None

    def own_verdicts(self, status: ServiceStatus) -> int:
        """How many verdicts of a service under a rubric this monitor has reached within its own window."""
        place = (status.service, status.environment, status.rubric)
        found = (each for each in self.own if (each.service, each.environment, each.rubric) == place)
        return next((each.estimate.n for each in found if each.estimate is not None), 0)
