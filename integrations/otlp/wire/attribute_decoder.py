"""Attributes as bytes → a dict, without a message for each: most of decoding a span is this.

Most attributes are short, and most of the short ones say what an earlier span said: what was read once is remembered,
and of every attribute its key. Of the others most are texts. Encoders write a key-value in one way, the key and then
the value, each behind its tag and length; so where the key ends is known from its length, and from the number of bytes
that are left what must stand before a text that fills them. If that is there, the text is; and what is not, is parsed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final, TypeVar

from integrations.otlp.server.rpc_status import size_of
from integrations.raw import AttributeValue

from .schema import classes
from .values import any_value

_SHORT: Final = 96
"""Bytes of a key-value up to which it is remembered: of what is longer, little comes again."""
_MOST: Final = 8192
"""Key-values that are remembered, in some 3 MB; beyond it the memory starts anew. Of keys and lists as many."""
_LONGEST: Final = 1024
"""Bytes of a value up to which it is tried as a text; parsing a longer one costs little beside its decoding."""
_KEY: Final = 0x0A

Said = TypeVar("Said")


class _Memory(dict[bytes, Said]):
    """What bytes said when they were read."""

    def keep(self, raw: bytes, said: Said) -> None:
        if len(self) >= _MOST:
            self.clear()
        self[raw] = said


class _Keys(_Memory[str]):
    """What each key says, by its tag, its length and itself; one that is not here is read when it is looked for."""

    def __missing__(self, raw: bytes) -> str:
        length = raw[1]
        if raw[0] != _KEY or length > 0x7F or len(raw) != length + 2:
            raise IndexError
        key = raw[2:].decode()
        self.keep(raw, key)
        return key


class _Pairs(_Memory[tuple[str, AttributeValue]]):
    """What each key-value says; one that is not here is read when it is looked for."""

    def __missing__(self, raw: bytes) -> tuple[str, AttributeValue]:
        end = raw[1] + 2
        key = _keys[raw[:end]]
        left = len(raw) - end
        if left <= _LONGEST and raw.startswith(tags := _before_texts()[left], end):
            pair: tuple[str, AttributeValue] = key, raw[end + len(tags) :].decode()
        elif (known := _lists.get(raw)) is not None:
            key, items = known
            return key, [*items]
        else:
            pair = _parsed(raw)
            if isinstance(pair[1], list | dict):
                return pair
        if len(raw) <= _SHORT:
            self.keep(raw, pair)
        return pair


_keys, _pairs = _Keys(), _Pairs()
_lists = _Memory[tuple[str, tuple[AttributeValue, ...]]]()
"""What short lists of scalars hold. Each time it is another list, for whoever gets one may change it."""


def pairs(attributes: Iterable[bytes]) -> dict[str, AttributeValue]:
    """Key-values, each as bytes, as a dict; of two equal keys the last wins.

    Raises ``IndexError`` for a layout that encoders do not write, ``UnicodeDecodeError`` for texts that are not UTF-8,
    and ``DecodeError`` for damage; whoever reads all at once knows what to make of these.
    """
    return dict(map(_pairs.__getitem__, attributes))


def _parsed(raw: bytes) -> tuple[str, AttributeValue]:
    pair: Any = classes("whole")["KeyValue"].FromString(raw)
    key, value = pair.key.decode(), any_value(pair.value)
    if isinstance(value, list) and len(raw) <= _SHORT and not any(isinstance(item, list | dict) for item in value):
        _lists.keep(raw, (key, tuple(value)))
    return key, value


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
