"""Connections of the HTTP server, bounded in number, time and memory.

uvicorn parses requests and runs the application. It sets no bound on pipelined requests, on the length of a head, or on
the time that a head, a body or an unread response takes; those bounds are here. Deadlines are checked once a second for
all connections of a server, because a timer for each request would cost more than the requests do.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Generic, Literal, TypeVar, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sidejudge.integrations.otlp.server.admission import ConnectionLimits
from sidejudge.integrations.otlp.server.response import ABORT

_log = logging.getLogger("sidejudge.http")

_UNREAD_BYTES: Final = 1 << 15
"""Bytes of responses that a connection holds before its application waits."""
_PIPELINED: Final = 64
"""Requests that may wait for a response on one connection. No known exporter sends a second before the first's."""
_HEAD_BYTES: Final = 1 << 16
"""Bytes of a request's head, and of its trailers."""
_OFFER: Final = (b"connection", b"upgrade", b"http2-settings")
"""Headers of an offer to go on in another protocol."""
_REASONS: Final = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large"}


def half_of_open_files() -> int:
    """Connections for which this process has files; the other half is for the store, upstream and judges."""
    if sys.platform == "win32":  # which has no such limit
        return 1 << 31
    import resource  # noqa: PLC0415  # Windows has none

    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2


def reader_connections() -> ConnectionLimits:
    """The bounds of the address that people and scrapers read: fewer, and quicker to be closed, than applications."""
    return ConnectionLimits(body_s=10.0, connections=min(400, half_of_open_files()))


_T = TypeVar("_T")


