"""One connection to upstream, and the requests that it carries one after the other.

It is small, with no more turns of the event loop than there are packets: a request takes 136 µs here, 495 with aiohttp
and 2,939 with httpx. The library ``httptools`` parses HTTP.

``connected`` connects to the address of a host that answers first (RFC 8305, "happy eyeballs"). A host often has an
address that leads nowhere (IPv6 without a route, a replica that is gone). The event loop by itself tries them one after
the other, each until the system's own timeout.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections import deque
from collections.abc import AsyncIterator, Sequence
from itertools import zip_longest
from typing import Final, TypeAlias, cast

import httptools

from sidejudge.integrations.otlp.server.response import Header
from sidejudge.scoring.errors import SidejudgeError

_HEAD: Final = 100_000
"""Limit in bytes: the head of a response, and whatever comes between or after the parts of its body."""
_AHEAD: Final = 1 << 18
"""Bytes of a response that are held until they are read; reading from upstream pauses beyond."""


class UpstreamError(SidejudgeError):
    """No response came: the status to answer with, the ``reason`` from a closed list, and the cause in words."""

    def __init__(self, status: int, reason: str, cause: str) -> None:
        super().__init__(cause)
        self.status = status
        self.reason = reason


class _Improper(Exception):  # noqa: N818  # it never leaves this file
    """A response can be parsed, but holds something forbidden."""


class UpstreamConnection(asyncio.Protocol):
    """An HTTP/1.1 connection. ``send`` begins an exchange, ``parts`` reads its response, ``rest`` ends it.

    ``timeout_s`` bounds each wait for a whole head or a part of a body. Fewer bytes do not count, so that a response
    that trickles in is not waited for without end.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._transport: asyncio.Transport | None = None
        self._poll: select.poll | None = None
        self._parser: Final = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._lost = self._paused = self._held = self._used = False
        self._parts: list[bytes] = []
        self.idle_s = 0.0
        """Time of the event loop since when it waits for a request."""
        self._begin(bodiless=False)
        self._open = False

    def _begin(self, *, bodiless: bool) -> None:
        self._open, self._bodiless = True, bodiless
        self._sent = self._ended = self._keep = self._sized = self._received = False
        self._broken: tuple[str, str] | None = ("reset", "it hung up") if self._lost else None
        self._parts.clear()
        self._size = self._seen = 0
        self.status = 0
        """Status of the final response; 0 until its head is here."""
        self.headers: list[Header] = []

    async def send(
        self, head: bytes, body: bytes | AsyncIterator[bytes], *, chunked: bool = False, bodiless: bool = False
    ) -> None:
        """Send a request and return once the head of its response is here.

        ``body`` is sent as it is, or ``chunked``; the response to a ``bodiless`` request (HEAD) has no body, whatever
        its headers are. Raises ``UpstreamError``.
        """
        self._begin(bodiless=bodiless)
        if isinstance(body, bytes):
            self._write(head + body)
            self._sent = True
        else:
            self._write(head)
            await self._stream(body, chunked=chunked)
        while not self.status:
            await self._more()

    async def parts(self) -> AsyncIterator[bytes]:
        """Iterate over the body of the response as it comes. Raises ``UpstreamError`` when it breaks off."""
        while True:
            if self._parts:
                part = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
                self._parts.clear()
                self._size = 0
                self._hold(False)
                yield part
            elif self._ended:
                return
            else:
                await self._more()

    @property
    def ended(self) -> bool:
        """Whether all of the response is here."""
        return self._ended

    @property
    def reusable(self) -> bool:
        """Whether the exchange is over, and another may follow on this connection."""
        over = not self._open or (self._ended and self._sent and self._keep and not self._held)
        if not over or self._lost or self._transport is None or self._transport.is_closing():
            return False
        return not self._transport.get_write_buffer_size()

    @property
    def silent(self) -> bool:
        """Whether nothing has come that the event loop has not reported yet: its end, or an unrequested response."""
        return self._poll is None or not self._poll.poll(0)

    @property
    def stale(self) -> bool:
        """Whether it was idle before this request, and was closed before a byte of the response came."""
        return self._used and self._lost and not self._received

    def rest(self, now_s: float) -> None:
        """End the exchange: until the next one nothing may come."""
        self._open, self._used, self.idle_s = False, True, now_s

    def abort(self) -> None:
        """Close without waiting."""
        if self._transport is not None:
            self._transport.abort()

    async def _stream(self, body: AsyncIterator[bytes], *, chunked: bool) -> None:
        async for part in body:
            while self._paused and not self.status:
                await self._more()
            if self.status or self._broken:  # upstream does not need the rest
                return
            if part:  # an empty chunk is the last one
                self._write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
        if chunked:
            self._write(b"0\r\n\r\n")
        self._sent = True

    def _hold(self, held: bool) -> None:  # noqa: FBT001  # the one argument, named by the function
        """Pause reading from upstream, or resume it."""
        if held is not self._held and self._transport is not None and not self._transport.is_closing():
            self._held = held
            (self._transport.pause_reading if held else self._transport.resume_reading)()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._lost:
            self._transport.write(data)

    async def _more(self) -> None:
        """Wait until something happens."""
        if self._broken is not None:
            reason, cause = self._broken
            what = "the connection to it broke" if reason == "reset" else "its answer is not HTTP"
            raise UpstreamError(502, reason, f"{what} ({cause})")
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._waiter
        except TimeoutError:
            raise UpstreamError(504, "timeout", "it did not answer in time") from None
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, cause: str) -> None:
        if not self._ended:
            self._broken = self._broken or ("protocol", cause)
        self._wake()
        self.abort()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if hasattr(select, "poll"):  # Windows has none
            self._poll = select.poll()
            self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        if not self._open or self._ended:  # nothing was requested
            self.abort()
            return
        self._received = True
        self._seen += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(str(error.__context__ if isinstance(error.__context__, _Improper) else error))
        if self._seen > _HEAD and not self._ended:
            self._fail("a head does not end")
        self._hold(self._size >= _AHEAD)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True
        if self._open and not self._ended:
            if error is None and self.status and not self._sized and not self._broken:
                self._ended = True  # a response without a length ends with its connection
            else:
                self._broken = self._broken or ("reset", str(error) if error else "it hung up")
        self._wake()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._wake()

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self._ended:  # a second response: nothing that follows on this connection could be trusted
            self._keep = False
        else:
            self.headers, self._sized = [], False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status:  # a trailer
            return
        low, value = name.lower(), value.rstrip(b" \t")
        self.headers.append((name, value))
        if low == b"transfer-encoding" and (self._sized or value.lower() != b"chunked"):
            raise _Improper("a transfer coding that was not requested")
        self._sized = self._sized or low in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        if self._ended:
            return
        status = self._parser.get_status_code()
        if status == 101 or not 100 <= status < 600:
            raise _Improper(f"a status of {status}")
        if status >= 200:
            self.status, self._ended = status, self._bodiless
        elif self._sized:  # an interim response concerns this connection, and has no body
            raise _Improper(f"a body with status {status}")
        self._wake()

    def on_body(self, part: bytes) -> None:
        if not self._ended:
            self._parts.append(part)
            self._size += len(part)
            self._seen = 0
            self._wake()

    def on_message_complete(self) -> None:
        if self.status and not self._ended:
            self._ended, self._keep = True, self._parser.should_keep_alive()
            self._wake()


