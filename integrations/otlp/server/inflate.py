"""Decompression of gzip, deflate and Zstandard that stops at a limit: a few kilobytes cannot become gigabytes."""

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
