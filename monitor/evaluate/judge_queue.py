"""Judge queue: jobs with open questions in, results out.

A bounded number of jobs run at a time, as tasks of the event loop, each with its case in memory; the others wait as ids
(``DeferredTraces``). While the judge is unreachable only the traces that need it wait. When it is back, the oldest one
is judged alone; once that is answered the others follow. Traces that need embeddings while their endpoint is out wait
likewise, in a line of their own. How traces were drawn that wait is remembered (``JudgedShares``).
"""

from __future__ import annotations

import asyncio
import heapq
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from sidejudge.integrations.store.part import TextsByName
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.scoring.questions.question import NoAnswer
from sidejudge.scoring.result.reason import Reason, own
from sidejudge.scoring.result.result import BEHIND
from sidejudge.scoring.trace.time_units import DAY_NS

from .backends import (
    ATTEMPTS,
    EMBEDDINGS_OUT,
    OUTAGE,
    OVER_BUDGET,
    EmbeddingsOutError,
    JudgeAccount,
    JudgeBackendProtocol,
    PostponedError,
)
from .evaluator import JudgementsByMetric
from .result import EvaluationJob, TraceResult, fail
from .stages import EvaluationStages

log = logging.getLogger("sidejudge.pipeline")

DECODED_BYTES: Final = 64 << 20
"""Memory that the traces of several running jobs may take together, by an upper estimate; one alone may take more."""
_NOT_DRAWN: Final = NoAnswer(Reason("the judge's budget did not reach for it"))


@dataclass(frozen=True, slots=True)
class _GivenUp:
    """A trace beyond the bounds of the deferred traces, and the reply that replaces the judge's.

    ``of_outage``: it waited for somebody who was unreachable; whichever judge is reachable after all is asked.
    """

    closing: Closing
    place: DeferredPlace
    instead: NoAnswer
    of_outage: bool


@dataclass(slots=True, kw_only=True)
class _Running:
    """A job that runs. ``resumed``: it was deferred before. ``requested``: the judge was asked."""

    job: EvaluationJob
    place: DeferredPlace
    resumed: bool = False
    given_up: _GivenUp | None = None
    requested: bool = False
    account: JudgeAccount


_REST_NS: Final = 5 * 10**9
"""As long as the first pause of a circuit, which is not imported where there is no judge."""
_KEPT_NS: Final = 30 * DAY_NS
"""A share this old belongs to a trace that ended just before a crash."""


class JudgedShares:
    """The share at which each trace was drawn that has not ended, so that a restart does not draw it anew.

    What was not drawn has ended. So of traces that were drawn at a half and are drawn again when the budget suffices
    for all, only a half is there: the probability recorded is that of the first draw. A share of 1 is not noted, for
    whatever is drawn at a smaller one afterwards has that one's probability. Without ``memory`` they end with the
    process.

    Price: a write a turn while the budget is scarce. A crash loses what was drawn in the last turn.
    """

    def __init__(self, memory: TextsByName | None = None, *, clock_ns: Callable[[], int] = lambda: 0) -> None:
        self._memory, self._clock_ns = memory, clock_ns
        self._noted = memory.all() if memory is not None else {}
        old_ns = clock_ns() - _KEPT_NS
        self._changes: dict[str, str | None] = {
            name: None for name, text in self._noted.items() if json.loads(text)["drawn_ns"] < old_ns
        }

    def of(self, trace_id: bytes) -> float | None:
        """The share at which a trace was drawn before; None where it was not, or at 1."""
        noted = self._noted.get(trace_id.hex())
        return None if noted is None else float(json.loads(noted)["share"])

    def drawn(self, trace_id: bytes, share: float) -> None:
        """Remember the share in [0, 1] at which a trace is drawn."""
        name = trace_id.hex()
        if share < 1.0 and name not in self._noted:
            # Its id stands in the value too: by that, what is kept of a trace is found when it is to be forgotten.
            self._changes[name] = json.dumps({"trace_id": name, "share": share, "drawn_ns": self._clock_ns()})

    def ended(self, trace_id: bytes) -> None:
        """Forget a trace whose result is on disk."""
        name = trace_id.hex()
        self._changes.pop(name, None)
        if name in self._noted:
            self._changes[name] = None

    async def note(self) -> None:
        """Write what has changed. Raises ``StoreError``; then the next call writes it."""
        if not self._changes or self._memory is None:
            return
        written = dict(self._changes)
        await self._memory.change(written)
        for name, text in written.items():
            if self._changes.get(name, name) == text:  # more may have come meanwhile
                del self._changes[name]
            self._noted.pop(name, None)
            if text is not None:
                self._noted[name] = text


