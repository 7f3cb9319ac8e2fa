"""Evidence against a hypothesis that may be looked at as often as one likes.

Both numbers are Bayes factors of a prior alternative against a point hypothesis, and as the data come in they are
martingales under it. By Ville's inequality the chance that such a factor *ever* reaches 1/alpha, however often it is
looked at, is at most alpha while the hypothesis holds (Ville 1939; Wagenmakers et al. 2022, "anytime-valid" tests). A
p-value that is computed again and again has no such bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["against_rate", "against_uniform"]


def against_uniform(counts: Sequence[int]) -> float:
    """Natural logarithm of the evidence against *every bin is equally likely*; 0 without any count.

    The alternative: bin probabilities drawn evenly from the simplex (Dirichlet with all parameters 1). Raises
    ``ValueError`` for fewer than two bins or a negative count.
    """
    if len(counts) < 2 or min(counts) < 0:
        raise ValueError(f"needs two or more counts, none negative, got {list(counts)!r}")
    bins, n = len(counts), sum(counts)
    alternative = math.lgamma(bins) - math.lgamma(n + bins) + math.fsum(math.lgamma(count + 1) for count in counts)
    return alternative + n * math.log(bins)


def against_rate(hits: int, n: int, rate: float) -> float:
    """Natural logarithm of the evidence against *each of n independent trials hits with probability rate*.

    The alternative: a probability drawn from Jeffreys' prior, Beta(1/2, 1/2). ``rate`` in [0, 1]; at 0 and 1 one trial
    that contradicts is infinite evidence. Raises ``ValueError`` outside of that, or for more hits than trials.
    """
    if not 0 <= hits <= n or not 0.0 <= rate <= 1.0:
        raise ValueError(f"needs 0 <= hits <= n and a rate in [0, 1], got {hits!r} of {n!r} at {rate!r}")
    hypothesis = _times_log(hits, rate) + _times_log(n - hits, 1.0 - rate)
    alternative = math.lgamma(hits + 0.5) + math.lgamma(n - hits + 0.5) - math.lgamma(n + 1) - math.log(math.pi)
    return math.inf if hypothesis == -math.inf else alternative - hypothesis


def _times_log(count: int, chance: float) -> float:
    if count == 0:
        return 0.0
    return count * math.log(chance) if chance > 0.0 else -math.inf
