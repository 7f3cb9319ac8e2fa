"""final: one number for a model over the four call tasks, and its cost (seed 000, Final Scoring; rubrics §7).

The seed calls Option B a proportional redistribution of Option A's benchmark weight. Its numbers are not one (QA would
be 25/70 = 35.7 %); the numbers win.

The cost-adjusted rank is final score per normalised dollar (seed 000, Cost-Adjusted Ranking; rubrics §7). Repeats give
the variation of a figure over the runs of one benchmark (seed 002 §4.4; rubrics §11).

These scores have cards, like metrics: meaning, formula, weights, source.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.descriptive import MeanAndDeviation, spread

from .aggregates import Aggregates

MIN_COVERAGE = 0.90
"""Share of an option's weight that has to be scored for a final score to exist (rubrics §1.5)."""
_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One of the seed's two formulas: the weight of each part, by the id of the rubric that scores it."""

    id: str
    title: str
    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        if any(not (math.isfinite(weight) and weight >= 0) for weight in self.weights.values()):
            raise ValueError(f"weights of Option {self.id} must be finite and not negative, got {dict(self.weights)}")
        if abs(math.fsum(self.weights.values()) - 1.0) > 1e-9:
            raise ValueError(f"weights of Option {self.id} sum to {math.fsum(self.weights.values()):g}, not to 1")

    @property
    def formula(self) -> str:
        """The formula in words: ``0.35 × qa + 0.3 × entity + …``."""
        return " + ".join(f"{weight:.12g} × {part}" for part, weight in self.weights.items())


OPTION_A = Option(
    id="A",
    title="With Standard Benchmarks",
    weights={"qa": 0.25, "entity": 0.20, "text": 0.15, "translation": 0.10, "benchmarks": 0.30},
)
OPTION_B = Option(
    id="B", title="Without Standard Benchmarks", weights={"qa": 0.35, "entity": 0.30, "text": 0.20, "translation": 0.15}
)
BENCHMARKS = "benchmarks"
TASKS = tuple(OPTION_B.weights)
"""The four call tasks, in the seed's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """A final score in [0, 1], or None with the ``reason``. ``coverage`` is the scored share of the weight.

    Below full coverage a value is *partial*: the weights of the scored parts were renormalised, and ``reason`` states
    it.
    """

    option: Option
    value: float | None
    coverage: float
    reason: str = ""


def with_split(option: Option, split: Mapping[str, float]) -> Option:
    """The option with the tasks' share of the weight divided as the production workload is (seed 000: "adjust").

    ``split`` gives each task its share of the tasks; a task that it leaves out has none. Shares sum to 1, else
    ``ValueError``. The benchmarks keep their weight.

    >>> with_split(OPTION_A, {"qa": 0.5, "text": 0.5}).formula
    '0.35 × qa + 0 × entity + 0.35 × text + 0 × translation + 0.3 × benchmarks'
    """
    unknown = sorted(set(split) - set(TASKS))
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no call task")
    if any(not (math.isfinite(share) and share >= 0) for share in split.values()):
        raise ValueError("a share must be a number from 0 to 1")
    if abs(math.fsum(split.values()) - 1.0) > 1e-9:
        raise ValueError(f"the shares sum to {math.fsum(split.values()):g}, not to 1")
    of_tasks = math.fsum(option.weights[task] for task in TASKS)
    shares = {task: round(split.get(task, 0.0) * of_tasks, _DIGITS) for task in TASKS}
    return replace(option, weights={**option.weights, **shares})


def final_score(option: Option, scores: Mapping[str, float | None]) -> Final:
    """The weighted mean of the parts' scores, each in [0, 1]; a part that is absent or None was not evaluated.

    A task whose composite is invalid is a score of 0, not a missing one. Missing parts follow rubrics §1.5.

    >>> final_score(OPTION_B, {"qa": 0.882, "entity": 0.9142, "text": 0.842, "translation": 0.897}).value
    0.88591
    """
    counted = {part: weight for part, weight in option.weights.items() if weight}
    parts = [(weight, score) for part, weight in counted.items() if (score := scores.get(part)) is not None]
    missing = [part for part in counted if scores.get(part) is None]
    coverage = round(math.fsum(weight for weight, _ in parts), _DIGITS)
    if not missing:
        coverage = 1.0
    what = f"no score of {' and '.join(missing)}" if missing else ""
    if coverage < MIN_COVERAGE:
        why = f"{what}: {coverage:.0%} of the weight is covered, {MIN_COVERAGE:.0%} is needed"
        return Final(option=option, value=None, coverage=coverage, reason=why)
    value = round(math.fsum(weight * score for weight, score in parts) / coverage, _DIGITS)
    why = f"{what}: the other weights, {coverage:.0%} of all, are renormalised" if missing else ""
    return Final(option=option, value=min(1.0, max(0.0, value)), coverage=coverage, reason=why)


_COST_DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A model's place. ``efficiency`` in [0, 1] and ``rank`` from 1 are None together, with the ``reason``."""

    efficiency: float | None = None
    rank: int | None = None
    reason: str = ""


