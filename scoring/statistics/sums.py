"""Sums of parts: counts made by several processes, each over a part of the data, add up to the whole's count.

*ExactSums*: counts and totals by name, in any order equal to the last digit. A count is a whole number, a total an
exact sum of floats. Zeros are not kept, so that equal contents are equal objects and equal JSON.

>>> one, other = ExactSums(), ExactSums()
>>> one.add("weight", 0.1); other.add("weight", 0.2); one.merge(other)
>>> one.total("weight") == 0.1 + 0.2
True

*ExactSum*: a running sum of floats that never drifts under additions and removals. A float is an integer times a power
of two, and the smallest power is 2⁻¹⁰⁷⁴. Kept as integers in that unit, sums are exact: taking away what was added
leaves precisely what remains. ``value`` rounds once, at the end, and therefore equals ``math.fsum`` of the members.

>>> total = ExactSum()
>>> for x in (0.1, 1e16, 0.2): total.add(x)
>>> total.add(1e16, -1)
>>> total.value == 0.1 + 0.2
True
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from typing import Final, Protocol, Self, TypeVar, runtime_checkable

from sidejudge.scoring.trace.span import JsonRecord

K = TypeVar("K", bound=Hashable)

_UNIT_BITS = 1074
UNIT: Final = 1 << _UNIT_BITS


@lru_cache(maxsize=1024)  # weights and scores are few, and come again
def _in_units(value: float) -> int:
    # as_integer_ratio raises for NaN and infinities, which no sum can take back.
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_UNIT_BITS + 1 - denominator.bit_length())


class ExactSum:
    """A sum of finite floats. ``add`` is exact; ``value`` is the sum, correctly rounded."""

    __slots__ = ("_units",)

    def __init__(self) -> None:
        self._units = 0

    def add(self, value: float, times: int = 1) -> None:
        """Add the value ``times`` times: −1 removes it."""
        self._units += times * _in_units(value)

    def add_product(self, *factors: float) -> None:
        """Add the product of finite floats, exact down to the smallest float."""
        numerator = denominator = 1
        for factor in factors:
            above, below = factor.as_integer_ratio()
            numerator, denominator = numerator * above, denominator * below
        self._units += (numerator << _UNIT_BITS) // denominator

    def merge(self, other: ExactSum, times: int = 1) -> None:
        """Add the sum of another; −1 removes it."""
        self._units += times * other._units

    @property
    def units(self) -> int:
        """The sum as a whole number of ``1 / UNIT``, for exact arithmetic on several sums."""
        return self._units

    def parts(self) -> list[float]:
        """Floats with this exact sum, the largest first; nearly always one, none for 0."""
        found, left = [], self._units
        while left:
            found.append(left / UNIT)
            left -= _in_units(found[-1])
        return found

    @classmethod
    def of(cls, parts: Iterable[float]) -> ExactSum:
        """The sum of these floats."""
        total = cls()
        for part in parts:
            total.add(part)
        return total

    @property
    def value(self) -> float:
        return self._units / UNIT


_NOTHING = ExactSum()


class ExactSums:
    """Counts and totals by name; a name is either a count or a total."""

    __slots__ = ("_counts", "_totals")

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._totals: dict[str, ExactSum] = {}

    def count(self, name: str, by: int = 1) -> None:
        """Increase the count of this name."""
        if by:
            self._counts[name] += by
            if not self._counts[name]:
                del self._counts[name]

    def add(self, name: str, value: float, *factors: float) -> None:
        """Add a value, or the exact product of several, to the total of this name."""
        if factors:
            self._total(name).add_product(value, *factors)
        else:
            self._total(name).add(value)

    def put(self, name: str, total: ExactSum) -> None:
        """Add an existing sum."""
        if total.units:
            self._total(name).merge(total)

    def merge(self, other: ExactSums, times: int = 1) -> None:
        """Add all counts and totals of another; −1 removes them."""
        for name, n in other._counts.items():
            self.count(name, times * n)
        for name, total in other._totals.items():
            mine = self._total(name)
            mine.merge(total, times)
            if not mine.units:
                del self._totals[name]

    def n(self, name: str) -> int:
        """The count of this name."""
        return self._counts[name]

    def total(self, name: str) -> float:
        """The total of this name, rounded once."""
        return self.exact(name).value

    def exact(self, name: str) -> ExactSum:
        """The unrounded total of this name; do not change it."""
        return self._totals.get(name, _NOTHING)

    def names(self, prefix: str) -> Iterator[str]:
        """The suffixes after the prefix in the names of totals and counts, without repeats, in alphabetical order."""
        found = {name.removeprefix(prefix) for name in (*self._counts, *self._totals) if name.startswith(prefix)}
        yield from sorted(found)

    def __bool__(self) -> bool:
        return bool(self._counts or self._totals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExactSums) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def to_json(self) -> dict[str, object]:
        """The sums as JSON: exact, and equal for equal sums."""
        totals = ((name, total.parts()) for name, total in sorted(self._totals.items()))
        return {"n": dict(sorted(self._counts.items())), "sum": {name: parts for name, parts in totals if parts}}

    @classmethod
    def of_json(cls, record: JsonRecord) -> ExactSums:
        """Read what ``to_json`` wrote; ``ValueError`` and ``TypeError`` for anything else."""
        found = cls()
        for name, n in record["n"].items():
            found.count(str(name), int(n))
        for name, parts in record["sum"].items():
            found._totals[str(name)] = ExactSum.of(map(float, parts))
        return found

    def _total(self, name: str) -> ExactSum:
        found = self._totals.get(name)
        if found is None:
            found = self._totals[name] = ExactSum()
        return found


@runtime_checkable
class _Mergeable(Protocol):
    def merge(self, later: object, /) -> None: ...


@dataclass(slots=True)
class OfParts:
    """A dataclass of sums: fields with defaults are sums, the other fields are keys, equal in all parts.

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
