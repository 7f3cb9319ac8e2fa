"""Pipeline: closed traces in, committed results out.

One transaction writes a trace's reason and its verdicts. Until then the trace is open in the store and a restart finds
it again: nothing is lost and nothing is judged twice. Traces that need a slow backend pass through the judge queue; the
others do not wait for them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeAlias

from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.trace.span import JsonRecord

from .judge_queue import DECODED_BYTES, JudgeQueue
from .result import EvaluationJob, TraceResult
from .stages import EvaluationStages

Commit: TypeAlias = Callable[[Sequence[TraceResult]], Awaitable[Mapping[bytes, BaseException]]]
"""Writes results, each in a transaction of its own. Returns the refused ones with their errors, by trace id."""

BATCH = 64
"""Traces judged in one call of the thread pool and written in one transaction, as a rule.

Enough to spread the cost of both, few enough to keep the order fair.
"""
BATCH_GIVEN_UP = 512
"""Most traces that a batch ends unread in addition to judged ones: each takes a row in the store and little else."""
BATCH_BYTES = 1 << 20
"""Bytes of kept spans above which a batch takes no further trace: a whole batch is in memory at once, decoded."""
BATCH_DECODED_BYTES = DECODED_BYTES
"""Memory that a batch of several traces may take once decoded, by an upper estimate."""
LISTENER_BATCH = 4
"""Results passed to the listeners between two turns of the event loop, where requests wait (0.05 ms each)."""


@dataclass(slots=True, kw_only=True)
class Pipeline:
    """Judges closed traces in the default thread pool, commits each result, then calls the listeners.

    ``commit`` returns once the results are on disk or refused. ``listeners`` are called with those on disk, in the
    event loop: outcomes, metrics, windows, sinks.
    """

    stages: EvaluationStages
    judge_queue: JudgeQueue
    commit: Commit
    clock_ns: Callable[[], int]
    listeners: list[Callable[[TraceResult], None]] = field(default_factory=list)
    waiting: deque[Closing] = field(default_factory=deque)
    interrupted: InterruptedTraces | None = None
    """The traces at which earlier processes died; None where that is not recorded."""

    async def drain(self, most_batches: int | None = None) -> bool:
        """Judge the waiting traces as far as possible now, and commit the results so far.

        Args:
            most_batches: Batches after which it returns though more waits; None: as many as there are.

        Returns:
            Whether there is more that could be judged now.
        """
        self.judge_queue.progress.clear()
        await self._commit_results()
        held: list[Closing] = []
        try:
            batches = 0
            while (more := batches != most_batches) and (batch := self._next_batch(held)):
                await self._judge(batch)
                batches += 1
            more = not more and bool(self.waiting)
        finally:
            self.waiting.extend(held)
        if self.interrupted is not None and not more:
            await self.interrupted.rest()
        await self.judge_queue.resume()
        await self._commit_results()
        await self.judge_queue.shares.note()
        return more

    async def end_unread(self, closings: Sequence[Closing]) -> None:
        """End closed traces that are to be given up, without judging; raises the first refusal of the store."""
        results = await asyncio.to_thread(lambda: self._open_and_end(closings)[1])
        await self._notify(results, await self.commit(results))

    async def pause(self, seconds: float) -> None:
        """Wait until a job of the judge queue ends, at most this long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.judge_queue.progress.wait()

    async def close(self) -> None:
        """Cancel the running jobs and commit the results. Traces without a result stay open in the store."""
        await self.judge_queue.close()
        await self._commit_results()
        await self.judge_queue.shares.note()

    def _next_batch(self, held: list[Closing]) -> list[Closing]:
        """The first closings that wait, each trace once: a revision needs the earlier result on disk."""
        batch: dict[bytes, Closing] = {}
        size = decoded = given_up = 0
        while self.waiting and len(batch) - given_up < BATCH and given_up < BATCH_GIVEN_UP and size < BATCH_BYTES:
            closing = self.waiting[0]
            if closing.trace_id in batch:
                break
            if closing.give_up is not None and not self.judge_queue.knows(closing.trace_id):
                batch[self.waiting.popleft().trace_id] = closing
                given_up += 1
                continue
            decoded += closing.decoded
            suspect = self.interrupted is not None and self.interrupted.times(closing.trace_id) > 0
            if batch and (suspect or decoded > BATCH_DECODED_BYTES):
                break
            self.waiting.popleft()
            if self.interrupted is not None and suspect:  # if it ends the process again, nothing else is to blame
                gone = self.interrupted.too_often(closing)
                batch[closing.trace_id] = replace(closing, give_up=EndReason.CRASHED) if gone else closing
                break
            if self.judge_queue.renew(closing):
                continue
            if self.judge_queue.holds(closing.trace_id):
                held.append(closing)
            else:
                batch[closing.trace_id] = closing
                size += closing.size
        return list(batch.values())

    async def _judge(self, batch: Sequence[Closing]) -> None:
        try:
            if self.interrupted is not None:
                await self.interrupted.begin(closing.trace_id for closing in batch)
            waiting, results = await asyncio.to_thread(self._open_and_end, batch)
            refused = await self.commit(results) if results else {}
        except BaseException:
            self.waiting.extendleft(reversed(batch))  # not ended: they stay open, here and in the store
            raise
        for job in waiting:
            self.judge_queue.take(job)
        if self.interrupted is not None:
            self.interrupted.ended(closing.trace_id for closing in batch if closing.trace_id not in refused)
        self.waiting.extendleft(closing for closing in reversed(batch) if closing.trace_id in refused)
        await self._notify(results, refused)

    def _open_and_end(self, batch: Sequence[Closing]) -> tuple[list[EvaluationJob], list[TraceResult]]:
        """The jobs with open questions, and the results of the others."""
        waiting: list[EvaluationJob] = []
        decided: list[EvaluationJob] = []
        for job in self.stages.open_all(batch):
            (waiting if job.waits else decided).append(job)
        return waiting, self.stages.end_all(decided, self.clock_ns)

    async def _commit_results(self) -> None:
        results = list(self.judge_queue.results.values())
        refused = await self.commit(results) if results else {}
        for result in results:
            if result.trace_id not in refused:
                del self.judge_queue.results[result.trace_id]
                self.judge_queue.shares.ended(result.trace_id)
        await self._notify(results, refused)

    async def _notify(self, results: Sequence[TraceResult], refused: Mapping[bytes, BaseException]) -> None:
        """Call the listeners with the results on disk, then raise the first refusal.

        A store may accept some results and refuse others. The accepted ones are passed on now, because a retry finds
        nothing new. A cancellation passes on the rest at once.
        """
        left = deque(result for result in results if result.trace_id not in refused)
        try:
            while left:
                for _ in range(min(LISTENER_BATCH, len(left))):
                    self._call_listeners(left.popleft())
                await asyncio.sleep(0)
        finally:
            while left:
                self._call_listeners(left.popleft())
        for error in refused.values():
            raise error

    def _call_listeners(self, result: TraceResult) -> None:
        for listener in self.listeners:
            listener(result)


