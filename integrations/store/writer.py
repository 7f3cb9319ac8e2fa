"""One thread that writes, and commits together whatever has come in while it was committing before.

A commit costs much more than an insert, so under load requests share commits without anyone waiting for a timer.
The event loop is woken once per commit, not once per request.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from .errors import SpansErased, StoreError, StoreUnavailable, explain
from .health import WRITE, StoreHealth

_log = logging.getLogger("sidejudge.store")

_TOGETHER: Final = 500
"""About as many jobs in one transaction at most: bounds how much is done again when it fails."""
_LOCKED_PAUSES_S: Final = (0.05, 0.2, 0.5)
"""Pauses between attempts while another process holds the lock, on top of SQLite's own waiting."""

Work = Callable[[sqlite3.Connection], Any]


@dataclass(slots=True)
class _Job:
    work: Work
    result: Any = None
    error: StoreError | None = None


@dataclass(slots=True)
class _WriteRequest:
    """Jobs that were requested at once; ``future`` is done when each of them is committed or refused."""

    jobs: list[_Job]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]


class Writer:
    """Runs work on the one connection that writes, each job inside a transaction that may hold others too.

    ``check`` is called before each commit and raises ``StoreUnavailable`` where a commit would be worth nothing.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path, *, check: Callable[[], None], health: StoreHealth
    ) -> None:
        self._connection = connection
        self._path = path
        self._check = check
        self._health = health
        self._queue: SimpleQueue[_WriteRequest | None] = SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="sidejudge-store", daemon=True)
        self._thread.start()

    async def do(self, work: Work) -> Any:
        """Run ``work`` and return its result once committed. Raises ``StoreError``; then nothing of it is written."""
        (job,) = await self._done([work])
        if job.error is not None:
            raise job.error
        return job.result

    async def do_each(self, works: Sequence[Work]) -> list[StoreError | None]:
        """Run several, each committed or refused on its own. Returns why each was refused, None where it was committed.

        They cost one visit, and as a rule one transaction. Raises ``StoreUnavailable`` where the store is closed.
        """
        return [job.error for job in await self._done(works)] if works else []

    async def _done(self, works: Sequence[Work]) -> list[_Job]:
        loop = asyncio.get_running_loop()
        requested = _WriteRequest([_Job(work) for work in works], loop, loop.create_future())
        with self._closing:
            if self._closed:
                raise StoreUnavailable(f"store {self._path}: it is closed; the monitor is shutting down")
            self._queue.put(requested)
        await requested.future
        return requested.jobs

    def close(self) -> None:
        """Commit what is queued, then stop; idempotent."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            first = self._queue.get()
            waiting = [] if first is None else [first]
            jobs = [] if first is None else [*first.jobs]
            last = first is None
            while not last and len(jobs) < _TOGETHER:
                try:
                    requested = self._queue.get_nowait()
                except Empty:
                    break
                if requested is None:
                    last = True
                else:
                    waiting.append(requested)
                    jobs += requested.jobs
            if jobs:
                self._commit(jobs)
                _answer(waiting)
            if last:
                return

    def _commit(self, jobs: list[_Job]) -> None:
        error = self._attempt(jobs)
        if error is None:
            self._health.worked(WRITE)
            return
        meant, code = explain(error, self._path), getattr(error, "sqlite_errorcode", 0) & 0xFF
        if len(jobs) > 1 and (not isinstance(meant, StoreUnavailable) or code == sqlite3.SQLITE_FULL):
            # One job's data is at fault, or all together need more room than there is: the others must not suffer.
            for job in jobs:
                self._commit([job])
            return
        if not isinstance(meant, SpansErased):  # which says nothing of the store
            self._health.failed(WRITE, meant)
        for job in jobs:
            job.error = meant

    def _attempt(self, jobs: list[_Job]) -> Exception | None:
        for pause_s in (*_LOCKED_PAUSES_S, None):
            try:
                self._transact(jobs)
            except Exception as error:  # noqa: BLE001  # the thread must outlive any job; the error is answered to it
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if code not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or pause_s is None:
                    return error
                time.sleep(pause_s)
            else:
                return None
        return None

    def _transact(self, jobs: list[_Job]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for job in jobs:
                job.result = job.work(self._connection)
            self._check()
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise


def _answer(waiting: list[_WriteRequest]) -> None:
    for loop in {requested.loop for requested in waiting}:
        try:
            loop.call_soon_threadsafe(_resolve, [requested.future for requested in waiting if requested.loop is loop])
        except RuntimeError:
            _log.debug("the loop that requested a commit is closed")


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():  # else the caller has been cancelled
            future.set_result(None)
