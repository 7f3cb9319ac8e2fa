"""Docket: trials that wait for answers, those that are under way, and those that are through.

A bounded number are under way at a time, as tasks of the event loop, each with its case in memory; the others wait in
the backlog as ids. While the judge is out of reach what needs it waits, whatever else is judged. Once it is back,
the oldest goes first and alone; when that has been answered the others follow.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from monitor.ingest.assembler import Closing
from scoring.questions.question import NoAnswer

from .backends import OUTAGE, OVER_BUDGET, JudgeBackendProtocol, PostponedError
from .deferred import DeferredPlace, DeferredTraces
from .job import EvaluationJob, fail
from .result import TraceResult
from .stages import EvaluationStages

log = logging.getLogger("sidejudge.pipeline")

_ATTEMPTS: Final = 3
"""How often a trace is asked about while the judge fails and yet is not taken for out of reach."""
_NOT_DRAWN: Final = NoAnswer("the judge's budget did not reach for it")


@dataclass(frozen=True, slots=True)
class _GivenUp:
    """A trace beyond the bounds of the backlog, and the answer that it gets in the judge's stead."""

    closing: Closing
    place: DeferredPlace
    instead: NoAnswer


@dataclass(slots=True, kw_only=True)
class _Way:
    """A trial under way. ``resumed``: it has waited for its turn. ``asked``: the judge was asked."""

    trial: EvaluationJob
    place: DeferredPlace
    resumed: bool = False
    instead: NoAnswer | None = None
    asked: bool = False


@dataclass(slots=True, kw_only=True)
class JudgeQueue:
    """``room`` is how many trials may be under way at a time. Everything here happens on the event loop."""

    trials: EvaluationStages
    backlog: DeferredTraces
    clock_ns: Callable[[], int]
    room: int
    through: dict[bytes, TraceResult] = field(default_factory=dict)
    """Endings that are to be committed, by trace id."""
    progress: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever a trial is through, or goes back to wait."""
    _given_up: deque[_GivenUp] = field(default_factory=deque)
    _under_way: dict[bytes, asyncio.Task[None]] = field(default_factory=dict)
    _careful: bool = False  # the judge was out of reach, and has not answered since

    @property
    def under_way(self) -> int:
        """Trials that wait for somebody's answer now."""
        return len(self._under_way)

    @property
    def waiting(self) -> int:
        """Traces that wait until the judge can be asked."""
        return len(self.backlog) + len(self._given_up)

    def knows(self, trace_id: bytes) -> bool:
        """Whether this trace is here, and has not ended."""
        return trace_id in self.backlog or self.holds(trace_id)

    def holds(self, trace_id: bytes) -> bool:
        """Whether this trace is being judged as it was: a revision of it has to wait until that is committed."""
        return (
            trace_id in self._under_way
            or trace_id in self.through
            or any(given_up.closing.trace_id == trace_id for given_up in self._given_up)
        )

    def take(self, trial: EvaluationJob) -> None:
        """A trial at which something is open: it begins if there is room, else it waits behind the others."""
        place = self.backlog.place(self.clock_ns())
        if self.under_way < self.room:
            self._begin(trial, place)
        else:
            self.backlog.park(trial.closing, place)

    async def resume(self) -> None:
        """Begin what waits as far as there is room, oldest first, and give up what is beyond the bounds."""
        for place, closing in self.backlog.overdue(self.clock_ns()):
            why = self._outage or "more waits for it than it can answer"
            instead = NoAnswer(f"{OUTAGE}: it could not be asked in time: {why}", failed=True)
            self._given_up.append(_GivenUp(closing, place, instead))
        while self._given_up and self.under_way < self.room:
            given_up = self._given_up.popleft()
            try:
                await self._open(given_up.closing, given_up.place, given_up.instead)
            except BaseException:
                self._given_up.appendleft(given_up)
                raise
        while self.backlog and self.under_way < self._room_now:
            place, closing = self.backlog.next()
            try:
                await self._open(closing, place, None)
            except BaseException:
                self.backlog.park(closing, place)
                raise

    async def close(self) -> None:
        """End what is under way; it stays open in the store."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def _judge(self) -> JudgeBackendProtocol | None:
        others = self.trials.evaluator.others
        return others.judge if others is not None else None

    @property
    def _outage(self) -> str | None:
        return self._judge.outage if self._judge is not None else None

    @property
    def _room_now(self) -> int:
        if self._outage is not None:
            return 0
        return 1 if self._careful else self.room

    async def _open(self, closing: Closing, place: DeferredPlace, instead: NoAnswer | None) -> None:
        trial = await asyncio.to_thread(self.trials.open, closing)
        if trial.hearing is not None:
            trial.hearing.resume(place.spent)
        if trial.waits:
            self._begin(trial, place, resumed=True, instead=instead)
        else:
            self.through[trial.trace_id] = await asyncio.to_thread(self.trials.end, trial, self.clock_ns())
            self.progress.set()

    def _begin(
        self, trial: EvaluationJob, place: DeferredPlace, *, resumed: bool = False, instead: NoAnswer | None = None
    ) -> None:
        way = _Way(trial=trial, place=place, resumed=resumed, instead=instead)
        self._under_way[trial.trace_id] = asyncio.create_task(self._go(way))

    async def _go(self, way: _Way) -> None:
        trial = way.trial
        try:
            if await self._asked(way):
                self.through[trial.trace_id] = await asyncio.to_thread(self.trials.end, trial, self.clock_ns())
            else:
                self.backlog.park(trial.closing, way.place)
        except Exception as error:  # noqa: BLE001
            log.warning("a verdict could not be reached; its trace waits", extra={"cause": str(error)})
            self.backlog.park(trial.closing, way.place)
        finally:
            del self._under_way[trial.trace_id]
            self.progress.set()

    async def _asked(self, way: _Way) -> bool:
        """Ask until nothing is open; whether the trial is through, and not to be begun again later."""
        hearing = way.trial.hearing
        try:
            if hearing is not None:
                await self.trials.evaluator.finish(hearing, partial(self._admit, way))
        except PostponedError:
            way.place = replace(way.place, spent=hearing.spent if hearing is not None else {})
            return False
        except Exception as error:  # noqa: BLE001  # a bug must cost one trace its verdict, not the monitor its life
            fail(way.trial, error)
            return True
        if way.asked and hearing is not None and any(why.startswith(OUTAGE) for why in hearing.failures):
            self._careful = self._outage is not None
            # A provider that did not even greet was sent nothing of the trace: that says nothing of it.
            attempts = way.place.attempts + (hearing.asked_in_vain or not self._careful)
            way.place = replace(way.place, attempts=attempts, spent=hearing.spent)
            return not self._careful and way.place.attempts >= _ATTEMPTS
        if way.asked:
            self._careful = False
            if hearing is not None and any(why.startswith(OVER_BUDGET) for why in hearing.failures):
                hearing.withdraw()
        return True

    def _admit(self, way: _Way) -> NoAnswer | None:
        if way.instead is not None:
            return way.instead
        if self._outage is not None:
            self._careful = True
            raise PostponedError
        if not way.resumed and (self.backlog or self._careful):
            raise PostponedError  # others are older
        if not way.asked and self._judge is not None:
            way.asked = True
            self._draw(way, self._judge)
        return None if way.trial.waits else _NOT_DRAWN

    def _draw(self, way: _Way, judge: JudgeBackendProtocol) -> None:
        """The third pass. A trace that comes back was drawn already, and is paid for."""
        priority, before = way.trial.priority, way.place.share
        way.place = replace(way.place, share=way.trial.draw(judge.share(priority) if before is None else before))
