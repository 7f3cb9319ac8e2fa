"""Forward gRPC requests over HTTP: the same message goes to the same path, and its response becomes gRPC's status.

An export request is the same bytes in both, compressed or not; metadata become headers. Upstream need not support gRPC
(Langfuse does not).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Final

import orjson
from google.protobuf.message import DecodeError

from sidejudge.integrations.backoff import requested_s
from sidejudge.integrations.otlp.server.response import PROTOBUF, Header, Message, Refusal, Signal
from sidejudge.integrations.otlp.wire.schema import classes
from sidejudge.scoring.lexical.shown_text import label

from .forward import Forward

_OWN: Final = ("grpc-", ":", "te", "content-type", "content-length", "user-agent")
"""Beginnings of metadata that are gRPC's own."""
_MOST: Final = 4 << 20
"""Bytes of an export response, at most (the protocol's bound)."""
_LONGEST_REASON: Final = 300
"""Characters: what is larger than a client's limit of metadata reaches it as another error, without the status."""


async def export(forward: Forward, signal: Signal, body: bytes, encoding: str, sent: Mapping[str, object]) -> bytes:
    """Forward a message, judge a copy of it, and return upstream's response.

    Raises ``Refusal`` with upstream's status, or with the reason why there is no response.
    """
    headers = [(b"content-type", PROTOBUF.encode()), (b"content-length", str(len(body)).encode()), *_headers(sent)]
    if encoding:
        headers.append((b"content-encoding", encoding.encode()))
    scope = {"type": "http", "method": "POST", "path": f"/v1/{signal}", "headers": headers}
    sent_back: list[Message] = []
    parts = [body]
    size = 0

    async def receive() -> Message:
        if not parts:  # the message is all there is, and gRPC itself notices a client that goes away
            await asyncio.Event().wait()
        return {"type": "http.request", "body": parts.pop(), "more_body": False}

    async def send(message: Message) -> None:
        nonlocal size
        size += len(message.get("body", b""))
        if size > _MOST:
            raise Refusal(502, f"{forward.upstream.name}: its response is larger than an export response may be")
        sent_back.append(message)

    await forward.relay(scope, dict(headers), receive, send)
    return _response(sent_back, forward.upstream.name)


def _headers(sent: Mapping[str, object]) -> Iterable[Header]:
    for name, value in sent.items():
        if isinstance(value, str) and not name.lower().startswith(_OWN):
            yield name.lower().encode(), value.encode("latin-1", "replace")


def _response(messages: list[Message], upstream: str) -> bytes:
    """Return the body of a success; raise anything else, and half a response."""
    if not messages or messages[-1]["type"] != "http.response.body" or messages[-1].get("more_body", False):
        raise Refusal(502, f"{upstream}: its response broke off", retry_after_s=1)
    status, headers = messages[0]["status"], {name.lower(): value for name, value in messages[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in messages[1:])
    protobuf = headers.get(b"content-type", b"").startswith(PROTOBUF.encode())
    if status < 300:
        return body if protobuf else b""
    message = f"{upstream}: HTTP {status}"
    if protobuf:
        with contextlib.suppress(DecodeError):
            stated = classes("complete")["RpcStatus"].FromString(body).message.decode("utf-8", "replace")
            message = label(stated, _LONGEST_REASON) or message
    elif reason := _reason(body):
        message = f"{message}: {reason}"
    wait_s = requested_s(headers.get(b"retry-after", b"").decode("latin-1"))
    passing = status in (429, 502, 503, 504)
    raise Refusal(status, message, retry_after_s=1.0 if wait_s is None and passing else wait_s)


def _reason(body: bytes) -> str:
    """Return the reason in a refusal that is JSON, as Langfuse's are; empty if there is none."""
    try:
        refusal = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    reasons = (refusal.get("message"), refusal.get("error")) if isinstance(refusal, dict) else ()
    return next((label(each, _LONGEST_REASON) for each in reasons if isinstance(each, str)), "")