@dataclass(slots=True, kw_only=True)
class JudgeQueue:
    """Runs at most ``capacity`` jobs at a time. All of it runs on the event loop."""

    stages: EvaluationStages
    deferred: DeferredTraces
    """Traces that wait for the judge, or for room."""
    without_vectors: DeferredTraces
    """Traces that wait for embeddings. A trace is in one of the two."""
    clock_ns: Callable[[], int]
    capacity: int
    waits: Callable[[EvaluationJob], None] = lambda _job: None
    """Called with each job that waits for an answer."""
    shares: JudgedShares = field(default_factory=JudgedShares)
    results: dict[bytes, TraceResult] = field(default_factory=dict)
    """Results that are to be committed, by trace id."""
    progress: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever a job ends or is deferred."""
    _served: DeferredTraces | None = None  # the line that had the last turn
    _given_up: OrderedDict[bytes, _GivenUp] = field(default_factory=OrderedDict)
    _under_way: dict[bytes, asyncio.Task[None]] = field(default_factory=dict)
    _decoded: dict[bytes, int] = field(default_factory=dict)  # memory of those that are under way, estimated
    _unreachable: str = ""
    """Why the judge, or one of several, could not be asked; empty once it has answered since."""
    _latest: tuple[int, str] = (-1, "")
    """When, and why, the judge was last seen out of reach: what waited by then may wait too long only later."""
    _vectors_again_ns: int = 0
    """When traces that wait for embeddings are tried again, although embeddings answer other traces."""

    @property
    def under_way(self) -> int:
        """Jobs that wait for a backend's answer now."""
        return len(self._under_way)

    @property
    def waiting(self) -> int:
        """Traces that wait until the judge, or embeddings, can be asked."""
        return len(self.deferred) + len(self.without_vectors) + len(self._given_up)

    @property
    def out(self) -> bool:
        """Whether a judge or embeddings are out of reach, as far as is known."""
        return bool(self._outage or self._unreachable) or self._embeddings_out

    def knows(self, trace_id: bytes) -> bool:
        """Whether this trace is here and has not ended."""
        return any(trace_id in line for line in self._lines) or self.holds(trace_id)

    def renew(self, closing: Closing) -> bool:
        """Whether this trace waits: then it is judged once, with the spans that came late."""
        line = next((line for line in self._lines if closing.trace_id in line), None)
        if line is not None:
            line.renew(closing)
        return line is not None

    def holds(self, trace_id: bytes) -> bool:
        """Whether this trace is being judged: a revision of it has to wait until that result is committed."""
        return trace_id in self._under_way or trace_id in self.results or trace_id in self._given_up

    def take(self, job: EvaluationJob) -> None:
        """Start a job that has open questions if the capacity allows, else defer it behind the others."""
        self.waits(job)
        place = replace(self.deferred.place(self.clock_ns()), share=self.shares.of(job.trace_id))
        if self.under_way < self.capacity and self._fits(job.closing):
            self._begin(job, place)
        else:
            self.deferred.park(job.closing, place)

    async def resume(self) -> None:
        """Start deferred traces within the capacity, oldest first, and give up those beyond the bounds."""
        outage = self._outage or self._unreachable
        self._latest = (self.clock_ns(), outage) if outage else self._latest
        for line in self._lines:
            for place, closing in line.overdue(self.clock_ns()):
                apart = EMBEDDINGS_OUT if place.vectorless else BEHIND
                why = outage or (self._latest[1] if place.since_ns <= self._latest[0] else own(apart))
                instead = NoAnswer(
                    Reason("{outage}: it could not be asked in time: {why}", outage=own(OUTAGE), why=why), failed=True
                )
                of_outage = bool(outage) or place.vectorless
                self._given_up[closing.trace_id] = _GivenUp(closing, place, instead, of_outage=of_outage)
        while self._given_up and self.under_way < self.capacity:
            trace_id, given_up = next(iter(self._given_up.items()))
            if not self._fits(given_up.closing):
                break
            del self._given_up[trace_id]
            try:
                await self._open(given_up.closing, given_up.place, given_up)
            except BaseException:
                self._given_up[trace_id] = given_up
                self._given_up.move_to_end(trace_id, last=False)
                raise
        while (next_line := self._next_line()) is not None:
            place, closing = next_line.next()
            try:
                await self._open(closing, place, None)
            except BaseException:
                self._park(closing, place)
                raise

    async def close(self) -> None:
        """Cancel the running jobs; their traces stay open in the store."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _fits(self, closing: Closing) -> bool:
        """Whether this trace fits into memory beside the traces being judged."""
        return not self._decoded or sum(self._decoded.values()) + closing.decoded <= DECODED_BYTES

    @property
    def _judge(self) -> JudgeBackendProtocol | None:
        others = self.stages.evaluator.others
        return others.judge if others is not None else None

    @property
    def _outage(self) -> str | None:
        return self._judge.outage if self._judge is not None else None

    @property
    def _embeddings_out(self) -> bool:
        others = self.stages.evaluator.others
        return others is not None and others.embedding is not None and others.embedding.outage is not None

    @property
    def _lines(self) -> tuple[DeferredTraces, DeferredTraces]:
        return self.deferred, self.without_vectors

    def _next_line(self) -> DeferredTraces | None:
        """The line whose first trace may start now; None if there is none.

        They take turns: after an outage of embeddings what does not need them does not wait behind all that does.
        """
        rests = self._embeddings_out or 0 < self._vectors_again_ns - self.clock_ns() <= _REST_NS
        at_most = (self._capacity_now, 0 if rests else self.capacity)
        ready = [
            line
            for line, most in zip(self._lines, at_most, strict=True)
            if (first := line.first) is not None and self.under_way < most and self._fits(first)
        ]
        found = next((line for line in ready if line is not self._served), next(iter(ready), None))
        self._served = found or self._served
        return found

    @property
    def _capacity_now(self) -> int:
        if self._outage is not None:
            return 0
        return 1 if self._unreachable else self.capacity

    async def _open(self, closing: Closing, place: DeferredPlace, given_up: _GivenUp | None) -> None:
        job = await asyncio.to_thread(self.stages.open, closing)
        if job.evaluation is not None:
            job.evaluation.resume(place.judgements)
        if job.waits:
            self._begin(job, place, resumed=True, given_up=given_up)
        else:
            self.results[job.trace_id] = await asyncio.to_thread(self.stages.end, job, self.clock_ns())
            self.progress.set()

    def _begin(
        self, job: EvaluationJob, place: DeferredPlace, *, resumed: bool = False, given_up: _GivenUp | None = None
    ) -> None:
        # What the judge alone was waited for too long still waits for embeddings.
        account = JudgeAccount(job.priority, waits=given_up is None or not place.vectorless)
        running = _Running(job=job, place=place, resumed=resumed, given_up=given_up, account=account)
        self._decoded[job.trace_id] = job.closing.decoded
        self._under_way[job.trace_id] = asyncio.create_task(self._run(running))

    async def _run(self, running: _Running) -> None:
        job = running.job
        try:
            if await self._ask(running):
                self.results[job.trace_id] = await asyncio.to_thread(self.stages.end, job, self.clock_ns())
            else:
                self._park(job.closing, running.place)
        except Exception as error:  # noqa: BLE001  # whatever fails is one trace, not the queue
            log.warning("a verdict could not be reached; its trace waits", extra={"cause": str(error)})
            self._park(job.closing, running.place)
        finally:
            del self._under_way[job.trace_id], self._decoded[job.trace_id]
            self.progress.set()

    async def _ask(self, running: _Running) -> bool:
        """Ask until no question is open; False when the job must be started again later."""
        evaluation = running.job.evaluation
        try:
            if evaluation is not None:
                await self.stages.evaluator.finish(evaluation, partial(self._admit, running), running.account)
        except PostponedError as error:
            vectorless = isinstance(error, EmbeddingsOutError)
            if vectorless and not self._embeddings_out:  # they are out for what this one asks alone
                self._vectors_again_ns = self.clock_ns() + _REST_NS
            place = self._in_line(running.place, vectorless=vectorless)
            running.place = replace(place, judgements=evaluation.judgements if evaluation is not None else {})
            return False
        except Exception as error:  # noqa: BLE001  # a bug costs one trace its verdict and must not end the monitor
            fail(running.job, error)
            return True
        if evaluation is None or not running.requested:
            return True
        failures, is_last = evaluation.failures, running.given_up is not None
        if not is_last and any(why.startswith(OUTAGE) for why in failures):
            self._unreachable = self._outage or ""
            # A provider that failed the health probe received nothing of the trace, so the attempt does not count.
            attempts = running.place.attempts + (evaluation.requested_in_vain or not self._unreachable)
            place = self._in_line(running.place, vectorless=False)
            running.place = replace(place, attempts=attempts, judgements=evaluation.judgements)
            return not self._unreachable and running.place.attempts >= ATTEMPTS
        if not is_last:
            self._unreachable = ""
        if any(why.startswith(OVER_BUDGET) for why in failures):
            evaluation.withdraw()
        return True

    def _in_line(self, place: DeferredPlace, *, vectorless: bool) -> DeferredPlace:
        """A trace's place in its next line. If the line changes, its wait begins now."""
        if place.vectorless == vectorless:
            return place
        return replace(place, vectorless=vectorless, since_ns=self.clock_ns())

    def _park(self, closing: Closing, place: DeferredPlace) -> None:
        self._lines[place.vectorless].park(closing, place)

    def _admit(self, running: _Running) -> NoAnswer | None:
        if running.given_up is not None:
            if not running.given_up.of_outage or self._judge is None or not self._judge.reachable:
                return running.given_up.instead
        elif self._outage is not None:
            self._unreachable = self._outage
            raise PostponedError
        elif not running.resumed and (self.deferred or self._unreachable):
            raise PostponedError  # others are older
        if not running.requested and self._judge is not None:
            running.requested = True
            self._draw(running, self._judge)
        return None if running.job.waits else _NOT_DRAWN

    def _draw(self, running: _Running, judge: JudgeBackendProtocol) -> None:
        """The third sampling pass. A trace that comes back was drawn before and keeps its share."""
        priority, before = running.job.priority, running.place.share
        share = running.job.draw(judge.share(priority) if before is None else before)
        self.shares.drawn(running.job.trace_id, share)
        running.place = replace(running.place, share=share)


