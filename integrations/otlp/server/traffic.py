"""Traffic: how many requests are open, and how many were received and forwarded, for the API and the metrics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

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
        """The seconds for which requests may still need this process; 0 if there are none."""
        return max(0.0, self._until_s - self._clock_s()) if self._count else 0.0

    def wait(self, seconds: float) -> None:
        """Wait until no request is open, for at most ``seconds``."""
        self._none.wait(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiving:
    """How requests are received, and their results since start. gRPC's refusals count by the status of HTTP they mean.

    A text beside the type of a field is what the API's schema says of it.
    """

    protocols: Annotated[tuple[str, ...], "protocols that are listened for: `http`, `grpc`"]
    encrypted: bool
    authenticated: Annotated[bool, "whether senders need credentials"]
    requests: int
    spans: int
    log_records: int
    refused: Annotated[Mapping[int, int], "requests answered with an error, by HTTP status"]
    dropped: Annotated[int, "requests with signals that are not looked at"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffered:
    """Requests that upstream did not take and that are kept on disk for later. ``oldest_s`` is in s since the epoch."""

    works: Annotated[bool, "whether the file can be used"]
    max_bytes: int
    waiting: Annotated[int, "requests that are kept"]
    bytes: int
    oldest_s: Annotated[float | None, "since when the oldest is kept"]
    kept: Annotated[Mapping[str, int], "requests that were kept, by signal"]
    ended: Annotated[Mapping[str, int], "what became of them: `sent`, `refused`, `given_up`"]
    unkept: Annotated[Mapping[str, int], "requests that could not be kept, by reason"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """Requests that were forwarded since start, and what came of them."""

    upstream: str
    requests: Annotated[Mapping[str, int], "requests by signal; `other`: paths that are passed through"]
    answers: Annotated[Mapping[str, int], "upstream's answers by class of status"]
    failed: Annotated[Mapping[str, int], "requests without an answer, or with half of one, by reason"]
    unjudged: Annotated[Mapping[str, int], "requests that went on and were not taken in here, by reason"]
    withheld: Annotated[int, "requests that went on without the operator's credentials"]
    last_failure: Annotated[str, "why upstream last gave no answer; empty: it always did"]
    buffer: Annotated[Buffered | None, "null: nothing is kept (`forward.buffer` is not configured)"] = None
