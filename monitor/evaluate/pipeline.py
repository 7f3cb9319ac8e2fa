"""Pipeline: closed traces → verdicts. The sentence of the README as code, one line a stage.

A trace leaves in one transaction with its reason and its verdicts. Whatever happens before that leaves it open in the
store, and a restart takes it up again: nothing is lost, nothing is judged twice. What needs an answer that has to be
waited for goes by way of the docket, and nothing waits behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from monitor.ingest.assembler import Closing

from .job import EvaluationJob
from .judge_queue import JudgeQueue
from .result import TraceResult
from .stages import EvaluationStages

Commit: TypeAlias = Callable[[Sequence[TraceResult]], Awaitable[Mapping[bytes, BaseException]]]
"""Writes endings, each all of it or nothing; those that were refused and why, by trace id."""

BATCH = 64
"""Traces judged in one visit to the worker thread and written in one transaction, as a rule.

Enough to spread the cost of both, few enough to keep the order fair.
"""
BATCH_BYTES = 1 << 20
"""Bytes of kept spans above which no further trace is taken: all of a batch is in memory at once, decoded."""
TOLD = 4
"""Endings that are told in one go in the event loop, where requests wait meanwhile (0.05 ms each)."""


@dataclass(slots=True, kw_only=True)
class Pipeline:
    """Judges closed traces in a worker thread, commits each ending, then tells the listeners.

    ``commit`` returns once the endings are on disk, each of them or not: those that were refused and why, by trace id.
    ``listeners`` hear of the others after that, in the event loop: ledger, metrics, windows, sinks.
    """

    trials: EvaluationStages
    docket: JudgeQueue
    commit: Commit
    clock_ns: Callable[[], int]
    listeners: list[Callable[[TraceResult], None]] = field(default_factory=list)
    waiting: deque[Closing] = field(default_factory=deque)

    async def drain(self) -> None:
        """Judge everything that waits as far as it can be judged now, and commit what has been judged meanwhile."""
        self.docket.progress.clear()
        await self._commit_what_is_through()
        held: list[Closing] = []
        try:
            while batch := self._next_batch(held):
                await self._judge(batch)
        finally:
            self.waiting.extend(held)
        await self.docket.resume()
        await self._commit_what_is_through()

    async def pause(self, seconds: float) -> None:
        """Until a trial of the docket is through, at most this long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.docket.progress.wait()

    async def close(self) -> None:
        """End what is under way, and commit what is through. What is not stays open in the store."""
        await self.docket.close()
        await self._commit_what_is_through()

    def _next_batch(self, held: list[Closing]) -> list[Closing]:
        """The first that wait, each trace once: a revision is compared with what was said, so that must be on disk."""
        batch: dict[bytes, Closing] = {}
        size = 0
        while self.waiting and len(batch) < BATCH and size < BATCH_BYTES and self.waiting[0].trace_id not in batch:
            closing = self.waiting.popleft()
            if closing.trace_id in self.docket.backlog:
                self.docket.backlog.renew(closing)
            elif self.docket.holds(closing.trace_id):
                held.append(closing)
            else:
                batch[closing.trace_id] = closing
                size += closing.size
        return list(batch.values())

    async def _judge(self, batch: Sequence[Closing]) -> None:
        try:
            waiting, through = await asyncio.to_thread(self._open_and_end, batch)
            refused = await self.commit(through) if through else {}
        except BaseException:
            self.waiting.extendleft(reversed(batch))  # not ended: they stay open, here and in the store
            raise
        for trial in waiting:
            self.docket.take(trial)
        self.waiting.extendleft(closing for closing in reversed(batch) if closing.trace_id in refused)
        await self._tell(through, refused)

    def _open_and_end(self, batch: Sequence[Closing]) -> tuple[list[EvaluationJob], list[TraceResult]]:
        """The trials that wait for answers, and the endings of the others."""
        waiting: list[EvaluationJob] = []
        through: list[EvaluationJob] = []
        for trial in self.trials.open_all(batch):
            (waiting if trial.waits else through).append(trial)
        return waiting, self.trials.end_all(through, self.clock_ns)

    async def _commit_what_is_through(self) -> None:
        through = list(self.docket.through.values())
        refused = await self.commit(through) if through else {}
        for ending in through:
            if ending.trace_id not in refused:
                del self.docket.through[ending.trace_id]
        await self._tell(through, refused)

    async def _tell(self, endings: Sequence[TraceResult], refused: Mapping[bytes, BaseException]) -> None:
        """Tell of the endings that are on disk, then raise why one was refused.

        A store may take some and refuse others: what it took is told now, for a retry would find nothing new. Whoever
        cancels this has them told at once.
        """
        left = deque(ending for ending in endings if ending.trace_id not in refused)
        try:
            while left:
                for _ in range(min(TOLD, len(left))):
                    self._tell_of(left.popleft())
                await asyncio.sleep(0)
        finally:
            while left:
                self._tell_of(left.popleft())
        for error in refused.values():
            raise error

    def _tell_of(self, ending: TraceResult) -> None:
        for listener in self.listeners:
            listener(ending)


def one_by_one(commit: Callable[[TraceResult], Awaitable[None]]) -> Commit:
    """To commit several endings with what commits one of them, and raises where it is refused."""

    async def each(endings: Sequence[TraceResult]) -> Mapping[bytes, BaseException]:
        answers = await asyncio.gather(*map(commit, endings), return_exceptions=True)
        return {ending.trace_id: error for ending, error in zip(endings, answers, strict=True) if error is not None}

    return each
