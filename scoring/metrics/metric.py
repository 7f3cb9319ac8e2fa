"""Metric: a value with one function. What a number means and how it is computed stand in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import GeneratorType
from typing import TypeAlias

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.label import label
from sidejudge.scoring.questions.question import Begun, Steps
from sidejudge.scoring.result.bands import Bands
from sidejudge.scoring.result.reason import Reason, own, quoted
from sidejudge.scoring.result.result import Failed, Method

Measure: TypeAlias = Callable[[Case], Begun]
"""The function of a metric: plain arithmetic, or a generator that asks questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric's card and its function.

    ``id`` is its name everywhere (YAML, Langfuse, Prometheus, documentation); ``formula`` is the seed's, in words;
    ``bounds`` are (low, high) with None for unbounded; ``methods`` are the ways to decide it; ``undefined`` is when it
    has no value. ``short`` stands for the id in score names that would else be too long (``score_name``).
    ``details_name_parts``: its details name parts of the application (agents, tools), nothing that anybody wrote.
    """

    id: str
    title: str
    meaning: str
    formula: str
    source: str
    measure: Measure
    bands: Bands | None = None
    unit: str = "ratio"
    bounds: tuple[float, float | None] = (0.0, 1.0)
    methods: tuple[Method, ...] = (Method.EXACT,)
    undefined: str = "never"
    short: str | None = None
    details_name_parts: bool = False

    def start(self, case: Case) -> Begun:
        """The metric's result for this case, or the steps to it where it asks.

        An error in a metric is that metric's failure, with its cause: it must not cost the case its other metrics.
        """
        try:
            begun = self.measure(case)
        except _FAULTS as error:
            return _failed(error)
        return _guarded(begun) if isinstance(begun, GeneratorType) else begun


_FAULTS = (ArithmeticError, LookupError, TypeError, ValueError, RecursionError)


def _guarded(steps: Steps) -> Steps:
    try:
        return (yield from steps)
    except _FAULTS as error:
        return _failed(error)


def _failed(error: Exception) -> Failed:
    return Failed(Reason("{kind}: {why}", kind=own(type(error).__name__), why=quoted(label(str(error), 200))))
