"""The notification outbox: entries that wait until their destination has accepted them, or a person looks at them.

An entry and a note about it may be written in one transaction, so that a process that is killed at any moment neither
loses a notice nor decides twice to send it. Each destination gets its entries in order of arrival. An entry is deleted
once it was accepted: a process that is killed in between delivers it again, under the same id.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sidejudge.scoring.status.snapshots import QueueStatus

from .connection import queries
from .part import Part, as_written

ERASURE: Final = "forget/"
"""Prefix of the id of a request that a destination erases what it has; ids of results begin with a trace id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something to deliver. ``body`` is JSON; what waits under the same destination and ``id`` is replaced by it."""

    destination: str
    id: str
    body: str


@dataclass(frozen=True, slots=True)
class PendingNotice:
    """An entry of the outbox; ``seq`` is its place in the order and its name, ``queued_ns`` when it came."""

    seq: int
    id: str
    queued_ns: int
    body: str


class NotificationOutbox(Part):
    """The table of entries, and the notes about them. A write returns once it is committed. Raises ``StoreError``."""

    async def put(self, entries: Sequence[Entry], now_ns: int, notes: Mapping[str, str | None] | None = None) -> None:
        """Write entries and notes in one transaction; a note that is ``None`` is deleted."""
        change_notes = self._text_change("note", "note_gone", notes or {})

        def work(connection: sqlite3.Connection) -> None:
            put_entries(connection, entries, now_ns)
            change_notes(connection)

        if entries or notes:
            await self._write(work)

    def notes(self) -> dict[str, str]:
        """All notes, by name."""
        return as_written(self._read("noted", ()))

    def waiting(self, destination: str, limit: int) -> list[PendingNotice]:
        """The first entries that wait for a destination, in order."""
        return [PendingNotice(*row) for row in self._read("mail_waiting", (destination, limit))]

    async def settle(self, delivered: Sequence[int], parked: Mapping[int, str], *, subject: int = 0) -> None:
        """Delete the delivered entries, and set aside the ``parked`` ones, each with its reason.

        ``subject``: the number of first characters of an id that name what the entry is about. Entries that were set
        aside earlier about the subject of a delivered one are out of date, and are deleted. 0: none are.
        """
        overtaking = [{"seq": seq, "subject": subject} for seq in delivered] if subject else []

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(self._sql["mail_overtaken"], overtaking)
            connection.executemany(self._sql["mail_done"], [(seq,) for seq in delivered])
            connection.executemany(self._sql["mail_park"], [(reason, seq) for seq, reason in parked.items()])

        await self._write(work)

    async def unpark(self, destination: str) -> int:
        """Return entries that were set aside to their old places in the queue; how many there were."""
        return await self._do("mail_unpark", (destination,))

    async def move(self, moved: Mapping[str, str], notes: Mapping[str, str | None]) -> None:
        """Let what waits for a destination wait for another one, whose own entries are deleted unless they move too.

        Notes are written in the same transaction, as by ``put``.
        """
        aside = {old: f"\0{new}" for old, new in moved.items()}
        change_notes = self._text_change("note", "note_gone", notes)

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(self._sql["mail_move"], [(new, old) for old, new in aside.items()])
            connection.executemany(self._sql["mail_of_nobody"], [(new,) for new in moved.values()])
            connection.executemany(self._sql["mail_move"], [(moved[old], there) for old, there in aside.items()])
            change_notes(connection)

        if moved or notes:
            await self._write(work)

    async def forget(self, before_ns: int) -> None:
        """Delete entries that were set aside and are older than this."""
        await self._do("mail_forget", (before_ns,))

    def queue(self, destination: str) -> QueueStatus:
        """The state of one destination's queue."""
        [(waiting, oldest_ns, parked)] = self._read("mail_status", {"destination": destination})
        [(reason,)] = self._read("mail_parked", (destination,)) or [(None,)]
        return QueueStatus(waiting=waiting, oldest_ns=oldest_ns, parked=parked, reason=reason)


def put_entries(connection: sqlite3.Connection, entries: Sequence[Entry], now_ns: int) -> None:
    """Write entries within the caller's transaction, together with what they report."""
    rows = [(entry.destination, entry.id, now_ns, entry.body) for entry in entries]
    connection.executemany(queries()["mail_put"], rows)
