"""The responses of an OTLP/HTTP server, as ASGI messages in the content type of the request.

``google.rpc.Status`` and its ``RetryInfo``, written by hand: four fields are not worth a dependency.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from sidejudge.integrations.otlp.wire.receipt import Encoding, Receipt
from sidejudge.integrations.otlp.wire.schema import varint
from sidejudge.scoring.errors import SidejudgeError

CODES: Final = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 413: 8, 415: 12, 429: 8, 502: 14, 503: 14, 504: 14}
"""``google.rpc.Code`` of an HTTP status."""
_RETRY_INFO: Final = b"type.googleapis.com/google.rpc.RetryInfo"


def rpc_status(code: int, message: str, retry_after_s: float | None = None) -> bytes:
    """A status: field 1 the code, 2 the message, 3 a ``RetryInfo`` if there is a delay after which to send again."""
    text = message.encode("utf-8", "replace")[:4096]
    return b"\x08" + varint(code) + _field(2, text) + (b"" if retry_after_s is None else _retry(retry_after_s))


def _retry(seconds: float) -> bytes:
    """``Any`` with a ``RetryInfo`` with a ``Duration``."""
    whole, nanos = divmod(round(seconds * 1e9), 10**9)
    duration = b"\x08" + varint(whole) + b"\x10" + varint(nanos)
    return _field(3, _field(1, _RETRY_INFO) + _field(2, _field(1, duration)))


def _field(number: int, value: bytes) -> bytes:
    return bytes((number << 3 | 2,)) + varint(len(value)) + value


PROTOBUF: Final = "application/x-protobuf"
ABORT: Final = "sidejudge.abort"
"""The ASGI extension that closes a connection whose response cannot be completed."""
JSON: Final = "application/json"
KINDS: Final[dict[str, Encoding]] = {PROTOBUF: "protobuf", JSON: "json"}
"""The content types of OTLP."""

Signal: TypeAlias = Literal["traces", "logs", "metrics"]
_REJECTED: Final[dict[Signal, str]] = {
    "traces": "rejectedSpans", "logs": "rejectedLogRecords", "metrics": "rejectedDataPoints",
}  # fmt: skip
Message: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]


class Refusal(SidejudgeError):  # noqa: N818  # it is a response, not a fault
    """A response other than 200: HTTP status, a message for people, and the headers that go with the status."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        retry_after_s: float | None = None,
        allow: str | None = None,
        authenticate: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s
        self.allow = allow
        self.authenticate = authenticate

    @property
    def headers(self) -> list[Header]:
        """``Retry-After`` in whole seconds, ``Allow`` and ``WWW-Authenticate``, where the status has them."""
        wait = None if self.retry_after_s is None else str(max(1, math.ceil(self.retry_after_s)))
        given = ((b"retry-after", wait), (b"allow", self.allow), (b"www-authenticate", self.authenticate))
        return [(name, value.encode()) for name, value in given if value is not None]


def shutting_down() -> Refusal:
    """The response to a request that came, or was not finished, while the monitor ends."""
    return Refusal(503, "shutting down; send again, to the next instance", retry_after_s=1)


def success(receipt: Receipt, signal: Signal, encoding: Encoding) -> bytes:
    """Encode the export response: empty, unless something was rejected or there is a warning.

    In protobuf the responses to the three signals are alike: field 1 is a message with the number (1) and the text (2).
    """
    if encoding == "json":
        partial_success = {_REJECTED[signal]: str(receipt.rejected), "errorMessage": receipt.message}
        return json.dumps({"partialSuccess": partial_success} if receipt.rejected or receipt.message else {}).encode()
    if not receipt.rejected and not receipt.message:
        return b""
    text = receipt.message.encode("utf-8", "replace")[:4096]
    partial = b"\x08" + varint(receipt.rejected) + b"\x12" + varint(len(text)) + text
    return b"\n" + varint(len(partial)) + partial


async def refuse(send: Send, refusal: Refusal, kind: str, headers: Sequence[Header] = ()) -> None:
    """Send a refusal as a ``google.rpc.Status`` in content type ``kind``; as plain text if that is not OTLP's."""
    code = CODES.get(refusal.status, 2)
    if kind == JSON:
        body = json.dumps({"code": code, "message": refusal.message}).encode()
    elif kind == PROTOBUF:
        body = rpc_status(code, refusal.message)
    else:
        kind, body = "text/plain; charset=utf-8", refusal.message.encode("utf-8", "replace")
    await answer(send, refusal.status, kind, body, (*refusal.headers, *headers))


def header(scope: Mapping[str, Any], name: bytes) -> str:
    """The value of a request's header (``name`` in lower case); several lines are joined by commas."""
    return b",".join(value for key, value in scope["headers"] if key == name).decode("latin-1")


async def answer(send: Send, status: int, kind: str, body: bytes, headers: Sequence[Header] = ()) -> None:
    """Send a whole response."""
    plain = [(b"content-type", kind.encode("latin-1")), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*plain, *headers]})
    await send({"type": "http.response.body", "body": body})
