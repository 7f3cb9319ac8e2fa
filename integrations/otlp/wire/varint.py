"""Encode whole numbers as protobuf does."""

from __future__ import annotations


def varint(number: int) -> bytes:
    """Encode a whole number, not negative, as protobuf's varint."""
    written = b""
    while number > 0x7F:
        written += bytes((number & 0x7F | 0x80,))
        number >>= 7
    return written + bytes((number,))
