"""Reads back from Langfuse whether the scores that it took are stored there, and decides on each that is not.

- a score that is older than anything that Langfuse shows: given up, for nobody can see whether it is stored;
- a score that was taken and is not there: sent again without its config, then given up;
- another writing of it is shown: written again, later than what is shown, and named until it is there.

A later score than ours stays: a higher revision, or one that another monitor wrote after it. Such scores are counted as
overtaken and named. Where Langfuse shows the last writing, a revision is checked once more an hour later, when no first
writing can still come.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.configs import ScoreConfigs
from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.integrations.langfuse.existing_scores import MOST_IDS, REVISION, ExistingScore, existing_scores
from sidejudge.integrations.langfuse.observations import SHOWN_NS, anything_before, instant
from sidejudge.integrations.langfuse.probe import LangfuseServer
from sidejudge.integrations.langfuse.scores import WRITTEN, ScoreOfLangfuse, withdrawn
from sidejudge.integrations.store.outbox import NAMED, Outbox, PendingScore
from sidejudge.monitor.deliver.dispatcher import DeliveryCounters
from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS, MINUTE_NS, SECOND_NS

log = logging.getLogger("sidejudge.langfuse")

LANGFUSE: Final = "langfuse"
RESEND_AFTER: Final = 4
"""Looks in vain before a score that is not there at all is sent again, and again before it is given up."""
LOOK_AGAIN_NS: Final = (25 * SECOND_NS, 5 * MINUTE_NS, 15 * MINUTE_NS)
"""After a look in vain, how long until the next: the second, after which a score is named, within a minute."""
LOOK_HOURLY_NS: Final = HOUR_NS
_CLOCKS_MS: Final = 5000
"""Most difference of several monitors' clocks for the order of their writings to be believed."""
_SHOWN: Final = 5
_TELL_EVERY_NS: Final = MINUTE_NS
UNSTORED: Final = "not_stored"
UNARRIVED: Final = "not_arrived"
OVERTAKEN: Final = "overtaken"
HIDDEN: Final = "hidden"