def one_by_one(commit: Callable[[TraceResult], Awaitable[None]]) -> Commit:
    """Commit several results with a function that commits one, and raises where it is refused."""

    async def each(results: Sequence[TraceResult]) -> Mapping[bytes, BaseException]:
        answers = await asyncio.gather(*map(commit, results), return_exceptions=True)
        return {result.trace_id: error for result, error in zip(results, answers, strict=True) if error is not None}

    return each


_NAME: Final = "judging"
_LARGE: Final = 16 << 20
"""Least decoded size, in bytes, of a trace suspected of having exhausted the memory."""
_MOST_TIMES_LARGE: Final = 2
_MOST_TIMES: Final = 4
"""Interruptions after which a trace is given up. At the first, others were in its batch. A small trace ends a process
by a fault of a library alone, so a process that is killed often is the likelier reason."""


class FactStore(Protocol):
    """The store's facts, by name."""

    def fact(self, name: str) -> JsonRecord | None: ...
    async def keep_fact(self, name: str, value: Mapping[str, object]) -> None: ...


class InterruptedTraces:
    """Traces whose judging was interrupted by the end of the process, and how often.

    A trace that makes the process end (by its memory, or by a fault in a library) would do so again after every
    restart. So the store receives the ids of traces before their judging begins. After a restart those are judged one
    at a time, and one whose judging was interrupted too often is given up. The price is one small write a batch.
    """

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
        """Note that nothing is being judged now."""
        if self._written:
            await self._write({trace_id.hex(): times for trace_id, times in self._times.items()})

    async def _write(self, traces: Mapping[str, object]) -> None:
        await self._facts.keep_fact(_NAME, traces)
        self._written = bool(traces)
