"""Contents that do not repeat: the words of recorded texts, exchanged for others of the same length.

Texts that repeat are read from memory by whoever remembers them, and real ones repeat seldom. In each copy of the
recordings every word stands for another word of the recordings, the same one throughout the copy, and every id of a
provider for another id: what a message repeats of another one stays equal to it, and all lengths and all JSON stay as
they are. Words that are part of a name (of an attribute, a role, a model, a tool) stay.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

_PROSE: Final = re.compile(rb"(?<=[a-z,.] )[a-z]{3,14}(?=[ ,.?!])")
"""A word within a sentence: never the byte of a length before a text."""
_NAMED: Final = re.compile(
    rb"[_.:\"'\x00-\x1f]([a-z]{3,14})(?=[\"'_.:=\x00-\x1f])|([a-z]{3,14})[_=:(\[]|[-_.]([a-z]{3,14})"
)
"""A word that is a name, or part of one."""
_ID: Final = re.compile(rb"(?<![\w-])(?:chatcmpl-|call_|toolu_|msg_|resp_|run-|req_|fc_)([A-Za-z0-9]{8})")
"""The beginning of an id of a provider; its end is not known where the tag of the next field is a letter."""
_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyz0123456789"


class FreshWords:
    """Words and ids that may be exchanged, found in request bodies."""

    def __init__(self, bodies: Iterable[bytes]) -> None:
        whole = b"\n".join(bodies)
        named = {word for found in _NAMED.finditer(whole) for word in found.groups() if word}
        self._words = sorted(set(_PROSE.findall(whole)) - named)
        self._ids = sorted(set(_ID.findall(whole)))

    def exchange(self, rng: random.Random) -> Callable[[bytes], bytes]:
        """One copy's exchange, a function of a body."""
        by_length: dict[int, list[bytes]] = defaultdict(list)
        for word in self._words:
            by_length[len(word)].append(word)
        other: dict[bytes, bytes] = {}
        for words in by_length.values():
            other |= zip(words, rng.sample(words, len(words)), strict=True)
        ids = {each: bytes(rng.choices(_LETTERS, k=len(each))) for each in self._ids}

        def exchanged(body: bytes) -> bytes:
            body = _ID.sub(lambda found: found[0].replace(found[1], ids.get(found[1], found[1])), body)
            return _PROSE.sub(lambda found: other.get(found[0], found[0]), body)

        return exchanged