@dataclass(frozen=True, slots=True)
class DeferredPlace:
    """A trace's place in the order of age. ``since_ns`` is when it was deferred into its present line, in ns.

    ``vectorless``: it waits for embeddings, else for the judge. ``share`` is the judged share at which it was drawn,
    None before the draw; a trace is drawn once. ``attempts`` counts failed requests to the judge, ``judgements`` are
    those requests.
    """

    since_ns: int
    number: int
    vectorless: bool = False
    share: float | None = None
    attempts: int = 0
    judgements: JudgementsByMetric = field(default_factory=dict, compare=False)


class DeferredTraces:
    """Closed traces that wait until the judge can be asked, oldest first.

    ``max_waiting`` bounds their number, ``max_wait_ns`` the wait of each in ns. Only ids are kept in memory. The spans
    are in the store, where the trace is still open, so a restart finds it again. ``in_turn``: one that comes back is
    started after all others, so that none that fails again and again keeps others from being tried.
    """

    def __init__(self, *, max_waiting: int, max_wait_ns: int, in_turn: bool = False) -> None:
        self._max_waiting, self._max_wait_ns, self._in_turn = max_waiting, max_wait_ns, in_turn
        self._closings: dict[bytes, tuple[DeferredPlace, Closing]] = {}
        self._order: list[tuple[int, int, bytes]] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._closings)

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._closings

    @property
    def oldest_ns(self) -> int | None:
        """When the oldest was deferred, ns since the epoch; None when none waits."""
        return self._closings[self._oldest][0].since_ns if self._closings else None

    @property
    def first(self) -> Closing | None:
        """The one to be started next; None when none waits."""
        return self._closings[self._next][1] if self._closings else None

    @property
    def _next(self) -> bytes:
        return next(iter(self._closings)) if self._in_turn else self._oldest

    @property
    def _oldest(self) -> bytes:
        while True:
            since_ns, number, trace_id = self._order[0]
            place, _ = self._closings.get(trace_id, (None, None))
            if place is not None and (place.since_ns, place.number) == (since_ns, number):
                return trace_id
            heapq.heappop(self._order)  # it was started before its turn by age

    def place(self, now_ns: int) -> DeferredPlace:
        """A place behind all others."""
        self._number += 1
        return DeferredPlace(now_ns, self._number)

    def park(self, closing: Closing, place: DeferredPlace) -> None:
        """Defer a trace at its place; a trace that comes back keeps its old place."""
        self._closings[closing.trace_id] = (place, closing)
        heapq.heappush(self._order, (place.since_ns, place.number, closing.trace_id))

    def renew(self, closing: Closing) -> None:
        """Late spans arrived while it waits: it is judged once, with them, under the revision that it waits for."""
        place, waiting = self._closings[closing.trace_id]
        self._closings[closing.trace_id] = (place, replace(closing, revision=waiting.revision))

    def next(self) -> tuple[DeferredPlace, Closing]:
        """Remove and return the first."""
        return self._remove(self._next)

    def overdue(self, now_ns: int) -> Iterator[tuple[DeferredPlace, Closing]]:
        """Remove and yield traces that waited too long, and the oldest while too many wait."""
        while self._closings:
            late = (self.oldest_ns or 0) + self._max_wait_ns <= now_ns
            if not late and len(self._closings) <= self._max_waiting:
                return
            yield self._remove(self._oldest)

    def _remove(self, trace_id: bytes) -> tuple[DeferredPlace, Closing]:
        if self._order[0][-1] == trace_id:
            heapq.heappop(self._order)
        return self._closings.pop(trace_id)
