"""Drop level: whether the pass ratio since a drop was noticed lies below a level, corrected for the selection.

A change detector selects the stretch that looks worst, so that the ratio since the drop began is too low: at a constant
0.75 such stretches lie below 0.70 many times a month. Verdicts *after* the detector's alarm were not selected. From
there on this bets on failures (the bets of ``sequence`` without the sliding restart). Bets against a true statement
reach 1/error at most once in 1/error times, however often one looks (Ville 1939). The price is a few more verdicts
until a drop is called critical; about four where nothing passes any more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from sidejudge.scoring.trace.span import JsonRecord

from .evidence import Scale, Together

BETS: Final = (1 / 7, 1 / 3, 1 / 2)
"""Shares of the wealth staked against a pass: from ten points below the level to an outage. All pay at a share of 2."""
_LEAST: Final = -1 + 1e-9
"""A stake of everything leaves a trace, so that its logarithm is finite."""
_CAP: Final = 100.0
"""Wealth beyond this multiple of the convincing amount is dropped, so that a recovery shows soon."""
_MOST_LOG: Final = 700.0


class DropLevel:
    """The verdicts since a drop was noticed, against ``level`` in (0, 1); ``error`` in (0, 1) for each drop.

    ``bets`` are the stakes, each in (0, 1/2].

    ``below``: the evidence that the pass ratio is lower has convinced, and is not all gone. ``convincing`` is the
    wealth that it takes.
    """

    __slots__ = ("_bets", "_failed", "_odds", "_scale", "_wealth", "_weight", "below", "convincing")

    def __init__(self, level: float, error: float, bets: Sequence[float] = BETS) -> None:
        if not 0 < level < 1 or not 0 < error < 1:
            raise ValueError(f"a level and an error lie in (0, 1), got {level} and {error}")
        self._odds, self.convincing, self._bets = level / (1 - level), 1 / error, bets
        self._scale = Scale()
        self._wealth: list[float] | None = None
        self._weight = self._failed = 0.0
        self.below = False

    @property
    def watches(self) -> bool:
        """Whether a drop was noticed and is not over."""
        return self._wealth is not None

    @property
    def pass_ratio(self) -> float | None:
        """The weighted pass ratio since the drop was noticed, None where there is none or nothing came since."""
        return 1 - self._failed / self._weight if self._weight else None

    def noticed(self, *, alarmed: bool) -> None:
        """Record whether the change detector is alarmed after its latest verdict; only then the next verdicts count."""
        if not alarmed:
            self._wealth, self._weight, self._failed, self.below = None, 0.0, 0.0, False
        elif self._wealth is None:
            self._wealth = [1.0] * len(self._bets)

    def add(self, *, passed: float, weight: float, worth: float = 1.0, at_ns: int | None = None) -> None:
        """Take in the next verdict, of weight 1/probability; ``worth`` in [0, 1] as in ``design_effect``.

        ``passed`` may be a part of 1, as a graded answer is; its gain lies between the two, and the promise holds.
        """
        self._scale.pass_to(at_ns, weight)
        self._take([(passed, weight, 1, worth)])

    def add_together(self, group: Sequence[Together], *, spent: float = 0.0, at_ns: int | None = None) -> None:
        """Take in verdicts that came together in an unknown order.

        ``spent`` in [0, 1] is the share of their failures that raised the change detector's alarm. They do not count,
        as if they came first and all passes after them. Any other order would leave more wealth, because a pass costs
        more of the wealth, relative to a failure's gain, than of the detector's score.
        """
        if group:
            self._scale.pass_together(at_ns, group)
            self._take([(each.passed, each.weight, each.n, each.worth) for each in group], spent)

    def _take(self, rows: Sequence[tuple[float, float, int, float]], spent: float = 0.0) -> None:
        """Take in rows of (passed, weight, number, worth)."""
        shares = self._scale.shares({weight for _, weight, _, _ in rows})
        if self._wealth is None:
            return
        if shares is None:
            self.noticed(alarmed=False)
            self.noticed(alarmed=True)
            return
        for place, bet in enumerate(self._bets):
            grown = math.fsum(
                worth
                * (1.0 if passed else 1 - spent)
                * math.log1p(max(_LEAST, bet * shares[weight] * ((1 - passed) * self._odds - passed)))
                for passed, weight, _, worth in rows
            )
            held = self._wealth[place] * math.exp(min(_MOST_LOG, grown))
            self._wealth[place] = min(_CAP * self.convincing, held)
        failed = (1 - spent) * math.fsum(shares[weight] * n * (1 - passed) for passed, weight, n, _ in rows)
        self._weight += failed + math.fsum(shares[weight] * n * passed for passed, weight, n, _ in rows)
        self._failed += failed
        evidence = math.fsum(self._wealth) / len(self._bets)
        self.below = evidence >= self.convincing or (self.below and evidence > 1)

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        return {
            "wealth": self._wealth, "weight": self._weight, "failed": self._failed, "below": self.below,
            **self._scale.to_json(),
        }  # fmt: skip

    def restore(self, record: JsonRecord) -> None:
        """Restore the state that ``to_json`` wrote; begin anew where the bets differ."""
        self._scale = Scale.of_json(record)
        wealth = record["wealth"]
        if wealth is None or len(wealth) != len(self._bets):
            return
        self._wealth = [float(each) for each in wealth]
        self._weight, self._failed, self.below = float(record["weight"]), float(record["failed"]), bool(record["below"])
