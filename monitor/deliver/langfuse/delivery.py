"""Takes scores out of the outbox to Langfuse, and reads back whether they are stored.

It works in steps of one or a few requests, and keeps no state that a restart would miss. Failures are handled by their
remedy:

- the destination (down, slow, limiting, a proxy's page): wait, longer each time, and try again with fewer;
- the keys, the address, the rights: report it, and try again every few minutes;
- one score (refused, too large): give it up with the reason, for a person to look at and replay;
- one score that fails again and again while others are taken: the same, after some attempts;
- a score that is older than anything that Langfuse shows: give it up, for nobody can see whether it is stored;
- a score that was taken and is not there: send it again without its config, then give it up;
- another writing of it is shown: write it again, later than what is shown, and name it until it is there.

Scores of a trace that upstream has not taken are held back (``integrations/store/outbox.py``): Langfuse is asked now
and then whether it has the trace all the same, and after a day they are dropped and counted.

A later score than ours stays: a higher revision, or one that another monitor wrote after it. Such scores are counted as
overtaken and named. So that a lower revision never replaces a higher one, the shown score is read before a risky
writing: one that is not the first of its score or, where Langfuse shows the last writing, one that comes late. There a
revision is checked once more an hour later, when no first writing can still come.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

from sidejudge.integrations.backoff import Backoff
from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.configs import ScoreConfigs
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.existing_scores import MOST_IDS, REVISION, ExistingScore, existing_scores
from sidejudge.integrations.langfuse.observations import SHOWN_NS, anything_before, trace_exists
from sidejudge.integrations.langfuse.probe import LangfuseServer, probe
from sidejudge.integrations.langfuse.scores import WRITTEN, Declared, ScoreOfLangfuse, timestamp, withdrawn
from sidejudge.integrations.langfuse.sending import ScoreSender, Writing
from sidejudge.integrations.store.outbox import NAMED, Outbox, OutboxCounts, PendingScore, Untaken
from sidejudge.monitor.deliver.dispatcher import DeliveryCounters, DeliveryTask
from sidejudge.scoring.alerts.declaration import DAY_NS
from sidejudge.scoring.status.snapshots import ExportSnapshot

log = logging.getLogger("sidejudge.langfuse")

LANGFUSE: Final = "langfuse"
MOST_AT_ONCE: Final = 200
"""Scores of one step where a request holds many: five requests."""
MOST_SINGLE: Final = 60
"""Scores of one step where each is a request."""
MOST_ATTEMPTS: Final = 8
"""Attempts that may fail for one score while others are taken."""
IDLE_S: Final = 1.0
"""How often the outbox is looked into."""
LATE_NS: Final = 300 * 10**9
"""After the end of its trace a first writing is late: another monitor may have revised the verdict by then."""
RESEND_AFTER: Final = 4
"""Looks in vain before a score that is not there at all is sent again, and again before it is given up."""
LOOK_AGAIN_NS: Final = (25 * 10**9, 300 * 10**9, 900 * 10**9)
"""After a look in vain, how long until the next: the second, after which a score is named, within a minute."""
_CLOCKS_MS: Final = 5000
"""Most difference of several monitors' clocks for the order of their writings to be believed."""
_SHOWN: Final = 5
LOOK_HOURLY_NS: Final = 3600 * 10**9
PROBE_AGAIN_NS: Final = 3600 * 10**9
"""How often a server is asked anew what it is and can do: it may have been upgraded, or moved."""
_COUNTS_EVERY_NS: Final = 5 * 10**9
_TELL_EVERY_NS: Final = 60 * 10**9
ASK_NS: Final = (60 * 10**9, 300 * 10**9, 1800 * 10**9, 7200 * 10**9)
"""After asking for a trace in vain, how long until the next time; the last is repeated."""
_ASKED_AT_ONCE: Final = 10
"""Most traces that one step asks Langfuse for, each by a request."""
HELD_NS: Final = 24 * 3600 * 10**9
"""How long scores are held back for a trace that upstream has not taken."""
UNSTORED: Final = "not_stored"
UNARRIVED: Final = "not_arrived"
NO_TRACE: Final = "no_trace"
OVERTAKEN: Final = "overtaken"
HIDDEN: Final = "hidden"
REASONS: Final = (*(kind.value for kind in LangfuseErrorKind), UNSTORED, UNARRIVED, NO_TRACE, OVERTAKEN, HIDDEN)
"""Why an export may fail, as metrics name it."""


