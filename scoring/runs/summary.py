"""Summary of an evaluation run, in the seed's shape (seed 004, Evaluation Runner; rubrics §1.5)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.statistics.descriptive import spread
from sidejudge.scoring.trace.span import Json

from .final import MIN_RUNS

SEED_RUBRIC = "dimensions"
"""The rubric whose metrics keep the seed's names; those of others are ``RUBRIC_METRIC``, because some share a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedTest:
    """The result of one test over all rubrics.

    ``overall_score`` is the mean of the composites, each normalised to 0–1; ``None`` when a rubric has none.
    ``dimension_scores`` holds every metric that has a value, in its own unit. ``passed`` is false when a rubric failed,
    true when all passed, and ``None`` otherwise: the test is incomplete.
    """

    overall_score: float | None
    dimension_scores: Mapping[str, float]
    passed: bool | None

    def to_json(self) -> dict[str, object]:
        return {
            "overall_score": self.overall_score,
            "dimension_scores": dict(self.dimension_scores),
            "passed": self.passed,
        }


NO_OUTPUT = EvaluatedTest(overall_score=None, dimension_scores={}, passed=False)
"""The evaluation of a test without an output of the agent: it failed, and no metric has a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One test, run once. ``error`` is why there is no output, ``None`` when there is one. ``run`` counts from 1."""

    test: Mapping[str, Json]
    output: Json
    evaluation: EvaluatedTest
    error: str | None = None
    run: int = 1

    def to_json(self) -> dict[str, object]:
        stated: dict[str, object] = {
            "test": dict(self.test),
            "output": self.output,
            "evaluation": self.evaluation.to_json(),
        }
        return stated if self.error is None else {**stated, "error": self.error}


def evaluated(verdicts: Sequence[Mapping[str, object]]) -> EvaluatedTest:
    """The evaluation from the verdicts on one output, in the form of the format page; incomplete without verdicts."""
    passed = [verdict.get("passed") for verdict in verdicts]
    composites = [verdict.get("composite_norm") for verdict in verdicts]
    known = [composite for composite in composites if isinstance(composite, int | float)]
    return EvaluatedTest(
        overall_score=_mean(known) if len(known) == len(composites) else None,
        dimension_scores={name: value for verdict in verdicts for name, value in _scores(verdict)},
        passed=False if False in passed else True if passed and None not in passed else None,
    )


def _scores(verdict: Mapping[str, object]) -> Iterable[tuple[str, float]]:
    rubric, scores = verdict.get("rubric"), verdict.get("scores")
    for score in scores if isinstance(scores, list) else []:
        if isinstance(score.get("value"), int | float):
            yield score["metric"] if rubric == SEED_RUBRIC else f"{rubric}_{score['metric']}", score["value"]


def summarize(results: Sequence[RunSummary]) -> dict[str, object]:
    """The seed's summary, with ``incomplete`` and ``errors`` added.

    ``total_tests`` = ``passed`` + ``failed`` + ``incomplete``; ``errors`` counts the failed tests without an output.
    ``pass_rate`` is the share of those that passed or failed, ``None`` when none did either. ``dimension_averages`` are
    means over the tests in which the metric has a value. ``failures`` are the results that failed, in order.
    """
    if not results:
        return {"error": "No results"}
    passed = sum(result.evaluation.passed is True for result in results)
    failures = [result for result in results if result.evaluation.passed is False]
    values: dict[str, list[float]] = {}
    for result in results:
        for name, value in result.evaluation.dimension_scores.items():
            values.setdefault(name, []).append(value)
    decided = passed + len(failures)
    return {
        "total_tests": len(results),
        "passed": passed,
        "failed": len(failures),
        "pass_rate": passed / decided if decided else None,
        "dimension_averages": {name: _mean(found) for name, found in values.items()},
        "failures": [result.to_json() for result in failures],
        "incomplete": len(results) - decided,
        "errors": sum(result.error is not None for result in results),
    }


def repeats(results: Sequence[RunSummary]) -> dict[str, object]:
    """The differences between runs: the pass rate and the mean overall score of each, in order of the runs.

    ``mean`` and ``sd`` (sample, ddof 1) need at least three runs with a value, and are ``None`` otherwise.
    """
    runs = sorted({result.run for result in results})
    summaries = [[result for result in results if result.run == run] for run in runs]
    rates = [_pass_rate(found) for found in summaries]
    overall = [_mean([s for r in found if (s := r.evaluation.overall_score) is not None]) for found in summaries]
    return {"runs": len(runs), "pass_rate": _spread(rates), "overall_score": _spread(overall)}


def _pass_rate(results: Sequence[RunSummary]) -> float | None:
    decided = [result.evaluation.passed for result in results if result.evaluation.passed is not None]
    return _mean([float(passed) for passed in decided])


def _spread(values: Sequence[float | None]) -> dict[str, object]:
    known = [value for value in values if value is not None]
    found = spread(known) if len(known) >= MIN_RUNS else None
    mean, sd = (None, None) if found is None else (found.mean, found.sd)
    return {"each": list(values), "mean": mean, "sd": sd}


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
