"""OTLP over HTTP as an ASGI application: what the protocol requires of a server, and nothing else.

Rules: opentelemetry-proto docs/specification.md, "OTLP/HTTP". Clients repeat a request only after 429, 502, 503 or 504.
A failure that may pass is therefore answered 503 with ``Retry-After``; one that cannot pass never is. Errors are
``google.rpc.Status`` messages in the content type of the request.

Traces and logs are accepted on the protocol's paths and on Langfuse's, so that an application with a Langfuse SDK only
needs another address. Metrics are answered with success, dropped and counted: an exporter that is set up for all three
signals must not fill its application's log with errors.

CORS for exporters that run in a browser: off unless origins are configured.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TypeAlias

from sidejudge.integrations.otlp.wire.receipt import Consume, Overloaded, Passage, Receipt, Undecodable

from .admission import Admission
from .body import BodyMemory, Disconnected, Receive, discard, read_body
from .paths import SIGNALS, signal_of
from .response import KINDS, Header, Message, Refusal, Send, Signal, answer, refuse, shutting_down, success

_MAX_AGE_S = b"7200"


class Cors:
    """The origins whose pages may send. An origin is ``https://host[:port]``; ``*`` in it matches anything."""

    def __init__(self, origins: Iterable[str] = ()) -> None:
        self._origins = tuple(origins)

    def allows(self, origin: bytes) -> bool:
        """Whether pages of this origin may send."""
        text = origin.decode("latin-1")
        return any(fnmatchcase(text, allowed) for allowed in self._origins)

    def headers(self, origin: bytes) -> list[Header]:
        """Headers that let a page of this origin read the response; none for a page that may not."""
        return [(b"access-control-allow-origin", origin), (b"vary", b"origin")] if self.allows(origin) else []

    def preflight(self, origin: bytes, wanted: bytes) -> list[Header]:
        """The response to a preflight request; ``wanted`` is its ``Access-Control-Request-Headers``."""
        allowed = self.headers(origin)
        if not allowed:
            return []
        return [
            *allowed,
            (b"access-control-allow-methods", b"POST"),
            (b"access-control-allow-headers", wanted or b"content-type"),
            (b"access-control-max-age", _MAX_AGE_S),
        ]


_log = logging.getLogger("sidejudge.receiver")

Scope: TypeAlias = Message
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class OtlpReceiver:
    """The ASGI application. ``refused`` counts responses other than 200 by status, ``dropped`` unread signals by path.

    With ``accepting`` false every request is answered 503.

    Args:
        traces: Consumes a decompressed request for spans.
        max_bytes: Largest request, before and after decompression.
        logs: Consumes a decompressed request for log records; without it these are dropped.
        gate: Who may send, and how often.
        cors: Origins of pages that may send.
    """

    def __init__(
        self,
        traces: Consume,
        max_bytes: int = 16 << 20,
        *,
        logs: Consume | None = None,
        gate: Admission | None = None,
        cors: Cors | None = None,
    ) -> None:
        self._consumers: dict[Signal, Consume] = {"traces": traces}
        if logs is not None:
            self._consumers["logs"] = logs
        self.gate = gate or Admission()
        self.memory = BodyMemory(max_bytes)
        self._cors = cors
        self.accepting = True
        self.refused: Counter[int] = Counter()
        self.dropped: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        """Requests that failed inside, by the exception's name."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        allowed: list[Header] = []
        if self._cors is not None and b"origin" in headers:
            allowed = self._cors.headers(headers[b"origin"])
            if scope["method"] == "OPTIONS":
                wanted = headers.get(b"access-control-request-headers", b"")
                await answer(send, 204, "text/plain", b"", self._cors.preflight(headers[b"origin"], wanted))
                return
        kind = media_type(headers)
        try:
            body = await self.take(scope, headers, receive, self.admit(scope, headers))
        except Refusal as refusal:
            self.count_refusal(refusal.status, refusal.message)
            await refuse(send, refusal, kind, allowed)
        except Disconnected:
            return
        else:
            await answer(send, 200, kind, body, allowed)

    def admit(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bytes:
        """Return the key of the sender. Raises a refusal if it may not send, or not as often."""
        return self.gate.admit(headers.get(b"authorization", b""), peer_of(scope))

    def count_refusal(self, status: int, cause: str) -> None:
        """Count a refused request by its status. The first of each status is logged; the counter has the others."""
        if not self.refused[status]:
            _log.warning("refused a request", extra={"status": status, "cause": cause})
        self.refused[status] += 1

    async def take(
        self,
        scope: Scope,
        headers: Mapping[bytes, bytes],
        receive: Receive,
        sender: bytes = b"",
        passage: Passage | None = None,
    ) -> bytes:
        """Take a request in and return the response's body. ``passage`` is given if the request is also forwarded.

        Raises:
            Refusal: Anything else than success.
            Disconnected: The client went away.
        """
        try:
            return await self._take(scope, headers, receive, sender, passage)
        except (Refusal, Disconnected):
            raise
        except asyncio.CancelledError:
            if self.accepting:
                raise
            raise shutting_down() from None  # the server waits no longer, and its own 500 is never repeated
        except Exception as error:  # noqa: BLE001  # the boundary: whatever happens inside, a client gets a response
            raise self.refusal_of(error) from None

    def refusal_of(self, error: Exception) -> Refusal:
        """The response to a request that failed inside."""
        if isinstance(error, Undecodable):
            return Refusal(400, str(error))
        if isinstance(error, Overloaded):
            return Refusal(503, str(error), retry_after_s=error.retry_after_s)
        name = type(error).__name__
        if not self.failures[name]:  # a traceback for each request of a hostile sender would fill the disk
            _log.error("a request failed inside; further ones like it are counted", exc_info=error)
        self.failures[name] += 1
        # Whether this passes is unknown. A client that repeats gives up in the end; one that does not loses data.
        return Refusal(503, f"internal error ({name}); see the log", retry_after_s=5)

    async def _take(
        self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, sender: bytes, passage: Passage | None
    ) -> bytes:
        path = scope["path"].rstrip("/")
        signal = signal_of(path)
        if signal is None:
            served = sorted(path for path, signal in SIGNALS.items() if signal in self._consumers)
            raise Refusal(404, f"nothing is here; OTLP is accepted on {', '.join(served)}")
        if scope["method"] != "POST":
            raise Refusal(405, "OTLP requests are sent by POST", allow="POST")
        kind = media_type(headers)
        encoding = KINDS.get(kind)
        if encoding is None:
            raise Refusal(415, f"content type {kind[:80] or '(none)'} is not OTLP; send {' or '.join(KINDS)}")
        if not self.accepting:
            raise shutting_down()
        consume = self._consumers.get(signal)
        if consume is None:
            await discard(receive)
            self.dropped[path] += 1
            return success(Receipt(), signal, encoding)
        share = self.memory.share(sender)
        try:
            body = await read_body(headers, receive, self.memory, share)
            receipt = await consume(body, encoding, passage) if body else Receipt()
        finally:
            share.release()
        return success(receipt, signal, encoding)


def media_type(headers: Mapping[bytes, bytes]) -> str:
    """The content type without its parameters."""
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")


def peer_of(scope: Scope) -> str:
    """The address that a request comes from."""
    client = scope.get("client")
    return str(client[0]) if client else ""