class _ByAddress(Generic[_T]):
    """Items by address of origin; each address's items are in order of arrival."""

    def __init__(self) -> None:
        self._of: dict[str, dict[_T, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[_T]:
        return iter([each for mine in self._of.values() for each in mine])

    def add(self, one: _T, address: str) -> None:
        self._of.setdefault(address, {})[one] = None
        self._count += 1

    def remove(self, one: _T, address: str) -> bool:
        """Forget it. Returns whether it was here."""
        mine = self._of.get(address, {})
        if one not in mine:
            return False
        del mine[one]
        self._count -= 1
        if not mine:
            del self._of[address]
        return True

    def crowd(self) -> tuple[str, Iterable[_T]]:
        """The address with the most connections, and these connections."""
        return max(self._of.items(), key=lambda item: len(item[1]))


class OpenConnections:
    """The open connections of one server. ``refused`` counts refusals by status, 0 for no answer.

    Greetings over TLS that have not ended are counted apart: half as many as connections may be open.
    """

    def __init__(self, limits: ConnectionLimits, on_refused: Callable[[int, str], None] | None = None) -> None:
        self.limits = limits
        self.refused: Counter[int] = Counter()
        self._on_refused = on_refused
        self._open: _ByAddress[HttpConnection] = _ByAddress()
        self.greetings: _ByAddress[asyncio.Task[None]] = _ByAddress()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: HttpConnection, address: str) -> None:
        """Admit a connection. Above the limit, the address with the most connections loses one."""
        self._open.add(connection, address)
        if len(self._open) > self.limits.connections:
            self.note(0, "more connections than sources.otlp.max_connections")
            _, crowd = self._open.crowd()
            self._least(crowd, connection).abort()

    def greets(self, greeting: asyncio.Task[None], address: str) -> None:
        """Admit a greeting over TLS. Above the limit, the address with the most of them loses its oldest."""
        self.greetings.add(greeting, address)
        greeting.add_done_callback(lambda greeting: self.greetings.remove(greeting, address))
        if len(self.greetings) > (self.limits.connections + 1) // 2:
            self.note(0, "more greetings over TLS under way than half of sources.otlp.max_connections")
            address, crowd = self.greetings.crowd()
            oldest = next(iter(crowd))
            self.greetings.remove(oldest, address)
            oldest.cancel()

    def _least(self, crowd: Iterable[HttpConnection], newest: HttpConnection) -> HttpConnection:
        """The one to close: the longest idle, else one with half a body, one that nobody reads, or the newest."""
        for wanted in ("idle", "body", "reader"):
            for each in crowd:
                if each.awaits == wanted and each is not newest:
                    return each
        return newest

    def remove(self, connection: HttpConnection, address: str) -> None:
        """Forget a connection that is closed."""
        self._open.remove(connection, address)

    def rests(self, connection: HttpConnection, address: str) -> None:
        """Queue a connection that waits for a request, behind the ones that have waited longer."""
        if self._open.remove(connection, address):
            self._open.add(connection, address)

    def expire(self, now_s: float) -> None:
        """Close connections past a deadline; ``now_s`` is the event loop's time."""
        for connection in self._open:
            connection.expire(now_s)

    def note(self, status: int, cause: str) -> None:
        """Count a refusal; the first of each status is logged, the counter has the others."""
        if not self.refused[status]:
            _log.warning("closed a connection; further ones are counted", extra={"status": status, "cause": cause})
        self.refused[status] += 1
        if status and self._on_refused is not None:
            self._on_refused(status, cause)


class _Unacceptable(Exception):  # noqa: N818  # it never leaves this file
    """Stops the parser: the request is over a bound. ``status`` 0 keeps the responses that are still due."""

    def __init__(self, status: int, cause: str) -> None:
        super().__init__(cause)
        self.status = status


class HttpConnection(HttpToolsProtocol):
    """One connection. After a refusal nothing more of it is parsed."""

    def __init__(self, *args: Any, connections: OpenConnections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._connections = connections
        self._limits = connections.limits
        self._address = ""
        self._refused = False
        self._idle_since_s = self.loop.time()
        self._head_since_s: float | None = None
        self._body_since_s: float | None = None
        self._unread_since_s: float | None = None
        self._head_bytes = 0
        self._unparsed = 0
        """Bytes since the parser last reported something: an endless header, chunk extension or trailer."""

    @property
    def awaits(self) -> Literal["idle", "body", "reader", "response"]:
        """The connection's state: it waits for a request, the rest of a body, a client that reads, or a response."""
        if self._unread_since_s is not None or self.transport.is_closing():
            return "reader"
        if self._body_since_s is not None:
            return "body"
        return "idle" if self._answered else "response"

    @property
    def _answered(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # a TCP server has no other transport
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_UNREAD_BYTES)
        self._address = self.client[0] if self.client else ""
        self._connections.add(self, self._address)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.remove(self, self._address)
        for cycle, _ in self.pipeline:
            cycle.disconnected = True
        self.pipeline.clear()
        super().connection_lost(exc)

    def abort(self) -> None:
        """Close without a response, or in the midst of one."""
        self._refused = True
        if self.cycle is not None:
            self.cycle.disconnected = True
        # At once, not when the transport reports it: of many that come together each is to close another one.
        self._connections.remove(self, self._address)
        self.transport.abort()

    def expire(self, now_s: float) -> None:
        """Close the connection if a deadline has passed."""
        limits = self._limits
        if self._unread_since_s is None and self.transport.is_closing():
            self._unread_since_s = now_s  # it would be gone, but for what is still to be read
        if self._unread_since_s is not None and now_s - self._unread_since_s > limits.body_s:
            self._connections.note(0, "a response was not read in time")
            self.abort()
        elif self._head_since_s is not None:
            if now_s - self._head_since_s > limits.head_s:
                self._refuse(408, "the head of a request did not end in time")
        elif self._body_since_s is not None:
            if self.flow.read_paused:  # the body waits for us: this wait is not the sender's
                self._body_since_s = now_s
            elif now_s - self._body_since_s > limits.body_s:
                self._refuse(408, "the body of a request did not end in time")
        elif self._answered and now_s - self._idle_since_s > limits.idle_s and not self.transport.is_closing():
            self.transport.close()  # once: after a second time an encrypted transport can no longer be aborted

    # What the transport calls.

    def data_received(self, data: bytes) -> None:
        while data and not self._refused and self.parser is not None:
            self._unset_keepalive_if_required()
            self._unparsed += len(data)
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                # No other protocol is spoken here. The parser ends at an offer of one and ignores the body: the request
                # is parsed again without the offer, as RFC 9110 §7.8 permits.
                data = self._without_offer() + data[cast("int", upgrade.args[0]) :]
                self.parser = httptools.HttpRequestParser(self)
                continue
            except httptools.HttpParserError as error:
                cause = error.__context__
                if isinstance(cause, _Unacceptable):
                    self._refuse(cause.status, str(cause))
                else:
                    self._refuse(400, "a request that is not HTTP/1.1")
            if self._unparsed > _HEAD_BYTES:
                self._refuse(431, f"a head, trailer or chunk extension of more than {_HEAD_BYTES} bytes")
            return

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_since_s = self.loop.time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread_since_s = None

    # What the parser calls.

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: self.abort}  # type: ignore[dict-item]  # a function of ours, in place of options
        self._head_since_s = self.loop.time()
        self._head_bytes = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > _HEAD_BYTES:
            raise _Unacceptable(431, f"a head or trailers of more than {_HEAD_BYTES} bytes")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unparsed = 0
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise _Unacceptable(400, "CONNECT, which is for proxies")
            return
        if len(self.pipeline) >= _PIPELINED:
            raise _Unacceptable(0, f"more than {_PIPELINED} requests without waiting for a response")
        super().on_headers_complete()
        self._head_since_s, self._body_since_s = None, self.loop.time()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        held = self.cycle.body
        if not held:  # most bodies come in one piece, which is not copied: joined to nothing, and taken as it is
            self.cycle.body = b""  # type: ignore[assignment]  # it is added to, and read whole
        elif isinstance(held, bytes):
            self.cycle.body = bytearray(held)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed = 0
        if self.parser.should_upgrade():
            return
        self._body_since_s = None
        super().on_message_complete()

    # What a response calls.

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._idle_since_s = self.loop.time()
        self._connections.rests(self, self._address)

    def _without_offer(self) -> bytes:
        """The head that was just parsed, without what offers another protocol."""
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        lines += [b"%b: %b" % header for header in self.headers if header[0] not in _OFFER]
        stated = b",".join(value.lower() for name, value in self.headers if name == b"connection").split(b",")
        if b"close" in map(bytes.strip, stated):
            lines.append(b"connection: close")
        return b"\r\n".join((*lines, b"", b""))

    def _refuse(self, status: int, cause: str) -> None:
        """Parse nothing more. Responses that are due are sent first; otherwise this one is, and the connection ends."""
        if self._refused:
            return
        self._connections.note(status, cause)
        self._refused = True
        whole = self._body_since_s is None
        self._head_since_s = self._body_since_s = None
        if not self._answered and (whole or self.pipeline):
            self.cycle.keep_alive = False
            return
        if not self._answered:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        early = self._answered and not whole  # the application has answered before the body ended
        if status and not early and (self._answered or not self.cycle.response_started):
            line = f"HTTP/1.1 {status} {_REASONS[status]}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(line.encode())
        self.transport.close()
