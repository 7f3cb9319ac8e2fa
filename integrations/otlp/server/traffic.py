"""Counts of received and forwarded requests, for the API and the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiving:
    """How requests are received, and their results since start.

    ``protocols`` are those that are listened for; ``refused`` counts requests by HTTP status (gRPC's by the status that
    means the same), ``dropped`` requests with signals that are not read.
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
class Buffered:
    """Requests that upstream did not take and that are kept on disk for later, with their bytes.

    ``works``: the file can be used. ``oldest_s`` is since when the oldest is kept (s since the epoch). Since start:
    ``kept`` by signal, ``ended`` by what became of them, ``unkept`` those that could not be kept, by reason.
    """

    works: bool
    max_bytes: int
    waiting: int
    bytes: int
    oldest_s: float | None
    kept: Mapping[str, int]
    ended: Mapping[str, int]
    unkept: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """Requests that were forwarded since start, by signal; upstream's responses by class of status.

    ``failed`` counts requests without a response, or with half of one, by reason; ``unjudged`` those whose spans or log
    records were not taken in here, by reason. ``withheld`` counts those that went on without the operator's
    credentials. ``buffer`` is None where nothing is kept.
    """

    upstream: str
    requests: Mapping[str, int]
    answers: Mapping[str, int]
    failed: Mapping[str, int]
    unjudged: Mapping[str, int]
    withheld: int
    last_failure: str
    buffer: Buffered | None = None
