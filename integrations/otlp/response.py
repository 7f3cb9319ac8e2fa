"""The answers of an OTLP/HTTP server, written as ASGI messages in the content type of the request."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from .outcome import Receipt

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
_INVALID_ARGUMENT, _RESOURCE_EXHAUSTED, _UNIMPLEMENTED, _UNAVAILABLE = 3, 8, 12, 14  # google.rpc.Code
_CODES: Final = {400: _INVALID_ARGUMENT, 413: _RESOURCE_EXHAUSTED, 415: _UNIMPLEMENTED, 503: _UNAVAILABLE}

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]


class Refusal(Exception):  # noqa: N818  # it is an answer, not a fault
    """An answer other than 200: HTTP status, a message for people, and the headers that go with the status."""

    def __init__(
        self, status: int, message: str, *, retry_after_s: float | None = None, allow: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s
        self.allow = allow


def success(receipt: Receipt) -> bytes:
    """``ExportTraceServiceResponse``: empty, unless spans were rejected or there is a warning."""
    if not receipt.rejected_spans and not receipt.message:
        return b""
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: PLC0415  # rarely needed

    response = trace_service_pb2.ExportTraceServiceResponse()
    response.partial_success.rejected_spans = receipt.rejected_spans
    response.partial_success.error_message = receipt.message
    return bytes(response.SerializeToString())


async def refuse(send: Send, refusal: Refusal, kind: str) -> None:
    """Send a refusal as a ``google.rpc.Status`` in content type ``kind``; as plain text where that is not OTLP's."""
    headers = []
    if refusal.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, math.ceil(refusal.retry_after_s))).encode()))
    if refusal.allow is not None:
        headers.append((b"allow", refusal.allow.encode()))
    code = _CODES.get(refusal.status, 2)
    if kind == JSON:
        body = json.dumps({"code": code, "message": refusal.message}).encode()
    elif kind == PROTOBUF:
        body = _status(code, refusal.message)
    else:
        kind, body = "text/plain; charset=utf-8", refusal.message.encode("utf-8", "replace")
    await answer(send, refusal.status, kind, body, headers)


def _status(code: int, message: str) -> bytes:
    """``google.rpc.Status``, written by hand: field 1 the code, field 2 the message."""
    text = message.encode("utf-8", "replace")[:4096]
    size, length = len(text), b""
    while size > 0x7F:
        length += bytes((size & 0x7F | 0x80,))
        size >>= 7
    return bytes((8, code, 18)) + length + bytes((size,)) + text


async def answer(
    send: Send, status: int, kind: str, body: bytes, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Send a whole answer."""
    plain = [(b"content-type", kind.encode("latin-1")), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*plain, *(headers or [])]})
    await send({"type": "http.response.body", "body": body})
