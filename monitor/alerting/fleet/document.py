"""The document that the leader writes and every monitor shows: the statuses and alerts of the fleet."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.service_status import ServiceStatus

DOCUMENT: Final = "alerts/status"
"""The name of the state that holds it."""
MOST_BYTES: Final = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDocument:
    """The fleet at ``at_ns``, by the monitor ``leader``.

    ``alerts`` and ``sent`` are alerts and events in their JSON form; ``sent`` are those that receivers have got.
    ``metrics`` are continuous metrics under their limits; None: by a leader of a version that does not watch them.
    ``shares`` counts the verdicts within the window that passed or failed, by monitor.
    ``watches`` is a digest of thresholds, windows and rubrics that the leader watches by.
    """

    at_ns: int
    leader: str
    services: Sequence[ServiceStatus] = ()
    metrics: Sequence[MetricStatus] | None = None
    alerts: Sequence[Mapping[str, object]] = ()
    sent: Sequence[Mapping[str, object]] = ()
    shares: Mapping[str, int] = field(default_factory=dict)
    watches: str | None = None

    def encoded(self) -> bytes:
        """For the database."""
        return zlib.compress(msgspec.json.encode(self), 6)


def read_document(body: bytes) -> FleetDocument:
    """Read what ``encoded`` wrote, by this version or another; ``ValueError`` for anything else."""
    opened = zlib.decompressobj()
    try:
        text = opened.decompress(body, MOST_BYTES)
        return msgspec.json.decode(text, type=FleetDocument)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(f"not a status of the fleet: {error}") from error
