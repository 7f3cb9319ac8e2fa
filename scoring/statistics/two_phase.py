"""Two-phase sampling: the pass ratio that the strong judge would have found, from a cascade of judges.

Phase one: a small judge decides on all n verdicts. Phase two: a strong judge decides where the small one is in doubt,
and on a random share of the others, drawn with a known probability q. The drawn ones measure the small judge's errors
where it is sure. With w = 1/inclusion probability, v = w/q, and f = 1 for a failure::

    fail      = Σ w·f / Σ w  +  U · d      f: of the small judge where it was sure, else of the strong one
    U         = Σ w of the sure / Σ w      d = Σ v·(f strong − f small) / Σ v over the drawn
    V(d)      = (Σ v²·(e − d)² / (Σ v)² + 1 / (m + 2)²) · (1 − q̄)      e = f strong − f small
    bounds    = ratio ± sqrt(w² + z²·U²·V(d))     w: distance of Wilson's bound at Kish's n from the ratio
    effective n = p(1 − p) / (p(1 − p)/n + U²·V(d))     p = the fail ratio, drawn to 1/2 as Wilson's centre is

This is the difference estimator for two-phase sampling (Särndal, Swensson and Wretman 1992, *Model Assisted Survey
Sampling*, §9.6). m is Kish's size of the drawn; 1/(m + 2)² is the variance of a drawn verdict that changed half either
way, added so that a few drawn ones without a change do not count as certainty (Agresti and Min 2005,
doi:10.1002/sim.1781). The two parts of the bounds are joined by their distances (MOVER, Zou and Donner 2008,
doi:10.1002/sim.3095). Without a drawn one there is no estimate, because the small judge's errors are unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from .estimate import Estimate
from .interval import Z_95_TWO_SIDED, wilson_pair


@dataclass(slots=True, kw_only=True)
class DrawnSums:
    """Sums over verdicts that passed or failed under both judges.

    Attributes:
        sure_weight: Σ w of the verdicts on which the small judge was sure, drawn or not.
        drawn: the number of drawn ones among these.
        drawn_base_weight: Σ w of the drawn.
        drawn_weight: Σ v of the drawn.
        squared_weight: Σ v² of the drawn.
        failed_since: Σ v and Σ v² of the drawn that only the strong judge fails.
        passed_since: the same for the drawn that only the strong judge passes.
        replaced: Σ w·(f strong − f small) of the drawn: the change of Σ w·f by their verdicts.
    """

    sure_weight: float
    drawn: int
    drawn_base_weight: float
    drawn_weight: float
    squared_weight: float
    failed_since: tuple[float, float]
    passed_since: tuple[float, float]
    replaced: float


LEAST_DRAWN: Final = 30
"""Fewest drawn verdicts for a status by the corrected estimate: fewer would make its bounds meaninglessly wide."""


def corrected(found: Estimate, drawn: DrawnSums, *, least: int = 1) -> Estimate | None:
    """The estimate of the strong judge's pass ratio; None with fewer than ``least`` drawn verdicts.

    Args:
        found: the uncorrected estimate, with the strong judge's verdicts on the drawn ones.
        drawn: the sums over the same verdicts.
        least: at least 1.
    """
    if drawn.drawn < max(1, least) or drawn.drawn_weight <= 0:
        return None
    z, total = Z_95_TWO_SIDED, found.weight_sum
    sure = min(1.0, drawn.sure_weight / total)
    (failed, failed_squared), (passed, passed_squared) = drawn.failed_since, drawn.passed_since
    change = (failed - passed) / drawn.drawn_weight
    fail = min(1.0, max(0.0, 1 - found.pass_ratio - drawn.replaced / total + sure * change))
    around = failed_squared * (1 - 2 * change) + passed_squared * (1 + 2 * change) + drawn.squared_weight * change**2
    size = drawn.drawn_weight**2 / drawn.squared_weight
    left = max(0.0, 1 - drawn.drawn_base_weight / drawn.sure_weight)
    spread = (max(0.0, around) / drawn.drawn_weight**2 + (size + 2) ** -2) * left
    ratio, n = 1 - fail, found.effective_n
    bounds = wilson_pair(n * ratio, n)
    if bounds is None:  # n is at least 1
        return None
    margin, centre = z * z * sure * sure * spread, (n * fail + z * z / 2) / (n + z * z)
    binary = centre * (1 - centre)
    return replace(
        found, pass_ratio=ratio,
        effective_n=max(1.0, binary / (binary / n + sure * sure * spread)),
        lower=max(0.0, ratio - math.sqrt((ratio - min(bounds.lower, ratio)) ** 2 + margin)),
        upper=min(1.0, ratio + math.sqrt((max(bounds.upper, ratio) - ratio) ** 2 + margin)),
    )  # fmt: skip
