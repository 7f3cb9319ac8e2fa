"""Source metrics: reading from Langfuse, what a fleet shares, and verdicts whose reference changed late.

Each snapshot has totals since the start, which counters follow, and gauges of its moment.
"""

from __future__ import annotations

from collections.abc import Iterator

from sidejudge.scoring.status.snapshots import FleetSnapshot, LateReferenceSnapshot, PullSnapshot

from . import families as f
from .collect import Series, known


def pull_totals(snapshot: PullSnapshot) -> Iterator[Series]:
    """What was read, and how readings ended early."""
    yield f.PULL_ROWS, (), snapshot.rows
    yield f.PULL_TRACES, (), snapshot.taken
    for reason, total in snapshot.errors:
        yield f.PULL_ERRORS, (reason,), total


def pull_gauges(snapshot: PullSnapshot) -> Iterator[Series]:
    """How far reading is behind."""
    return known((), (f.PULL_LAG, snapshot.lag_s), (f.PULL_LAST_SUCCESS, snapshot.read_s))


def late_reference_totals(snapshot: LateReferenceSnapshot) -> Iterator[Series]:
    """What came of judging again."""
    yield f.BELATED, ("revised",), snapshot.revised
    yield f.BELATED, ("unchanged",), snapshot.unchanged
    for reason, total in snapshot.failures:
        yield f.BELATED_FAILED, (reason,), total


def late_reference_gauges(snapshot: LateReferenceSnapshot) -> Iterator[Series]:
    """What is given up."""
    return known((), (f.BELATED_GIVEN_UP, snapshot.given_up))


def fleet_totals(snapshot: FleetSnapshot) -> Iterator[Series]:
    """Rounds, by how they ended."""
    for how, total in snapshot.rounds:
        yield f.FLEET_ROUNDS, (how,), total


def fleet_gauges(snapshot: FleetSnapshot) -> Iterator[Series]:
    """Who is there, and what this monitor alone may do."""
    return known(
        (), (f.FLEET_MONITORS, snapshot.monitors), (f.FLEET_LEASES, len(snapshot.leases)),
        (f.FLEET_LAST_SUCCESS, snapshot.read_s), (f.FLEET_CLOCK_OFFSET, snapshot.clock_offset_s),
    )  # fmt: skip
