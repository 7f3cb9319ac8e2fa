"""OTLP over HTTP as a bare ASGI application: what the protocol asks of a server, and nothing else.

Rules: opentelemetry-proto docs/specification.md, "OTLP/HTTP". Clients repeat only what is answered 429, 502, 503 or
504, so whatever may pass is answered 503 with ``Retry-After``, and whatever cannot is not. Errors are
``google.rpc.Status`` messages in the content type of the request.

Traces and logs are taken on the protocol's paths and on Langfuse's, so that an application with a Langfuse SDK need
only be pointed here. Metrics are answered as taken and dropped (and counted): an exporter that is set up for all three
signals must not fill its application's log with errors.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, MutableMapping
from typing import Any

from integrations.otlp.wire.receipt import Consume, Encoding, Overloaded, Receipt, Undecodable

from .admission import Admission
from .body import BodyMemory, Disconnected, Receive, discard, read_body
from .cors import Cors
from .paths import SIGNALS, signal_of
from .response import KINDS, Header, Refusal, Send, Signal, answer, refuse, success

_log = logging.getLogger("sidejudge.receiver")

Scope = MutableMapping[str, Any]


class OtlpReceiver:
    """The ASGI application. ``traces`` and ``logs`` take a decompressed body each; without ``logs`` these are dropped.

    ``max_bytes`` bounds a request before and after decompression. ``refused`` counts answers other than 200 by status,
    and ``dropped`` requests for signals that are not looked at by path. With ``accepting`` false all is answered 503.
    """

    def __init__(
        self,
        traces: Consume,
        max_bytes: int = 64 << 20,
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
            self.admit(scope, headers)
            body = await self.take(scope, headers, receive)
        except Refusal as refusal:
            self.count_refusal(refusal.status, refusal.message)
            await refuse(send, refusal, kind, allowed)
        except Disconnected:
            return
        else:
            await answer(send, 200, kind, body, allowed)

    def admit(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """Raise a refusal for a sender who may not send, or not so much."""
        self.gate.admit(headers.get(b"authorization", b""), peer_of(scope))

    def count_refusal(self, status: int, cause: str) -> None:
        """Count a refused request by its status. The first of each status is logged; the counter has the others."""
        if not self.refused[status]:
            _log.warning("refused a request", extra={"status": status, "cause": cause})
        self.refused[status] += 1

    async def take(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """Take a request in and return the body of the answer. Raises a refusal, or ``Disconnected``."""
        path = scope["path"].rstrip("/")
        signal = signal_of(path)
        if signal is None:
            taken = sorted(path for path, signal in SIGNALS.items() if signal in self._consumers)
            raise Refusal(404, f"nothing is here; OTLP is taken on {', '.join(taken)}")
        if scope["method"] != "POST":
            raise Refusal(405, "OTLP requests are sent by POST", allow="POST")
        kind = media_type(headers)
        encoding = KINDS.get(kind)
        if encoding is None:
            raise Refusal(415, f"content type {kind[:80] or '(none)'} is not OTLP; send {' or '.join(KINDS)}")
        if not self.accepting:
            raise Refusal(503, "shutting down; send again, to the next instance", retry_after_s=1)
        consume = self._consumers.get(signal)
        if consume is None:
            await discard(receive)
            self.dropped[path] += 1
            return success(Receipt(), signal, encoding)
        share = self.memory.share()
        try:
            body = await read_body(headers, receive, self.memory, share)
            receipt = await consumed(consume, body, encoding) if body else Receipt()
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


async def consumed(consume: Consume, body: bytes, encoding: Encoding) -> Receipt:
    """The receipt for a body; whatever happens inside, it is a receipt or a refusal."""
    try:
        return await consume(body, encoding)
    except Undecodable as error:
        raise Refusal(400, str(error)) from None
    except Overloaded as error:
        raise Refusal(503, str(error), retry_after_s=error.retry_after_s) from None
    except Exception as error:  # noqa: BLE001  # the boundary: whatever happens inside, a client gets an answer
        # Nobody knows whether this passes. A client that repeats gives up in the end; one that may not loses data.
        _log.exception("taking a request failed")
        raise Refusal(503, f"internal error ({type(error).__name__}); see the log", retry_after_s=5) from None
