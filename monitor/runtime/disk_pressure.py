"""Disk pressure: a store that fills up keeps old data for a shorter time.

Each step halves the late window, the retention, the late window of sessions and the size of the caches, for this run
only, until enough space is free. The oldest data is deleted first; of the caches, the entries that were not used for
the longest time. Data that waits to be judged is never deleted. Spans that arrive for a trace that was deleted early
count as late; a turn that arrives for a deleted session begins a new one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

_log = logging.getLogger("sidejudge.retention")

_FULL: Final = 0.8
"""Fullness from which data is deleted early."""
_STEPS: Final = 12
"""Halvings: of a day they leave 21 seconds."""


class FillingStore(Protocol):
    """The part of the store that is used."""

    @property
    def fullness(self) -> float: ...
    async def purge(
        self, before_ns: int, *, chunks_before_ns: int | None = None, referred_before_ns: int | None = None
    ) -> None: ...
    async def purge_turns(self, before_ns: int, abandoned_ns: int) -> None: ...


class VerdictMemory(Protocol):
    """The parts of the assembler and of the sessions that are used."""

    def forget(self, closed_before_ns: int) -> None: ...


class ShrinkableCache(Protocol):
    """A table whose entries can be computed again."""

    async def trim(self, most: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionTerms:
    """How long data is kept without pressure (ns), and how many entries each cache may hold."""

    retention_ns: int
    late_ns: int
    referred_ns: int = 0
    session_late_ns: int = 0
    caches: Sequence[tuple[ShrinkableCache, int]] = ()


async def free_space(
    store: FillingStore, assembler: VerdictMemory, sessions: VerdictMemory | None, terms: RetentionTerms, *, now_ns: int
) -> int:
    """Delete the oldest data until the store is less than 80 % full.

    Returns:
        How often the terms were halved; 0 without pressure.

    Raises:
        StoreError: The store cannot be written.
    """
    steps = 0
    while store.fullness >= _FULL and steps < _STEPS:
        steps += 1
        late, retention, referred, session_late = (
            ns >> steps for ns in (terms.late_ns, terms.retention_ns, terms.referred_ns, terms.session_late_ns)
        )
        for cache, entries in terms.caches:
            await cache.trim(entries >> steps)
        # Memory is cleared before the store: otherwise a late span would open a trace whose other spans are deleted.
        assembler.forget(now_ns - late)
        if sessions is not None:
            sessions.forget(now_ns - session_late)
        # Sessions that are not judged yet keep the full retention.
        await store.purge_turns(now_ns - session_late, now_ns - terms.retention_ns)
        await store.purge(
            now_ns - max(late, retention),
            chunks_before_ns=now_ns - late,
            referred_before_ns=now_ns - max(late, referred),
        )
    if steps:
        _log.warning(
            "the store is nearly full; old data was deleted early",
            extra={"kept_for_s": round((terms.retention_ns >> steps) / 1e9), "fullness": round(store.fullness, 2)},
        )
    return steps
