"""Kept requests: requests that go upstream later, in a file of their own beside the store, in order of arrival.

A request is committed before it is answered, so it outlives the process. The file is not the store's: requests are
kept even where judging cannot start, and neither file takes the other's room.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from .connection import Lock, connect, identity, reading
from .errors import StoreCorrupt, StoreError, StoreUnavailable, explain
from .health import StoreHealth, give_back
from .writer import Writer

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS requests (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    lane INTEGER NOT NULL,              -- requests of one lane are sent one after the other
    kept_ns INTEGER NOT NULL,
    due_ns INTEGER NOT NULL DEFAULT 0,  -- of the process's monotonic clock; later than now: set aside
    attempts INTEGER NOT NULL DEFAULT 0,-- that failed while others were taken
    signal TEXT NOT NULL,
    head TEXT NOT NULL,                 -- JSON: path, headers, whether the operator's credentials go with it
    body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS requests_by_lane ON requests (lane, due_ns, seq);
"""
_PAGE: Final = 8192
_SMALL: Final = _PAGE // 2
_RESERVE: Final = 32 << 20
"""Bytes of the disk that stay free: deleting requests takes some, and the write-ahead log may reach 16 MiB."""
_COUNT: Final = f"""SELECT count(*), total(CASE WHEN size <= {_SMALL} THEN size ELSE (size / {_PAGE} + 1) * {_PAGE} END)
FROM (SELECT length(CAST(head AS BLOB)) + length(body) + 100 AS size FROM requests)"""  # noqa: S608  # our own numbers
_OLDEST: Final = "SELECT kept_ns FROM requests ORDER BY seq LIMIT 1"
_FIRST: Final = """SELECT seq, attempts, signal, head, body FROM requests WHERE seq = (
    SELECT min(seq) FROM requests WHERE lane = ? AND due_ns <= ? AND seq > ?)"""

Header: TypeAlias = tuple[bytes, bytes]


