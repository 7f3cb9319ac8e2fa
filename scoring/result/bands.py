"""Bands and blockers: from a value to its rating, and to the refusal to pass it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_DIGITS = 9
"""Values are compared after rounding to 9 decimals, so that 18/20 is never 0.8999999 (rubrics §1.3)."""


def _rounded(value: float) -> float:
    return value if value in (0.0, 1.0) else round(value, _DIGITS)  # most are either: to round takes 0.4 µs


@dataclass(frozen=True, slots=True)
class Bands:
    """Ratings from best to worst with the bound at which each begins; what reaches none is ``otherwise``.

    A value at a bound is in the better band. ``higher_is_better``: on which side "better" lies.
    """

    steps: tuple[tuple[str, float], ...]
    otherwise: str
    higher_is_better: bool = True

    def rating(self, value: float) -> str:
        rounded = _rounded(value)
        for rating, bound in self.steps:
            if (rounded >= bound) if self.higher_is_better else (rounded <= bound):
                return rating
        return self.otherwise

    @property
    def acceptable(self) -> float:
        """The worst value that is still acceptable: the last bound."""
        return self.steps[-1][1]

    @property
    def good(self) -> float:
        """The worst value that is still good: the first bound."""
        return self.steps[0][1]

    def describe(self) -> str:
        """The bands in one line: ``good >= 0.95, acceptable >= 0.9, else fail``."""
        sign = ">=" if self.higher_is_better else "<="
        return ", ".join(f"{rating} {sign} {bound:g}" for rating, bound in self.steps) + f", else {self.otherwise}"


def at_least(*, good: float, acceptable: float, otherwise: str = "fail") -> Bands:
    """Bands of a value that should be high: ``good`` from its bound up, and so on."""
    return Bands((("good", good), ("acceptable", acceptable)), otherwise)


def at_most(*, good: float, acceptable: float) -> Bands:
    """Bands of a value that should be low (a rate of errors)."""
    return Bands((("good", good), ("acceptable", acceptable)), "fail", higher_is_better=False)


def count(*, passes: int, warns: int) -> Bands:
    """Bands of a count of mistakes: pass, warning, blocker (seed 000, fabricated entities, missing labels)."""
    return Bands((("pass", passes), ("warning", warns)), "blocker", higher_is_better=False)


def must_be_one() -> Bands:
    """A binary that has to be 1 (prerequisites)."""
    return Bands((("pass", 1.0),), "fail")


class Effect(StrEnum):
    """What a blocker does to the verdict (rubrics §1.4)."""

    INVALID = "invalid"
    """The rubric's formula names it: there is no composite."""
    DISQUALIFIED = "disqualified"
    """Only its table or the scorecard names it: the number stands, the verdict does not pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """Blocks when the value is ``below`` or ``above`` its bound, strictly, after rounding to 9 decimals."""

    effect: Effect
    below: float | None = None
    above: float | None = None

    def blocks(self, value: float) -> bool:
        rounded = _rounded(value)
        return (self.below is not None and rounded < self.below) or (self.above is not None and rounded > self.above)

    def blocks_all(self, least: float | None, most: float | None) -> bool:
        """Whether it blocks whatever lies between two bounds, of which None is unknown."""
        if self.below is not None and most is not None and _rounded(most) < self.below:
            return True
        return self.above is not None and least is not None and _rounded(least) > self.above

    def describe(self) -> str:
        bound = f"< {self.below:g}" if self.below is not None else f"> {self.above:g}"
        return f"{bound}: {self.effect.value}"
