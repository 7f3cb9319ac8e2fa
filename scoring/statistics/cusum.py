"""Cusum: an early warning that the pass ratio has changed, and an estimate of when it did.

After each verdict the score S moves by how much better *bad* explains it than *good* does, and never below 0::

    S ← max(0, S + log(1 + λ·v·(good − passed)))          v: the weight, as a share of the largest

With equal weights (v = 1) that is Page's likelihood-ratio CUSUM of a proportion (Page 1954,
doi:10.1093/biomet/41.1-2.100; Reynolds and Stoumbos 1999, doi:10.1080/00224065.1999.11979900), λ chosen so that a
failure raises S by exactly ``jump`` times the step of a pass: S walks on a lattice, and the average run length to an
alarm is that of a Markov chain, solved exactly. With unequal weights no such chain is known; since exp of each move has
the expectation 1 at the good ratio, Shiryaev and Roberts' bound holds for any weights: S ≥ log A comes at the earliest
after A verdicts on average (``sequence`` has the reference). Either way the run length is a promise for ratios of
*good* or better. The estimated time of the change is the last moment at which S was 0 (Page; the maximum-likelihood
estimate).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

from sidejudge.scoring.trace.span import JsonRecord

from .evidence import Scale, Together

LEAST_GOOD = 0.6
"""Below it failures are no rarer than passes, and the chart takes the bound that holds for any weights."""
_TOLERANCE = 1e-9
_Affine: TypeAlias = tuple[float, float, float]
"""x ↦ a + b·x as (a, b, 1 − b); 1 − b is kept because it may be smaller than b's last digit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A designed CUSUM. ``good`` and ``bad`` are pass ratios; ``run_length`` counts verdicts.

    ``bet`` is λ. ``limit`` holds for equal weights, ``limit_any`` for all; both in nats, as S is. On the lattice a
    pass is one ``step`` down, a failure ``jump`` steps up (0: no lattice), and ``limit_steps`` are the limit.
    """

    good: float
    bad: float
    run_length: float
    bet: float
    step: float
    jump: int
    limit_steps: int
    limit: float
    limit_any: float


@lru_cache(maxsize=256)
def design(good: float, bad: float, run_length: float) -> Chart:
    """The chart whose false alarms at ``good`` come after ``run_length`` (> 1) verdicts or more on average.

    ``bad`` is moved slightly, onto the lattice. ``ValueError`` unless 0 < bad < good < 1.
    """
    if not 0 < bad < good < 1 or not run_length > 1:
        raise ValueError(f"a chart needs 0 < bad < good < 1 and a run length above 1: {bad}, {good}, {run_length}")
    any_limit = math.log(run_length)
    if good < LEAST_GOOD:
        bet = (good - bad) / (good * (1 - good))
        return Chart(
            good=good, bad=bad, run_length=run_length, bet=bet, step=0.0, jump=0, limit_steps=0,
            limit=any_limit, limit_any=any_limit,
        )  # fmt: skip
    ratio = math.log((1 - bad) / (1 - good)) / math.log(good / bad)
    jump = max(1, min(round(ratio), math.ceil(good / (1 - good) - 1e-9) - 1))
    bet = _bet(good, jump)
    step = -math.log1p(-bet * (1 - good))
    steps = next(height for height, mean in enumerate(_run_lengths(good, jump), 1) if mean >= run_length)
    return Chart(
        good=good, bad=good - bet * good * (1 - good), run_length=run_length, bet=bet, step=step, jump=jump,
        limit_steps=steps, limit=min(steps * step, any_limit), limit_any=any_limit,
    )  # fmt: skip


def average_run_length(chart: Chart, pass_ratio: float) -> float:
    """Verdicts of equal weight until the first alarm, on average, at this pass ratio; a lower bound off the lattice."""
    if not chart.jump:
        return chart.run_length if pass_ratio >= chart.good else 1.0
    if pass_ratio >= 1:
        return math.inf
    return next(islice(_run_lengths(pass_ratio, chart.jump), chart.limit_steps - 1, None))


class Cusum:
    """One running chart: S in nats, and the time since which S has been above 0.

    ``alarmed`` begins when S reaches the limit and ends when it is back at 0. S is capped at the limit plus one
    failure, so that a recovery shows soon.
    """

    __slots__ = ("_failed", "_scale", "_weight", "alarmed", "n", "score", "since_ns")

    def __init__(self) -> None:
        self._scale = Scale()
        self._weight = self._failed = 0.0
        self.score, self.n, self.alarmed = 0.0, 0, False
        self.since_ns: int | None = None

    @property
    def pass_ratio(self) -> float | None:
        """The weighted pass ratio since S was last 0; ``None`` while S is 0."""
        return 1 - self._failed / self._weight if self._weight else None

    def limit(self, chart: Chart) -> float:
        """The limit in force, in nats: the exact one while all weights are equal."""
        return chart.limit if self._scale.even else chart.limit_any

    def add(self, chart: Chart, *, passed: float, weight: float, at_ns: int, worth: float = 1.0) -> None:
        """Take in the next verdict, of weight 1/probability, reached at this time.

        ``passed`` may be a part of 1, as a graded answer is: the run length is then the bound that holds for any.
        ``worth`` in [0, 1] scales its move: verdicts of one cluster carry less information (``design_effect``).
        """
        self.n += 1
        self._scale.pass_to(at_ns, weight)
        share = self._scale.share(weight)
        if share is None:
            self._calm()
            share = 1.0
        if 0 < passed < 1:
            self._scale.even = False
        # A share may be up to 2: what it takes off must stay below the whole.
        rise = worth * math.log1p(max(-0.99, chart.bet * share * (chart.good - passed)))
        self._weight += share
        self._failed += share * (1 - passed)
        self._move(chart, rise, at_ns)

    def add_together(self, chart: Chart, group: Sequence[Together], *, at_ns: int) -> float:
        """Take in a group of verdicts that began at this time, as one move that does not depend on their order.

        S is held above 0 only after the whole group, so that until an alarm it is never higher than verdict by verdict.

        Returns:
            The share of the group's failures that S needed to reach the limit, in [0, 1], at most one too many; 1 where
            it did not reach it.
        """
        if not group:
            return 1.0
        self.n += sum(each.n for each in group)
        self._scale.pass_together(at_ns, group)
        shares, anew = self._scale.shares_or_anew({each.weight for each in group})
        if anew:
            self._calm()
        moves = [
            (each, each.worth * math.log1p(max(-0.99, chart.bet * shares[each.weight] * (chart.good - each.passed))))
            for each in group
        ]
        self._weight += math.fsum(shares[each.weight] * each.n for each in group)
        self._failed += math.fsum(shares[each.weight] * each.n for each in group if not each.passed)
        risen = math.fsum(move for each, move in moves if not each.passed)
        missing = self.limit(chart) - self.score + math.log1p(chart.bet * chart.good)
        self._move(chart, math.fsum(move for _, move in moves), at_ns)
        return min(1.0, max(0.0, missing / risen)) if self.alarmed and risen else 1.0

    def _move(self, chart: Chart, rise: float, at_ns: int) -> None:
        limit = self.limit(chart)
        self.score = min(max(0.0, self.score + rise), limit + math.log1p(chart.bet * chart.good))
        if self.score <= _TOLERANCE:
            self._calm()
        elif self.since_ns is None:
            self.since_ns = at_ns
        self.alarmed = self.alarmed or self.score >= limit - _TOLERANCE

    def _calm(self) -> None:
        self.score, self.since_ns, self.alarmed = 0.0, None, False
        self._weight = self._failed = 0.0

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        return {
            "score": self.score, "n": self.n, "alarmed": self.alarmed, "since_ns": self.since_ns,
            "weight": self._weight, "failed": self._failed, **self._scale.to_json(),
        }  # fmt: skip

    def restore(self, record: JsonRecord) -> None:
        """Restore the state that ``to_json`` wrote."""
        self.score, self.n, self.alarmed = float(record["score"]), int(record["n"]), bool(record["alarmed"])
        self.since_ns = record["since_ns"]
        self._weight, self._failed = float(record.get("weight", 0.0)), float(record.get("failed", 0.0))
        self._scale = Scale.of_json(record)


def _bet(good: float, jump: int) -> float:
    """λ > 0 at which log(1 + λ·good) = −jump · log(1 − λ·(1 − good)), by bisection: there is one."""
    low, high = 0.0, 1 / (1 - good)
    for _ in range(200):
        middle = (low + high) / 2
        rises = middle < high and math.log1p(middle * good) + jump * math.log1p(-middle * (1 - good)) > 0
        low, high = (middle, high) if rises else (low, middle)
    return low


def _run_lengths(pass_ratio: float, jump: int) -> Iterator[float]:
    """Average run lengths from 0 for limits of 1, 2, 3 … steps.

    Let x(s) be the mean time to the alarm from s. Eliminated from the top, x(s) = a + b·x(s − 1) with a and b that only
    depend on the distance from the limit, so that one sweep gives the run length for every limit.
    """
    p, q = pass_ratio, 1 - pass_ratio
    window = _Composed()
    for _ in range(jump):
        yield 1 / q  # one failure is an alarm
        window.push((1.0, p, q))
    while True:
        a, _, c = window.whole
        yield (1 + q * a) / (q * c)
        lost = p + q * c  # 1 − q·b
        window.push(((1 + q * a) / lost, p / lost, q * c / lost))
        window.pop()


def _after(outer: _Affine, inner: _Affine) -> _Affine:
    return (outer[0] + outer[1] * inner[0], outer[1] * inner[1], outer[2] + outer[1] * inner[2])


class _Composed:
    """A queue of affine maps and their composition, the oldest outermost; a step costs the same however long it is."""

    def __init__(self) -> None:
        self._front: list[_Affine] = []
        self._back: list[_Affine] = []
        self._of_back: _Affine | None = None

    def push(self, new: _Affine) -> None:
        self._back.append(new)
        self._of_back = new if self._of_back is None else _after(self._of_back, new)

    def pop(self) -> None:
        if not self._front:
            held: _Affine | None = None
            for each in reversed(self._back):
                held = each if held is None else _after(each, held)
                self._front.append(held)
            self._back, self._of_back = [], None
        self._front.pop()

    @property
    def whole(self) -> _Affine:
        if not self._front:
            return self._of_back or (0.0, 1.0, 0.0)
        return self._front[-1] if self._of_back is None else _after(self._front[-1], self._of_back)
