"""Metric: a value with one function, so that a number's meaning and its computation are in one place.

A sub-score is the weighted mean of several metrics, as a metric of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import GeneratorType
from typing import Final, TypeAlias

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.questions.question import Begun, PendingMetrics, Steps
from sidejudge.scoring.result.reason import Reason, own, quoted, together
from sidejudge.scoring.result.result import Bands, Failed, Method, NotApplicable, Scored, Unavailable, must_be_one

from .settle import NoValueError, carried, least_certain

Measure: TypeAlias = Callable[[Case], Begun]
"""The function of a metric: plain arithmetic, or a generator that asks questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric's card and its function.

    ``id`` is its name everywhere (YAML, Langfuse, Prometheus, documentation); ``formula`` is the seed's, in words;
    ``bounds`` are (low, high) with None for unbounded; ``methods`` are the ways to decide it; ``undefined`` is when it
    has no value. ``short`` stands for the id in score names that would else be too long (``score_name``).
    ``details_name_parts``: its details name parts of the application (agents, tools) and no contents. ``taught``: its
    judge is shown examples from people's labels.
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
    taught: bool = False

    def start(self, case: Case) -> Begun:
        """The metric's result for this case; where it asks questions, the steps to it.

        An error in a metric is that metric's failure, with its cause; the case's other metrics go on.
        """
        try:
            begun = self.measure(case)
        except NoValueError as ended:
            return ended.result
        except _FAULTS as error:
            return _failed(error)
        return guarded(begun) if isinstance(begun, GeneratorType) else begun


pass_or_fail: Final = partial(Metric, bands=must_be_one(), unit="pass or fail")
"""A metric with the values 1 and 0, of which only 1 is good."""


def metric(make: Callable[..., Metric] = Metric, **card: object) -> Callable[[Measure], Metric]:
    """Make a metric of the function below its card.

    The function's name is the metric's id, and in words its title; what its docstring says is its meaning.

    Args:
        make: The kind of metric.
        card: Its other fields, and those of the above that are different.
    """

    def made(measure: Measure) -> Metric:
        name, meaning = measure.__name__, " ".join((measure.__doc__ or "").split())
        own = {"title": name.replace("_", " ").capitalize(), "meaning": meaning, **card}
        return make(id=name, measure=measure, **own)

    return made


_FAULTS = (ArithmeticError, LookupError, TypeError, ValueError, RecursionError)


def guarded(steps: Steps) -> Steps:
    """The same steps, whose end without a value, or by a fault, is a result."""
    try:
        return (yield from steps)
    except NoValueError as ended:
        return ended.result
    except _FAULTS as error:
        return _failed(error)


def _failed(error: Exception) -> Failed:
    return Failed(Reason("{kind}: {why}", kind=own(type(error).__name__), why=quoted(label(str(error), 200))))


def weighted(*parts: tuple[Metric, float]) -> Callable[[Case], Steps]:
    """The measure of a sub-score: it has a value when all parts have; inapplicable parts give their weight away.

    It asks its parts' questions, which are answered once.
    """

    def measure(case: Case) -> Steps:
        found = yield from PendingMetrics({metric.id: metric.start(case) for metric, _ in parts}).rounds()
        results = [(metric.id, weight, found[metric.id]) for metric, weight in parts]
        missing = [(name, result) for name, _, result in results if isinstance(result, Unavailable | Failed)]
        if missing:
            why = together(
                Reason("{name} {status}: {why}", name=own(name), status=own(result.status), why=result.reason)
                for name, result in missing
            )
            return Failed(why) if any(isinstance(result, Failed) for _, result in missing) else Unavailable(why)
        scored = [(name, weight, result) for name, weight, result in results if isinstance(result, Scored)]
        if not scored:
            return NotApplicable(Reason("none of its parts applies"))
        return Scored(
            value=sum(weight * result.value for _, weight, result in scored) / sum(weight for _, weight, _ in scored),
            method=least_certain(result.method for _, _, result in scored),
            reason=together(
                (Reason("{name} {value:.3f}", name=own(name), value=result.value) for name, _, result in scored), ", "
            ),
            judgements=carried(result for _, _, result in scored),
        )

    return measure
