"""Retention: data that was kept long enough is deleted, earlier where the store fills up."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sidejudge.integrations.store.sqlite import Store, StoreError
from sidejudge.monitor.config import Config
from sidejudge.monitor.deliver.kept_contents import KeptContents
from sidejudge.monitor.ingest.assembler import Assembler
from sidejudge.monitor.sessions.windows import SessionWindows

from .disk_pressure import RetentionTerms, ShrinkableCache, free_space

log = logging.getLogger("sidejudge")


class Retention:
    """Scheduled work on the store. An error is logged; the next run tries again."""

    def __init__(
        self,
        config: Config,
        store: Store,
        assembler: Assembler,
        sessions: SessionWindows | None,
        clock_ns: Callable[[], int],
        *,
        contents: KeptContents | None = None,
    ) -> None:
        self._config, self._store, self._assembler, self._clock_ns = config, store, assembler, clock_ns
        self._sessions, self._contents = sessions, contents

    async def purge(self) -> None:
        """Delete what is past its retention."""
        now_ns = self._clock_ns()
        if self._contents is not None:
            await self._contents.write()  # they come from the chunks
        try:
            terms = _terms(self._config, self._store)
            await self._store.purge(
                now_ns - terms.retention_ns,
                chunks_before_ns=now_ns - terms.late_ns,
                referred_before_ns=now_ns - max(terms.late_ns, terms.referred_ns),
                spared=self._assembler.awaited(now_ns - terms.late_ns),
            )
            keep, most_bytes = self._config.contents_kept_for, self._config.contents_max_bytes
            await self._store.contents.purge(now_ns - keep.ns if keep is not None else now_ns, most_bytes)
            judge = self._config.evaluators.judge
            kept = judge.keep_calls_bytes if judge is not None and judge.keep_calls_bytes is not None else 0
            await self._store.judge_calls.purge(now_ns - judge.keep_calls.ns if judge is not None else now_ns, kept)
            sessions = self._config.sessions
            grown_ns = now_ns - (sessions.late.ns if sessions is not None else 0)
            await self._store.purge_turns(grown_ns, now_ns - self._config.store.retention.ns)
        except StoreError as error:
            log.warning("could not purge the store", extra={"cause": str(error)})

    async def relieve(self) -> None:
        """Delete old data early while the store is too full. Tries a store again that failed."""
        try:
            await self._store.try_again()
            await free_space(
                self._store, self._assembler, self._sessions, _terms(self._config, self._store), now_ns=self._clock_ns()
            )
        except StoreError as error:
            log.warning("could not free space in the store", extra={"cause": str(error)})


def _terms(config: Config, store: Store) -> RetentionTerms:
    judge, embedding, sessions = config.evaluators.judge, config.evaluators.embedding, config.sessions
    # A cache that is not configured any more is emptied.
    caches: list[tuple[ShrinkableCache, int]] = [
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
