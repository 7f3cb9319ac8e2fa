"""Scale: weights as shares of the largest that was seen, for methods that look after every verdict.

Such a method stakes something on the next verdict before it knows its weight, so the stake needs a bound on that
weight. The bound is the largest weight so far, twice over; one that exceeds it is not used, and what was gathered
before begins anew. With one sampling rate all shares are 1. A rate that falls to less than half begins anew once.
"""

from __future__ import annotations

from collections.abc import Collection

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

    def shares(self, weights: Collection[float]) -> dict[float, float] | None:
        """The shares of weights that come together, each in (0, 2]; ``None`` when one exceeds that: begin anew.

        All are shares of the largest before them, so that their order does not matter. At least one weight.
        """
        largest = max(weights)
        if len(set(weights)) == 1:
            share = self.share(largest)
            return None if share is None else {largest: share}
        for weight in weights:
            check_weight(weight)
        if largest > LARGEST_SHARE * self.largest:
            self.largest, self.even = largest, False
            return None
        found = {weight: weight / self.largest for weight in weights}
        self.largest, self.even = max(self.largest, largest), False
        return found
