"""The notification outbox: what is to be delivered, kept until its destination took it or it is set aside for a person.

Whoever puts something in may write a note in the same transaction, so that a process that is killed at any moment
neither forgets a notice nor sends it twice. Delivery is in order of arrival within a destination. Entries are deleted
once they were taken: a process that is killed in between delivers them again, under the same id.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.status.snapshots import QueueStatus

from .connection import queries
from .part import Part, as_written, with_checksum


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
    """Methods that write return once committed. Raises ``StoreError``."""

    async def put(self, entries: Sequence[Entry], now_ns: int, notes: Mapping[str, str | None] | None = None) -> None:
        """Take entries and notes, all or none. A note that is ``None`` is deleted."""
        kept = [with_checksum(name, value) for name, value in (notes or {}).items() if value is not None]
        gone = [(name,) for name, value in (notes or {}).items() if value is None]

        def work(connection: sqlite3.Connection) -> None:
            put_entries(connection, entries, now_ns)
            connection.executemany(self._sql["note"], kept)
            connection.executemany(self._sql["note_gone"], gone)

        if entries or kept or gone:
            await self._write(work)

    def notes(self) -> dict[str, str]:
        """Everything that was noted."""
        return as_written(self._read("noted", ()))

    def waiting(self, destination: str, limit: int) -> list[PendingNotice]:
        """The first that wait for a destination, in order."""
        return [PendingNotice(*row) for row in self._read("mail_waiting", (destination, limit))]

    async def settle(self, delivered: Sequence[int], parked: Mapping[int, str], *, subject: int = 0) -> None:
        """Take out what was delivered and set aside, with the reason, what will not be taken.

        ``subject``: so many first characters of an id name what the entry is about; what was set aside earlier about
        the same as something delivered is dropped, for it is out of date. 0: nothing is.
        """
        overtaking = [{"seq": seq, "subject": subject} for seq in delivered] if subject else []

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(self._sql["mail_overtaken"], overtaking)
            connection.executemany(self._sql["mail_done"], [(seq,) for seq in delivered])
            connection.executemany(self._sql["mail_park"], [(reason, seq) for seq, reason in parked.items()])

        await self._write(work)

    async def unpark(self, destination: str) -> int:
        """Let what was set aside wait again, in its old place; how many that are."""
        return await self._do("mail_unpark", (destination,))

    async def forget(self, before_ns: int) -> None:
        """Delete what was set aside and came before this."""
        await self._do("mail_forget", (before_ns,))

    def queue(self, destination: str) -> QueueStatus:
        """How much there is for one destination."""
        [(waiting, oldest_ns, parked)] = self._read("mail_status", (destination,))
        [(reason,)] = self._read("mail_parked", (destination,)) or [(None,)]
        return QueueStatus(waiting=waiting, oldest_ns=oldest_ns, parked=parked, reason=reason)


def put_entries(connection: sqlite3.Connection, entries: Sequence[Entry], now_ns: int) -> None:
    """Take entries inside a transaction of somebody else: one with what they report."""
    rows = [(entry.destination, entry.id, now_ns, entry.body) for entry in entries]
    connection.executemany(queries()["mail_put"], rows)
