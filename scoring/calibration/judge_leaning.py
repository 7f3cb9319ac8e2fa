"""Judge leaning: a judge's answers and the right ones come in, the direction of its errors goes out.

A judge that answers yes to half of the questions whose answer is no is right on three quarters of a balanced set, and
worth nothing. So questions with the answers yes and no are counted apart; grades by how far they lie too high and how
much of the scale they use; options by their place in the list. Each is held against a bound of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sidejudge.scoring.judging.beside import Compared, GradeBeside, OptionChosen, YesOrNo, too_little, too_much
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.agreement import ScaleError, bias, compression
from sidejudge.scoring.statistics.interval import at_most

from .calibrated import ErrorRate, error_rate

MAX_BIAS: Final = 0.1
"""Largest average error of grades, up or down, as a share of the scale."""
MAX_COMPRESSION: Final = 0.5
"""The largest compression of grades: at this value half of the differences between good and bad are lost."""
FEW: Final = 10
"""Answers below which a rate says little, and the report says so."""
_UNSURE: Final = 0.05
Rate: TypeAlias = ErrorRate | Unavailable
Error: TypeAlias = ScaleError | Unavailable
ByMetric: TypeAlias = Mapping[str, Sequence[Compared]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeLeaning:
    """The direction of a judge's errors.

    ``sensitivity``: the share of right answers where yes is right; ``specificity``: where no is right. ``bias`` (above
    0: too high) and ``compression`` describe grades, as shares of their scale. ``choices``: the share of right
    options; ``first`` and ``last``: the share of answers not drawn to that end of the list, among questions whose right
    option is elsewhere; ``confusion``: by right option, how often each was given. ``by_metric``: (too much, too little)
    as (how often, of how many where it was possible).
    """

    sensitivity: Rate
    specificity: Rate
    bias: Error
    compression: Error
    choices: Rate
    first: Rate
    last: Rate
    confusion: Mapping[str, Mapping[str, int]]
    by_metric: Mapping[str, tuple[tuple[int, int], tuple[int, int]]]

    def rates(self) -> dict[str, Rate]:
        """Shares in [0, 1] by name; higher is better."""
        names = ("sensitivity", "specificity", "choices", "first", "last")
        return {name: getattr(self, name) for name in names}

    def errors(self) -> dict[str, Error]:
        """The errors of grades by name."""
        return {"bias": self.bias, "compression": self.compression}

    def findings(self, least: float) -> Iterator[str]:
        """What is wrong, a line each; ``least`` is the share in [0, 1] that each rate is held against."""
        for name, words in _OF_RATES.items():
            rate = getattr(self, name)
            if isinstance(rate, ErrorRate) and rate.value < least:
                yield f"{words.format(_interval(rate))}; {least:.0%} are asked for"
        if isinstance(self.bias, ScaleError) and abs(self.bias.value) > MAX_BIAS and not _holds(self.bias, 0.0):
            how, where = ("lenient", "above") if self.bias.value > 0 else ("strict", "below")
            low, high = sorted((abs(self.bias.lower), abs(self.bias.upper)))
            yield (
                f"{how} grades: on average they lie {abs(self.bias.value):.2f} of the scale ({low:.2f}–{high:.2f}) "
                f"{where} the right ones; {MAX_BIAS:.2f} is allowed"
            )
        if isinstance(self.compression, ScaleError) and self.compression.value > MAX_COMPRESSION:
            yield (
                f"compressed grades: {self.compression.value:.0%} ({self.compression.lower:.0%}–"
                f"{self.compression.upper:.0%}) of the differences between good and bad are lost"
            )
        yield from self._of_metrics(least)

    def _of_metrics(self, least: float) -> Iterator[str]:
        """Metrics that are wrong in one direction more often than chance explains at a rate of ``least``."""
        sides = [
            (name, how, wrong, n)
            for name, both in self.by_metric.items()
            for how, (wrong, n) in zip(("lenient", "strict"), both, strict=True)
            if n
        ]
        for name, how, wrong, n in sides:
            if at_most(n - wrong, n, least) <= _UNSURE / len(sides):
                yield f"{how} about {name}: {wrong} of {n} answers that could be so are"


_OF_RATES: Final = {
    "specificity": "lenient: {} that should be answered no are",
    "sensitivity": "strict: {} that should be answered yes are",
    "choices": "confuses options: {} that were chosen are right",
    "first": "drawn to the first option: {} answers where another one is right are not the first",
    "last": "drawn to the last option: {} answers where another one is right are not the last",
}


def judge_leaning(compared: ByMetric) -> JudgeLeaning:
    """The direction of the errors in answers, which come by metric from ``beside.compared``."""
    every = [one for each in compared.values() for one in each]
    decisions = [one for one in every if isinstance(one, YesOrNo)]
    yes, no = ([one.given for one in decisions if one.right is right] for right in (True, False))
    grades = [(one.right, one.given) for one in every if isinstance(one, GradeBeside)]
    choices = [one for one in every if isinstance(one, OptionChosen)]
    confusion: dict[str, dict[str, int]] = {}
    for one in choices:
        row = confusion.setdefault(one.right, {})
        row[one.given] = row.get(one.given, 0) + 1
    return JudgeLeaning(
        sensitivity=error_rate(sum(yes), len(yes), "nothing should be answered yes"),
        specificity=error_rate(len(no) - sum(no), len(no), "nothing should be answered no"),
        bias=bias(grades),
        compression=compression(grades),
        choices=error_rate(sum(one.given == one.right for one in choices), len(choices), "no option was chosen"),
        first=_not_drawn(choices, 0),
        last=_not_drawn(choices, -1),
        confusion=confusion,
        by_metric={name: (_counted(too_much, each), _counted(too_little, each)) for name, each in compared.items()},
    )


def _not_drawn(choices: Sequence[OptionChosen], end: int) -> Rate:
    elsewhere = [one for one in choices if one.options and one.options[end] != one.right]
    drawn = sum(one.given == one.options[end] for one in elsewhere)
    return error_rate(len(elsewhere) - drawn, len(elsewhere), "the right option always stands at that end")


def _counted(side: Callable[[Compared], bool | None], compared: Sequence[Compared]) -> tuple[int, int]:
    found = [wrong for one in compared if (wrong := side(one)) is not None]
    return sum(found), len(found)


def _holds(error: ScaleError, value: float) -> bool:
    return error.lower <= value <= error.upper


def _interval(rate: ErrorRate) -> str:
    return f"{rate.value:.0%} ({rate.lower:.0%}–{rate.upper:.0%}) of {rate.n:.0f}"
