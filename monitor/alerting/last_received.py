"""Last received: when something of each service last came, which says why its verdicts no longer do.

What came before the process is not known: for an hour after a start no cause of a silence that is older is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.status.service_status import SilenceCause

_AFTER_NS: Final = 60 * 10**9
"""What came within a minute of the last verdict may be of the same traces."""
_LISTENED_NS: Final = 3_600 * 10**9
"""Of a service that sends, something comes within this time."""
_SERVICES: Final = 1_000


class LastReceived:
    """Takes the ends of traces, by service, and what waits to be judged."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns, self._started_ns = clock_ns, clock_ns()
        self._sampled_out: dict[str, int] = {}
        self._kept: dict[str, int] = {}

    def ended(self, service: str, reason: EndReason, count: int) -> None:
        """Traces of a service have ended for this reason."""
        if reason is EndReason.HANDED_OVER or not count:
            return
        self._came(self._sampled_out if reason is EndReason.SAMPLED_OUT else self._kept, service)

    def waits(self, service: str) -> None:
        """A trace of a service is in the sample and waits for an answer."""
        self._came(self._kept, service)

    def _came(self, known: dict[str, int], service: str) -> None:
        if service in known or len(known) < _SERVICES:
            known[service] = self._clock_ns()

    def cause(self, service: str, since_ns: int) -> SilenceCause:
        """How far what the service sends has come since a time, in ns since the epoch."""
        after_ns = since_ns + _AFTER_NS
        if self._kept.get(service, 0) > after_ns:
            return SilenceCause.NONE_JUDGED
        if self._sampled_out.get(service, 0) > after_ns:
            return SilenceCause.NONE_SAMPLED
        listened = since_ns >= self._started_ns or self._clock_ns() - self._started_ns >= _LISTENED_NS
        return SilenceCause.NO_SPANS if listened else SilenceCause.UNKNOWN
