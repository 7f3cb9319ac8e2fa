"""An upper estimate of the memory that a kept chunk takes once it is decoded and judged, read from its bytes alone.

Two bytes can be an empty attribute, which takes 600 bytes as a Python object; a short span takes 1.5 kB; a comma in a
text that is JSON stands for a value. None of them can be there without a certain byte, so counting bytes bounds
them without parsing. The price: a text in which such bytes are frequent is estimated higher than it is.
"""

from __future__ import annotations

from typing import Final

_PER_BYTE: Final = 6
"""Plain text is held as it came, as decoded text, and as parts of it."""
_PER_OCCURRENCE: Final = {
    b"\x12": 750,  # tag of a span, of its id, and of the value of an attribute
    b"J": 640,  # tag of an attribute of a span
    b"Z": 740,  # tag of an event of a span
    b"\x1a": 640,  # tag of an attribute of an event
    b"\n": 160,  # tag of a key, of a text, of a value in an array or a map
    b"*": 160,  # tag of an array
    b"2": 160,  # tag of a map
    b"[": 160,
    b"{": 520,  # a map; a text that the fast reader refuses is held as two of them
    b",": 90,
}
"""Bytes of memory by what in the encoding stands for something that is made."""


_OTHERS: Final = bytes(set(range(256)) - set(b"".join(_PER_OCCURRENCE)))
_MOST: Final = max(_PER_OCCURRENCE.values())
_SMALL: Final = 1 << 20
"""An estimate up to which it need not be exact: only how many such bytes there are is counted, not which."""


def decoded_size(payload: bytes) -> int:
    """Bytes of memory that judging the spans of ``payload`` takes at most, beside what it takes for an empty trace."""
    plain = _PER_BYTE * len(payload)
    such = payload.translate(None, _OTHERS)  # a tenth of the payload, as a rule
    rough = plain + _MOST * len(such)
    if rough <= _SMALL:
        return rough
    return plain + sum(memory * such.count(byte) for byte, memory in _PER_OCCURRENCE.items())
