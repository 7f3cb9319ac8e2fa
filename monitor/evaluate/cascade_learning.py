"""Cascade learning: verdicts checked by a strong judge in, the cheapest thresholds for a stated agreement out.

The drawn verdicts without doubt represent all of them, by the inverse of their rate. Together with the doubtful ones
they show the remaining errors and the cost of any other threshold.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from sidejudge.monitor.config.evaluators import CascadeSection
from sidejudge.scoring.statistics.interval import wilson
from sidejudge.scoring.statistics.two_phase import LEAST_DRAWN
from sidejudge.scoring.verdict.escalation import Escalation, EscalationCause
from sidejudge.scoring.verdict.rubric import Rubric

from .cascade import NEAR_MARK, UNSURE

MARGINS: Final = (0.0, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2)
CERTAINTIES: Final = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
MOST: Final = 1_000
"""Most kept verdicts of a rubric that a strong judge saw, the latest ones."""
_EVERY: Final = 25
"""Verdicts after which it is learned anew."""
_Z: Final = 1.0
"""The remaining error is estimated high enough for five of six samples like this one."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A verdict that two judges reached: how near its mark and how certain the first was, and whether it was wrong."""

    distance: float
    certainty: float
    wrong: bool
    weight: float
    drawn: bool


@dataclass(slots=True)
class CascadeLearning:
    """Learned thresholds by rubric. ``take`` is called with each verdict once, ``policy`` from any thread."""

    rubrics: Mapping[str, Rubric]
    section: CascadeSection
    _seen: dict[str, deque[_Seen]] = field(default_factory=dict)
    _taken: dict[str, int] = field(default_factory=dict)
    _learned: dict[str, tuple[float, float]] = field(default_factory=dict)

    def take(self, rubric: str, passed: bool | None, seen: Escalation) -> None:  # noqa: FBT001  # a verdict's
        """Learn from a verdict that went through the cascade."""
        goal, of = self.section.agreement, self.rubrics.get(rubric)
        if goal is None or of is None or passed is None or seen.passed_before is None:
            return
        drawn = seen.cause is EscalationCause.DRAWN and seen.rate > 0
        if not drawn and seen.cause is not EscalationCause.DOUBT:
            return
        free = drawn or seen.why in (NEAR_MARK, UNSURE)  # no threshold decides on the others: they are always asked
        distance = math.inf
        if seen.composite_before is not None and of.pass_mark is not None:
            distance = abs(seen.composite_before - of.pass_mark / of.scale)
        one = _Seen(
            distance=distance if free else -1.0,
            certainty=1.0 if seen.certainty_before is None else seen.certainty_before,
            wrong=seen.passed_before != passed,
            weight=1 / seen.rate if drawn else 1.0,
            drawn=drawn,
        )
        held = self._seen.setdefault(rubric, deque(maxlen=MOST))
        held.append(one)
        self._taken[rubric] = self._taken.get(rubric, 0) + 1
        if self._taken[rubric] % _EVERY == 0:
            found = cheapest(held, 1 - goal)
            if found is None:
                self._learned.pop(rubric, None)
            else:
                self._learned[rubric] = found

    def policy(self, rubric: str, stated: CascadeSection) -> CascadeSection:
        """The thresholds in force for a rubric: as stated until enough is known, or where none reaches the goal."""
        learned = self._learned.get(rubric) if stated.agreement is not None else None
        if learned is None:
            return stated
        return stated.model_copy(update={"margin": learned[0], "sure_from": learned[1]})

    def forget(self, rubrics: Iterable[str]) -> None:
        """Begin anew with rubrics that have changed."""
        for rubric in rubrics:
            for kept in (self._seen, self._taken, self._learned):
                kept.pop(rubric, None)


def cheapest(seen: Iterable[_Seen], allowed: float) -> tuple[float, float] | None:
    """The thresholds (margin, certainty) that ask least while at most ``allowed`` stays wrong; None where none do."""
    listed = list(seen)
    if sum(each.drawn for each in listed) < LEAST_DRAWN:
        return None
    whole = math.fsum(each.weight for each in listed)
    best: tuple[float, float, float] | None = None
    for margin, sure_from in product(MARGINS, CERTAINTIES):
        unasked = [each for each in listed if each.distance > margin + 1e-9 and each.certainty >= sure_from]
        weight = math.fsum(each.weight for each in unasked)
        left = 0.0
        if unasked:
            n = weight * weight / math.fsum(each.weight**2 for each in unasked)
            wrong = math.fsum(each.weight for each in unasked if each.wrong) / weight
            bounds = wilson(wrong * n, n, _Z)
            left = weight / whole * (1.0 if bounds is None else bounds.upper)
        if left <= allowed and (best is None or whole - weight < best[0] - 1e-9):
            best = (whole - weight, margin, sure_from)
    return None if best is None else best[1:]
