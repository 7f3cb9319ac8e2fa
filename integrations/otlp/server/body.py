"""The body of an export request: read to its end, decompressed, within the memory that all bodies share.

Decompression of gzip, deflate and Zstandard stops at a limit: a few kilobytes cannot become gigabytes.
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol, TypeAlias

from sidejudge.scoring.errors import SidejudgeError

from .response import Message, Refusal

_GZIP: Final = 16 + zlib.MAX_WBITS
_ZLIB: Final = zlib.MAX_WBITS
_RAW: Final = -zlib.MAX_WBITS
_STEP: Final = 1 << 20
"""Most bytes inflated at once: about 3 ms of work, after which others get their turn."""
_FRAMES: Final = 1000
"""Most members of a gzip body, or frames of a zstd one. Clients send one; each costs far more than its bytes."""


class TooLarge(SidejudgeError):  # noqa: N818  # it names what the body is
    """The body is larger than the limit."""


class Damaged(SidejudgeError, ValueError):  # noqa: N818  # likewise
    """The body does not match its content encoding."""


class _Body:
    """What one body has become so far, whatever its encoding: its parts, within a limit, of so many frames."""

    def __init__(self, encoding: str, limit: int) -> None:
        self._encoding, self._limit = encoding, limit
        self._parts: list[bytes] = []
        self._begun, self._frames = False, 1
        self.size = 0
        """Bytes inflated so far."""

    @property
    def _step(self) -> int:
        """Bytes that are inflated next: up to one beyond the limit, which shows that the body is too large."""
        return min(_STEP, self._limit - self.size + 1)

    def _take(self, part: bytes) -> None:
        self._begun = True
        self.size += len(part)
        if self.size > self._limit:
            raise TooLarge
        self._parts.append(part)

    def _count_frame(self, what: str) -> None:
        if self._frames == _FRAMES:
            raise Damaged(f"the body has more than {_FRAMES} {what}")
        self._frames += 1

    def _finish(self, *, ended: bool) -> bytes:
        if self._begun and not ended:
            raise Damaged(f"the body ends before its {self._encoding} data does")
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts = []
        return body


class Inflater(_Body):
    """Inflates one body, piece by piece. ``encoding`` is ``gzip`` or ``deflate`` (with or without zlib's header)."""

    def __init__(self, encoding: str, limit: int) -> None:
        super().__init__(encoding, limit)
        self._engine = zlib.decompressobj(_GZIP if encoding == "gzip" else _ZLIB)
        self._head = b""

    def feed(self, data: bytes) -> Iterator[None]:
        """Inflate ``data`` and yield after each step of work.

        Raises:
            TooLarge: The body is larger than the limit.
            Damaged: The data is not what its content encoding promises.
        """
        data, self._head = self._head + data, b""
        if len(data) == 1 and not self._begun:  # which of the two a "deflate" is shows with its second byte
            self._head = data
            return
        while data:
            if self._engine.eof:
                data = self._next_member(data)
                if not data:
                    return
            try:
                part = self._engine.decompress(data, self._step)
            except zlib.error as error:
                if self._begun or self._encoding != "deflate":
                    raise Damaged(f"the body is not {self._encoding}: {error}") from None
                # "deflate" means zlib's format, but some clients send the bare stream.
                self._engine, self._begun = zlib.decompressobj(_RAW), True
                continue
            self._take(part)
            data = self._engine.unconsumed_tail or (self._engine.unused_data if self._engine.eof else b"")
            yield

    def _next_member(self, data: bytes) -> bytes:
        """Begin the next member: a gzip body may have several. Zeros at its end are padding."""
        data = data.lstrip(b"\0")
        if data and self._encoding != "gzip":
            raise Damaged("the body goes on after the end of its compressed data")
        if data:
            self._count_frame("gzip members")
            self._engine = zlib.decompressobj(_GZIP)
        return data

    def finish(self) -> bytes:
        """Return the whole body. Raises ``Damaged`` when it was cut short."""
        self._begun = self._begun or bool(self._head)
        return self._finish(ended=self._engine.eof)


_WINDOW_LOG: Final = 23
"""Largest window of the content encoding: 8 MiB (RFC 9659)."""


class _Engine(Protocol):
    """The decompressor of the standard library, and of its backport, for one frame."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, most: int, /) -> bytes: ...


class ZstdInflater(_Body):
    """Inflates one body, piece by piece, as ``Inflater`` does for the other encodings."""

    def __init__(self, limit: int) -> None:
        super().__init__("zstd", limit)
        self._engine = _engine()

    def feed(self, data: bytes) -> Iterator[None]:
        """Inflate ``data`` and yield after each step of work; raises as ``Inflater.feed`` does."""
        while data or not (self._engine.needs_input or self._engine.eof):
            if self._engine.eof:  # a body may be several frames put together
                self._count_frame("zstd frames")
                self._engine = _engine()
            try:
                part = self._engine.decompress(data, self._step)
            except Exception as error:  # noqa: BLE001  # the library is not imported here, so neither is its error
                raise Damaged(f"the body is not zstd: {error}") from None
            self._take(part)
            data = self._engine.unused_data if self._engine.eof else b""
            yield

    def finish(self) -> bytes:
        """Return the whole body. Raises ``Damaged`` when it was cut short."""
        return self._finish(ended=self._engine.eof)


def _engine() -> _Engine:
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415  # only needed for a body of this encoding
    else:
        from backports import zstd  # noqa: PLC0415  # likewise

    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG})


_PARALLEL: Final = 2
"""Bodies of the largest size that may be in memory at once, in all connections together."""
_SMALL: Final = 1 << 20
"""Bytes of a small body; where bodies may have less than 16 MiB, a sixteenth of that."""
_SMALL_WEIGHT: Final = 4
"""A small body may grow while its sender holds up to this many times what is free."""
_AT_ONCE: Final = 1 << 20
"""Bytes of a body that are inflated without yielding to others: about 3 ms of work."""
_ACCEPTED: Final = "gzip, deflate, zstd or identity"
"""The content encodings that are accepted, for people."""

Receive: TypeAlias = Callable[[], Awaitable[Message]]


class Disconnected(SidejudgeError):  # noqa: N818  # it is an event, not a fault
    """The client went away before its request was complete."""


class BodyMemory:
    """The memory of all bodies that are being read or consumed, divided among senders.

    One body takes at most ``max_bytes``, before and after decompression, and all together twice that. A body grows only
    while its sender holds no more than what is still free. So one sender holds at most half, two a third each, and some
    is always left for the next (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2),
    1998). Small bodies may use more of what is free, so that large ones of the same address do not keep them out.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.limit = max_bytes * _PARALLEL
        self.small = min(_SMALL, max_bytes // 16)
        self.held = 0
        """Bytes that are taken now."""
        self.by_sender: Counter[bytes] = Counter()

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """A body that turns out to be too large or damaged is refused. Raises ``Refusal``."""
        try:
            yield
        except TooLarge:
            raise Refusal(
                413,
                f"the request is larger than {self.max_bytes} bytes, before or after decompression; "
                "send smaller batches or raise sources.otlp.max_request_bytes",
            ) from None
        except Damaged as error:
            raise Refusal(400, str(error)) from None

    def share(self, sender: bytes = b"") -> BodyShare:
        """One body's share, to be released when the body is done with; ``sender`` is the key of who sends it."""
        return BodyShare(self, sender)


class BodyShare:
    """How much of the memory for bodies one request has taken."""

    __slots__ = ("_bytes", "_memory", "_sender")

    def __init__(self, memory: BodyMemory, sender: bytes) -> None:
        self._memory, self._sender, self._bytes = memory, sender, 0

    def grow(self, size: int) -> None:
        """Note that the body has ``size`` bytes by now.

        Raises:
            Refusal: 503 when its sender holds too much of what all bodies share.
        """
        memory = self._memory
        self._take(size)
        weight = _SMALL_WEIGHT if size <= memory.small else 1
        if memory.by_sender[self._sender] > weight * (memory.limit - memory.held):
            raise Refusal(503, "too many large requests at once; send again", retry_after_s=1)

    def release(self) -> None:
        """Give back all of it."""
        self._take(0)
        if not self._memory.by_sender[self._sender]:
            del self._memory.by_sender[self._sender]

    def _take(self, size: int) -> None:
        self._memory.held += size - self._bytes
        self._memory.by_sender[self._sender] += size - self._bytes
        self._bytes = size


def inflater(encoding: str, limit: int) -> Inflater | ZstdInflater | None:
    """The decompressor of a content encoding; ``None`` for identity.

    Raises:
        Refusal: 415 for an unknown encoding.
    """
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        return Inflater("deflate" if encoding == "deflate" else "gzip", limit)
    if encoding == "zstd":
        return ZstdInflater(limit)
    raise Refusal(415, f"content encoding {encoding[:40]} is not known here; send {_ACCEPTED}")


async def read_body(headers: Mapping[bytes, bytes], receive: Receive, memory: BodyMemory, share: BodyShare) -> bytes:
    """Read the body of a request, decompressed.

    Raises:
        Refusal: The body is too large, damaged, of an unknown encoding, or there is no memory for it.
        Disconnected: The client went away.
    """
    declared = headers.get(b"content-length", b"")
    encoding = headers.get(b"content-encoding", b"").strip().lower().decode("latin-1")
    with memory.refusing():
        if declared.isdigit() and int(declared[:20]) > memory.max_bytes:
            raise TooLarge
        engine = inflater(encoding, memory.max_bytes)
        if engine is None:
            return await _plain(receive, memory.max_bytes, share)
        return await _inflated(engine, receive, memory.max_bytes, share)


async def _inflated(engine: Inflater | ZstdInflater, receive: Receive, limit: int, share: BodyShare) -> bytes:
    sent = 0
    more = True
    while more:
        data, more = await next_part(receive)
        sent += len(data)
        if sent > limit:
            raise TooLarge
        await inflate(engine, data, share)
    return engine.finish()


async def inflate(engine: Inflater | ZstdInflater, data: bytes, share: BodyShare) -> None:
    """Inflate a part of a body. A large body takes turns with everything else on the event loop."""
    for _ in engine.feed(data):
        share.grow(engine.size)
        if engine.size > _AT_ONCE:
            await asyncio.sleep(0)


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
