"""Sums of parts: what was counted over parts of the lines, by any processes, added up to what the whole counts."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Hashable
from dataclasses import MISSING, dataclass, fields
from typing import Protocol, Self, TypeVar, runtime_checkable

K = TypeVar("K", bound=Hashable)


@runtime_checkable
class _Mergeable(Protocol):
    def merge(self, later: object, /) -> None: ...


@dataclass(slots=True)
class OfParts:
    """A dataclass of sums: each field with a default is one. The others are what is counted by, the same in all parts.

    Numbers and counters are added, sets united, dicts merged key by key; what has a ``merge`` of its own is merged so.
    """

    def merge(self, later: Self, /) -> None:
        """Add the sums over the lines that follow. ``later`` is not used any more."""
        for each in fields(self):
            if each.default is not MISSING or each.default_factory is not MISSING:
                setattr(self, each.name, _added(getattr(self, each.name), getattr(later, each.name)))


def _added(mine: object, later: object) -> object:
    if isinstance(mine, _Mergeable):
        mine.merge(later)
    elif (isinstance(mine, Counter) and isinstance(later, Counter)) or (
        isinstance(mine, set) and isinstance(later, set)
    ):
        mine.update(later)
    elif isinstance(mine, dict) and isinstance(later, dict):
        for key, each in later.items():
            mine[key] = _added(mine[key], each) if key in mine else each
    else:
        return operator.add(mine, later)
    return mine


class FirstFew(dict[K, None]):
    """The first ``most`` different names, in order."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, name: K) -> None:
        """Take a name, if it is one of the first."""
        if len(self) < self._most:
            self[name] = None

    def merge(self, later: FirstFew[K], /) -> None:
        """Take the names of the lines that follow."""
        for name in later:
            self.keep(name)


class FewCounts(dict[K, int]):
    """Counts of the first ``most`` names. Further ones count as ``rest``, or without one not at all.

    Those of a part are merged as if its names had been counted one by one, if it has room for all of them.
    """

    def __init__(self, most: float, rest: K | None = None) -> None:
        super().__init__()
        self._most, self._rest = most, rest

    def count(self, name: K, times: int = 1) -> None:
        """Count a name."""
        known = name if name in self or len(self) < self._most else self._rest
        if known is not None:
            self[known] = self.get(known, 0) + times

    def merge(self, later: FewCounts[K], /) -> None:
        """Count the names of the lines that follow."""
        for name, times in later.items():
            self.count(name, times)
