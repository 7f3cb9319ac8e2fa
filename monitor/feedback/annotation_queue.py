"""Puts verdicts that need a review into an annotation queue of Langfuse.

Verdicts in doubt are found in the store, so that a kill loses none. An item is noted before it is added, and looked for
in the queue where no answer came, so that none is added twice. Items beyond the hourly limit are left out, because
people could not work off the queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sidejudge.integrations.langfuse.annotations import ListedScore, ObjectType, holds, put, queues_named
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.monitor.config.langfuse import AnnotationQueueSection
from sidejudge.scoring.status.agreement_snapshot import AnnotationQueueSnapshot
from sidejudge.scoring.trace.time_units import HOUR_NS
from sidejudge.scoring.verdict.documents import VerdictDocument
from sidejudge.scoring.verdict.review_reason import ReviewReason, review_reason

from .parts import AGAIN_NS, MOST_KNOWN, FeedbackParts, looked_from, recent

log = logging.getLogger("sidejudge.langfuse")

FACT: Final = "annotation_queue"
"""Name of the fact that records the added items, and how far verdicts were read."""


@dataclass(frozen=True, slots=True)
class _Doubtful:
    object_id: str
    kind: ObjectType
    why: ReviewReason


class AnnotationQueueFeeder:
    """Puts verdicts in doubt into one queue, in ticks."""

    def __init__(self, section: AnnotationQueueSection, parts: FeedbackParts) -> None:
        self._room = parts.room(f"review/{section.name}", section.per_hour, 3_600.0)
        self._name, self._per_hour = section.name, section.per_hour
        self._langfuse, self._rubrics = parts.scores_out.langfuse, parts.rubrics
        self._store, self._clock_ns = parts.store, parts.clock_ns
        self._queue_id: str | None = None
        self._looked_ns: int | None = None
        self._put: dict[str, int] = {}
        self._trying: str | None = None
        self._counts: Counter[str] = Counter()
        self._left_out: dict[str, int] = {}
        self._reason = ""

    def restore(self) -> None:
        """Restore the earlier state."""
        known = self._store.fact(FACT)
        if known is not None and known["queue"] == self._name:
            self._looked_ns, self._put, self._trying = known["looked_ns"], known["put"], known["trying"]

    def requested_for(self, given: ListedScore) -> bool:
        """Whether a label is on something that we put in."""
        return given.subject in self._put or (given.queue is not None and given.queue == self._queue_id)

    def snapshot(self) -> AnnotationQueueSnapshot:
        """How the queue is fed, at this moment."""
        return AnnotationQueueSnapshot(
            name=self._name, reason=self._reason, put={why.value: self._counts[why] for why in ReviewReason},
            left_out=len(self._left_out),
        )  # fmt: skip

    async def tick(self) -> None:
        """Add the verdicts now in doubt. Raises ``StoreError``."""
        now_ns = self._clock_ns()
        if self._looked_ns is None:
            self._looked_ns = now_ns  # what was judged before this was configured is left alone
            await self._remember()
            return
        since_ns = looked_from(self._looked_ns, now_ns, HOUR_NS)  # after an outage the hour's number is enough
        verdicts = await asyncio.to_thread(lambda: list(self._store.verdicts_since(since_ns)))
        try:
            for each in self._doubtful(verdicts):
                if each.object_id not in self._put and each.object_id not in self._left_out:
                    await self._take(each, now_ns)
        except LangfuseError as error:
            if error.kind is LangfuseErrorKind.NOT_FOUND:
                self._queue_id = None
            self._report(str(error))
            return
        if self._queue_id is not None:
            self._report("")
        self._looked_ns = now_ns
        self._left_out = {name: at for name, at in self._left_out.items() if at > now_ns - 2 * AGAIN_NS}
        await self._remember()

    def _doubtful(self, verdicts: Sequence[VerdictDocument]) -> list[_Doubtful]:
        """Verdicts in doubt: first the one that may be in already, then the gravest, in order of time."""
        found = []
        for verdict in verdicts:
            rubric = self._rubrics.get(str(verdict.get("rubric")))
            why = review_reason(verdict, rubric.scale) if rubric is not None else None
            trace, session = verdict.get("trace_id"), verdict.get("session_id")
            if why is not None and (trace or session):
                found.append(_Doubtful(str(trace or session), "TRACE" if trace else "SESSION", why))
        return sorted(found, key=lambda e: (e.object_id != self._trying, list(ReviewReason).index(e.why)))

    async def _take(self, each: _Doubtful, now_ns: int) -> None:
        if each.kind == "TRACE" and bytes.fromhex(each.object_id) in self._store.untaken:
            return  # it is looked at again while it is new
        if recent(self._put.values(), now_ns, HOUR_NS) >= self._per_hour:
            self._left_out[each.object_id] = now_ns
            return
        queue_id = self._queue_id or await self._find()
        if queue_id is None:
            self._left_out[each.object_id] = now_ns
            return
        if self._trying == each.object_id:
            there = await holds(self._langfuse, queue_id, each.object_id)
        elif self._room is not None and not await self._room(each.object_id):
            self._left_out[each.object_id] = now_ns
            return
        else:
            self._trying, there = each.object_id, False
            await self._remember()
        if not there:
            try:
                await put(self._langfuse, queue_id, each.object_id, each.kind)
            except LangfuseError as error:
                if error.kind is not LangfuseErrorKind.REFUSED:
                    raise
                log.warning("an object was refused by the annotation queue", extra={"cause": str(error)})
                self._trying, self._left_out[each.object_id] = None, now_ns
                return
            self._counts[each.why] += 1
        self._trying, self._put[each.object_id] = None, now_ns
        while len(self._put) > MOST_KNOWN:
            del self._put[next(iter(self._put))]
        await self._remember()

    async def _find(self) -> str | None:
        found = await queues_named(self._langfuse, self._name)
        if len(found) == 1:
            self._queue_id = found[0]
        else:
            self._report(f"{len(found) or 'no'} annotation queue{'s bear' if found else ' bears'} this name")
        return self._queue_id

    def _report(self, reason: str) -> None:
        if reason and reason != self._reason:
            log.warning("nothing is put into the annotation queue now", extra={"cause": reason})
        self._reason = reason

    async def _remember(self) -> None:
        known = {"queue": self._name, "looked_ns": self._looked_ns, "put": self._put, "trying": self._trying}
        await self._store.keep_fact(FACT, known)
