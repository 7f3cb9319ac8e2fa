"""Readers: people and programs that read the API, a few at a time, so that nothing else waits for them.

Requests take turns: a few are worked on at once, some wait, the rest is answered 503. A response is sent in pieces,
each once the previous one has left, and a caller who does not read is cut off. All unread responses together take
bounded memory; a further request must be repeated. Probes are answered at once, independent of readers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from sidejudge.integrations.otlp.server.response import ABORT
from sidejudge.monitor.ingest.listeners import PROBES

from .errors import send_problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PIECE: Final = 1 << 14
"""Bytes that are given to a connection at once."""
_SLOWEST: Final = 1 << 16
"""Bytes a second that a caller has to read."""
_GIVEN_UP: Final = (TimeoutError, asyncio.CancelledError)
"""The response to a request that took too long, or that the server's end cuts short: 503, where the server would send
500.
"""
METRICS: Final = "/metrics"
"""Its response is shared by all callers, so that it takes no turn, unless only some series are asked for."""
_NAMES: Final = "name[]"
"""The parameter that names a series which is asked for, as Prometheus's clients read it."""


def names_of_series(scope: Scope) -> list[str]:
    """The series that a request for metrics asks for; empty for all."""
    return parse_qs(scope.get("query_string", b"").decode("latin-1")).get(_NAMES, [])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderLimits:
    """``working`` questions at once, of ``waiting`` more; times in s, ``unread_bytes`` of all answers on their way."""

    working: int = 2
    waiting: int = 64
    patience_s: float = 10.0
    longest_s: float = 30.0
    piece_s: float = 5.0
    unread_bytes: int = 16 << 20


class Readers:
    """ASGI middleware: the application answers a few questions at a time."""

    def __init__(self, app: ASGIApp, limits: ReaderLimits | None = None) -> None:
        self._app, self._limits = app, limits or ReaderLimits()
        self._turns = asyncio.Semaphore(self._limits.working)
        self._waiting = 0
        self._unread = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        answer = _Answer()
        is_shared = scope["path"] == METRICS and not names_of_series(scope)
        if is_shared:
            await self._app(scope, receive, answer.take)
        elif not await self._answered(scope, receive, answer):
            await _busy(send)
            return
        size = len(answer.body)
        if size > _PIECE and self._unread + size > self._limits.unread_bytes and not is_shared:
            answer = _Answer()
            await _busy(send)
            return
        with self._held(size):
            await self._sent(answer, scope, send)

    async def _answered(self, scope: Scope, receive: Receive, answer: _Answer) -> bool:
        """Let the application answer in its turn; whether it did."""
        if self._waiting >= self._limits.waiting:
            return False
        self._waiting += 1
        try:
            async with asyncio.timeout(self._limits.patience_s):
                await self._turns.acquire()
        except _GIVEN_UP:
            return False
        finally:
            self._waiting -= 1
        try:
            async with asyncio.timeout(self._limits.longest_s):
                await self._app(scope, receive, answer.take)
        except _GIVEN_UP:
            return False
        finally:
            self._turns.release()
        return True

    async def _sent(self, answer: _Answer, scope: Scope, send: Send) -> None:
        if answer.start is None:  # the caller has gone
            return
        abort: Callable[[], None] | None = scope.get("extensions", {}).get(ABORT)
        try:
            async with asyncio.timeout(self._limits.piece_s + len(answer.body) / _SLOWEST):
                await send(answer.start)
                for piece, more in answer.pieces():
                    async with asyncio.timeout(self._limits.piece_s):
                        await send({"type": "http.response.body", "body": piece, "more_body": more})
        except TimeoutError:
            if abort is not None:
                abort()

    @contextmanager
    def _held(self, size: int) -> Iterator[None]:
        self._unread += size
        try:
            yield
        finally:
            self._unread -= size


class _Answer:
    """A response as the application gives it."""

    def __init__(self) -> None:
        self.start: Message | None = None
        self.body = b""

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.start = message
        elif message["type"] == "http.response.body":
            part = message.get("body", b"")
            self.body = self.body + part if self.body else part  # one part, in nearly all

    def pieces(self) -> Iterator[tuple[bytes, bool]]:
        """The body piece by piece, and whether more follows; one that is empty for an empty body."""
        view, size = memoryview(self.body), len(self.body)
        for at in range(0, max(1, size), _PIECE):
            yield bytes(view[at : at + _PIECE]), at + _PIECE < size


async def _busy(send: Send) -> None:
    cause, remedy = "too many readers are asking, or the monitor ends", "ask again in some seconds"
    await send_problem(send, HTTPStatus.SERVICE_UNAVAILABLE, cause, remedy, [(b"retry-after", b"2")])
