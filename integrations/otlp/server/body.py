"""The body of an export request: read to its end, decompressed, never larger than it may be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from .inflate import Damaged, Inflater, TooLarge
from .inflate_zstd import ZstdInflater
from .response import Message, Refusal

_PARALLEL: Final = 2
"""Bodies of the largest size that may be in memory at once, in all connections together."""
_AT_ONCE: Final = 1 << 20
"""Bytes of a body that are inflated without letting others have their turn: about 3 ms of work."""
_ACCEPTED: Final = "gzip, deflate, zstd or identity"
"""The content encodings that are taken, for people."""

Receive: TypeAlias = Callable[[], Awaitable[Message]]


class Disconnected(Exception):  # noqa: N818  # it is an event, not a fault
    """The client went away before its request was complete."""


class BodyMemory:
    """What all bodies together may take: ``max_bytes`` each, before and after decompression, and twice that in all."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._limit = max_bytes * _PARALLEL
        self.held = 0
        """Bytes of bodies that are being read or taken in."""

    def too_large(self) -> Refusal:
        """What is answered to a body that is too large."""
        return Refusal(
            413,
            f"the request is larger than {self.max_bytes} bytes, before or after decompression; "
            "send smaller batches or raise sources.otlp.max_request_bytes",
        )

    def share(self) -> BodyShare:
        """A body's part of it, to be released when the body is done with."""
        return BodyShare(self, self._limit)


class BodyShare:
    """How much of the memory for bodies one request has taken."""

    __slots__ = ("_bytes", "_limit", "_memory")

    def __init__(self, memory: BodyMemory, limit: int) -> None:
        self._memory, self._limit, self._bytes = memory, limit, 0

    def grow(self, size: int) -> None:
        """Note that the body has ``size`` bytes by now; refuse it when all bodies together have too many."""
        self._memory.held += size - self._bytes
        self._bytes = size
        if self._memory.held > self._limit:
            raise Refusal(503, "too many large requests at once; send again", retry_after_s=1)

    def release(self) -> None:
        self._memory.held -= self._bytes
        self._bytes = 0


def inflater(encoding: str, limit: int) -> Inflater | ZstdInflater | None:
    """What undoes a content encoding; ``None`` for identity. Raises a refusal for one that is not known here."""
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        return Inflater("deflate" if encoding == "deflate" else "gzip", limit)
    if encoding == "zstd":
        return ZstdInflater(limit)
    raise Refusal(415, f"content encoding {encoding[:40]} is not known here; send {_ACCEPTED}")


async def read_body(headers: Mapping[bytes, bytes], receive: Receive, memory: BodyMemory, share: BodyShare) -> bytes:
    """The body of a request, decompressed. Raises a refusal, or ``Disconnected``."""
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and int(declared[:20]) > memory.max_bytes:
        raise memory.too_large()
    encoding = headers.get(b"content-encoding", b"").strip().lower().decode("latin-1")
    engine = inflater(encoding, memory.max_bytes)
    try:
        if engine is None:
            return await _plain(receive, memory.max_bytes, share)
        return await _inflated(engine, receive, memory.max_bytes, share)
    except TooLarge:
        raise memory.too_large() from None
    except Damaged as error:
        raise Refusal(400, str(error)) from None


async def discard(receive: Receive) -> None:
    """Read a body and forget it."""
    more = True
    while more:
        _, more = await next_part(receive)


async def next_part(receive: Receive) -> tuple[bytes, bool]:
    """The next part of a body, and whether there is more. Raises ``Disconnected``."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Disconnected
    return message.get("body", b""), message.get("more_body", False)


async def _plain(receive: Receive, limit: int, share: BodyShare) -> bytes:
    parts: list[bytes] = []
    size = 0
    more = True
    while more:
        data, more = await next_part(receive)
        size += len(data)
        if size > limit:
            raise TooLarge
        share.grow(size)
        parts.append(data)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _inflated(engine: Inflater | ZstdInflater, receive: Receive, limit: int, share: BodyShare) -> bytes:
    sent = 0
    more = True
    while more:
        data, more = await next_part(receive)
        sent += len(data)
        if sent > limit:
            raise TooLarge
        for _ in engine.feed(data):
            share.grow(engine.size)
            if engine.size > _AT_ONCE:
                await asyncio.sleep(0)  # a large body is inflated in turns with everybody else's
    return engine.finish()
