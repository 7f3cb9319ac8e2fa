"""Sequence: bounds on a pass ratio that hold at any number of looks.

A Wilson bound is right with 95 % *each time* it is computed; looked at every minute, it will be wrong some day. A
confidence sequence is right *at all times at once*. Against "the pass ratio is at least m" it bets on failures; bets
against a true statement gain nothing on average, so that wealth is evidence (Ville 1939). For a verdict of weight v (a
share of the largest) and a bet f in (0, 1/2]::

    passed:  M ← M · (1 − f·v)              failed:  M ← M · (1 + f·v·m / (1 − m))

The expected factor is at most 1 while the traffic's pass ratio is at least m, for *any* distribution of the weights:
this means E[v·(m − passed)] ≤ 0 (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by
betting", JRSS B 86(1):1–27, doi:10.1093/jrsssb/qkad009). Five bets share the wealth, so that the size of the drop need
not be known.

*A sliding restart.* A service that was good for weeks would have lost all its wealth by the day it turns bad. So new
wealth comes in steadily, Δt / period for the time Δt since the previous verdict: one sum of the evidence since every
moment (Shiryaev 1963, Roberts 1966; as an e-detector: Shin, Ramdas and Rinaldo 2023, doi:10.51387/23-NEJSDS51). M minus
this income is a supermartingale, hence the promise::

    P(evidence reaches 1/error at any time within T) ≤ error · T / period

*Assumptions.* Given what came before, a verdict passes with a weighted mean of at least m (independence is not needed,
a ratio that truly dips for a while breaks it, and should); inclusion probabilities are true and depend on the outcome
only through the weights; the time of a verdict does not depend on it. A weight of more than twice the largest so far
begins anew (``evidence.Scale``). A verdict counts once, in its first version; later revisions change windows, not this.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence

from sidejudge.scoring.trace.span import JsonRecord

from .evidence import Scale, Together

BETS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Shares of the wealth staked against a pass: from drops of a few points to collapses. All pay at a share of 2."""
GRID = tuple(step / 20 for step in range(1, 20))
"""Levels at which the upper bound is computed: every 0.05."""
_EDGE = 1e-4
"""The distance of levels from 0 and 1, where one verdict would be infinite evidence."""
_CAP = 100.0
"""Wealth beyond this multiple of the convincing amount is dropped, so that a recovery shows soon."""

_LEAST = -1 + 1e-9
"""A stake of everything, at a share of 2, leaves a trace, so that its logarithm is finite."""
_MOST_LOG = 700.0
"""The largest power that a float holds; more is dropped anyhow."""


