"""Traffic: what has come in and what has gone on, in plain counts, for those who ask and for the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiving:
    """Where requests are taken, and what came of them since start.

    ``protocols`` are the protocols listened for; ``refused`` counts requests by HTTP status (gRPC's by the status that
    means the same), ``dropped`` requests with signals that are not looked at.
    """

    protocols: tuple[str, ...]
    encrypted: bool
    authenticated: bool
    requests: int
    spans: int
    log_records: int
    refused: Mapping[int, int]
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """Requests that went on since start, by what they are; upstream's answers by class of status.

    ``failed`` counts requests without an answer, or with half of one, by reason; ``unjudged`` those of which spans or
    log records were not taken in here, by reason.
    """

    upstream: str
    requests: Mapping[str, int]
    answers: Mapping[str, int]
    failed: Mapping[str, int]
    unjudged: Mapping[str, int]
    last_failure: str