class ReadingBack:
    """Looks for scores that one Langfuse accepted. ``server`` describes the answering server, None while none answers.

    ``configs`` is shared with the sender: a score that is not stored may not have fitted its config.
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        langfuse: Langfuse,
        configs: ScoreConfigs,
        counters: DeliveryCounters,
        clock_ns: Callable[[], int],
    ) -> None:
        self.server: LangfuseServer | None = None
        self._outbox, self._langfuse, self._configs = outbox, langfuse, configs
        self._counters, self._clock_ns = counters, clock_ns
        self._seen_ns: int | None = None
        self._overtaken_ns = 0

    @property
    def possible(self) -> bool:
        """Whether the server has a way to read scores; without one, what it takes is believed to be stored."""
        return self.server is not None and (self.server.scores_v3 or self.server.legacy_reads)

    def stated(self, row: PendingScore) -> ScoreOfLangfuse:
        """The expected contents of a row in Langfuse, as sent, without its config."""
        stated: ScoreOfLangfuse = json.loads(row.body or "{}")
        body = withdrawn(stated) if row.withdrawn else stated
        metadata = dict(body.get("metadata") or {})
        if self.server is not None and not self.server.merges_metadata:
            metadata = {key: value for key, value in metadata.items() if value is not None}
        metadata[WRITTEN] = instant(row.written_ms * 10**6)
        return {**body, "metadata": metadata, "timestamp": instant(time_in_array(row))}

    async def in_higher_revision(self, rows: Sequence[PendingScore]) -> frozenset[str]:
        """Ids of scores that are shown in a higher revision. Raises ``LangfuseError``."""
        there = await self._shown(rows)
        later = [row for row in rows if row.id in there and _later(there[row.id], row)]
        self._name_overtaken(later)
        return frozenset(row.id for row in later)

    async def look_early(self) -> bool:
        """Look now for scores that would be looked for within a minute; whether any is there. None counts as missed.

        For a command that waits for them. Raises ``LangfuseError`` and ``StoreError``.
        """
        if not self.possible:
            return False
        rows = await asyncio.to_thread(self._outbox.unseen, self._clock_ns() + LOOK_HOURLY_NS, MOST_IDS)
        there = await self._shown(rows)
        seen = [row for row in rows if self._arrived(row, there.get(row.id))]
        await self._outbox.seen(seen, self._clock_ns())
        return bool(seen)

    async def _shown(self, rows: Sequence[PendingScore]) -> Mapping[str, ExistingScore]:
        if self.server is None or not rows:
            return {}
        names = {row.id: str(json.loads(row.body or "{}").get("name")) for row in rows}
        return await existing_scores(self._langfuse, [*names], v3=self.server.scores_v3, names=names)

    def _arrived(self, row: PendingScore, shown: ExistingScore | None) -> bool:
        """Whether the shown score is this writing or a later one."""
        body = self.stated(row)
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

    async def look_for(self, rows: Sequence[PendingScore], *, last_stays: bool) -> None:
        """Look for scores that were taken, and note of each what is there or what is to be done.

        ``last_stays``: of several writings Langfuse shows the one that came last, not the one of the latest time.
        Raises ``LangfuseError`` and ``StoreError``.
        """
        server, now_ns = self.server, self._clock_ns()
        if server is None or not self.possible:
            await self._outbox.seen(rows, now_ns)
            return
        there = await self._shown(rows)  # where this read is gone, it is probed anew what there is
        arrived = {row.id for row in rows if self._arrived(row, there.get(row.id))}
        seen = [row for row in rows if row.id in arrived]
        missed = [row for row in rows if row.id not in arrived]
        if seen:
            self._seen_ns = now_ns
            self._name_overtaken([row for row in seen if self._is_anothers(row, there[row.id])])
            doubted = [row for row in seen if not row.first and last_stays]
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
        return not shown.states(self.stated(row), whole=True) and shown.written_ms != row.written_ms

    def _name(self, rows: Sequence[PendingScore]) -> None:
        """Report the scores that did not arrive; the counters and the status have all of them."""
        if rows:
            self._counters.export_failed(LANGFUSE, UNARRIVED, len(rows))
            log.warning(
                "scores were taken by Langfuse and are not shown there; they are written again", extra=_named(rows)
            )

    async def _hidden(self, server: LangfuseServer, absent: Sequence[PendingScore]) -> list[PendingScore]:
        """The absent scores that are due to be named or sent again, and are older than all that Langfuse shows.

        If nothing is shown before one score, nothing is before an older one: a binary search finds where that begins.
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


def _revision(row: PendingScore) -> int:
    return int(str((json.loads(row.body or "{}").get("metadata") or {}).get(REVISION) or 1))


def _later(shown: ExistingScore, row: PendingScore) -> bool:
    """Whether a higher revision is shown than a row's.

    What was written before a conversation ended is of an earlier one under its id, whose revisions count for nothing.
    """
    stale = shown.written_ms < row.at_ns // 10**6 and "sessionId" in json.loads(row.body or "{}")
    return not shown.withdrawn and shown.revision > _revision(row) and not stale


def time_in_array(row: PendingScore) -> int:
    """The time that goes with a score in an array, ns since the epoch: its own, by which it is replaced.

    Where a writing did not replace the one before, one a little later on the same day (UTC) may.
    """
    moved = row.at_ns + (row.missed if row.missed >= NAMED else 0) * 10**6
    return moved if moved // DAY_NS == row.at_ns // DAY_NS else row.at_ns


def _named(rows: Sequence[PendingScore]) -> dict[str, object]:
    """How many scores they are, and which the first of them."""
    bodies = [json.loads(row.body or "{}") for row in rows[:_SHOWN]]
    names = ", ".join(f"{each.get('name')} of {each.get('traceId') or each.get('sessionId')}" for each in bodies)
    return {"count": len(rows), "scores": names, "ids": ", ".join(row.id for row in rows[:_SHOWN])}


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
