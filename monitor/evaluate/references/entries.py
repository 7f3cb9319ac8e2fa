"""Entries: references by what they are found under, as they were last read. Bounded, and replaced as a whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.trace.span import Json

MOST_ENTRIES: Final = 50_000
"""References of one place; what is beyond is left out, and reported."""
MOST_CHARACTERS: Final = 64 * 2**20
"""Characters of all references of one place together, as JSON."""
_LONGEST_KEY: Final = 1000


class Entries:
    """The references of one place. Whoever reads while it is replaced sees the old or the new, never a mixture."""

    def __init__(self, place: str) -> None:
        self.place: Final = place
        self.mark: Final = hashlib.blake2b(place.encode("utf-8", "replace"), digest_size=4).digest()
        """4 bytes that stand for the place."""
        self._held: Mapping[str, Json] = {}
        self._digests: Mapping[bytes, bytes | None] = {}
        self.read = False
        """Whether it was read at all."""
        self.whole = True
        """Whether what is not held here is nowhere: what a partly read place lacks is unknown."""
        self.version = 0
        """Counts how often what is held has changed."""

    def __len__(self) -> int:
        return len(self._held)

    @property
    def held(self) -> Mapping[str, Json]:
        """All references, by their keys."""
        return self._held

    def get(self, key: str) -> Json:
        """The reference under a key; None when there is none."""
        return self._held.get(key)

    def replace(self, held: Mapping[str, Json], *, whole: bool = True) -> None:
        """From now on these; ``whole``: all that there are."""
        digests = {self.name_of(key): digest(value) for key, value in held.items()}
        self.version += not self.read or digests != self._digests or whole is not self.whole
        self._held, self._digests, self.whole, self.read = held, digests, whole, True

    def digests(self) -> Mapping[bytes, bytes | None]:
        """The digest of each reference, by the name of its key."""
        return self._digests

    def name_of(self, key: str) -> bytes:
        """16 bytes that stand for a key here: ``mark``, then what stands for the key."""
        return self.mark + hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=12).digest()


class Gathering:
    """New entries while they are read: of two under one key the first stays."""

    def __init__(self) -> None:
        self.held: dict[str, Json] = {}
        self.left_out = 0
        self._characters = 0

    def add(self, key: str | None, value: Json) -> bool:
        """Take one; False when nothing more fits."""
        if key is None or len(key) > _LONGEST_KEY or key in self.held:
            return True
        size = len(json.dumps(value))
        if len(self.held) >= MOST_ENTRIES or self._characters + size > MOST_CHARACTERS:
            self.left_out += 1
            return False
        self._characters += size
        self.held[key] = value
        return True


def digest(value: Json) -> bytes | None:
    """16 bytes that change with the reference; None for none."""
    if value is None:
        return None
    stated = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(stated.encode(), digest_size=16).digest()


def key_of_case(key: str, case: Case) -> str | None:
    """The value of a trace under a configured key, as text; None without one."""
    if key.startswith("metadata."):
        return key_of_map(key.removeprefix("metadata."), case.metadata)
    value = getattr(case, key)
    return value if isinstance(value, str) and value else None


def key_of_map(key: str, held: Mapping[str, Json]) -> str | None:
    """The scalar under a key as text: the key as it stands first, then its dots as steps."""
    value: Json = held.get(key)
    if value is None and "." in key:
        value = dict(held)
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) and value != "" else None
