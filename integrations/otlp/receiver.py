"""OTLP over HTTP as a bare ASGI application: what the protocol asks of a server, and nothing else.

Rules: opentelemetry-proto docs/specification.md, "OTLP/HTTP". Clients repeat only what is answered 429, 502, 503 or
504, so whatever may pass is answered 503 with ``Retry-After``, and whatever cannot is not. Errors are
``google.rpc.Status`` messages in the content type of the request.

Traces are taken on ``/v1/traces`` and on Langfuse's path, so that an application with a Langfuse SDK need only be
pointed here. Logs and metrics are answered as taken and dropped (and counted): an exporter that is set up for all three
signals must not fill its application's log with errors.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from .inflate import Damaged, Inflater, TooLarge
from .outcome import Overloaded, Receipt, Undecodable
from .response import JSON, PROTOBUF, Message, Refusal, Send, answer, refuse, success

_log = logging.getLogger("sidejudge.receiver")

TRACE_PATHS: Final = frozenset({"/v1/traces", "/api/public/otel/v1/traces"})
DROPPED_PATHS: Final = frozenset({"/v1/logs", "/v1/metrics", "/api/public/otel/v1/logs", "/api/public/otel/v1/metrics"})
_PARALLEL: Final = 2
"""Bodies of the largest size that may be in memory at once, in all connections together."""
_AT_ONCE: Final = 1 << 20
"""Bytes of a body that are inflated without letting others have their turn: about 3 ms of work."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class _Disconnected(Exception):  # noqa: N818  # it is an event, not a fault
    """The client went away before its request was complete."""


class Receiver:
    """The ASGI application. ``consume`` takes a decompressed body and returns once what is kept of it is committed.

    ``max_bytes`` bounds a request before and after decompression. ``refused`` counts answers other than 200 by status,
    and ``dropped`` requests for signals that are not looked at by path. With ``accepting`` false all is answered 503.
    """

    def __init__(self, consume: Callable[[bytes], Awaitable[Receipt]], max_bytes: int = 64 << 20) -> None:
        self._consume = consume
        self._max_bytes = max_bytes
        self._held = 0
        self.accepting = True
        self.refused: Counter[int] = Counter()
        self.dropped: Counter[str] = Counter()

    @staticmethod
    def serves(path: str) -> bool:
        """Whether this path is one that an OTLP exporter sends to."""
        return path.rstrip("/") in TRACE_PATHS | DROPPED_PATHS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
        try:
            body = await self._answer(scope, headers, kind, receive)
        except Refusal as refusal:
            if not self.refused[refusal.status]:  # the first of its kind: the counter tells of the others
                _log.warning("refused a request", extra={"status": refusal.status, "cause": str(refusal)})
            self.refused[refusal.status] += 1
            await refuse(send, refusal, kind)
        except _Disconnected:
            return
        else:
            await answer(send, 200, kind, body)

    async def _answer(self, scope: Scope, headers: dict[bytes, bytes], kind: str, receive: Receive) -> bytes:
        path = scope["path"].rstrip("/")
        wanted = path in TRACE_PATHS
        if not wanted and path not in DROPPED_PATHS:
            raise Refusal(404, f"nothing is here; OTLP traces are taken on {', '.join(sorted(TRACE_PATHS))}")
        if scope["method"] != "POST":
            raise Refusal(405, "OTLP requests are sent by POST", allow="POST")
        if kind == JSON and wanted:
            raise Refusal(
                415,
                "OTLP/JSON is not available in this version; send protobuf (OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf)",
            )
        if kind not in (PROTOBUF, JSON):
            raise Refusal(415, f"content type {kind or '(none)'} is not OTLP; send {PROTOBUF}")
        if not self.accepting:
            raise Refusal(503, "shutting down; send again, to the next instance", retry_after_s=1)
        if not wanted:
            await _discard(receive)
            self.dropped[path] += 1
            return b"{}" if kind == JSON else b""
        encoding = headers.get(b"content-encoding", b"").strip().lower().decode("latin-1")
        held = _Held(self, self._max_bytes * _PARALLEL)
        try:
            body = await self._read(headers, encoding, receive, held)
            return success(await self._consumed(body)) if body else b""
        finally:
            held.release()

    async def _consumed(self, body: bytes) -> Receipt:
        try:
            return await self._consume(body)
        except Undecodable as error:
            raise Refusal(400, str(error)) from None
        except Overloaded as error:
            raise Refusal(503, str(error), retry_after_s=error.retry_after_s) from None
        except Exception as error:  # noqa: BLE001  # the boundary: whatever happens inside, a client gets an answer
            # Nobody knows whether this passes. A client that repeats gives up in the end; one that may not loses data.
            _log.exception("taking a request failed")
            raise Refusal(503, f"internal error ({type(error).__name__}); see the log", retry_after_s=5) from None

    async def _read(self, headers: dict[bytes, bytes], encoding: str, receive: Receive, held: _Held) -> bytes:
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared[:20]) > self._max_bytes:
            raise self._too_large()
        try:
            if encoding in ("", "identity"):
                return await self._plain(receive, held)
            if encoding in ("gzip", "x-gzip", "deflate"):
                inflater = Inflater("deflate" if encoding == "deflate" else "gzip", self._max_bytes)
                return await self._inflated(inflater, receive, held)
        except TooLarge:
            raise self._too_large() from None
        except Damaged as error:
            raise Refusal(400, str(error)) from None
        raise Refusal(415, f"content encoding {encoding} is not known here; send gzip, deflate or identity")

    async def _plain(self, receive: Receive, held: _Held) -> bytes:
        parts: list[bytes] = []
        size = 0
        more = True
        while more:
            data, more = await _next(receive)
            size += len(data)
            if size > self._max_bytes:
                raise TooLarge
            held.grow(size)
            parts.append(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _inflated(self, inflater: Inflater, receive: Receive, held: _Held) -> bytes:
        sent = 0
        more = True
        while more:
            data, more = await _next(receive)
            sent += len(data)
            if sent > self._max_bytes:
                raise TooLarge
            for _ in inflater.feed(data):
                held.grow(inflater.size)
                if inflater.size > _AT_ONCE:
                    await asyncio.sleep(0)  # a large body is inflated in turns with everybody else's
        return inflater.finish()

    def _too_large(self) -> Refusal:
        return Refusal(
            413,
            f"the request is larger than {self._max_bytes} bytes, before or after decompression; "
            "send smaller batches or raise sources.otlp.max_request_bytes",
        )


class _Held:
    """How much of the memory for bodies one request has taken."""

    __slots__ = ("_bytes", "_limit", "_receiver")

    def __init__(self, receiver: Receiver, limit: int) -> None:
        self._receiver, self._limit, self._bytes = receiver, limit, 0

    def grow(self, size: int) -> None:
        """Note that the body has ``size`` bytes by now; refuse it when all bodies together have too many."""
        self._receiver._held += size - self._bytes  # noqa: SLF001  # its own class
        self._bytes = size
        if self._receiver._held > self._limit:  # noqa: SLF001
            raise Refusal(503, "too many large requests at once; send again", retry_after_s=1)

    def release(self) -> None:
        self._receiver._held -= self._bytes  # noqa: SLF001
        self._bytes = 0


async def _next(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise _Disconnected
    return message.get("body", b""), message.get("more_body", False)


async def _discard(receive: Receive) -> None:
    more = True
    while more:
        _, more = await _next(receive)
