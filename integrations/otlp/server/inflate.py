"""Decompression of gzip and deflate that stops at a limit, so that a few kilobytes cannot become gigabytes.

Decompression of Zstandard that stops at a limit.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from typing import Final, Protocol

from sidejudge.scoring.errors import SidejudgeError

_GZIP: Final = 16 + zlib.MAX_WBITS
_ZLIB: Final = zlib.MAX_WBITS
_RAW: Final = -zlib.MAX_WBITS
_STEP: Final = 1 << 20
"""Most bytes inflated at once: about 3 ms of work, after which others get their turn."""
_MEMBERS: Final = 1000
"""Most gzip members of a body. Clients send one; an empty one has 20 bytes and costs far more than they do."""


class TooLarge(SidejudgeError):  # noqa: N818  # it names what the body is
    """The body is larger than the limit."""


class Damaged(SidejudgeError, ValueError):  # noqa: N818  # likewise
    """The body is not what its content encoding promises."""


class Inflater:
    """Inflates one body, piece by piece. ``encoding`` is ``gzip`` or ``deflate`` (with or without zlib's header)."""

    def __init__(self, encoding: str, limit: int) -> None:
        self._encoding = encoding
        self._limit = limit
        self._engine = zlib.decompressobj(_GZIP if encoding == "gzip" else _ZLIB)
        self._parts: list[bytes] = []
        self._begun = False
        self._members = 1
        self.size = 0
        """Bytes inflated so far."""

    def feed(self, data: bytes) -> Iterator[None]:
        """Inflate ``data`` and yield after each step of work.

        Raises:
            TooLarge: The body is larger than the limit.
            Damaged: The data is not what its content encoding promises.
        """
        while data:
            if self._engine.eof:
                data = self._next_member(data)
                if not data:
                    return
            try:
                part = self._engine.decompress(data, min(_STEP, self._limit - self.size + 1))
            except zlib.error as error:
                if self._begun or self._encoding != "deflate":
                    raise Damaged(f"the body is not {self._encoding}: {error}") from None
                # "deflate" means zlib's format, but some clients send the bare stream.
                self._engine, self._begun = zlib.decompressobj(_RAW), True
                continue
            self._begun = True
            self.size += len(part)
            if self.size > self._limit:
                raise TooLarge
            self._parts.append(part)
            data = self._engine.unconsumed_tail or (self._engine.unused_data if self._engine.eof else b"")
            yield

    def _next_member(self, data: bytes) -> bytes:
        """Begin the next member: a gzip body may have several. Zeros at its end are padding."""
        data = data.lstrip(b"\0")
        if data and self._encoding != "gzip":
            raise Damaged("the body goes on after the end of its compressed data")
        if data:
            if self._members == _MEMBERS:
                raise Damaged(f"the body has more than {_MEMBERS} gzip members")
            self._members += 1
            self._engine = zlib.decompressobj(_GZIP)
        return data

    def finish(self) -> bytes:
        """Return the whole body. Raises ``Damaged`` when it was cut short."""
        if self._begun and not self._engine.eof:
            raise Damaged(f"the body ends before its {self._encoding} data does")
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts = []
        return body


_WINDOW_LOG: Final = 23
"""Largest window of the content encoding: 8 MiB (RFC 9659)."""
_FRAMES: Final = 1000
"""Most frames of a body. Clients send one; each costs far more than its nine bytes or more."""


class _Engine(Protocol):
    """The decompressor of the standard library, and of its backport, for one frame."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, most: int, /) -> bytes: ...


class ZstdInflater:
    """Inflates one body, piece by piece, as ``Inflater`` does for the other encodings."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._begun = False
        self._frames = 1
        self._engine = _engine()
        self.size = 0
        """Bytes inflated so far."""

    def feed(self, data: bytes) -> Iterator[None]:
        """Inflate ``data`` and yield after each step of work; raises as ``Inflater.feed`` does."""
        while data or not (self._engine.needs_input or self._engine.eof):
            if self._engine.eof:  # a body may be several frames put together
                self._next_frame()
            try:
                part = self._engine.decompress(data, min(_STEP, self._limit - self.size + 1))
            except Exception as error:  # noqa: BLE001  # the library is not imported here, so neither is its error
                raise Damaged(f"the body is not zstd: {error}") from None
            self._begun = True
            self.size += len(part)
            if self.size > self._limit:
                raise TooLarge
            self._parts.append(part)
            data = self._engine.unused_data if self._engine.eof else b""
            yield

    def _next_frame(self) -> None:
        if self._frames == _FRAMES:
            raise Damaged(f"the body has more than {_FRAMES} zstd frames")
        self._frames += 1
        self._engine = _engine()

    def finish(self) -> bytes:
        """Return the whole body. Raises ``Damaged`` when it was cut short."""
        if self._begun and not self._engine.eof:
            raise Damaged("the body ends before its zstd data does")
        body = b"".join(self._parts)
        self._parts = []
        return body


def _engine() -> _Engine:
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415  # only needed for a body of this encoding
    else:
        from backports import zstd  # noqa: PLC0415  # likewise

    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG})
