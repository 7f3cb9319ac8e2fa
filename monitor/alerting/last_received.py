"""Last received: when something of each service last came, which says why its verdicts no longer do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.status.silence import SilenceCause

_AFTER_NS: Final = 60 * 10**9
"""What came within a minute of the last verdict may be of the same traces."""
_SERVICES: Final = 1_000


class LastReceived:
    """Takes the ends of traces, by service; what was before the process is not known."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._sampled_out: dict[str, int] = {}
        self._kept: dict[str, int] = {}

    def ended(self, service: str, reason: EndReason, count: int) -> None:
        """Traces of a service have ended for this reason."""
        if reason in {EndReason.EXCLUDED, EndReason.HANDED_OVER} or not count:
            return
        known = self._sampled_out if reason is EndReason.SAMPLED_OUT else self._kept
        if service in known or len(known) < _SERVICES:
            known[service] = self._clock_ns()

    def cause(self, service: str, since_ns: int) -> SilenceCause:
        """How far what the service sends has come since a time, in ns since the epoch."""
        after_ns = since_ns + _AFTER_NS
        if self._kept.get(service, 0) > after_ns:
            return SilenceCause.NONE_JUDGED
        return SilenceCause.NONE_SAMPLED if self._sampled_out.get(service, 0) > after_ns else SilenceCause.NO_SPANS
