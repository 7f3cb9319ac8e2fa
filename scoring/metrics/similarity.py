"""Semantic similarity: the cosine of two texts' embeddings, as its answers are read."""

from __future__ import annotations

from sidejudge.scoring.trace.json_kind import kind

_SLACK = 1e-6


def read_cosines(value: object, count: int) -> list[float]:
    """``count`` cosines clamped to [0, 1] (rubrics §6); ``ValueError`` where the answer is anything else.

    >>> read_cosines((0.5, -0.25), 2)
    [0.5, 0.0]
    """
    if not isinstance(value, list | tuple) or len(value) != count:
        raise ValueError(f"expected {count} similarities")
    return [min(1.0, max(0.0, read_number(cosine, -1.0, 1.0))) for cosine in value]


def read_number(value: object, low: float, high: float) -> float:
    """A number within bounds, with room for the rounding of single precision."""
    if kind(value) != "number" or not isinstance(value, int | float) or not low - _SLACK <= value <= high + _SLACK:
        raise ValueError(f"not a number in [{low:g}, {high:g}]")
    return float(value)
