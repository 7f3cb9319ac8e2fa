"""Traces whose judging was interrupted by the end of the process, and how often.

A trace that makes the process end (by its memory, or by a fault in a library) would do so again after every restart.
So the store holds the ids of what is being judged before judging begins. After a restart those are judged one at a
time, and one whose judging was interrupted too often is given up. The price is one small write a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.scoring.trace.span import JsonRecord

_NAME: Final = "judging"
_LARGE: Final = 16 << 20
"""Decoded bytes from which on a trace is suspected of having exhausted the memory."""
_MOST_TIMES_LARGE: Final = 2
_MOST_TIMES: Final = 4
"""Interruptions after which a trace is given up. At the first, others were in its batch. A small trace ends a process
by a fault of a library alone, so a process that is killed often is the likelier reason."""


class FactStore(Protocol):
    """What this needs of a store."""

    def fact(self, name: str) -> JsonRecord | None: ...
    async def keep_fact(self, name: str, value: Mapping[str, object]) -> None: ...


class InterruptedTraces:
    """Reads what an earlier process left when it is made; writes before and after each batch."""

    def __init__(self, facts: FactStore) -> None:
        self._facts = facts
        self._times: dict[bytes, int] = {
            bytes.fromhex(trace_id): int(times) for trace_id, times in (facts.fact(_NAME) or {}).items()
        }
        self._written = bool(self._times)

    def times(self, trace_id: bytes) -> int:
        """How often the process ended while this trace was being judged."""
        return self._times.get(trace_id, 0)

    def too_often(self, closing: Closing) -> bool:
        """Whether this trace is to be given up."""
        return self.times(closing.trace_id) >= (_MOST_TIMES_LARGE if closing.decoded >= _LARGE else _MOST_TIMES)

    async def begin(self, trace_ids: Iterable[bytes]) -> None:
        """Returns once it is on disk that these are being judged. Raises ``StoreError``."""
        judging = {trace_id.hex(): self.times(trace_id) + 1 for trace_id in trace_ids}
        await self._write({**{trace_id.hex(): times for trace_id, times in self._times.items()}, **judging})

    def ended(self, trace_ids: Iterable[bytes]) -> None:
        """These have been judged."""
        for trace_id in trace_ids:
            self._times.pop(trace_id, None)

    async def rest(self) -> None:
        """Nothing is being judged now."""
        if self._written:
            await self._write({trace_id.hex(): times for trace_id, times in self._times.items()})

    async def _write(self, traces: Mapping[str, object]) -> None:
        await self._facts.keep_fact(_NAME, traces)
        self._written = bool(traces)
