"""Verdicts: those of many cases, in their order, as a list, as a table, and as a notebook shows them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Self

from sidejudge.scoring.statistics.interval import wilson_pair
from sidejudge.scoring.verdict.verdict import Verdict

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped,unused-ignore]  # it is not among our dependencies

_SHOWN = 50
"""Verdicts that a notebook shows below the summary: the first that did not pass."""


class Verdicts(tuple[Verdict, ...]):
    """The verdicts of many cases under one rubric.

    Verdicts that neither passed nor failed (*incomplete*) are in no pass rate: what could not be judged is no failure.
    """

    __slots__ = ()

    def __new__(cls, verdicts: Iterable[Verdict] = ()) -> Self:
        return super().__new__(cls, verdicts)

    @property
    def passed(self) -> int:
        """How many passed."""
        return sum(each.passed is True for each in self)

    @property
    def failed(self) -> int:
        """How many failed."""
        return sum(each.passed is False for each in self)

    @property
    def pass_rate(self) -> float | None:
        """Passed among those that passed or failed, 0 to 1; None where there is neither."""
        counted = self.passed + self.failed
        return self.passed / counted if counted else None

    def to_dicts(self) -> list[dict[str, object]]:
        """Each in the documented format, ready for JSON."""
        return [each.to_json() for each in self]

    def to_frame(self) -> DataFrame:
        """A table: a row a case, with its verdict and a column for the value of each metric (NaN: it has none).

        Raises:
            ImportError: pandas is not installed.
        """
        rows = [
            {
                "case_id": each.case_id, "rubric": each.rubric, "state": each.state.value, "passed": each.passed,
                "composite": each.composite, "rating": each.rating, "reason": each.reason,
                **{score.metric: score.to_json()["value"] for score in each.scores},
            }
            for each in self
        ]  # fmt: skip
        return import_module("pandas").DataFrame(rows)

    def _repr_html_(self) -> str:
        others = (each._repr_html_() for each in self if each.passed is not True)
        return f"<p>{self!r}</p>{''.join(islice(others, _SHOWN))}"

    def __repr__(self) -> str:
        left = len(self) - self.passed - self.failed
        bounds = wilson_pair(self.passed, self.passed + self.failed)
        sure = f", {bounds.lower:.0%} to {bounds.upper:.0%} pass (95 %)" if bounds is not None else ""
        return f"Verdicts: {self.passed} passed, {self.failed} failed, {left} incomplete{sure}"
