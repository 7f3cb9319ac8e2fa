"""Fleet metrics: what a monitor shares with others, as gauges of one moment."""

from __future__ import annotations

from collections.abc import Iterator

from scoring.status.fleet_snapshot import FleetSnapshot

from . import families as f
from .judge_metrics import Series


def fleet_gauges(snapshot: FleetSnapshot) -> Iterator[Series]:
    """The gauges of one moment."""
    yield f.FLEET_MONITORS, (), float(snapshot.monitors)
    yield f.FLEET_LEASES, (), float(len(snapshot.leases))
    if snapshot.read_s is not None:
        yield f.FLEET_LAST_SUCCESS, (), snapshot.read_s
