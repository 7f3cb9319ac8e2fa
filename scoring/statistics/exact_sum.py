"""ExactSum: a running sum of floats that does not drift, however long things are added and taken away.

A float is an integer times a power of two, and the smallest power is 2⁻¹⁰⁷⁴. Kept as integers in that unit, sums are
exact: taking away what was added leaves precisely what remains. ``value`` rounds once, at the end, and therefore equals
``math.fsum`` of the members.

>>> total = ExactSum()
>>> for x in (0.1, 1e16, 0.2): total.add(x)
>>> total.add(1e16, -1)
>>> total.value == 0.1 + 0.2
True
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

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
        """Add it so many times: −1 takes it away."""
        self._units += times * _in_units(value)

    def add_product(self, *factors: float) -> None:
        """Add the product of finite floats, exact down to the smallest float."""
        numerator = denominator = 1
        for factor in factors:
            above, below = factor.as_integer_ratio()
            numerator, denominator = numerator * above, denominator * below
        self._units += (numerator << _UNIT_BITS) // denominator

    def merge(self, other: ExactSum, times: int = 1) -> None:
        """Add all that another one has summed; −1 takes it away."""
        self._units += times * other._units

    @property
    def units(self) -> int:
        """The sum as a whole number of ``1 / UNIT``, for exact arithmetic on several sums."""
        return self._units

    def parts(self) -> list[float]:
        """Floats whose exact sum it is, the largest first; nearly always one, none for 0."""
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
