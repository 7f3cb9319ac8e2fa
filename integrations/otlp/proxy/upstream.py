"""The server that requests are forwarded to, and its responses.

Requests keep their headers, except those of one connection (RFC 9110 §7.6.1), the host's name, and those that the
configuration replaces. Bodies are neither decompressed nor joined.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from sidejudge.integrations.addresses import port_of
from sidejudge.integrations.backoff import requested_s
from sidejudge.integrations.otlp.server.response import Header

from .connection import Lookup, UpstreamConnection, UpstreamError, connected

__all__ = ["REASONS", "OnwardRequest", "RequestBuffer", "Upstream", "UpstreamError", "UpstreamResponse"]

_HOP_BY_HOP: Final = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
        b"trailer", b"transfer-encoding", b"upgrade",
    }
)  # fmt: skip
_OF_REQUEST: Final = _HOP_BY_HOP | {b"host", b"expect"}
_CONNECT_S: Final = 5.0
_IDLE_S: Final = 4.0
"""Idle connections are closed before servers close them (Node, and so Langfuse: after 5 s) under a request."""
_CONNECTIONS: Final = 100
_ENDS_LINE: Final = re.compile(rb"[\r\n\0]").search


_SENT_AGAIN: Final = (408, 429)
"""Statuses below 500 after which an exporter sends again."""
_ELSEWHERE_FOR_NOW: Final = (302, 303, 307)
_LEAST_PAGE: Final = len("<html></html>")
REASONS: Final = ("connect", "timeout", "reset", "protocol", "busy")
"""Why no response came, or not all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnwardRequest:
    """An export request as it goes on, without its body. ``trusted``: the operator's credentials go with it."""

    signal: str
    target: bytes
    headers: Sequence[Header]
    trusted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamResponse:
    """Status, headers except the connection's own, and the body, still to be read and closed."""

    status: int
    headers: list[Header]
    exchange: UpstreamConnection
    upstream: Upstream

    def parts(self) -> AsyncIterator[bytes]:
        """Iterate over the body as it comes. Raises ``UpstreamError`` when it breaks off."""
        return self.exchange.parts()

    @property
    def whole(self) -> bool:
        """Whether all of it is here."""
        return self.exchange.ended

    @property
    def is_for_now(self) -> bool:
        """Whether it is a refusal that may pass: the same request may be taken later."""
        return self.status >= 500 or self.status in _SENT_AGAIN

    @property
    def is_of_a_login(self) -> bool:
        """Whether a login or a proxy answers in the place of upstream: a page with a success, a passing redirect.

        Many frameworks name HTML where nothing, or a word, is answered: what took a request would get it for ever.
        """
        stated = {name.lower(): value for name, value in self.headers}
        size = stated.get(b"content-length", b"")
        shown = not size.isdigit() or int(size) >= _LEAST_PAGE
        is_page = self.status < 300 and shown and b"html" in stated.get(b"content-type", b"").lower()
        return is_page or self.status in _ELSEWHERE_FOR_NOW

    @property
    def retry_after_s(self) -> float | None:
        """How long upstream asks to be left alone, in seconds; None where it does not."""
        stated = next((value for name, value in self.headers if name.lower() == b"retry-after"), b"")
        return requested_s(stated.decode("latin-1"))

    def close(self) -> None:
        """Give the connection back, or close it when the body was not read to its end."""
        self.upstream.release(self.exchange)


class RequestBuffer(Protocol):
    """Keeps requests that upstream does not take for now, and sends them later."""

    def is_away(self, request: OnwardRequest) -> bool:
        """Whether upstream did not take the last request with these credentials: this one is not tried either."""

    def took(self, request: OnwardRequest) -> None:
        """Upstream took a request."""

    async def keep(
        self,
        request: OnwardRequest,
        body: bytes | None,
        *,
        wait_s: float | None = None,
        under_way: asyncio.Task[UpstreamResponse] | None = None,
    ) -> bool:
        """Keep a request; whether it is on disk. A body of None is one that there was no memory for.

        ``wait_s`` is how long upstream asks to be left alone. While its request is ``under_way`` it is not sent again.
        """


