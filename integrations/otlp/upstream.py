"""Upstream: the server that requests go on to, and its answers as they come back.

Nothing is added to a request and nothing taken away, but what concerns one connection only (RFC 9110 §7.6.1), the
host's name, and what the configuration replaces. Bodies are neither unpacked nor put together.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from .response import Header

if TYPE_CHECKING:
    import httpcore

_HOP_BY_HOP: Final = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
        b"trailer", b"transfer-encoding", b"upgrade",
    }
)  # fmt: skip
_OF_REQUEST: Final = _HOP_BY_HOP | {b"host", b"expect"}
_CONNECT_S: Final = 5.0
_IDLE_S: Final = 4.0
"""Idle connections are closed before servers do it (Node, and so Langfuse: after 5 s): a request would meet the end."""
_CONNECTIONS: Final = 100


class UpstreamError(Exception):
    """No answer came: the status to give instead, the ``reason`` from a closed list, and the cause in words."""

    def __init__(self, status: int, reason: str, cause: str) -> None:
        super().__init__(cause)
        self.status = status
        self.reason = reason


REASONS: Final = ("connect", "timeout", "reset", "protocol", "busy")
"""Why no answer came, or not all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status, headers without those of the connection, and the body, which is still to be read (and then closed)."""

    status: int
    headers: list[Header]
    response: Any
    """The library's own, from which the body is read."""

    async def parts(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises ``UpstreamError`` when it breaks off."""
        try:
            async for part in self.response.aiter_stream():
                yield part
        except Exception as error:
            raise explain(error) from error

    async def close(self) -> None:
        """Give the connection back, or close it when the body was not read to its end."""
        await self.response.aclose()


class Upstream:
    """A pool of connections to one server. ``replaced`` are headers that take the place of the application's."""

    def __init__(
        self, url: str, *, timeout_s: float, replaced: Mapping[str, str] | None = None, ca: str | None = None
    ) -> None:
        import httpcore  # noqa: PLC0415  # only where requests go on

        parts = urlsplit(url)
        self.name = f"{parts.scheme}://{parts.netloc}"
        self._scheme, self._host = parts.scheme.encode(), (parts.hostname or "").encode()
        self._port, self._base = parts.port, parts.path.encode()
        self._authority = parts.netloc.encode()
        self._replaced = [(name.lower().encode(), value.encode()) for name, value in (replaced or {}).items()]
        self._mine = frozenset(name for name, _ in self._replaced)
        self._timeouts = {
            "connect": min(_CONNECT_S, timeout_s), "read": timeout_s, "write": timeout_s, "pool": timeout_s,
        }  # fmt: skip
        context = ssl.create_default_context(cafile=ca) if parts.scheme == "https" else None
        self._pool: httpcore.AsyncConnectionPool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=_CONNECTIONS,
            max_keepalive_connections=_CONNECTIONS,
            keepalive_expiry=_IDLE_S,
        )

    async def send(
        self,
        method: str,
        target: bytes,
        headers: Iterable[Header],
        body: bytes | AsyncIterator[bytes],
        *,
        repeatable: bool = False,
    ) -> Answer:
        """Send a request on and return its answer once that has begun.

        ``target`` is path and query as the application wrote them. A ``repeatable`` request whose body is all there is
        sent once more where its connection is closed before anything came back: servers close idle ones at any time.
        """
        import httpcore  # noqa: PLC0415  # it is loaded by now

        url = httpcore.URL(scheme=self._scheme, host=self._host, port=self._port, target=self._base + target)
        sent = self._headers(headers, len(body) if isinstance(body, bytes) else None)
        again = repeatable and isinstance(body, bytes)
        while True:
            request = httpcore.Request(method, url, headers=sent, content=body, extensions={"timeout": self._timeouts})
            try:
                response = await self._pool.handle_async_request(request)
            except (httpcore.RemoteProtocolError, httpcore.WriteError, httpcore.ReadError) as error:
                if not again:
                    raise explain(error) from error
                again = False
            except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
                raise explain(error) from error
            else:
                return Answer(status=response.status, headers=passed(response.headers), response=response)

    def _headers(self, given: Iterable[Header], length: int | None) -> list[Header]:
        named = _connection(given)
        sent = [(b"Host", self._authority)]
        sized = False
        for name, value in given:
            low = name.lower()
            if low in _OF_REQUEST or low in named or low in self._mine:
                continue
            sized = sized or low == b"content-length"
            sent.append((name, value))
        sent += self._replaced
        if not sized and length is None:
            sent.append((b"Transfer-Encoding", b"chunked"))
        elif not sized and length:
            sent.append((b"Content-Length", str(length).encode()))
        return sent

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


def passed(headers: Sequence[Header]) -> list[Header]:
    """Headers of an answer without those of the connection it came on."""
    named = _connection(headers)
    return [(name, value) for name, value in headers if (low := name.lower()) not in _HOP_BY_HOP and low not in named]


def _connection(headers: Iterable[Header]) -> frozenset[bytes]:
    """Headers that ``Connection`` names: they too are for one connection only."""
    said = b",".join(value for name, value in headers if name.lower() == b"connection")
    return frozenset(part.strip().lower() for part in said.split(b",")) if said else frozenset()


def explain(error: Exception) -> UpstreamError:
    """What went wrong, as an answer: 504 for what took too long, 503 for what may pass at once, else 502."""
    import httpcore  # noqa: PLC0415  # as above

    cause = str(error) or type(error).__name__
    if isinstance(error, httpcore.PoolTimeout):
        return UpstreamError(503, "busy", "too many requests are under way to it")
    if isinstance(error, httpcore.TimeoutException):
        return UpstreamError(504, "timeout", "it did not answer in time")
    if isinstance(error, httpcore.ConnectError):
        return UpstreamError(502, "connect", f"it cannot be reached ({cause})")
    if isinstance(error, httpcore.NetworkError | httpcore.RemoteProtocolError):
        return UpstreamError(502, "reset", f"the connection to it broke ({cause})")
    return UpstreamError(502, "protocol", f"it could not be spoken to ({cause})")
