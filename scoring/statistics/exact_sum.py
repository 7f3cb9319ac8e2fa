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

from functools import lru_cache

_UNIT_BITS = 1074
_UNIT = 1 << _UNIT_BITS


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

    def merge(self, other: ExactSum) -> None:
        """Add all that another one has summed."""
        self._units += other._units

    @property
    def value(self) -> float:
        return self._units / _UNIT
