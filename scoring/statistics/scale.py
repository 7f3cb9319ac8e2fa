"""Scale: weights as shares of the largest that was seen, for methods that look after every verdict.

Such a method stakes something on the next verdict before it knows its weight, so the stake needs a bound on that
weight. The bound is the largest weight so far, twice over; one that exceeds it is not used, and what was gathered
before begins anew. With one sampling rate all shares are 1. A rate that falls to less than half begins anew once.
"""

from __future__ import annotations

from .estimate import check_weight

LARGEST_SHARE = 2.0
"""No share is larger: what a stake must be able to pay."""


class Scale:
    """The largest weight so far. ``even``: all weights since the last beginning were the same."""

    __slots__ = ("even", "largest")

    def __init__(self, largest: float = 0.0, *, even: bool = True) -> None:
        self.largest, self.even = largest, even

    def share(self, weight: float) -> float | None:
        """The weight's share of the largest before it, in (0, 2]; ``None`` when it exceeds that: begin anew."""
        check_weight(weight)
        if weight > LARGEST_SHARE * self.largest:
            self.largest, self.even = weight, True
            return None
        share = weight / self.largest
        self.even = self.even and abs(share - 1.0) < 1e-9
        self.largest = max(self.largest, weight)
        return share
