"""Schedule: the store holds the traces with late references; in each round a few of them are read and judged again.

They come after everything else: they take at most a fifth of the requests that Langfuse may be sent, and rest while
much waits for judging. A trace that cannot be read or judged is tried again later and later, and given up in the
end, with the reason; an outage of Langfuse is no fault of any trace.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from sidejudge.integrations.backoff import Backoff
from sidejudge.integrations.langfuse.client import Connections, Langfuse
from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.integrations.langfuse.probe import LangfuseServer
from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.pulled import LONGEST_NS, DueRevision, LateReferenceQueue
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.deliver.commit import Commit
from sidejudge.monitor.evaluate.pipeline import Pipeline
from sidejudge.monitor.evaluate.references.lookup import References
from sidejudge.monitor.ingest.langfuse.fetch import introduced
from sidejudge.monitor.revise.reevaluation import read
from sidejudge.scoring.status.snapshots import LateReferenceSnapshot, LateReferenceState
from sidejudge.scoring.trace.time_units import HOUR_NS

from .reevaluation import FINAL, MOST_HELD, Reevaluation, ReevaluationOutcome, RevisionFailure

log = logging.getLogger("sidejudge.late_references")

EVERY_S: Final = 5.0
"""How often a round begins."""
SHARE: Final = 0.2
"""The share of the requests to Langfuse that re-evaluation may use."""
AGAIN_AFTER_S: Final = (60, 600, 3600, LONGEST_NS // 10**9)
"""How long a trace waits after each failed attempt; after one more failure it is given up."""
_BATCH: Final = 500
"""Traces that are given up in one round where there is nowhere to read them."""
MOST_WAITING: Final = 100
"""Most traces that may wait for judging before re-evaluation pauses."""
_WAITS_NS: Final = HOUR_NS
"""The wait for a judge that is down, where none is configured."""
_REMEDY: Final = "configure sources.langfuse or sinks.langfuse where the traces are, or raise assembly.late"


class RevisionSchedule:
    """Re-evaluates traces with late references, whose spans were dropped meanwhile.

    ``under_way`` returns whether somebody else is judging a trace.
    """

    def __init__(
        self, config: Config, connections: Connections, *, store: Store, pipeline: Pipeline, references: References,
        commit: Commit, under_way: Callable[[bytes], bool], clock_ns: Callable[[], int],
    ) -> None:  # fmt: skip
        judge, embedding, project = config.evaluators.judge, config.evaluators.embedding, config.langfuse
        self._store, self._owed, self._pipeline = store, store.late_references, pipeline
        self._references, self._under_way, self._clock_ns = references, under_way, clock_ns
        self._langfuse = langfuse = connections.to(project.access) if project is not None else None
        self._backoff = Backoff(random.random)
        self._rejudging = Reevaluation(
            pipeline, commit=commit, details=store.details, still_owed=self._still_owed, clock_ns=clock_ns,
            hash_key=config.sampling.hash_key, judge_wait_ns=judge.max_wait.ns if judge else _WAITS_NS,
            embedding_wait_ns=embedding.max_wait.ns if embedding else _WAITS_NS,
        )  # fmt: skip
        self._server: LangfuseServer | None = None
        self._rests_until_ns = 0
        self._state: LateReferenceState = "off" if langfuse is None else "ok"
        self._reason = "" if langfuse is not None else f"no Langfuse to read traces from again; {_REMEDY}"
        self._counted = LateReferenceQueue(waiting=0, oldest_ns=None, over=0)
        self._revised = self._unchanged = 0
        self._failures: Counter[str] = Counter()
        self._one = asyncio.Lock()
        self._revived = False

    def _still_owed(self, trace_id: bytes) -> bool:
        """Whether a trace's references differ from its verdict's, and nobody else is judging it."""
        return not self._under_way(trace_id) and self._references.wanted(trace_id) is not None

    def snapshot(self) -> LateReferenceSnapshot:
        """How far late references are, as of the last run."""
        oldest_ns = self._counted.oldest_ns
        return LateReferenceSnapshot(
            state=self._state, reason=self._reason, waiting=self._counted.waiting,
            oldest_s=None if oldest_ns is None else oldest_ns / 1e9, given_up=self._counted.over,
            revised=self._revised, unchanged=self._unchanged, failures=tuple(sorted(self._failures.items())),
        )  # fmt: skip

    async def round(self) -> None:
        """Continue open work and read a few due traces. Never raises for errors of others."""
        try:
            async with self._one:
                await self._round()
        except LangfuseError as error:
            self._failed(error, needs_somebody=not error.kind.transient)
        except StoreError as error:
            self._report("retrying", str(error))
        except Exception:
            log.exception("re-evaluating traces failed for a reason of our own; it is tried again")
            self._report("retrying", "an error of our own; the log has it")

    async def close(self) -> None:
        """End the open work; it stays due."""
        try:
            await self._rejudging.close()
        except StoreError as error:
            log.warning("a revision could not be written; it stays owed", extra={"cause": str(error)})

    async def _round(self) -> None:
        try:
            await self._settle(await self._rejudging.go_on())
            if self._langfuse is None:
                await self._give_up_all()
            elif not 0 < self._rests_until_ns - self._clock_ns() <= LONGEST_NS:  # more: the clock was set back
                await self._read_some(self._langfuse)
            await self._settle(await self._rejudging.go_on())
        finally:
            self._counted = await asyncio.to_thread(self._owed.status)

    async def _give_up_all(self) -> None:
        due = await asyncio.to_thread(self._owed.due, self._clock_ns(), _BATCH)
        for each in due:
            await self._came_to_nothing(each, RevisionFailure.NO_LANGFUSE)
        if due:
            log.warning(
                "references, or scores of others, came too late to be used: the spans of their traces are gone; %s",
                _REMEDY,
                extra={"traces": len(due)},
            )  # fmt: skip

    async def _read_some(self, langfuse: Langfuse) -> None:
        if len(self._pipeline.waiting) + self._pipeline.judge_queue.waiting > MOST_WAITING:
            self._report("waiting", "traces that were never judged go first")
            return
        if not self._revived:  # a process before this one may have had none
            await self._owed.revive(RevisionFailure.NO_LANGFUSE.value, self._clock_ns())
            self._revived = True
        due = await asyncio.to_thread(self._owed.due, self._clock_ns(), MOST_HELD)
        wanted = [each for each in due if each.trace_id not in self._rejudging][: self._rejudging.room]
        if wanted:
            server = self._server = self._server or await introduced(langfuse)
            # So many requests at least; large traces take more.
            self._rests_until_ns = self._clock_ns() + int(len(wanted) * 60e9 / (SHARE * langfuse.budget.per_minute))
            answers = await asyncio.gather(
                *(self._read(langfuse, server, each) for each in wanted), return_exceptions=True
            )
            alone = await self._blame(wanted, answers)
            if alone is not None:
                self._failed(alone, needs_somebody=False)
                return
            self._backoff.succeeded()
        self._report("ok", "")

    async def _blame(
        self, wanted: Sequence[DueRevision], answers: Sequence[BaseException | None]
    ) -> LangfuseError | None:
        """Failures that may be a trace's own count against it; the first of them is returned if all failed so.

        The first other one is raised.
        """
        for each, error in zip(wanted, answers, strict=True):
            if isinstance(error, LangfuseError) and error.perhaps_its and self._server is not None:
                await self._came_to_nothing(each, RevisionFailure.UNREADABLE)
        if any(isinstance(error, LangfuseError) for error in answers):
            self._server = None  # it is identified again before a trace is blamed once more
        found = [error for error in answers if error is not None]
        own = [error for error in found if isinstance(error, LangfuseError) and error.perhaps_its]
        for error in found:
            if error not in own:
                raise error
        return own[0] if len(own) == len(answers) else None

    async def _read(self, langfuse: Langfuse, server: LangfuseServer, due: DueRevision) -> None:
        """Read one trace and have it judged, if no part of it is missing since."""
        before = await asyncio.to_thread(self._store.details, due.trace_id)
        if not await asyncio.to_thread(self._still_owed, due.trace_id) or (before and not before["verdicts"]):
            await self._owed.done(due)
            return
        if before is None:
            await self._came_to_nothing(due, RevisionFailure.FORGOTTEN)
            return
        spans = await read(langfuse, server, due.trace_id.hex(), before)
        if isinstance(spans, RevisionFailure):
            await self._came_to_nothing(due, spans)
        else:
            await self._rejudging.take(due, spans, before)

    async def _settle(self, outcomes: Sequence[ReevaluationOutcome]) -> None:
        for each in outcomes:
            if each.failure is not None:
                await self._came_to_nothing(each.due, each.failure)
            elif each.written:
                await self._owed.done(each.due)
                self._revised += each.changed
                self._unchanged += not each.changed

    async def _came_to_nothing(self, due: DueRevision, why: RevisionFailure) -> None:
        self._failures[why.value] += 1
        over = why in FINAL or due.attempts >= len(AGAIN_AFTER_S)
        wait_s = 0 if over else AGAIN_AFTER_S[due.attempts]
        await self._owed.postpone(due, self._clock_ns() + wait_s * 10**9, why.value, over=over)
        if over and why is not RevisionFailure.NO_LANGFUSE:  # these are logged together
            log.warning(
                "a verdict stands though its reference, or what others scored, changed",
                extra={"trace_id": due.trace_id.hex(), "cause": why.value},
            )

    def _failed(self, error: LangfuseError, *, needs_somebody: bool) -> None:
        rests_s = self._backoff.after_failure(error.retry_after_s, needs_somebody=needs_somebody)
        self._rests_until_ns = self._clock_ns() + int(rests_s * 1e9)
        self._server = None
        self._report("stopped" if needs_somebody else "retrying", str(error))

    def _report(self, state: LateReferenceState, reason: str) -> None:
        if self._state != state and state in ("retrying", "stopped"):
            log.warning("traces with late references cannot be read: %s", state, extra={"cause": reason})
        self._state, self._reason = state, reason
