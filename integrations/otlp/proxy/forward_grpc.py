"""What comes in over gRPC goes on over HTTP: the same message, to the same path, and the answer told in gRPC's words.

An export request is the same bytes in both, compressed or not; metadata become headers. Upstream need not speak gRPC
(Langfuse does not).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson
from google.protobuf.message import DecodeError

from integrations.otlp.server.response import PROTOBUF, Header, Message, Refusal, Signal
from integrations.otlp.wire.schema import classes
from scoring.lexical.label import label

from .forward import Forward

_OWN: Final = ("grpc-", ":", "te", "content-type", "content-length", "user-agent")
"""What metadata begin with that are gRPC's own."""
_MOST: Final = 4 << 20
"""Bytes that an export response may have (the protocol's bound)."""
_LONGEST_REASON: Final = 300


async def export(forward: Forward, signal: Signal, body: bytes, encoding: str, sent: Mapping[str, Any]) -> bytes:
    """Send a message on, judge a copy of it, and return upstream's response.

    Raises upstream's own refusal, or why there is no answer.
    """
    headers = [(b"content-type", PROTOBUF.encode()), (b"content-length", str(len(body)).encode()), *_headers(sent)]
    if encoding:
        headers.append((b"content-encoding", encoding.encode()))
    scope = {"type": "http", "method": "POST", "path": f"/v1/{signal}", "headers": headers}
    told: list[Message] = []
    asked = [body]
    size = 0

    async def receive() -> Message:
        if not asked:  # the message is all there is, and that a client goes away is gRPC's to notice
            await asyncio.Event().wait()
        return {"type": "http.request", "body": asked.pop(), "more_body": False}

    async def send(message: Message) -> None:
        nonlocal size
        size += len(message.get("body", b""))
        if size > _MOST:
            raise Refusal(502, f"{forward.upstream.name}: its answer is larger than an export response may be")
        told.append(message)

    await forward.relay(scope, dict(headers), receive, send)
    return _response(told, forward.upstream.name)


def _headers(sent: Mapping[str, Any]) -> Iterable[Header]:
    for name, value in sent.items():
        if isinstance(value, str) and not name.lower().startswith(_OWN):
            yield name.lower().encode(), value.encode("latin-1", "replace")


def _response(told: list[Message], upstream: str) -> bytes:
    """The body of a success; what is none is raised. Half an answer has no end."""
    if not told or told[-1]["type"] != "http.response.body" or told[-1].get("more_body", False):
        raise Refusal(502, f"{upstream}: its answer broke off", retry_after_s=1)
    status, headers = told[0]["status"], {name.lower(): value for name, value in told[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in told[1:])
    protobuf = headers.get(b"content-type", b"").startswith(PROTOBUF.encode())
    if status < 300:
        return body if protobuf else b""
    message = f"{upstream}: HTTP {status}"
    if protobuf:
        with contextlib.suppress(DecodeError):
            message = classes("complete")["RpcStatus"].FromString(body).message.decode("utf-8", "replace") or message
    elif said := _said(body):
        message = f"{message}: {said}"
    wait = headers.get(b"retry-after", b"")
    passing = status in (429, 502, 503, 504)
    raise Refusal(status, message, retry_after_s=float(wait[:9]) if wait.isdigit() else 1.0 if passing else None)


def _said(body: bytes) -> str:
    """The reason in a refusal that is JSON, as Langfuse's are; empty where there is none."""
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    reasons = (told.get("message"), told.get("error")) if isinstance(told, dict) else ()
    return next((label(each, _LONGEST_REASON) for each in reasons if isinstance(each, str)), "")
