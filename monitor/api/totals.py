"""Totals: what the parts of a monitor have counted since the start, as the counters of Prometheus that follow them.

The hot path counts in plain integers; they are read at a scrape.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    for code, refused in receiving.refused.items():
        yield f.REQUESTS_REFUSED, (str(code),), refused
    yield f.REQUESTS_DROPPED, (), receiving.dropped


def forwarding_totals(forwarding: Forwarding) -> Iterator[Series]:
    """Requests that went on upstream, and what came of them."""
    for family, counts in (
        (f.FORWARDED, forwarding.requests), (f.FORWARD_ANSWERS, forwarding.answers),
        (f.FORWARD_FAILED, forwarding.failed), (f.FORWARD_UNJUDGED, forwarding.unjudged),
    ):  # fmt: skip
        for label, total in counts.items():
            yield family, (label,), total
    yield f.FORWARD_WITHHELD, (), forwarding.withheld
    if (buffer := forwarding.buffer) is not None:
        for family, counts in (
            (f.FORWARD_KEPT, buffer.kept), (f.FORWARD_KEPT_ENDED, buffer.ended), (f.FORWARD_UNKEPT, buffer.unkept),
        ):  # fmt: skip
            for label, total in counts.items():
                yield family, (label,), total


def pull_totals(snapshot: PullSnapshot) -> Iterator[Series]:
    """What was read, and how readings ended early."""
    yield f.PULL_ROWS, (), snapshot.rows
    yield f.PULL_TRACES, (), snapshot.taken
    for reason, total in snapshot.errors:
        yield f.PULL_ERRORS, (reason,), total


def late_reference_totals(snapshot: LateReferenceSnapshot) -> Iterator[Series]:
    """What came of judging again."""
    yield f.BELATED, ("revised",), snapshot.revised
    yield f.BELATED, ("unchanged",), snapshot.unchanged
    for reason, total in snapshot.failures:
        yield f.BELATED_FAILED, (reason,), total


def fleet_totals(snapshot: FleetSnapshot) -> Iterator[Series]:
    """Rounds, by how they ended."""
    for how, total in snapshot.rounds:
        yield f.FLEET_ROUNDS, (how,), total
