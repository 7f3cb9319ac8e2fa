"""Outbox: scores on their way out, stored together with their verdicts.

A row holds what a score should be at its destination; a revision replaces it, whatever became of the version
before. It is waiting, sent (the destination took it), stored (it was read back there) or dead (given up, with the
reason). One that a revision has no more is overwritten first and deleted later. A process that is killed finds every
row as far as it had come; what was sent without word of it is sent again under the same id, which replaces it.

The destination shows the latest of a score's writings by the time that each bears. That time is committed with the
verdict: it grows with each writing of the score, over restarts and whatever the clock does, and is the same when the
same writing is sent again.

Scores of a trace that upstream has not taken would have no trace there, so such traces are marked (``Untaken``). A mark
is committed with the first spans of a trace, before it is known what becomes of them, and goes with the first request
of the trace that upstream takes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS, MINUTE_NS

from .connection import queries
from .part import Part, Read, Write

SETTLES_NS: Final = MINUTE_NS
"""How long a destination may take to store what it took: not before is a score deleted there."""
LOOKS_NS: Final = 20 * 10**9
"""After how long a score that was taken is looked for: Langfuse stores within seconds, around midnight (UTC) in 16."""
NAMED: Final = 2
"""Looks in vain after which a score is named as one that did not arrive."""
DELETES_NS: Final = 48 * HOUR_NS
"""How long after it was asked for a deletion may be done: one in two minutes is Langfuse's default."""
WATCH_NS: Final = HOUR_NS
"""How often a score is looked for again that was seen, and that may still be taken away or replaced."""
LONGEST_NS: Final = 2 * HOUR_NS
"""The longest that a score waits to be sent or looked for once more, or a trace to be asked for."""
_WITHDRAWN: Final = ',"withdrawn":true}'
"""The end of a body that SQLite marked as withdrawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """A score as it should be stored. ``at_ns`` is the timestamp of its first version; ``body`` is JSON.

    ``body`` None: there is no score now, and one of an earlier session under the same id is to be deleted.
    ``stands``: it is known to be stored like that already. ``after_ms`` is the time of the stored writing, ms since
    the epoch; None where none is known.
    """

    id: str
    at_ns: int
    body: str | None
    stands: bool = False
    after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PendingScore:
    """A row of the outbox. ``body`` None: the score is to be deleted there. Times in ns since the epoch.

    ``written_ms`` is the time of this writing, ms since the epoch: that of the score for its first.
    """

    id: str
    version: int
    at_ns: int
    queued_ns: int
    attempts: int
    missed: int
    body: str | None
    written_ms: int

    @property
    def first(self) -> bool:
        """Whether this is the first writing of the score."""
        return self.written_ms == self.at_ns // 10**6

    @property
    def withdrawn(self) -> bool:
        """Whether it is to be overwritten, and then deleted; its body is the score as it stands there."""
        return self.body is not None and self.body.endswith(_WITHDRAWN)


@dataclass(frozen=True, slots=True)
class OutboxCounts:
    """The number of rows in each state, and since when the oldest waits (None: none waits).

    ``held`` counts the waiting rows of traces that upstream has not taken. ``unarrived`` counts rows that were looked
    for in vain at least ``NAMED`` times: what is shown there is not what was written.
    """

    waiting: int
    oldest_ns: int | None
    unseen: int
    dead: int
    unarrived: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class Dead:
    """A score that was given up, or that did not arrive so far, and why."""

    id: str
    trace_id: str
    queued_ns: int
    at_ns: int
    attempts: int
    reason: str
    body: str | None


def replace_scores(connection: sqlite3.Connection, trace_id: bytes, scores: Sequence[ScoreRow], now_ns: int) -> None:
    """Make these the scores of a trace, inside the transaction that ends it; others that it had are to be deleted."""
    sql = queries()
    kept = json.dumps([score.id for score in scores if score.body is not None])
    gone = json.dumps([score.id for score in scores if score.body is None])
    row = {"trace_id": trace_id, "kept": kept, "gone": gone, "now": now_ns, "due": now_ns + SETTLES_NS}
    connection.execute(sql["outbox_withdraw"], row)
    for stands, name in ((False, "outbox_put"), (True, "outbox_stands")):
        connection.executemany(
            sql[name],
            [
                {"id": s.id, "trace_id": trace_id, "now": now_ns, "at": s.at_ns, "body": s.body, "after": s.after_ms}
                for s in scores if s.stands is stands and s.body is not None
            ],
        )  # fmt: skip


def replay(connection: sqlite3.Connection, ids: Sequence[str] | None) -> int:
    """Let scores that were given up wait again (None: all of them); how many."""
    wanted = None if ids is None else json.dumps(list(ids))
    return connection.execute(queries()["outbox_replay"], {"ids": wanted}).rowcount


def dead_rows(connection: sqlite3.Connection) -> list[Dead]:
    """Scores that were given up, the oldest first."""
    return [Dead(*row) for row in connection.execute(queries()["outbox_dead"], (-1,))]


def unarrived_rows(connection: sqlite3.Connection, limit: int) -> list[Dead]:
    """Scores that were looked for in vain and are written again, the oldest first."""
    rows = connection.execute(queries()["outbox_unarrived"], {"named": NAMED, "limit": limit})
    return [Dead(*row) for row in rows]


class Outbox(Part):
    """Methods that write are async and return once committed. Raises ``StoreError``."""

    def due(self, now_ns: int, limit: int) -> list[PendingScore]:
        """What waits and may be sent now, the oldest first."""
        return self._rows("outbox_due", now_ns, limit)

    def unseen(self, now_ns: int, limit: int) -> list[PendingScore]:
        """Scores that Langfuse accepted and that should be readable by now."""
        return self._rows("outbox_unseen", now_ns, limit)

    def counts(self) -> OutboxCounts:
        """How many rows are in each state."""
        return OutboxCounts(*self._read("outbox_status", {"named": NAMED})[0])

    async def taken(self, rows: Iterable[PendingScore], now_ns: int, *, verify: bool) -> None:
        """Note that the destination took these. With ``verify`` they are looked for later; otherwise they are done."""
        state = "sent" if verify else "stored"
        due_ns = now_ns + SETTLES_NS
        gone = [{"id": row.id, "version": row.version, "now": now_ns} for row in rows if row.body is None]
        over = [{"id": row.id, "version": row.version, "due": due_ns} for row in rows if row.withdrawn]
        kept = [
            {"id": row.id, "version": row.version, "state": state, "due": now_ns + LOOKS_NS}
            for row in rows
            if row.body is not None and not row.withdrawn
        ]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(self._sql["outbox_deleted"], gone)
            connection.executemany(self._sql["outbox_overwritten"], over)
            connection.executemany(self._sql["outbox_taken"], kept)

        await self._write(work)

    async def seen(self, rows: Iterable[PendingScore], now_ns: int, *, twice: bool = False) -> None:
        """They are there, as they should be; one that a deletion may still take away is looked for again.

        ``twice``: all of them are looked for once more.
        """
        more = {"since": now_ns - DELETES_NS, "due": now_ns + WATCH_NS, "twice": twice}
        await self._each("outbox_seen", rows, more)

    async def missed(
        self, rows: Iterable[PendingScore], due_ns: int, reason: str, *, then: Literal["sent", "waiting", "dead"]
    ) -> None:
        """They are not there: to be looked for once more at ``due_ns``, to be sent again, or given up."""
        await self._each("outbox_missed", rows, {"due": due_ns, "state": then, "reason": reason})

    async def again(self, rows: Iterable[PendingScore], after_ms: int, reason: str) -> None:
        """Something else is shown there: they wait to be written again, not before ``after_ms`` by their own time."""
        await self._each("outbox_again", rows, {"after": after_ms, "reason": reason})

    async def postpone(self, rows: Iterable[PendingScore], due_ns: int, reason: str, *, counts: bool) -> None:
        """An attempt failed for them; not before ``due_ns`` again. ``counts``: it may have been their fault."""
        await self._each("outbox_postpone", rows, {"due": due_ns, "reason": reason, "more": int(counts)})

    async def bring_forward(self, now_ns: int) -> None:
        """Make due now what lies further ahead than any wait: the clock was set back."""
        await self._do("outbox_bring_forward", {"now": now_ns, "ahead": now_ns + LONGEST_NS})

    async def wake(self) -> None:
        """Whatever was postponed may be sent now: it was the destination, not the scores."""
        await self._do("outbox_wake")

    async def park(self, rows: Iterable[PendingScore], reason: str) -> None:
        """Give them up, with the reason."""
        await self._each("outbox_park", rows, {"reason": reason})

    def _rows(self, name: str, now_ns: int, limit: int) -> list[PendingScore]:
        return [PendingScore(*row) for row in self._read(name, {"now": now_ns, "limit": limit})]

    async def _each(self, name: str, rows: Iterable[PendingScore], more: Mapping[str, object]) -> None:
        await self._do_each(name, [{"id": row.id, "version": row.version, **more} for row in rows])


ASK_AFTER_NS: Final = MINUTE_NS
"""After how long a destination is first asked whether it has the trace all the same."""
KEPT_NS: Final = 6 * DAY_NS
"""How much longer a mark stays, at most, while the spans of its trace may be kept to go on later."""
_EARLIER_NS: Final = 5 * MINUTE_NS
"""How much earlier than its request is kept a trace may be marked."""


def mark(connection: sqlite3.Connection, trace_ids: Iterable[bytes], now_ns: int) -> None:
    """Mark traces inside the transaction that commits their spans, before these are written."""
    rows = [{"trace_id": each, "now": now_ns, "due": now_ns + ASK_AFTER_NS} for each in set(trace_ids)]
    connection.executemany(queries()["untaken_mark"], rows)


class Untaken(Part):
    """Methods that write are async and return once committed. Raises ``StoreError``."""

    def __init__(self, *, write: Write, read: Read) -> None:
        super().__init__(write=write, read=read)
        self.kept_since_ns: Callable[[], int | None] = lambda: None
        """Since when requests are kept that are to go on, ns since the epoch; None: there are none."""
        self.any = bool(read("untaken_any", ())[0][0])
        """Whether there may be marks; without any, nothing is written about what upstream took."""
        self._begun = 0

    def begin(self) -> None:
        """Marks are about to be written."""
        self.any, self._begun = True, self._begun + 1

    def __contains__(self, trace_id: bytes) -> bool:
        return self.any and bool(self._read("untaken_is", (trace_id,)))

    async def took(self, trace_ids: Iterable[bytes]) -> None:
        """Upstream took spans of these traces."""
        if self.any:
            begun = self._begun
            await self._do_each("untaken_took", [(each,) for each in trace_ids])
            if begun == self._begun:  # else marks may be on their way that cannot be read yet
                self.any = bool(self._read("untaken_any", ())[0][0])

    def to_ask_for(self, now_ns: int, limit: int) -> list[tuple[bytes, int]]:
        """Traces with waiting scores to look for at their destination, and how often that was done."""
        return self._read("untaken_due", {"now": now_ns, "limit": limit}) if self.any else []

    async def asked(self, trace_id: bytes, due_ns: int) -> None:
        """It is not there; to be looked for again at ``due_ns``."""
        await self._do("untaken_asked", {"trace_id": trace_id, "due": due_ns})

    async def bring_forward(self, now_ns: int) -> None:
        """Ask now for what lies further ahead than any wait, as in ``Outbox``."""
        if self.any:
            await self._do("untaken_bring_forward", {"now": now_ns, "ahead": now_ns + LONGEST_NS})

    async def forget(self, before_ns: int) -> int:
        """Let go the marks that were made before, with the scores that they hold back; the number of these.

        Those of traces whose spans may be kept stay longer, by ``KEPT_NS`` at most.
        """
        if not self.any:
            return 0
        kept_ns = self.kept_since_ns()
        if kept_ns is not None:
            before_ns = max(min(before_ns, kept_ns - _EARLIER_NS), before_ns - KEPT_NS)

        def work(connection: sqlite3.Connection) -> int:
            scores = connection.execute(self._sql["untaken_scores_forget"], {"before": before_ns}).rowcount
            connection.execute(self._sql["untaken_forget"], {"before": before_ns})
            return scores

        return int(await self._write(work))
