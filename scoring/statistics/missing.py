"""Missing: how far the pass ratio could lie from the estimate if the verdicts that are missing had been reached.

An incomplete verdict neither passes nor fails. Left out, it is taken to be like the others. Nobody knows that, so
beside the estimate stand the two extremes: all of them fail, all of them pass (Manski 1990's worst-case bounds)::

    worst = Σ w·passed / (Σ w + Σ w missing)        best = (Σ w·passed + Σ w missing) / (Σ w + Σ w missing)

>>> missing_band(weight=90.0, failed_weight=9.0, missing_weight=10.0)
MissingBand(worst=0.81, best=0.91)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MissingBand:
    """The pass ratio with all that is missing counted as failed, and as passed; both in [0, 1]."""

    worst: float
    best: float


def missing_band(*, weight: float, failed_weight: float, missing_weight: float) -> MissingBand | None:
    """The band from sums of weights: of verdicts that passed or failed, that failed, that did neither.

    Equal to the estimate where nothing is missing; ``None`` where there is nothing at all.
    """
    whole = weight + missing_weight
    if whole <= 0:
        return None
    passed = max(0.0, weight - failed_weight)
    return MissingBand(min(1.0, passed / whole), min(1.0, (passed + missing_weight) / whole))
