"""Room: a store that fills up keeps what is old for less long.

With every step the late window, the retention, the late window of sessions and the most that caches may hold are
halved, for this once, until enough is free. The oldest goes first, of caches what was not used for longest, and nothing
that waits to be judged. What comes late for a trace that was let go early is treated as after the late window: it is
too late, and counted so; a turn that comes late for a session that was let go begins another one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

_log = logging.getLogger("sidejudge.room")

_FULL: Final = 0.8
"""Fullness from which there is too little room."""
_STEPS: Final = 12
"""Halvings: of a day they leave 21 seconds."""


class FillingStore(Protocol):
    """What making room asks of a store."""

    @property
    def fullness(self) -> float: ...
    async def purge(
        self, before_ns: int, *, chunks_before_ns: int | None = None, referred_before_ns: int | None = None
    ) -> None: ...
    async def purge_turns(self, before_ns: int, abandoned_ns: int) -> None: ...


class VerdictMemory(Protocol):
    """What making room asks of an assembler, and of the sessions."""

    def forget(self, closed_before_ns: int) -> None: ...


class ShrinkableCache(Protocol):
    """What making room asks of a table of things that can be made again."""

    async def trim(self, most: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionTerms:
    """How long things are kept while there is room (ns), and how many entries each cache may hold."""

    retention_ns: int
    late_ns: int
    referred_ns: int = 0
    session_late_ns: int = 0
    caches: Sequence[tuple[ShrinkableCache, int]] = ()


async def make_room(
    store: FillingStore, assembler: VerdictMemory, sessions: VerdictMemory | None, terms: RetentionTerms, *, now_ns: int
) -> int:
    """Let go of what is oldest until the store is less than 80 % full; how often the terms had to be halved.

    Raises ``StoreError`` when the store does not let go.
    """
    steps = 0
    while store.fullness >= _FULL and steps < _STEPS:
        steps += 1
        late, retention, referred, session_late = (
            ns >> steps for ns in (terms.late_ns, terms.retention_ns, terms.referred_ns, terms.session_late_ns)
        )
        for cache, entries in terms.caches:
            await cache.trim(entries >> steps)
        # First what remembers: it must still be held, or half a trace or session would be judged as a whole one.
        assembler.forget(now_ns - late)
        if sessions is not None:
            sessions.forget(now_ns - session_late)
        # Sessions that nobody judged wait as long as ever.
        await store.purge_turns(now_ns - session_late, now_ns - terms.retention_ns)
        await store.purge(
            now_ns - max(late, retention),
            chunks_before_ns=now_ns - late,
            referred_before_ns=now_ns - max(late, referred),
        )
    if steps:
        _log.warning(
            "the store is nearly full; what is old was let go early",
            extra={"kept_for_s": round((terms.retention_ns >> steps) / 1e9), "fullness": round(store.fullness, 2)},
        )
    return steps
