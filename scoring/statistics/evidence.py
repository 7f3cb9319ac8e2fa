"""Evidence against a hypothesis, valid at any number of looks.

Both numbers are Bayes factors of a prior alternative against a point hypothesis, and as the data come in they are
martingales under it. By Ville's inequality the chance that such a factor *ever* reaches 1/alpha, however often it is
looked at, is at most alpha while the hypothesis holds (Ville 1939; Wagenmakers et al. 2022, "anytime-valid" tests). A
p-value that is computed again and again has no such bound.

*Scale*: weights as shares of the largest one so far, for methods that look after every verdict. Such a method stakes
something on the next verdict before it knows its weight, so the stake needs a bound on that weight. The bound is the
largest weight so far, twice over; a verdict with a larger weight is not used, and the method begins anew. With one
sampling rate all shares are 1. When the rate falls to less than half, the method begins anew once. When it rises, what
comes would be worth less for good, so weights that do not come again are forgotten: at the end of a term, of a week and
``TERM_N`` verdicts, the bound is the largest weight of that term. It is known before the next verdict, so the promise
holds. A week, because the peaks of traffic come back by then; so many verdicts, because a rule may keep failures alone,
and a term without any other verdict would make those the whole traffic.

*Group*: verdicts that came together in an unknown order, such as those of several monitors in one minute. A method that
follows verdicts one by one (CUSUM, confidence sequence, design effect) takes a group as one move. The move does not
depend on the order, so that it is the same for any division of the verdicts among monitors. It is the product of the
same factors, so that each promise holds: a product of bets against a true statement is such a bet too. The delay is one
group at most: a drop counts from the end of the group in which it began.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, Self

from sidejudge.scoring.trace.span import JsonRecord
from sidejudge.scoring.trace.time_units import DAY_NS

from .estimate import check_weight


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
    return alternative - hypothesis


def _times_log(count: int, chance: float) -> float:
    if count == 0:
        return 0.0
    return count * math.log(chance) if chance > 0.0 else -math.inf


LARGEST_SHARE = 2.0
"""The largest share; a stake must be able to pay it."""


TERM_NS: Final = 7 * DAY_NS
TERM_N: Final = 1_000
"""The least length of a term, after which weights are forgotten that were before it."""


class Scale:
    """The largest weight of this term and the one before. ``even``: all weights since the last beginning were equal."""

    __slots__ = ("_begun_ns", "_n", "_of_term", "even", "largest")

    def __init__(self, largest: float = 0.0, *, even: bool = True) -> None:
        self.largest, self.even = largest, even
        self._begun_ns: int | None = None
        self._n, self._of_term = 0, 0.0

    def to_json(self) -> dict[str, object]:
        """What a statistic that has one keeps of it."""
        return {"largest": self.largest, "even": self.even, "term": [self._begun_ns, self._n, self._of_term]}

    @classmethod
    def of_json(cls, record: JsonRecord) -> Self:
        """Read what ``to_json`` wrote, in this version or an earlier one."""
        scale = cls(float(record["largest"]), even=bool(record["even"]))
        scale._begun_ns, scale._n, scale._of_term = record.get("term", (None, 0, 0.0))
        return scale

    def pass_to(self, at_ns: int | None, weight: float, n: int = 1) -> None:
        """Go on to the time of the next verdicts, n of at most this weight; without times nothing is forgotten."""
        check_weight(weight)
        if at_ns is None:
            return
        if self._begun_ns is None or at_ns < self._begun_ns:  # a clock was set back
            self._begun_ns = at_ns
        elif at_ns - self._begun_ns >= TERM_NS and self._n >= TERM_N:
            self.largest, self._of_term, self._n, self._begun_ns = self._of_term, 0.0, 0, at_ns
        self._n += n
        self._of_term = max(self._of_term, weight)

    def pass_together(self, at_ns: int | None, group: Collection[Together]) -> None:
        """The same for verdicts that came together; at least one."""
        self.pass_to(at_ns, max(each.weight for each in group), sum(each.n for each in group))

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

    def shares_or_anew(self, weights: Collection[float]) -> tuple[dict[float, float], bool]:
        """As ``shares``; where the method begins anew (the second value), shares of the largest of these weights."""
        found = self.shares(weights)
        return ({weight: weight / max(weights) for weight in weights}, True) if found is None else (found, False)


class Together(NamedTuple):
    """``n`` equal verdicts: outcome, weight and cluster (None: each is its own).

    ``worth`` is their total worth, at most ``n`` (``design_effect``).
    """

    passed: bool
    weight: float
    n: int
    worth: float
    cluster: str | None = None
