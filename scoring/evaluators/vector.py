"""Vectors of meaning as plain numbers: of length one, and how alike two of them are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import TypeAlias

Vector: TypeAlias = Sequence[float]
"""An embedding; any sequence of numbers that can be read more than once."""


def unit(vector: Vector) -> tuple[float, ...]:
    """The vector of the same direction and of length 1; ``ValueError`` where it has no direction.

    >>> unit((3.0, 4.0))
    (0.6, 0.8)
    """
    largest = max(map(abs, vector), default=0.0)
    if not all(map(math.isfinite, vector)) or largest == 0:
        raise ValueError("a vector that is zero, empty or not finite")
    scaled = [value / largest for value in vector]  # else the squares of tiny or huge numbers would be lost
    length = math.sqrt(sum(map(mul, scaled, scaled)))
    return tuple(value / length for value in scaled)


def cosine(left: Vector, right: Vector) -> float:
    """The cosine of the angle between two vectors of length 1, in [-1, 1].

    >>> cosine((0.6, 0.8), (0.8, 0.6))
    0.96
    """
    if len(left) != len(right):
        raise ValueError(f"vectors of {len(left)} and of {len(right)} dimensions")
    return min(1.0, max(-1.0, float(sum(map(mul, left, right)))))
