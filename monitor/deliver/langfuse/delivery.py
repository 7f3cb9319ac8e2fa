"""Takes scores out of the outbox to Langfuse; ``reading_back.py`` looks whether they are stored.

It works in steps of one or a few requests, and keeps no state that a restart would miss. Failures are handled by their
remedy:

- the destination (down, slow, limiting, a proxy's page): wait, longer each time, and try again with fewer;
- the keys, the address, the rights: report it, and try again every few minutes;
- one score (refused, too large): give it up with the reason, for a person to look at and replay;
- one score that fails again and again while others are taken, as where a firewall in between refuses its comment: the
  same, after some attempts.

Scores of a trace that upstream has not taken are held back (``integrations/store/outbox.py``): Langfuse is asked now
and then whether it has the trace all the same, and after a day they are dropped and counted.

So that a lower revision never replaces a higher one, the shown score is read before a risky writing: one that is not
the first of its score or, where Langfuse shows the last writing, one that comes late. It waits while that cannot be
read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

from sidejudge.integrations.backoff import Backoff
from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.configs import ScoreConfigs
from sidejudge.integrations.langfuse.declared_scores import Declared
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.existing_scores import MOST_IDS
from sidejudge.integrations.langfuse.observations import trace_exists
from sidejudge.integrations.langfuse.probe import LangfuseServer, probe
from sidejudge.integrations.langfuse.sending import BATCH, ScoreSender, Writing, is_of_contents
from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.outbox import Outbox, OutboxCounts, PendingScore, Untaken
from sidejudge.monitor.deliver.dispatcher import DeliveryCounters, DeliveryTask
from sidejudge.scoring.status.snapshots import ExportSnapshot
from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS, MINUTE_NS

from .reading_back import HIDDEN, LANGFUSE, OVERTAKEN, RESEND_AFTER, UNARRIVED, UNSTORED, ReadingBack

log = logging.getLogger("sidejudge.langfuse")

MOST_AT_ONCE: Final = 200
"""Scores of one step where a request holds many: five requests."""
MOST_SINGLE: Final = 60
"""Scores of one step where each is a request."""
MOST_ATTEMPTS: Final = 8
"""Attempts that may fail for one score while others are taken."""
IDLE_S: Final = 1.0
"""How often the outbox is looked into."""
LATE_NS: Final = 5 * MINUTE_NS
"""After the end of its trace a first writing is late: another monitor may have revised the verdict by then."""
PROBE_AGAIN_NS: Final = HOUR_NS
"""How often a server is asked anew what it is and can do: it may have been upgraded, or moved."""
_COUNTS_EVERY_S: Final = 5.0
_TELL_EVERY_NS: Final = MINUTE_NS
ASK_NS: Final = (MINUTE_NS, 5 * MINUTE_NS, 30 * MINUTE_NS, 2 * HOUR_NS)
"""After asking for a trace in vain, how long until the next time; the last is repeated."""
_ASKED_AT_ONCE: Final = 10
"""Most traces that one step asks Langfuse for, each by a request."""
HELD_NS: Final = DAY_NS
"""How long scores are held back for a trace that upstream has not taken."""
NO_TRACE: Final = "no_trace"
REASONS: Final = (*(kind.value for kind in LangfuseErrorKind), UNSTORED, UNARRIVED, NO_TRACE, OVERTAKEN, HIDDEN)
"""Why an export may fail, as metrics name it."""


Overtaken: TypeAlias = Callable[[Iterable[PendingScore]], Awaitable[frozenset[str]]]
"""Called just before scores are sent. Returns the ids of scores with a later version there: they are not sent."""


class ScoreDelivery(DeliveryTask):
    """The way from the outbox to one Langfuse. ``remember`` keeps which project it is, for the next ``project``.

    ``project``: id and name of the one that scores went to last, None where none is known.
    ``overtaken`` returns scores that must not be sent any more, for callers that know more than the revisions show.
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        langfuse: Langfuse,
        declared: Sequence[Declared],
        counters: DeliveryCounters,
        remember: Callable[[LangfuseServer], Awaitable[None]],
        untaken: Untaken | None = None,
        clock_ns: Callable[[], int],
        backoff: Backoff | None = None,
        overtaken: Overtaken | None = None,
        project: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(LANGFUSE, backoff)
        self._project = project
        self._outbox = outbox
        self._overtaken = overtaken
        self._untaken = untaken
        self._langfuse = langfuse
        self._counters = counters
        self._remember = remember
        self._clock_ns = clock_ns
        self.configs = ScoreConfigs(langfuse, declared)
        self._sender = ScoreSender(langfuse, arrays=True, clock_ns=clock_ns)
        self.reading_back = ReadingBack(
            outbox=outbox, langfuse=langfuse, configs=self.configs, counters=counters, clock_ns=clock_ns
        )
        self._introduced_ns = 0
        self._size = self._most
        self._in_the_way = False
        self._counts = OutboxCounts(waiting=0, oldest_ns=None, unseen=0, dead=0)
        self._counted_ns: int | None = None
        self._reported_dead, self._reported_ns = 0, 0

    async def flush(self) -> None:
        """Send what may be sent now; end at the first failure."""
        while self.status.state in ("starting", "ok") and await self._due():
            await self.step()

    async def step(self) -> float:
        await self._count()
        try:
            if self.reading_back.server is None or self._clock_ns() - self._introduced_ns >= PROBE_AGAIN_NS:
                await self._introduce()
            rows = await self._due()
            if rows:
                await self._deliver(rows)
            # As many as were sent: while much waits, what did not arrive is named as soon as at other times.
            most = max(MOST_IDS, len(rows))
            unseen = await asyncio.to_thread(self._outbox.unseen, self._clock_ns(), most)
            if unseen:
                await self.reading_back.look_for(unseen, last_stays=self._shows_the_last)
            await self._ask_for_traces(self.reading_back.server)
        except LangfuseError as error:
            return self._failed(error)
        self.status.change("ok")
        return 0.0 if rows or len(unseen) >= MOST_IDS else IDLE_S

    def snapshot(self) -> ExportSnapshot:
        """How far scores have come."""
        oldest_ns, server = self._counts.oldest_ns, self.reading_back.server
        return ExportSnapshot(
            destination=self.name,
            state=self.status.state,
            reason=self.status.reason,
            server=f"Langfuse {server.version or ''}".strip() if server else None,
            project=server.project_name if server else None,
            waiting=self._counts.waiting,
            oldest_s=None if oldest_ns is None else oldest_ns / 1e9,
            unseen=self._counts.unseen,
            dead=self._counts.dead,
            unarrived=self._counts.unarrived,
            held=self._counts.held,
            last_success_s=self.status.last_success_s,
        )

    async def _introduce(self) -> None:
        server = await probe(self._langfuse)
        before, self.reading_back.server = self.reading_back.server, server
        self._introduced_ns = self._clock_ns()
        if before == server:
            return
        here = server.project_id, server.project_name
        if self._project is not None and self._project[0] != here[0]:
            stated = "these keys belong to another project now; scores go there from now on, and so do those that wait"
            more = {"project": here[1], "before": self._project[1], "waiting": self._counts.waiting}
            log.warning(stated, extra={**more, "unseen": self._counts.unseen})
        self._project = here
        self._sender.arrays, self._sender.events = server.takes_arrays, server.takes_events
        self._size = self._most
        self.configs.forget()
        await self._remember(server)
        if not self.reading_back.possible:
            log.warning("this Langfuse has no way to read scores back: what it takes is believed to be stored")
        log.info("scores go to Langfuse", extra={"version": server.version, "project": server.project_name})

    async def _due(self) -> list[PendingScore]:
        # In an outage one is tried, or one request's worth where one may be in the way of others; once one is taken,
        # the others follow by age.
        limit = (BATCH if self._in_the_way else 1) if self._backoff.failures > 1 else self._size
        return await asyncio.to_thread(self._outbox.due, self._clock_ns(), limit)

    async def _deliver(self, rows: Sequence[PendingScore]) -> None:
        for row in rows:
            if row.body is None:
                await self._delete(row)
        kept, unread = await self._not_overtaken([row for row in rows if row.body is not None])
        if kept:
            await self._send(kept)
        if unread is not None:
            raise unread

    async def _send(self, kept: Sequence[PendingScore]) -> None:
        outcome = await self._sender.send([await self._writing(row) for row in kept])
        now_ns = self._clock_ns()
        taken = [kept[index] for index in outcome.taken]
        if taken:
            await self._outbox.taken(taken, now_ns, verify=self.reading_back.possible)
            self.status.last_success_ns = now_ns
            self._size = min(self._most, self._size * 2)
            if self._backoff.failures > 1:
                self._size = self._most
                await self._outbox.wake()
            self._backoff.succeeded()
        for index, reason in outcome.refused.items():
            await self._outbox.park([kept[index]], reason)
            self._counters.export_failed(LANGFUSE, LangfuseErrorKind.REFUSED)
        for index, error in outcome.doubtful.items():
            await self._doubt(kept[index], error, counts=True)
            self._counters.export_failed(LANGFUSE, error.kind)
        self._counters.exported(LANGFUSE, len(outcome.done), at_s=now_ns / 1e9 if taken else None)
        if outcome.error is not None:
            left = [row for index, row in enumerate(kept) if index not in outcome.done]
            failed = len(outcome.sent - outcome.done)
            self._in_the_way = is_of_contents(outcome.error)
            self._counters.exported(LANGFUSE, failed)
            self._counters.export_failed(LANGFUSE, outcome.error.kind, failed)
            await self._set_aside(left, outcome.error)
            raise outcome.error

    async def _not_overtaken(self, rows: list[PendingScore]) -> tuple[list[PendingScore], LangfuseError | None]:
        """Those that may be sent now, and why others wait: it cannot be read whether a later score is there."""
        if not rows or not self.reading_back.possible:
            return rows, None
        risky = rows if self._overtaken is not None else self._risky(rows)
        try:
            settled = await (self._overtaken or self.reading_back.in_higher_revision)(risky)
        except LangfuseError as error:
            due_ns = self._clock_ns() + self._backoff.postponed_ns(0)
            await self._outbox.postpone(risky, due_ns, str(error), counts=False)
            waiting = {row.id for row in risky}
            return [row for row in rows if row.id not in waiting], error
        await self._outbox.taken([row for row in rows if row.id in settled], self._clock_ns(), verify=False)
        return [row for row in rows if row.id not in settled], None

    def _risky(self, rows: Iterable[PendingScore]) -> list[PendingScore]:
        """Those in whose place a later score may be shown."""
        late_ns = self._clock_ns() - LATE_NS if self._shows_the_last else 0
        return [row for row in rows if not row.withdrawn and (not row.first or row.at_ns < late_ns)]

    @property
    def _shows_the_last(self) -> bool:
        """Whether Langfuse shows the writing that came last: only events bear a time that decides."""
        return self._sender.arrays or not self._sender.events

    async def _delete(self, row: PendingScore) -> None:
        try:
            await self._sender.delete(row.id)
        except LangfuseError as error:
            if error.kind is not LangfuseErrorKind.RATE_LIMITED:
                await self._set_aside([row], error)
                raise
            # Deletions have a limit by the day; scores need not wait for it.
            wait_s = max(60.0, error.retry_after_s or 0.0)
            await self._outbox.postpone([row], self._clock_ns() + int(wait_s * 1e9), str(error), counts=False)
        else:
            await self._outbox.taken([row], self._clock_ns(), verify=False)

    async def _writing(self, row: PendingScore) -> Writing:
        body = self.reading_back.stated(row)
        # Sent again because it was not stored, it goes without the config that it may not have fitted.
        config = await self.configs.id_of(body) if row.missed < RESEND_AFTER and not row.withdrawn else None
        return Writing(body if config is None else {**body, "configId": config}, row.written_ms)

    async def _set_aside(self, left: Sequence[PendingScore], error: LangfuseError) -> None:
        """After a failure that may be one score's fault: it lets the others by. Of an array, fewer the next time."""
        if error.kind not in _PERHAPS_OURS or not left:
            return
        if self._sender.several and len(left) > 1:
            self._size = max(1, len(left) // 4)
            return
        await self._doubt(left[0], error, counts=self._backoff.failures == 0)

    async def _doubt(self, row: PendingScore, error: LangfuseError, *, counts: bool) -> None:
        """Postpone one score that may be at fault itself; given up after some attempts that count."""
        if counts and row.attempts + 1 >= MOST_ATTEMPTS:
            await self._outbox.park([row], f"failed {MOST_ATTEMPTS} times while others were taken: {error}")
            return
        due_ns = self._clock_ns() + self._backoff.postponed_ns(row.attempts)
        await self._outbox.postpone([row], due_ns, str(error), counts=counts)

    @property
    def _most(self) -> int:
        return MOST_AT_ONCE if self._sender.several else MOST_SINGLE

    async def _ask_for_traces(self, server: LangfuseServer | None) -> None:
        """Ask Langfuse for traces that upstream is not known to have taken: its answer may have been lost."""
        if self._untaken is None or server is None:
            return
        now_ns = self._clock_ns()
        for trace_id, asked in await asyncio.to_thread(self._untaken.to_ask_for, now_ns, _ASKED_AT_ONCE):
            if await trace_exists(self._langfuse, trace_id.hex(), v2=server.observations_v2):
                await self._untaken.took([trace_id])
            else:
                await self._untaken.asked(trace_id, now_ns + ASK_NS[min(asked, len(ASK_NS) - 1)])
        let_go = await self._untaken.forget(now_ns - HELD_NS)
        if let_go:
            self._counters.export_failed(LANGFUSE, NO_TRACE, let_go)
            log.warning("scores of traces that upstream never took are not written", extra={"count": let_go})

    def _failed(self, error: LangfuseError) -> float:
        if error.kind.transient:
            self.status.change("retrying", str(error))
        else:
            self.status.change("stopped", f"{error}; {_REMEDIES.get(error.kind, _CHECK)}")
            self.reading_back.server = None
        return self._backoff.after_failure(error.retry_after_s, needs_somebody=not error.kind.transient)

    async def _rest(self, pause_s: float | None) -> None:
        """As ever, and count meanwhile what waits: in an outage a pause is minutes, and more and more waits."""
        left_s = pause_s or 0.0
        while left_s > _COUNTS_EVERY_S and not self._closing.is_set():
            await super()._rest(_COUNTS_EVERY_S)
            left_s -= _COUNTS_EVERY_S
            with suppress(StoreError):  # the next step logs it
                await self._count()
        await super()._rest(left_s if pause_s is not None else None)

    async def _count(self) -> None:
        now_ns, before_ns = self._clock_ns(), self._counted_ns
        if before_ns is not None and before_ns <= now_ns < before_ns + _COUNTS_EVERY_S * 1e9:
            return
        if before_ns is None or now_ns < before_ns:  # the clock may have been set back, here or between two starts
            self._introduced_ns = self._reported_ns = 0
            await self._outbox.bring_forward(now_ns)
            if self._untaken is not None:
                await self._untaken.bring_forward(now_ns)
        self._counts, self._counted_ns = await asyncio.to_thread(self._outbox.counts), now_ns
        self._report_of_the_dead(now_ns)

    def _report_of_the_dead(self, now_ns: int) -> None:
        if self._counts.dead <= self._reported_dead:
            self._reported_dead = self._counts.dead  # some may have been sent again
        elif now_ns - self._reported_ns >= _TELL_EVERY_NS:
            self._reported_dead, self._reported_ns = self._counts.dead, now_ns
            stated = "scores were given up; 'sidejudge export dead' lists them with the reasons"
            log.warning(stated, extra={"given_up": self._counts.dead})


_PERHAPS_OURS: Final = (
    LangfuseErrorKind.SERVER_ERROR,
    LangfuseErrorKind.TIMEOUT,
    LangfuseErrorKind.UNREACHABLE,
    LangfuseErrorKind.TOO_EXPENSIVE,
)
_CHECK: Final = "check sinks.langfuse.base_url"
_REMEDIES: Final[Mapping[LangfuseErrorKind, str]] = {
    LangfuseErrorKind.KEYS_REFUSED: (
        "check public_key and secret_key of sinks.langfuse, and that base_url is where they belong"
    ),
    LangfuseErrorKind.FORBIDDEN: (
        "these keys may not write scores, or ingestion is suspended; see the project's settings"
    ),
}