class Upstream:
    """Connections to one server. ``replaced`` are headers that take the place of the application's."""

    def __init__(
        self, url: str, *, timeout_s: float, replaced: Mapping[str, str] | None = None, ca: str | None = None
    ) -> None:
        parts = urlsplit(url)
        self.name = f"{parts.scheme}://{parts.netloc}"
        self._host = parts.hostname or ""
        self._port, self._base = port_of(url), parts.path.encode()
        self._lookup = Lookup(self._host, self._port)
        self._authority = parts.netloc.encode()
        self._replaced = [(name.lower().encode(), value.encode()) for name, value in (replaced or {}).items()]
        self._timeout_s = timeout_s
        self._authority_file = ca
        self._seen_ns = _changed_ns(ca)
        self._tls = _context(ca) if parts.scheme == "https" else None
        self._idle: deque[UpstreamConnection] = deque()
        self._closed = False
        self._room = asyncio.Semaphore(_CONNECTIONS)

    async def send(
        self,
        method: str,
        target: bytes,
        headers: Iterable[Header],
        body: bytes | AsyncIterator[bytes],
        *,
        repeatable: bool = False,
        credentials: bool = True,
    ) -> UpstreamResponse:
        """Forward a request and return the response once its head is here.

        Args:
            method: The method.
            target: Path and query, as the application wrote them.
            headers: The application's headers.
            body: The whole body, or its parts as they come.
            repeatable: Send the request once more if its connection was idle and is closed before a byte of a response
                came, as servers do at any time. Needs the whole body. Others are not repeated, because upstream may
                have acted on them (RFC 9110 §9.2.2).
            credentials: Whether the configured headers replace the application's.

        Raises:
            UpstreamError: There is no response.
        """
        sent = self._headers(headers, len(body) if isinstance(body, bytes) else None, credentials=credentials)
        head = _head(method.encode(), self._base + target, sent)
        chunked = not isinstance(body, bytes) and all(name.lower() != b"content-length" for name, _ in sent)
        again = repeatable and isinstance(body, bytes)
        while True:
            exchange = await self._connection()
            try:
                await exchange.send(head, body, chunked=chunked, bodiless=method == "HEAD")
            except UpstreamError:
                self.release(exchange, over=True)
                if not again or not exchange.stale:
                    raise
                again = False
                self._hang_up()  # a server that closed one idle connection may have closed them all
            except BaseException:
                self.release(exchange, over=True)
                raise
            else:
                return UpstreamResponse(
                    status=exchange.status,
                    headers=passed(exchange.headers, exchange.status),
                    exchange=exchange,
                    upstream=self,
                )

    async def _connection(self) -> UpstreamConnection:
        """Return an idle connection, the latest used first, or a new one."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._room.acquire()
        except TimeoutError:
            raise UpstreamError(503, "busy", "too many requests are under way to it") from None
        oldest_s = asyncio.get_running_loop().time() - _IDLE_S
        while self._idle and self._idle[0].idle_s < oldest_s:
            self._idle.popleft().abort()
        while self._idle:
            exchange = self._idle.pop()
            if exchange.reusable and exchange.silent:
                return exchange
            exchange.abort()
        try:
            return await self._connect()
        except BaseException:
            self._room.release()
            raise

    def _renew(self) -> None:
        """Read the authority's file again where it has changed; one that cannot be used leaves the old in force."""
        changed_ns = _changed_ns(self._authority_file)
        if self._tls is not None and changed_ns not in (None, self._seen_ns):
            self._seen_ns = changed_ns
            with contextlib.suppress(OSError):
                self._tls = _context(self._authority_file)

    async def _connect(self) -> UpstreamConnection:
        self._renew()
        try:
            async with asyncio.timeout(min(_CONNECT_S, self._timeout_s)):
                _, exchange = await asyncio.get_running_loop().create_connection(
                    lambda: UpstreamConnection(self._timeout_s), sock=await connected(await self._lookup.addresses()),
                    ssl=self._tls, server_hostname=self._host if self._tls else None,
                )  # fmt: skip
        except TimeoutError:
            raise UpstreamError(504, "timeout", "it did not answer in time") from None
        except (OSError, UnicodeError) as error:  # the latter for a name that is not valid
            raise UpstreamError(502, "connect", f"it cannot be reached ({str(error) or 'it hung up'})") from error
        return exchange

    def release(self, exchange: UpstreamConnection, *, over: bool = False) -> None:
        """Take a connection back; close it if its exchange has not ended well, or is ``over``."""
        self._room.release()
        if exchange.reusable and not over and not self._closed:
            exchange.rest(asyncio.get_running_loop().time())
            self._idle.append(exchange)
        else:
            exchange.abort()

    def own_headers(self, given: Iterable[Header], *, credentials: bool) -> list[Header]:
        """The application's headers that go on: none of its connection, and none that the configuration replaces."""
        out = _OF_REQUEST | _connection(given) | {name for name, _ in self._replacing(credentials=credentials)}
        return [(name, value) for name, value in given if name.lower() not in out]

    @property
    def has_credentials(self) -> bool:
        """Whether the configuration has headers, which may be credentials, that replace the application's."""
        return any(name != b"host" for name, _ in self._replaced)

    def _replacing(self, *, credentials: bool) -> list[Header]:
        return [each for each in self._replaced if credentials or each[0] == b"host"]

    def _headers(self, given: Iterable[Header], length: int | None, *, credentials: bool) -> list[Header]:
        replaced, own = self._replacing(credentials=credentials), self.own_headers(given, credentials=credentials)
        sent = [] if any(name == b"host" for name, _ in replaced) else [(b"Host", self._authority)]
        sent += [*own, *replaced]
        sized = any(name.lower() == b"content-length" for name, _ in own)
        if not sized and length is None:
            sent.append((b"Transfer-Encoding", b"chunked"))
        elif not sized and length:
            sent.append((b"Content-Length", str(length).encode()))
        return sent

    def close(self) -> None:
        """Close idle connections, and from now on each connection as soon as its exchange ends."""
        self._closed = True
        self._hang_up()

    def _hang_up(self) -> None:
        while self._idle:
            self._idle.pop().abort()


