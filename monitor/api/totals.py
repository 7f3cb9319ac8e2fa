"""Totals: what the parts of a monitor have counted since the start, as the counters of Prometheus that follow them.

The hot path counts in plain integers; they are read at a scrape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import sidejudge.integrations.prometheus.families as f
from sidejudge.integrations.otlp.server.traffic import Forwarding, Receiving
from sidejudge.integrations.prometheus.collect import Series
from sidejudge.monitor.ingest.intake import IntakeCounts
from sidejudge.monitor.ingest.upstream_trust import WHY, UpstreamTrust
from sidejudge.scoring.status.snapshots import FleetSnapshot, LateReferenceSnapshot, PullSnapshot

REJECTED: Final = "invalid"
"""Why the intake rejects a span for good: its ids or its bytes are not what OTLP allows."""


def intake_totals(counts: IntakeCounts) -> Iterator[Series]:
    """Spans and log records: how many arrived, and what was not used."""
    yield f.SPANS_RECEIVED, (), counts.spans
    yield f.SPANS_HANDED_OVER, (), counts.handed_over
    yield f.SPANS_REJECTED, (REJECTED,), counts.rejected
    for reason, ignored in (
        ("duplicate", counts.duplicate), ("late", counts.late), ("own", counts.own), ("shed", counts.shed),
        ("too_large", counts.too_large),
    ):  # fmt: skip
        yield f.SPANS_IGNORED, (reason,), ignored
    yield f.LOG_RECORDS_RECEIVED, (), counts.logs
    yield f.LOG_RECORDS_REJECTED, (), counts.rejected_logs
    for reason, ignored in (
        ("untraced", counts.untraced_logs), ("plain", counts.plain_logs), ("late", counts.late_logs),
        ("own", counts.own_logs), ("too_large", counts.too_large_logs),
    ):  # fmt: skip
        yield f.LOG_RECORDS_IGNORED, (reason,), ignored


def claim_totals(trust: UpstreamTrust) -> Iterator[Series]:
    """What callers decided: traces that they began, and what traces claimed and was not believed."""
    yield f.BEGUN_BY_CALLERS, (), trust.begun_by_callers
    for why in WHY:
        yield f.CLAIMS_DISBELIEVED, (why,), trust.disbelieved.get(why, 0)


def receiving_totals(receiving: Receiving) -> Iterator[Series]:
    """Requests that were not taken in."""
    yield from _each(f.REQUESTS_REFUSED, receiving.refused.items())
    yield f.REQUESTS_DROPPED, (), receiving.dropped


def forwarding_totals(forwarding: Forwarding) -> Iterator[Series]:
    """Requests that went on upstream, and what came of them."""
    yield from _each(f.FORWARDED, forwarding.requests.items())
    yield from _each(f.FORWARD_ANSWERS, forwarding.answers.items())
    yield from _each(f.FORWARD_FAILED, forwarding.failed.items())
    yield from _each(f.FORWARD_UNJUDGED, forwarding.unjudged.items())
    yield f.FORWARD_WITHHELD, (), forwarding.withheld
    if (buffer := forwarding.buffer) is not None:
        yield from _each(f.FORWARD_KEPT, buffer.kept.items())
        yield from _each(f.FORWARD_KEPT_ENDED, buffer.ended.items())
        yield from _each(f.FORWARD_UNKEPT, buffer.unkept.items())


def pull_totals(snapshot: PullSnapshot) -> Iterator[Series]:
    """What was read, and how readings ended early."""
    yield f.PULL_ROWS, (), snapshot.rows
    yield f.PULL_TRACES, (), snapshot.taken
    yield from _each(f.PULL_ERRORS, snapshot.errors)


def late_reference_totals(snapshot: LateReferenceSnapshot) -> Iterator[Series]:
    """What came of judging again."""
    yield f.BELATED, ("revised",), snapshot.revised
    yield f.BELATED, ("unchanged",), snapshot.unchanged
    yield from _each(f.BELATED_FAILED, snapshot.failures)


def fleet_totals(snapshot: FleetSnapshot) -> Iterator[Series]:
    """Rounds, by how they ended."""
    return _each(f.FLEET_ROUNDS, snapshot.rounds)


def _each(family: f.Family, counts: Iterable[tuple[object, float]]) -> Iterator[Series]:
    """A series for each value of the family's only label."""
    return ((family, (str(label),), count) for label, count in counts)
