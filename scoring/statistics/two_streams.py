"""Two streams: evidence that one part of the traffic passes less often than all the rest at the same time.

Events that affect both (an outage, a stricter judge, a bad hour) are no evidence: only the difference counts. The
verdicts since the last look are one block. The rest's ratio of failures q is predicted from earlier blocks; under the
alternative this part fails with the ratio a, whose odds are ``ODDS`` times as high. Equal parts would both fail with p
= (W·a + V·q) / (W + V), where W and V are the sizes of the two in this block. The bet of a block is

    Π a(y)/p(y) over the part · Π q(y)/p(y) over the rest          (Turner, Ly and Grünwald 2021, arXiv:2106.02693)

By the inequality of the means its expectation is at most 1 wherever the part passes at least as often as the rest, for
any ratio, and a wrong prediction only costs power. The evidence never falls below 1, so that good weeks do not hide a
bad present; it then reaches A at the earliest after A blocks on average (Shin, Ramdas and Rinaldo 2022,
arXiv:2203.03532): a promise about false alarms, however often one looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from sidejudge.scoring.trace.span import JsonRecord

from .baseline import Baseline
from .evidence import Scale, Together

ODDS: Final = (2.0, 4.0, 12.0)
"""The multiples of the odds of a failure that are bet on, each with an equal share."""
_LEAST, _MOST = 0.01, 0.5
"""The range of the predicted ratio of failures: at 0 a multiple of the odds is still 0."""
_KEPT: Final = 3.0
"""Most nats kept beyond the limit, so that a recovery shows soon."""
_AGAIN: Final = 4.0
"""Nats that are missing for another alarm once one is over: what only seems worse by chance rarely gains them."""
_CALM: Final = 0.1
_FLOOR: Final = 1e-9


class TwoStreams:
    """The evidence that a part passes less often than the rest; ``expected`` is the pass ratio to begin with.

    ``worse`` lasts from when the evidence reaches its limit until it is gone, or until ``over``. ``share`` is the
    evidence as a share of the limit.
    """

    __slots__ = ("_evidence", "_rest", "_scale", "share", "since_ns", "worse")

    def __init__(self, expected: float) -> None:
        self._rest, self._scale = Baseline(expected), Scale()
        self._evidence = [0.0] * len(ODDS)
        self.share, self.worse = 0.0, False
        self.since_ns: int | None = None

    def add(self, part: Sequence[Together], rest: Sequence[Together], limit: float, *, at_ns: int) -> None:
        """Take in the verdicts since the last look, which began at this time; ``limit`` is log A, in nats."""
        predicted = min(_MOST, max(_LEAST, 1 - self._rest.mean))
        self._rest.add_together(rest, at_ns=at_ns)
        if not part or not rest:
            return
        both = [*part, *rest]
        self._scale.pass_together(at_ns, both)
        shares = self._scale.shares({each.weight for each in both})
        if shares is None:
            self._begin_anew()
            return
        sizes = [math.fsum(shares[each.weight] * each.n for each in side) for side in (part, rest)]
        for place, odds in enumerate(ODDS):
            bad = odds * predicted / (1 - predicted + odds * predicted)
            equal = (sizes[0] * bad + sizes[1] * predicted) / (sizes[0] + sizes[1])
            grown = _bet(part, shares, bad, equal) + _bet(rest, shares, predicted, equal)
            self._evidence[place] = min(limit + math.log(len(ODDS)) + _KEPT, max(0.0, self._evidence[place] + grown))
        mean = self._mean
        if mean <= _CALM:
            self.since_ns, self.worse = None, False
        elif self.since_ns is None:
            self.since_ns = at_ns
        self.share = mean / limit
        self.worse = self.worse or mean >= limit

    def over(self) -> None:
        """End the alarm although evidence is left; part of it must come again before the next alarm."""
        if self.share > 0:
            limit = self._mean / self.share
            most = max(0.0, limit + math.log(len(ODDS)) - _AGAIN)
            self._evidence = [min(each, most) for each in self._evidence]
            self.share = self._mean / limit
        self.worse = False

    @property
    def _mean(self) -> float:
        return math.log(math.fsum(map(math.exp, self._evidence)) / len(ODDS))

    def _begin_anew(self) -> None:
        self._evidence = [0.0] * len(ODDS)
        self.share, self.since_ns, self.worse = 0.0, None, False

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        return {
            "rest": self._rest.to_json(), **self._scale.to_json(),
            "evidence": self._evidence, "share": self.share, "worse": self.worse, "since_ns": self.since_ns,
        }  # fmt: skip

    def restore(self, record: JsonRecord) -> None:
        """Restore the state that ``to_json`` wrote; begin anew where the bets differ."""
        self._rest.restore(record["rest"])
        self._scale = Scale.of_json(record)
        if len(record["evidence"]) == len(ODDS):
            self._evidence = [float(each) for each in record["evidence"]]
            self.share, self.worse, self.since_ns = float(record["share"]), bool(record["worse"]), record["since_ns"]


def _bet(side: Sequence[Together], shares: dict[float, float], failing: float, equal: float) -> float:
    """The logarithm of the payoff of a side's verdicts; one of little weight, or of a cluster, moves it less."""
    return math.fsum(
        each.worth
        * math.log(
            max(
                _FLOOR,
                1 + shares[each.weight] * (((1 - failing) / (1 - equal) if each.passed else failing / equal) - 1),
            )
        )
        for each in side
    )