class BufferFull(StoreUnavailable):  # it names the state
    """There is no room for another request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRequest:
    """A request that is to go upstream. ``trusted``: the operator's credentials go with it."""

    signal: str
    target: bytes
    headers: Sequence[Header]
    trusted: bool
    body: bytes
    lane: int
    seq: int = 0
    attempts: int = 0

    @property
    def head(self) -> str:
        """Everything but the body, as JSON."""
        names = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in self.headers]
        return json.dumps({"target": self.target.decode("latin-1"), "headers": names, "trusted": self.trusted})

    @property
    def cost(self) -> int:
        """Bytes of the file that it takes."""
        size = len(self.head) + len(self.body) + 100
        return size if size <= _SMALL else (size // _PAGE + 1) * _PAGE


def beside(store: Path) -> Path:
    """The file of kept requests of a monitor with this store."""
    return store.with_name(f"{store.name}.forward")


def kept_in(path: Path) -> tuple[int, int]:
    """The number of requests in a file, and their bytes, read without opening it for writing. Raises ``StoreError``."""
    if not path.exists():
        return 0, 0
    with reading(path) as connection:
        try:
            count, size = connection.execute(_COUNT).fetchone()
        except sqlite3.Error as error:
            raise explain(error, path) from error
    return int(count), int(size)


class KeptRequests:
    """The file: ``count`` requests of ``size`` bytes, the oldest kept at ``oldest_ns`` (None without any).

    A write returns once it is committed. Raises ``StoreError`` where the file cannot be used. A damaged file is put
    aside, and its requests are lost.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path, self.max_bytes = path, max_bytes
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{path}: its folder cannot be made ({error}); set store.path") from None
        self._one = Lock(path)
        try:
            self._open()
        except StoreCorrupt:
            for each in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
                with suppress(OSError):
                    each.replace(Path(f"{each}.damaged"))
            self._open()
        except BaseException:
            self._one.release()
            raise

    def _open(self) -> None:
        with suppress(OSError):  # it holds contents and credentials; what fails here fails below, with a remedy
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        writing = connect(self.path)
        try:
            writing.executescript(_SCHEMA)
            writing.execute("UPDATE requests SET due_ns = 0 WHERE due_ns > 0")
            count, size = writing.execute(_COUNT).fetchone()
            self.oldest_ns = _oldest(writing)
            self._reading = connect(self.path)
        except sqlite3.Error as error:
            writing.close()
            raise explain(error, self.path) from error
        self.count, self.size = int(count), int(size)
        self._file, self._lock, self._connection = identity(self.path), threading.Lock(), writing
        self._writer = Writer(writing, self.path, check=self._check, health=StoreHealth())

    def _check(self) -> None:
        if identity(self.path) != self._file:
            raise StoreUnavailable(f"{self.path}: the file was removed or replaced while it is in use; restart")

    async def put(self, request: KeptRequest, *, due_ns: int = 0) -> KeptRequest:
        """Keep a request; return it as kept. Raises ``BufferFull``.

        This process sends it at ``due_ns`` of its monotonic clock or later.
        """
        cost = request.cost
        if self.size + cost > self.max_bytes:
            raise BufferFull("forward.buffer is full")
        try:
            free = shutil.disk_usage(self.path.parent).free
        except OSError as error:
            raise StoreUnavailable(f"{self.path}: its folder cannot be read ({error})") from None
        if free < cost + _RESERVE:
            raise StoreUnavailable(f"{self.path}: the disk is full but for {_RESERVE >> 20} MiB; free some")
        self.count, self.size = self.count + 1, self.size + cost
        row = (request.lane, time.time_ns(), due_ns, request.signal, request.head, request.body)
        insert = "INSERT INTO requests (lane, kept_ns, due_ns, signal, head, body) VALUES (?, ?, ?, ?, ?, ?)"
        try:
            seq = await self._writer.do(lambda connection: connection.execute(insert, row).lastrowid)
        except StoreError:
            self.count, self.size = self.count - 1, self.size - cost
            raise
        self.oldest_ns = self.oldest_ns or row[1]
        return replace(request, seq=int(seq))

    async def done(self, request: KeptRequest) -> None:
        """Delete a request: upstream has accepted it, or never will."""

        def work(connection: sqlite3.Connection) -> int | None:
            connection.execute("DELETE FROM requests WHERE seq = ?", (request.seq,))
            return _oldest(connection)

        self.oldest_ns = await self._writer.do(work)
        self.count, self.size = self.count - 1, self.size - request.cost
        if not self.count:
            await self._writer.do(give_back)

    async def postpone(self, request: KeptRequest, due_ns: int, *, counts: bool) -> None:
        """Send others before it until ``due_ns``, as in ``put``; ``counts``: the attempt counts against the request."""
        changed = (due_ns, int(counts), request.seq)
        update = "UPDATE requests SET due_ns = ?, attempts = attempts + ? WHERE seq = ?"
        await self._writer.do(lambda connection: connection.execute(update, changed) and None)

    def first(self, lane: int, now_ns: int, after: int = 0) -> KeptRequest | None:
        """The oldest request of a lane that may be sent now and whose number is above ``after``."""
        with self._looking() as connection:
            row = connection.execute(_FIRST, (lane, now_ns, after)).fetchone()
        if row is None:
            return None
        seq, attempts, signal, head, body = row
        stated = json.loads(head)
        return KeptRequest(
            seq=seq, attempts=attempts, signal=signal, lane=lane, trusted=bool(stated["trusted"]),
            target=stated["target"].encode("latin-1"), body=body,
            headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in stated["headers"]],
        )  # fmt: skip

    def due(self, lane: int) -> int | None:
        """When the first request of a lane may be sent, as in ``put``; None without any."""
        with self._looking() as connection:
            (due_ns,) = connection.execute("SELECT min(due_ns) FROM requests WHERE lane = ?", (lane,)).fetchone()
        return None if due_ns is None else int(due_ns)

    def lanes(self) -> list[int]:
        """The lanes that have requests."""
        with self._looking() as connection:
            return [int(lane) for (lane,) in connection.execute("SELECT DISTINCT lane FROM requests")]

    @contextmanager
    def _looking(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._reading
            except sqlite3.Error as error:
                raise explain(error, self.path) from error

    def close(self) -> None:
        """Commit queued writes and release the file to other processes; idempotent."""
        self._writer.close()
        with self._lock:
            self._reading.close()
        self._connection.close()
        self._one.release()


def _oldest(connection: sqlite3.Connection) -> int | None:
    row = connection.execute(_OLDEST).fetchone()
    return None if row is None else int(row[0])