def rank_by_cost(finals: Mapping[str, float | None], costs: Mapping[str, float | None]) -> dict[str, Ranked]:
    """Every model of ``finals`` with its place; ``costs`` are US dollars per 1000 calls, None where unknown.

    ``efficiency = final / (cost / cheapest cost)``, rank descending. Equal efficiencies (to 9 decimals) share a rank,
    and the ranks after them are left out: 1, 1, 3. A cost of 0 cannot be a divisor: such a model has no rank and does
    not count as the cheapest.

    >>> places = rank_by_cost({"a": 0.9, "b": 0.8}, {"a": 2.0, "b": 1.0})
    >>> [(place.efficiency, place.rank) for place in places.values()]
    [(0.45, 2), (0.8, 1)]
    """
    known = {model: cost for model, cost in costs.items() if cost is not None and cost > 0}
    cheapest = min(known.values(), default=0.0)
    efficiencies = {
        model: round(final * (cheapest / known[model]), _COST_DIGITS)
        for model, final in finals.items()
        if final is not None and model in known
    }
    return {
        model: Ranked(
            efficiency=efficiencies[model], rank=1 + sum(other > efficiencies[model] for other in efficiencies.values())
        )
        if model in efficiencies
        else Ranked(reason=_why_not(finals[model], costs.get(model)))
        for model in finals
    }


def _why_not(final: float | None, cost: float | None) -> str:
    if final is None:
        return "there is no final score"
    if cost is None:
        return "the cost is unknown"
    return "a cost of 0 cannot be compared"


MIN_RUNS = 3
REPEATED = ("aggregate_score", "latency_e2e_p95_ms")
"""The figures whose mean and standard deviation are reported."""


def over_runs(runs: Sequence[Aggregates], figure: str) -> MeanAndDeviation | Unavailable:
    """Mean and sample standard deviation (ddof 1) of a figure over at least three runs that all have it."""
    if len(runs) < MIN_RUNS:
        return Unavailable(f"needs at least {MIN_RUNS} runs, there {'is' if len(runs) == 1 else 'are'} {len(runs)}")
    values = []
    for number, run in enumerate(runs, 1):
        value = run.figures[figure]
        if isinstance(value, Unavailable):
            return Unavailable(f"run {number} of {len(runs)} has none: {value.reason}")
        values.append(float(value))
    return spread(values) or Unavailable(f"needs at least {MIN_RUNS} runs")


FINAL = "final"
"""Stands in place of a rubric for the scores of this page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScore:
    """A score of a run. ``weights`` are by the name of a formula and the part."""

    id: str
    title: str
    meaning: str
    formula: str
    undefined: str
    source: str
    unit: str = "ratio"
    bounds: tuple[float, float | None] = (0.0, 1.0)
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


RUN_SCORES = (
    RunScore(
        id="final_score",
        title="Final Score",
        meaning="One number for a model over the call tasks. Option A holds where there is a benchmark score, else B. "
        "A part's score is the mean over its cases, an invalid case counting 0 and an incomplete one not at all.",
        formula=f"Option A: {OPTION_A.formula}; Option B: {OPTION_B.formula}",
        undefined=f"less than {MIN_COVERAGE:.0%} of the weight is scored; down to there the other weights are "
        "renormalised",
        source="seed 000, Final Scoring; rubrics §7, §1.5",
        weights={f"Option {option.id}": option.weights for option in (OPTION_A, OPTION_B)},
    ),
    RunScore(
        id="cost_efficiency",
        title="Cost Efficiency",
        meaning="Final score per normalised dollar; models are ranked by it, the highest first, equal ones alike.",
        formula="final_score / (cost per 1000 calls / the cheapest model's cost per 1000 calls)",
        undefined="there is no final score, or the cost is unknown or 0",
        source="seed 000, Cost-Adjusted Ranking; rubrics §7",
    ),
)
"""The scores of a run, in the seed's order."""
