"""Thresholds: a sampling rate as the 56-bit number that a trace's randomness must reach, and back."""

from __future__ import annotations

from typing import Final

NEVER: Final = 1 << 56
"""The threshold that no trace reaches: rate 0."""


def threshold(rate: float) -> int:
    """The rejection threshold of a rate in [0, 1], in [0, 2**56]. A rate above 0 never rounds down to "never"."""
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"a sampling rate lies in [0, 1], got {rate!r}")
    if rate == 0.0:
        return NEVER
    return NEVER - max(1, round(rate * NEVER))  # the product is exact: 2**56 is a power of two


def probability(threshold: int) -> float:
    """The probability with which a threshold keeps a trace, in [0, 1]: (2**56 - T) / 2**56."""
    if not 0 <= threshold <= NEVER:
        raise ValueError(f"a rejection threshold lies in [0, 2**56], got {threshold!r}")
    return (NEVER - threshold) / NEVER