Overtaken: TypeAlias = Callable[[Iterable[PendingScore]], Awaitable[frozenset[str]]]
"""Called just before scores are sent. Returns the ids of scores with a later version there: they are not sent."""


class ScoreDelivery(DeliveryTask):
    """The way from the outbox to one Langfuse. ``remember`` keeps which project it is.

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
    ) -> None:
        super().__init__(LANGFUSE, backoff)
        self._outbox = outbox
        self._overtaken = overtaken
        self._untaken = untaken
        self._langfuse = langfuse
        self._counters = counters
        self._remember = remember
        self._clock_ns = clock_ns
        self._configs = ScoreConfigs(langfuse, declared)
        self._sender = ScoreSender(langfuse, arrays=True, clock_ns=clock_ns)
        self.server: LangfuseServer | None = None
        self._introduced_ns = 0
        self._size = self._most
        self._verifies = True
        self._seen_ns: int | None = None
        self._counts = OutboxCounts(waiting=0, oldest_ns=None, unseen=0, dead=0)
        self._counted_ns: int | None = None
        self._reported_dead, self._reported_ns, self._overtaken_ns = 0, 0, 0

    def declare(self, more: Iterable[Declared]) -> None:
        """Know further scores: the configuration was reloaded."""
        self._configs.declare(more)

    async def flush(self) -> None:
        """Send what may be sent now; end at the first failure."""
        while self.status.state in ("starting", "ok") and await self._due():
            await self.step()

    async def step(self) -> float:
        await self._count()
        try:
            if self.server is None or self._clock_ns() - self._introduced_ns >= PROBE_AGAIN_NS:
                await self._introduce()
            rows = await self._due()
            if rows:
                await self._deliver(rows)
            # As many as were sent: while much waits, what did not arrive is named as soon as at other times.
            most = max(MOST_IDS, len(rows))
            unseen = await asyncio.to_thread(self._outbox.unseen, self._clock_ns(), most)
            if unseen:
                await self._look_for(unseen)
            await self._ask_for_traces(self.server)
        except LangfuseError as error:
            return self._failed(error)
        self.status.change("ok")
        return 0.0 if rows or len(unseen) >= MOST_IDS else IDLE_S

    def snapshot(self) -> ExportSnapshot:
        """How far scores have come."""
        oldest_ns, server = self._counts.oldest_ns, self.server
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
        before, server = self.server, await probe(self._langfuse)
        if not (server.scores_v3 or server.legacy_reads):
            server = await probe(self._langfuse)  # a proxy's 404 of one moment: what is not read back is believed
        self.server = server
        self._introduced_ns = self._clock_ns()
        if before == self.server:
            return
        if before is not None and before.project_id != self.server.project_id:
            log.warning(
                "these keys belong to another project now; scores go there from now on",
                extra={"project": self.server.project_name, "before": before.project_name},
            )
        self._sender.arrays, self._sender.events = self.server.takes_arrays, self.server.takes_events
        self._size = self._most
        self._verifies = self.server.scores_v3 or self.server.legacy_reads
        self._configs.forget()
        await self._remember(self.server)
        if not self._verifies:
            log.warning("this Langfuse has no way to read scores back: what it takes is believed to be stored")
        log.info("scores go to Langfuse", extra={"version": self.server.version, "project": self.server.project_name})

    async def _due(self) -> list[PendingScore]:
        # In an outage one is tried; once it is taken, the others follow by age.
        limit = 1 if self._backoff.failures > 1 else self._size
        return await asyncio.to_thread(self._outbox.due, self._clock_ns(), limit)

    async def _deliver(self, rows: Sequence[PendingScore]) -> None:
        for row in rows:
            if row.body is None:
                await self._delete(row)
        kept = await self._not_overtaken([row for row in rows if row.body is not None])
        if not kept:
            return
        outcome = await self._sender.send([await self._writing(row) for row in kept])
        now_ns = self._clock_ns()
        taken = [kept[index] for index in outcome.taken]
        if taken:
            await self._outbox.taken(taken, now_ns, verify=self._verifies)
            self.status.last_success_ns = now_ns
            self._size = min(self._most, self._size * 2)
            if self._backoff.failures > 1:
                self._size = self._most
                await self._outbox.wake()
            self._backoff.succeeded()
        for index, reason in outcome.refused.items():
            await self._outbox.park([kept[index]], reason)
            self._counters.export_failed(LANGFUSE, LangfuseErrorKind.REFUSED)
        self._counters.exported(LANGFUSE, len(taken) + len(outcome.refused), at_s=now_ns / 1e9 if taken else None)
        if outcome.error is not None:
            done = {*outcome.taken, *outcome.refused}
            left = [row for index, row in enumerate(kept) if index not in done]
            failed = len(outcome.sent - done)
            self._counters.exported(LANGFUSE, failed)
            self._counters.export_failed(LANGFUSE, outcome.error.kind, failed)
            await self._set_aside(left, outcome.error)
            raise outcome.error

    async def _not_overtaken(self, rows: list[PendingScore]) -> list[PendingScore]:
        if not rows or not self._verifies:
            return rows
        settled = await (self._later_ones if self._overtaken is None else self._overtaken)(rows)
        await self._outbox.taken([row for row in rows if row.id in settled], self._clock_ns(), verify=False)
        return [row for row in rows if row.id not in settled]

    async def _later_ones(self, rows: Iterable[PendingScore]) -> frozenset[str]:
        """Ids of scores that are shown in a higher revision. Where they cannot be read, no score is held back."""
        late_ns = self._clock_ns() - LATE_NS if self._shows_the_last else 0
        asked = [row for row in rows if not row.withdrawn and (not row.first or row.at_ns < late_ns)]
        try:
            there = await self._shown(self.server, asked)
        except LangfuseError:
            return frozenset()
        later = [row for row in asked if row.id in there and _later(there[row.id], row)]
        self._name_overtaken(later)
        return frozenset(row.id for row in later)

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
        body = self._stated(row)
        # Sent again because it was not stored, it goes without the config that it may not have fitted.
        config = await self._configs.id_of(body) if row.missed < RESEND_AFTER and not row.withdrawn else None
        return Writing(body if config is None else {**body, "configId": config}, row.written_ms)

    def _stated(self, row: PendingScore) -> ScoreOfLangfuse:
        """The expected contents of a row in Langfuse, as sent, without its config."""
        stated: ScoreOfLangfuse = json.loads(row.body or "{}")
        body = withdrawn(stated) if row.withdrawn else stated
        metadata = dict(body.get("metadata") or {})
        if self.server is not None and not self.server.merges_metadata:
            metadata = {key: value for key, value in metadata.items() if value is not None}
        metadata[WRITTEN] = timestamp(row.written_ms * 10**6)
        return {**body, "metadata": metadata, "timestamp": timestamp(_time_in_array(row))}

    async def _set_aside(self, left: Sequence[PendingScore], error: LangfuseError) -> None:
        """After a failure that may be one score's fault: it lets the others by. Of an array, fewer the next time."""
        if error.kind not in _PERHAPS_OURS or not left:
            return
        if self._sender.several and len(left) > 1:
            self._size = max(1, len(left) // 4)
            return
        row, alone = left[0], self._backoff.failures == 0
        if alone and row.attempts + 1 >= MOST_ATTEMPTS:
            await self._outbox.park([row], f"failed {MOST_ATTEMPTS} times while others were taken: {error}")
            return
        due_ns = self._clock_ns() + self._backoff.postponed_ns(row.attempts)
        await self._outbox.postpone([row], due_ns, str(error), counts=alone)

    @property
    def _most(self) -> int:
        return MOST_AT_ONCE if self._sender.several else MOST_SINGLE

    async def look_early(self) -> bool:
        """Look now for scores that would be looked for within a minute; whether any is there. None counts as missed.

        For a command that waits for them. Raises ``LangfuseError`` and ``StoreError``.
        """
        if self.server is None or not self._verifies:
            return False
        rows = await asyncio.to_thread(self._outbox.unseen, self._clock_ns() + LOOK_HOURLY_NS, MOST_IDS)
        there = await self._shown(self.server, rows)
        seen = [row for row in rows if self._arrived(row, there.get(row.id))]
        await self._outbox.seen(seen, self._clock_ns())
        return bool(seen)

    async def _shown(self, server: LangfuseServer | None, rows: Sequence[PendingScore]) -> Mapping[str, ExistingScore]:
        if server is None or not rows:
            return {}
        names = {row.id: str(json.loads(row.body or "{}").get("name")) for row in rows}
        return await existing_scores(self._langfuse, [*names], v3=server.scores_v3, names=names)

    def _arrived(self, row: PendingScore, shown: ExistingScore | None) -> bool:
        """Whether the shown score is this writing or a later one."""
        body = self._stated(row)
        # Langfuse gives a score the name of its config, which a person may change.
        if shown is None or shown.row.get("name") != body.get("name"):
            return False
        if shown.states(body, whole=True):
            return True
        if shown.withdrawn:
            return False
        if shown.revision != _revision(row):
            return _later(shown, row)
        # A first writing bears the time of the score, whenever it is made.
        first, shows_first = row.first, shown.written_ms <= shown.at_ns // 10**6
        if shown.written_ms == row.written_ms and (shown.edited or not first):  # it was there, and somebody changed it
            return True
        ours_ms = row.queued_ns // 10**6 if first else row.written_ms
        return not shows_first and ours_ms < shown.written_ms <= self._now_ms() + _CLOCKS_MS

    def _now_ms(self) -> int:
        """The present by the clock that is ahead, ours or the server's, ms since the epoch."""
        return self._clock_ns() // 10**6 + int(self._langfuse.ahead_s * 1000)

    async def _look_for(self, rows: Sequence[PendingScore]) -> None:
        server, now_ns = self.server, self._clock_ns()
        if server is None or not self._verifies:
            await self._outbox.seen(rows, now_ns)
            return
        there = await self._shown(server, rows)  # where this read is gone, it is probed anew what there is
        arrived = {row.id for row in rows if self._arrived(row, there.get(row.id))}
        seen = [row for row in rows if row.id in arrived]
        missed = [row for row in rows if row.id not in arrived]
        if seen:
            self._seen_ns = now_ns
            self._name_overtaken([row for row in seen if self._is_anothers(row, there[row.id])])
            doubted = [row for row in seen if not row.first and self._shows_the_last]
            await self._outbox.seen(doubted, now_ns, twice=True)
            await self._outbox.seen([row for row in seen if row not in doubted], now_ns)
        hidden = await self._hidden(server, [row for row in missed if row.id not in there])
        self._name([row for row in missed if row.missed + 1 == NAMED and row not in hidden])
        over = [row for row in hidden if row.missed + 1 >= RESEND_AFTER]
        if over:
            await self._outbox.missed(over, 0, _HIDDEN, then="dead")
            self._counters.export_failed(LANGFUSE, HIDDEN, len(over))
            log.warning("scores are given up: %s", _HIDDEN, extra=_named(over))
        missed = [row for row in missed if row not in over]
        for row in missed:
            shown = there.get(row.id)
            if shown is None:
                await self._missed(row, now_ns)
            else:
                await self._write_again(row, shown, now_ns)

    def _is_anothers(self, row: PendingScore, shown: ExistingScore) -> bool:
        """Whether another monitor wrote the shown score; a person's change keeps the time of our writing."""
        return not shown.states(self._stated(row), whole=True) and shown.written_ms != row.written_ms

    def _name(self, rows: Sequence[PendingScore]) -> None:
        """Report the scores that did not arrive; the counters and the status have all of them."""
        if rows:
            self._counters.export_failed(LANGFUSE, UNARRIVED, len(rows))
            log.warning(
                "scores were taken by Langfuse and are not shown there; they are written again", extra=_named(rows)
            )

    async def _hidden(self, server: LangfuseServer, absent: Sequence[PendingScore]) -> list[PendingScore]:
        """Those of absent scores that are older than all that is shown, where they would be named or sent again.

        Where nothing is shown before one of them, nothing is before an older one: few requests find where that begins.
        """
        found = [
            row for row in sorted(absent, key=lambda row: row.at_ns)
            if row.missed + 1 in (NAMED, RESEND_AFTER) and self._clock_ns() - row.at_ns >= SHOWN_NS
        ]  # fmt: skip
        hidden, perhaps = 0, len(found)
        with suppress(LangfuseError):  # what cannot be known now is treated as any other
            while hidden < perhaps:
                middle = (hidden + perhaps + 1) // 2
                if await anything_before(self._langfuse, found[middle - 1].at_ns + 1, v2=server.observations_v2):
                    perhaps = middle - 1
                else:
                    hidden = middle
        return found[:hidden]

    def _name_overtaken(self, rows: Sequence[PendingScore]) -> None:
        if not rows:
            return
        self._counters.export_failed(LANGFUSE, OVERTAKEN, len(rows))
        if self._clock_ns() - self._overtaken_ns >= _TELL_EVERY_NS:
            self._overtaken_ns = self._clock_ns()
            log.warning(_TWO_MONITORS, extra=_named(rows))

    async def _write_again(self, row: PendingScore, shown: ExistingScore, now_ns: int) -> None:
        """Another writing is shown. The second look decides: the first may have come before the server had merged."""
        looks = row.missed + 1
        if looks % 2:
            await self._outbox.missed([row], now_ns + LOOK_AGAIN_NS[0], _OTHER, then="sent")
        elif looks < 2 * RESEND_AFTER:
            self._configs.forget()  # one that was renamed gives the score its new name
            await self._outbox.again([row], max(self._now_ms(), shown.latest_ms + 1), _OTHER)
        else:
            await self._outbox.missed([row], 0, f"{_OTHER}, though it was written again", then="dead")

    async def _missed(self, row: PendingScore, now_ns: int) -> None:
        looks = row.missed + 1
        if looks % RESEND_AFTER:
            due_ns = now_ns + LOOK_AGAIN_NS[looks % RESEND_AFTER - 1]
            await self._outbox.missed([row], due_ns, _NOT_THERE, then="sent")
        elif looks == RESEND_AFTER:
            self._counters.export_failed(LANGFUSE, UNSTORED)
            self._configs.forget()
            log.warning("a score was taken and not stored; it is sent again", extra={"score": row.id})
            await self._outbox.missed([row], 0, _NOT_THERE, then="waiting")
        elif self._seen_ns is not None and now_ns - self._seen_ns < LOOK_HOURLY_NS:
            self._counters.export_failed(LANGFUSE, UNSTORED)
            await self._outbox.missed([row], 0, f"{_NOT_THERE}, though it was sent again", then="dead")
        else:  # nothing at all is stored there: its workers are behind, and what it took may still come
            await self._outbox.missed([row], now_ns + LOOK_HOURLY_NS, _NOT_THERE, then="sent")

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
            self.server = None
        return self._backoff.after_failure(error.retry_after_s, needs_somebody=not error.kind.transient)

    async def _count(self) -> None:
        now_ns = self._clock_ns()
        if self._counted_ns is None or now_ns - self._counted_ns >= _COUNTS_EVERY_NS:
            self._counts, self._counted_ns = await asyncio.to_thread(self._outbox.counts), now_ns
            self._report_of_the_dead(now_ns)

    def _report_of_the_dead(self, now_ns: int) -> None:
        if self._counts.dead <= self._reported_dead:
            self._reported_dead = self._counts.dead  # some may have been sent again
        elif now_ns - self._reported_ns >= _TELL_EVERY_NS:
            self._reported_dead, self._reported_ns = self._counts.dead, now_ns
            stated = "scores were given up; 'sidejudge export dead' lists them with the reasons"
            log.warning(stated, extra={"given_up": self._counts.dead})


def _named(rows: Sequence[PendingScore]) -> dict[str, object]:
    """How many scores they are, and which the first of them."""
    bodies = [json.loads(row.body or "{}") for row in rows[:_SHOWN]]
    names = ", ".join(f"{each.get('name')} of {each.get('traceId') or each.get('sessionId')}" for each in bodies)
    return {"count": len(rows), "scores": names, "ids": ", ".join(row.id for row in rows[:_SHOWN])}


def _revision(row: PendingScore) -> int:
    return int(str((json.loads(row.body or "{}").get("metadata") or {}).get(REVISION) or 1))


def _later(shown: ExistingScore, row: PendingScore) -> bool:
    """Whether a higher revision is shown than a row's."""
    return not shown.withdrawn and shown.revision > _revision(row)


def _time_in_array(row: PendingScore) -> int:
    """The time that goes with a score in an array, ns since the epoch: its own, by which it is replaced.

    Where a writing did not replace the one before, one a little later on the same day (UTC) may.
    """
    moved = row.at_ns + (row.missed if row.missed >= NAMED else 0) * 10**6
    return moved if moved // DAY_NS == row.at_ns // DAY_NS else row.at_ns


_TWO_MONITORS: Final = (
    "another monitor has written a later word on these scores, which stays; let both be one fleet, or give each "
    "rubrics of its own"
)
_NOT_THERE: Final = "taken by Langfuse and not stored"
_HIDDEN: Final = (
    "taken by Langfuse, which shows nothing as old (a plan of its cloud hides what is older than 30 or 90 days), so it "
    "is not known to be stored"
)
_OTHER: Final = "taken by Langfuse, which shows another writing of it"
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