class ConfidenceSequence:
    """Evidence that the pass ratio has been below each of ``levels`` (in [0, 1]) since any moment.

    ``error`` in (0, 1) is the chance of a wrong conclusion within ``period_ns``, however often one looks.
    """

    __slots__ = ("_convincing", "_last_ns", "_most", "_odds", "_period_ns", "_scale", "_wealth", "levels", "n")

    def __init__(self, levels: Iterable[float], *, error: float, period_ns: int) -> None:
        if not 0 < error < 1 or period_ns <= 0:
            raise ValueError(f"an error lies in (0, 1) and a period is positive, got {error} and {period_ns}")
        self.levels = sorted({_inside(level) for level in levels})
        self._odds = [level / (1 - level) for level in self.levels]
        self._convincing, self._period_ns = 1 / error, period_ns
        self._most = _CAP * self._convincing
        self._scale = Scale()
        self._last_ns: int | None = None
        self._wealth = self._nothing()
        self.n = 0

    def add(self, *, passed: float, weight: float, at_ns: int, worth: float = 1.0) -> None:
        """Take in the next verdict, of weight 1/probability, reached at this time.

        ``passed`` may be a part of 1, as a graded answer is; its factor lies between the two, and the promise holds.
        ``worth`` in [0, 1] is the power of its factor: verdicts of one cluster carry less information
        (``design_effect``).
        """
        self.n += 1
        income = self._income(at_ns)
        self._scale.pass_to(at_ns, weight)
        share = self._scale.share(weight)
        if share is None:
            self._wealth = self._nothing()
            return
        for place, bet in enumerate(BETS):
            stake, row = bet * share, self._wealth[place]
            if 0 < passed < 1:
                factors = ((1 + stake * (odds - passed * (1 + odds))) ** worth for odds in self._odds)
                self._wealth[place] = [
                    min(self._most, held * factor + income) for held, factor in zip(row, factors, strict=True)
                ]
            elif passed:
                kept = (1 - stake) ** worth
                self._wealth[place] = [held * kept + income for held in row]
            else:
                grown = [
                    held * (1 + stake * odds) ** worth + income for held, odds in zip(row, self._odds, strict=True)
                ]
                self._wealth[place] = [min(self._most, held) for held in grown]

    def add_together(self, group: Sequence[Together], *, at_ns: int) -> None:
        """Take in a group of verdicts at this time, as one product of factors that does not depend on their order.

        The new wealth of the time since the previous verdict comes in after them, so that the promise holds.
        """
        if not group:
            return
        self.n += sum(each.n for each in group)
        income = self._income(at_ns)
        self._scale.pass_together(at_ns, group)
        shares = self._scale.shares({each.weight for each in group})
        if shares is None:
            self._wealth = self._nothing()
            return
        passes, failures = ([each for each in group if each.passed is side] for side in (True, False))
        for place, bet in enumerate(BETS):
            kept = math.fsum(each.worth * math.log1p(max(_LEAST, -bet * shares[each.weight])) for each in passes)
            grown = (
                math.fsum(each.worth * math.log1p(bet * shares[each.weight] * odds) for each in failures)
                for odds in self._odds
            )
            self._wealth[place] = [
                min(self._most, held * math.exp(min(_MOST_LOG, kept + gain)) + income)
                for held, gain in zip(self._wealth[place], grown, strict=True)
            ]

    def _income(self, at_ns: int) -> float:
        """The new wealth of the time since the previous verdict."""
        income = 0.0 if self._last_ns is None else min(1.0, max(0, at_ns - self._last_ns) / self._period_ns)
        self._last_ns = at_ns if self._last_ns is None else max(at_ns, self._last_ns)
        return income

    @property
    def largest_weight(self) -> float:
        """The largest weight so far; 0 before the first."""
        return self._scale.largest

    def evidence(self, level: float) -> float:
        """The evidence that the ratio is below the level, as a multiple of the convincing amount."""
        place = self.levels.index(_inside(level))
        return sum(row[place] for row in self._wealth) / len(BETS) / self._convincing

    def below(self, level: float) -> bool:
        """Whether the pass ratio is below the level, by evidence that convinces."""
        return self.evidence(level) >= 1.0

    @property
    def upper(self) -> float:
        """The lowest level that the ratio is convincingly below: an upper bound in steps of the levels, else 1."""
        found = bisect.bisect_left(range(len(self.levels)), 1, key=lambda k: int(self.below(self.levels[k])))
        return self.levels[found] if found < len(self.levels) else 1.0

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        return {
            "levels": self.levels, "wealth": self._wealth, "last_ns": self._last_ns, "n": self.n,
            **self._scale.to_json(),
        }  # fmt: skip

    def restore(self, record: JsonRecord) -> None:
        """Restore the state that ``to_json`` wrote; missing levels begin anew, and all do where the bets differ."""
        if len(record["wealth"]) == len(BETS):
            known = [dict(zip(record["levels"], row, strict=True)) for row in record["wealth"]]
            self._wealth = [[float(row.get(level, 0.0)) for level in self.levels] for row in known]
        self._last_ns, self.n = record["last_ns"], int(record["n"])
        self._scale = Scale.of_json(record)

    def _nothing(self) -> list[list[float]]:
        """No wealth: a row for each bet, in it a number for each level."""
        return [[0.0] * len(self.levels) for _ in BETS]


def _inside(level: float) -> float:
    return min(1 - _EDGE, max(_EDGE, level))