def _context(ca: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _changed_ns(file: str | None) -> int | None:
    """When a file was changed; None where there is none, or it is just being replaced."""
    with contextlib.suppress(OSError):
        return Path(file).stat().st_mtime_ns if file is not None else None
    return None


def passed(headers: Sequence[Header], status: int) -> list[Header]:
    """Return a response's headers except the connection's own, and without a length if it has no body."""
    gone = _HOP_BY_HOP | _connection(headers)
    if status in (204, 304):  # 304 may have the length of a body that it does not send; ours would have to be sent
        gone |= {b"content-length"}
    return [(name, value) for name, value in headers if name.lower() not in gone]


def _connection(headers: Iterable[Header]) -> frozenset[bytes]:
    """Return the headers that ``Connection`` names: they too are for one connection only."""
    named = b",".join(value for name, value in headers if name.lower() == b"connection")
    return frozenset(part.strip().lower() for part in named.split(b",")) if named else frozenset()


def _head(method: bytes, target: bytes, headers: Iterable[Header]) -> bytes:
    """Encode request line and headers. Raises ``UpstreamError`` for characters that would end a line early."""
    lines = [b"%b %b HTTP/1.1" % (method, target), *(b"%b: %b" % header for header in headers)]
    if b" " in target or any(_ENDS_LINE(line) for line in lines):
        raise UpstreamError(502, "protocol", "the request could not be sent (a header holds a control character)")
    return b"\r\n".join((*lines, b"", b""))
