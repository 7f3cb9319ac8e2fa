"""Zstandard, where the library for it is installed (extra ``zstd``), up to a bound that holds while it inflates."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Final

from .inflate import Damaged, TooLarge

_SLICE: Final = 256
"""Bytes inflated at once. Four of them may become 128 KiB, so that this many are 8 MiB at most."""
_TURN: Final = 1 << 20
"""Bytes of the result after which others get their turn."""
_WINDOW: Final = 8 << 20
"""Largest window that a content encoding may ask for (RFC 9659)."""


def available() -> bool:
    """Whether bodies can be inflated; the library is not imported."""
    return find_spec("zstandard") is not None


class ZstdInflater:
    """Inflates one body, piece by piece, as ``Inflater`` does for the other encodings."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._begun = False
        self._engine = _engine()
        self.size = 0
        """Bytes inflated so far."""

    def feed(self, data: bytes) -> Iterator[None]:
        """Inflate ``data``; yields after each step of work. Raises ``TooLarge`` and ``Damaged``."""
        turn = self.size + _TURN
        for at in range(0, len(data), _SLICE):
            self._inflate(data[at : at + _SLICE])
            if self.size >= turn:
                turn = self.size + _TURN
                yield
        yield

    def _inflate(self, data: bytes) -> None:
        while data:
            if self._engine.eof:  # a body may be several frames put together
                self._engine = _engine()
            try:
                part: bytes = self._engine.decompress(data)
            except Exception as error:  # noqa: BLE001  # the library is not imported here, so neither is its error
                raise Damaged(f"the body is not zstd: {error}") from None
            self._begun = True
            self.size += len(part)
            if self.size > self._limit:
                raise TooLarge
            self._parts.append(part)
            data = self._engine.unused_data if self._engine.eof else b""

    def finish(self) -> bytes:
        """The whole body. Raises ``Damaged`` when it was cut short."""
        if self._begun and not self._engine.eof:
            raise Damaged("the body ends before its zstd data does")
        body = b"".join(self._parts)
        self._parts = []
        return body


def _engine() -> Any:
    import zstandard  # noqa: PLC0415  # optional, and only needed for a body that asks for it

    return zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
