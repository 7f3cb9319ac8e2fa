"""Adaptive idle timeout: how long the traces of a service pause, so that idle is no shorter than its own pauses.

An agent that waits a minute for a tool would have each of its traces cut at an idle of 30 s, judged as a fragment, and
revised. It learns the longest pause of each trace while something of it was missing, including pauses that a closing
cut short (the span that reopened the trace shows them). Idle is then twice the 95th percentile of the service's last
traces, within bounds: never shorter than configured, never longer than ``ceiling_ns``.
"""

from __future__ import annotations

from collections import deque
from typing import Final

REMEMBERED: Final = 128
"""Most traces of a service that are remembered."""
_ENOUGH: Final = 16
"""Traces of a service before its idle timeout is adapted."""
_FACTOR: Final = 2
_SERVICES: Final = 1_000
_NAME_LENGTH: Final = 200


class AdaptiveIdle:
    """Learned pauses by service, in ns. Services beyond the bound, and endless names, keep the configured idle."""

    def __init__(self, floor_ns: int, ceiling_ns: int) -> None:
        self._floor_ns, self._ceiling_ns = floor_ns, max(floor_ns, ceiling_ns)
        self._pauses: dict[str | None, deque[int]] = {}
        self._idle_ns: dict[str | None, int] = {}

    def idle_ns(self, service: str | None) -> int:
        """The silence after which a trace of this service counts as idle."""
        return self._idle_ns.get(service, self._floor_ns)

    def learn(self, service: str | None, pause_ns: int) -> None:
        """The longest pause of a trace that was closed; 0 when nothing of it was waited for."""
        if self._ceiling_ns == self._floor_ns:
            return
        pauses = self._pauses.get(service)
        if pauses is None:
            if len(self._pauses) >= _SERVICES or len(service or "") > _NAME_LENGTH:
                return
            pauses = self._pauses[service] = deque(maxlen=REMEMBERED)
        alike = len(pauses) == REMEMBERED and pauses[0] == pause_ns  # it takes the place of an equal one
        pauses.append(pause_ns)
        if len(pauses) >= _ENOUGH and not alike:
            ranked = sorted(pauses)
            usual = ranked[(19 * len(ranked) - 1) // 20]
            self._idle_ns[service] = min(self._ceiling_ns, max(self._floor_ns, _FACTOR * usual))
