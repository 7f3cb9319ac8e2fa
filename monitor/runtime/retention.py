"""Retention: data that was kept long enough is deleted, earlier where the store fills up.

Then each step halves the late window, the retention, the late window of sessions and the size of the caches, for this
run only, until enough space is free. The oldest data is deleted first; of the caches, the entries that were not used
for the longest time. Data that waits to be judged is never deleted. Spans that arrive for a trace that was deleted
early count as late; a turn that arrives for a deleted session begins a new one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Final, TypeAlias

from sidejudge.integrations.store.contents import ContentsTable
from sidejudge.integrations.store.part import JudgeCacheTable, Lru
from sidejudge.integrations.store.sqlite import Store, StoreError
from sidejudge.monitor.config import Config
from sidejudge.monitor.deliver.kept_contents import KeptContents
from sidejudge.monitor.ingest.assembler import Assembler
from sidejudge.monitor.sessions.windows import SessionWindows

_log = logging.getLogger("sidejudge.retention")

_FULL: Final = 0.8
"""Fullness at which data is deleted early."""
_STEPS: Final = 12
"""Halvings: of a day they leave 21 seconds."""


Cache: TypeAlias = JudgeCacheTable | Lru[bytes] | ContentsTable
"""A table whose entries can be computed again, or are kept for people alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionTerms:
    """How long data is kept without pressure (ns), and how many entries each cache may hold."""

    retention_ns: int
    late_ns: int
    referred_ns: int = 0
    session_late_ns: int = 0
    caches: Sequence[tuple[Cache, int]] = ()


async def free_space(
    store: Store, assembler: Assembler, sessions: SessionWindows | None, terms: RetentionTerms, *, now_ns: int
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
        before_ns = now_ns - max(late, retention)
        with suppress(StoreError):  # one without room for a record must be cleared all the same; the next run writes it
            await store.delete_early(before_ns)
        await store.purge(
            before_ns,
            chunks_before_ns=now_ns - late,
            referred_before_ns=now_ns - max(late, referred),
        )
    if steps:
        _log.warning(
            "the store is nearly full; old data was deleted early",
            extra={"kept_for_s": round((terms.retention_ns >> steps) / 1e9), "fullness": round(store.fullness, 2)},
        )
    return steps


log = logging.getLogger("sidejudge")


@dataclass(slots=True)
class Retention:
    """Scheduled work on the store. An error is logged; the next run tries again."""

    config: Config
    store: Store
    assembler: Assembler
    sessions: SessionWindows | None
    clock_ns: Callable[[], int]
    _: KW_ONLY
    contents: KeptContents | None = None

    async def purge(self) -> None:
        """Delete what is past its retention."""
        now_ns = self.clock_ns()
        if self.contents is not None:
            await self.contents.write()  # they come from the chunks
        try:
            terms = _terms(self.config, self.store)
            await self.store.purge(
                now_ns - terms.retention_ns,
                chunks_before_ns=now_ns - terms.late_ns,
                referred_before_ns=now_ns - max(terms.late_ns, terms.referred_ns),
                spared=self.assembler.awaited(now_ns - terms.late_ns),
            )
            keep, most_bytes = self.config.contents_kept_for, self.config.contents_max_bytes
            await self.store.contents.purge(now_ns - keep.ns if keep is not None else now_ns, most_bytes)
            judge = self.config.evaluators.judge
            kept = judge.keep_calls_bytes if judge is not None and judge.keep_calls_bytes is not None else 0
            await self.store.judge_calls.purge(now_ns - judge.keep_calls.ns if judge is not None else now_ns, kept)
            grown_ns = self.sessions.grown_ns(now_ns) if self.sessions is not None else now_ns
            await self.store.purge_turns(grown_ns, now_ns - self.config.store.retention.ns)
        except StoreError as error:
            log.warning("could not purge the store", extra={"cause": str(error)})

    async def relieve(self) -> None:
        """Delete old data early while the store is too full. Tries a store again that failed."""
        try:
            await self.store.try_again()
            await free_space(
                self.store, self.assembler, self.sessions, _terms(self.config, self.store), now_ns=self.clock_ns()
            )
        except StoreError as error:
            log.warning("could not free space in the store", extra={"cause": str(error)})


def _terms(config: Config, store: Store) -> RetentionTerms:
    judge, embedding, sessions = config.evaluators.judge, config.evaluators.embedding, config.sessions
    # A cache that is not configured any more is emptied.
    caches: list[tuple[Cache, int]] = [
        (store.judged, judge.cache_entries if judge is not None else 0),
        (store.vectors, embedding.cache_entries if embedding is not None else 0),
        (store.contents, config.contents_max_bytes),  # in bytes
    ]
    return RetentionTerms(
        retention_ns=config.kept_for.ns,
        late_ns=config.late_for.ns,
        referred_ns=within.ns if (within := config.revised_within) is not None else 0,
        session_late_ns=sessions.late.ns if sessions is not None else 0,
        caches=caches,
    )