_Address: TypeAlias = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
_NEXT_S: Final = 0.25
"""How long an address may take before the next one is tried in parallel."""


_Found: TypeAlias = Sequence[tuple[int, int, int, str, _Address]]
_ANEW_S: Final = 10.0
"""How long a lookup that hangs is waited for by whoever comes, before the name is looked up anew."""


class Lookup:
    """The addresses of a host, looked up once for all who ask meanwhile.

    Lookups take turns in few threads: where one hangs, one for each connection would keep all other names waiting.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._asked: asyncio.Task[_Found] | None = None
        self._since_s = 0.0

    async def addresses(self) -> _Found:
        """Return addresses as ``getaddrinfo`` does. Raises ``OSError``, and ``UnicodeError`` for an invalid name."""
        loop = asyncio.get_running_loop()
        if self._asked is None or self._asked.done() or loop.time() - self._since_s >= _ANEW_S:
            self._since_s = loop.time()
            self._asked = loop.create_task(loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM))
            self._asked.add_done_callback(lambda asked: asked.cancelled() or asked.exception())  # if nobody waits
        return await asyncio.shield(self._asked)


async def connected(found: _Found) -> socket.socket:
    """Return a socket that is connected to one of these. Raises the first ``OSError`` of all if none answers."""
    waiting = deque(_interleaved(found))
    trying: set[asyncio.Task[socket.socket]] = set()
    refused: list[BaseException] = []
    won: asyncio.Task[socket.socket] | None = None
    try:
        while won is None and (waiting or trying):
            if waiting:
                trying.add(asyncio.create_task(_try(*waiting.popleft())))
            done, _ = await asyncio.wait(
                trying, timeout=_NEXT_S if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                error = task.exception()
                if error is None:
                    won = task
                else:
                    trying.discard(task)
                    refused.append(error)
    finally:
        for task in trying:
            if not task.cancel() and task is not won and task.exception() is None:
                task.result().close()
    if won is None:
        raise refused[0]
    return won.result()


def _interleaved(found: _Found) -> list[tuple[int, int, _Address]]:
    """Order addresses by families in turns, beginning with the one that the system prefers."""
    preferred = [(family, proto, to) for family, _, proto, _, to in found if family == found[0][0]]
    others = [(family, proto, to) for family, _, proto, _, to in found if family != found[0][0]]
    return [each for pair in zip_longest(preferred, others) for each in pair if each is not None]


async def _try(family: int, proto: int, to: _Address) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM, proto)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(made, to)
    except BaseException:
        made.close()
        raise
    return made
