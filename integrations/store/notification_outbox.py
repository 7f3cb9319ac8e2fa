"""Mail: what is to be delivered to others, kept until they have taken it or it is set aside for a person.

Whoever puts something in may note in the same transaction that it did, so that a process that is killed at any moment
neither forgets to tell nor tells twice. Delivery is in order of arrival within a destination. Whoever delivers
takes things out once they were taken: killed in between, it delivers them again, under the same id.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .part import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something to deliver. ``body`` is JSON; what waits under the same destination and ``id`` is replaced by it."""

    destination: str
    id: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingNotice:
    """An entry in the mail; ``seq`` is its place in the order and its name, ``queued_ns`` when it came."""

    seq: int
    id: str
    queued_ns: int
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationQueue:
    """How much there is for one destination. ``reason`` is why the last of those set aside was."""

    waiting: int = 0
    oldest_ns: int | None = None
    parked: int = 0
    reason: str | None = None


class NotificationOutbox(Part):
    """Methods that write return once committed. Raises ``StoreError``."""

    async def put(self, entries: Sequence[Entry], now_ns: int, notes: Mapping[str, str | None] | None = None) -> None:
        """Take entries and notes, all or none. A note that is ``None`` is let go."""
        rows = [(entry.destination, entry.id, now_ns, entry.body) for entry in entries]
        said = [(name, value) for name, value in (notes or {}).items() if value is not None]
        gone = [(name,) for name, value in (notes or {}).items() if value is None]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(self._sql["mail_put"], rows)
            connection.executemany(self._sql["note"], said)
            connection.executemany(self._sql["note_gone"], gone)

        if rows or said or gone:
            await self._write(work)

    def notes(self) -> dict[str, str]:
        """Everything that was noted."""
        return dict(self._read("noted", ()))

    def waiting(self, destination: str, limit: int) -> list[PendingNotice]:
        """The first that wait for a destination, in order."""
        rows = self._read("mail_waiting", (destination, limit))
        return [PendingNotice(seq=seq, id=id_, queued_ns=queued_ns, body=body) for seq, id_, queued_ns, body in rows]

    async def settle(self, delivered: Sequence[int], parked: Mapping[int, str]) -> None:
        """Take out what was delivered and set aside, with the reason, what will not be taken."""

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(self._sql["mail_done"], [(seq,) for seq in delivered])
            connection.executemany(self._sql["mail_park"], [(reason, seq) for seq, reason in parked.items()])

        await self._write(work)

    async def unpark(self, destination: str) -> int:
        """Let what was set aside wait again, in its old place; how many that are."""
        sql = self._sql["mail_unpark"]
        return int(await self._write(lambda connection: connection.execute(sql, (destination,)).rowcount))

    async def forget(self, before_ns: int) -> None:
        """Delete what was set aside and came before this."""
        sql = self._sql["mail_forget"]
        await self._write(lambda connection: connection.execute(sql, (before_ns,)) and None)

    def shelves(self) -> dict[str, NotificationQueue]:
        """How much there is, by destination; one with nothing is absent."""
        reasons = {destination: reason for destination, reason, _ in self._read("mail_parked", ())}
        return {
            destination: NotificationQueue(
                waiting=waiting, oldest_ns=oldest_ns, parked=parked, reason=reasons.get(destination)
            )
            for destination, waiting, oldest_ns, parked in self._read("mail_standing", ())
        }
