"""Traffic: how many requests are open, and how many were received and forwarded, for the API and the metrics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

_FRESH_S: Final = 0.005
"""Seconds after a request or its response arrived for which it is assumed to need this process, not upstream."""


class ActiveRequests:
    """The number of open requests. The event loop counts them; threads whose work can wait read it."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._count = 0
        self._until_s = 0.0
        self._none = threading.Event()

    def begin(self) -> None:
        """Count a request that has arrived."""
        self._count += 1
        self._none.clear()
        self.go_on()

    def go_on(self) -> None:
        """Record that a request needs this process again: its response has arrived."""
        self._until_s = self._clock_s() + _FRESH_S

    def end(self) -> None:
        """Count a request as ended: answered, or given up."""
        self._count -= 1
        if not self._count:
            self._none.set()

    @property
    def left_s(self) -> float:
        """The seconds for which a request may still need this process; 0 when none does."""
        return max(0.0, self._until_s - self._clock_s()) if self._count else 0.0

    def wait(self, seconds: float) -> None:
        """Wait until no request is open, for at most ``seconds``."""
        self._none.wait(seconds)


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
