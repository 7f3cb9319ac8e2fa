"""The loop that evaluates closed traces for as long as the monitor runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from sidejudge.integrations.otlp.server.traffic import ActiveRequests
from sidejudge.integrations.store.sqlite import StoreError
from sidejudge.monitor.evaluate.pipeline import Pipeline
from sidejudge.monitor.ingest.anomalies import TrafficAnomalies
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.assembler import Assembler
from sidejudge.monitor.ingest.load_shedding import LoadShedding
from sidejudge.monitor.ingest.outcomes import TraceOutcomes
from sidejudge.monitor.peers.joining import Joining
from sidejudge.monitor.sessions.windows import SessionWindows

log = logging.getLogger("sidejudge")

REST_S = 1.0
"""How long judging rests at most when no trace falls due: clocks may jump, and garbage is looked for at rest."""
PACE_S = 0.5
"""The longest pause between two batches while fewer traces wait than one holds; at most a quarter of ``grace``."""
TICK_S = 0.25
"""The same while traces wait for a judge, which may be back at any time."""
BATCHES = 1
"""Batches that are judged before due traces are looked for again: under load they must not pile up unseen."""
MOST_CLOSED = 256
"""Traces that are closed in one turn of the event loop, about 20 ms: one request may have begun tens of thousands."""
DRAIN_QUIET_NS = 300_000_000
"""While the process ends: the silence after which a trace is closed, because exporters flush in parts."""
RETRY_S = 2.0
"""How long judging rests after it failed."""


@dataclass(slots=True, kw_only=True)
class JudgingLoop:
    """Closes due traces and has them evaluated, until it is stopped.

    ``at_rest`` is called several times a second, in the event loop, while nothing is judged and no request goes on.
    """

    pipeline: Pipeline
    assembler: Assembler
    sessions: SessionWindows | None
    shedding: LoadShedding
    traffic: TrafficAnomalies
    outcomes: TraceOutcomes
    active: ActiveRequests
    at_rest: Callable[[], None]
    clock_ns: Callable[[], int]
    redraw: Callable[[Mapping[bytes, int]], Awaitable[None]]
    """Keeps at which thresholds traces were drawn under load as they closed. Raises ``StoreError``."""
    pace_s: float = 0.0
    """How long judging rests at least once nothing is left to do, unless too much is open or the process ends.

    Traces that fall due shortly after one another are then judged together. One alone takes over twice the CPU time:
    four commits of its own, and code and data that are in no cache of the processor any more.
    """
    joining: Joining | None = None
    """Holds back what may lack spans that another monitor has; None where there is none."""
    draining: bool = False
    """Whether open traces are closed as soon as nothing comes of them any more."""
    hands_over: bool = False
    """Whether these are whole traces alone: what is torn goes to another monitor, where the rest of it comes."""
    idle: bool = field(default=False, init=False)
    failure: str | None = field(default=None, init=False)
    """Why the last batch could not be judged; None while batches can."""
    _rests_until_ns: tuple[int, int] = field(default=(0, 0), init=False)
    """Until when it rests at least, and at most."""
    _task: asyncio.Task[None] | None = field(default=None, init=False)

    def start(self) -> None:
        self._task = asyncio.create_task(self._judge_what_is_due())

    @property
    def started(self) -> bool:
        return self._task is not None

    @property
    def works(self) -> bool:
        """Whether it runs, or has not begun."""
        return self._task is None or not self._task.done()

    async def stop(self) -> bool:
        """Judge nothing more; return whether there is anything to be written since the last time."""
        if self._task is None or self._task.cancelled():
            return False
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)  # how it ended is logged; the store is closed
        return True

    def due(self) -> list[Closing]:
        """Traces and sessions that are closed by now, each once: as many as one turn of the event loop closes."""
        now_ns = self.clock_ns()
        self.shedding.update(sum(closing.give_up is None for closing in self.pipeline.waiting), now_ns)
        closed = self.assembler.due(now_ns, MOST_CLOSED)
        sessions = self.sessions.due(now_ns) if self.sessions is not None else []
        if self.draining:
            closed += self.assembler.drain(now_ns, DRAIN_QUIET_NS, whole=self.hands_over)
        traces = self.traffic.closed(closed if self.joining is None else self.joining.admit(closed))
        if self.draining:
            torn = self.assembler.torn_traces if self.hands_over else 0
            if self.sessions is not None and self.outcomes.open <= torn:  # what is open may be a turn of a conversation
                sessions += self.sessions.drain(now_ns)
        return [*traces, *sessions]

    async def _judge_what_is_due(self) -> None:
        """Judge for as long as the monitor runs. A store or a disk that fails is tried again, for ever.

        Raises a fault of our own: then judging has ended, and the process is not live any more.
        """
        try:
            while True:
                await self._turn()
        except Exception:
            log.exception("judging has ended; this process is not live any more")
            raise

    async def _turn(self) -> None:
        """Judge what is due, then rest unless there is more."""
        self.pipeline.waiting.extend(self.due())
        while (due_ns := self.assembler.due_ns) is not None and due_ns <= self.clock_ns():
            await asyncio.sleep(0)
            self.pipeline.waiting.extend(self.due())
        more = False
        try:
            if redrawn := dict(self.assembler.redrawn):  # a restart goes on with it
                await self.redraw(redrawn)
                for trace_id in redrawn:  # more may have come meanwhile
                    del self.assembler.redrawn[trace_id]
            more = await self.pipeline.drain(BATCHES)
        except (StoreError, OSError) as error:
            if self.failure is None:
                log.warning("judging failed; it is tried again", extra={"cause": str(error)})
            self.failure = str(error)
            await asyncio.sleep(RETRY_S)
        else:
            self.failure = None
        if not self.active.left_s:
            self.at_rest()
        if not more:
            await self._rest()

    async def _rest(self) -> None:
        """Until a trace falls due, or a job of the judge queue ends."""
        now_ns = self.clock_ns()
        at_most_s = TICK_S if self.pipeline.judge_queue.waiting or self.draining else REST_S
        due_ns = [when for when in (self.assembler.due_ns, self._session_due_ns) if when is not None]
        at_least_s = 0.0 if self.draining else min(self.pace_s, at_most_s)
        due_s = (min(due_ns, default=now_ns + int(at_most_s * 1e9)) - now_ns) / 1e9
        rest_s = min(at_most_s, max(at_least_s, due_s))
        self._rests_until_ns = now_ns + int(at_least_s * 1e9), now_ns + int(rest_s * 1e9)
        self.idle = True
        await self.pipeline.pause(rest_s)
        self.idle = False
        self._rests_until_ns = 0, 0

    @property
    def _session_due_ns(self) -> int | None:
        return self.sessions.due_ns if self.sessions is not None else None

    def wake(self) -> None:
        """A request has changed when traces fall due: judging rests no longer than until then, but for its pace."""
        due_ns = self.assembler.due_ns
        least_ns, until_ns = self._rests_until_ns
        if self.assembler.open_limit_reached or (due_ns is not None and max(due_ns, least_ns) < until_ns):
            self.pipeline.judge_queue.progress.set()
