"""Attributes as bytes → a dict, without a message for each: most of decoding a span is this.

Most attributes are short, and most of the short ones say what an earlier span said: what was read once is remembered.
Of the others most are texts. Encoders write a key-value in one way, the key and then the value, each behind its tag
and length; so where the key ends is known from its length, and from the number of bytes that are left what must stand
before a text that fills them. If that is there, the text is; and what is not, is parsed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from integrations.raw import AttributeValue

from .rpc_status import size_of
from .schema import whole_classes
from .values import any_value

_SHORT: Final = 64
"""Bytes of a key-value up to which it is remembered. Lists and maps are not: whoever got one might change it."""
_MOST: Final = 8192
"""Key-values that are remembered, in some 2 MB; beyond it the memory starts anew."""
_LONGEST: Final = 1024
"""Bytes of a value up to which it is tried as a text; parsing a longer one costs little beside its decoding."""
_KEY: Final = 0x0A


class _Remembered(dict[bytes, tuple[str, AttributeValue]]):
    """What each key-value says; one that is not here is read when it is looked for."""

    def __missing__(self, raw: bytes) -> tuple[str, AttributeValue]:
        pair = _read(raw)
        if len(raw) <= _SHORT and not isinstance(pair[1], list | dict):
            if len(self) >= _MOST:
                self.clear()
            self[raw] = pair
        return pair


_remembered = _Remembered()


def pairs(attributes: Iterable[bytes]) -> dict[str, AttributeValue]:
    """Key-values, each as bytes, as a dict; of two equal keys the last wins.

    Raises ``IndexError`` for a layout that encoders do not write, ``UnicodeDecodeError`` for texts that are not UTF-8,
    and ``DecodeError`` for damage; whoever reads all at once knows what to make of these.
    """
    return dict(map(_remembered.__getitem__, attributes))


def _read(raw: bytes) -> tuple[str, AttributeValue]:
    length = raw[1]
    end = length + 2
    if raw[0] != _KEY or length > 0x7F or len(raw) < end:
        raise IndexError
    left = len(raw) - end
    if left <= _LONGEST and raw.startswith(tags := _before_texts()[left], end):
        return raw[2:end].decode(), raw[end + len(tags) :].decode()
    pair: Any = whole_classes()["KeyValue"].FromString(raw)
    return pair.key.decode(), any_value(pair.value)


@cache
def _before_texts() -> list[bytes]:
    """By the number of bytes of a field with a text as value, what stands before the text."""
    before = [bytes(left + 1) for left in range(_LONGEST + 1)]  # longer than what is left: that stands nowhere
    for length in range(_LONGEST):
        text = b"\x0a" + size_of(length)
        tags = b"\x12" + size_of(len(text) + length) + text
        if len(tags) + length <= _LONGEST:
            before[len(tags) + length] = tags
    return before
