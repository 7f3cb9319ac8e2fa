"""Evaluators: rubrics as evaluators of Langfuse's experiments, and their aggregates over a run, with bounds.

The names, types and comments are those that a monitor writes in production, so that a gate before a release and the
scores after it are compared by name. The SDK is imported when an evaluator is first called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidejudge.integrations.langfuse.declared_scores import NOT_COUNTED, ScoreSelection, names_of
from sidejudge.integrations.langfuse.scores import scores_of
from sidejudge.monitor.config import Config
from sidejudge.scoring.statistics.estimate import mean_estimate
from sidejudge.scoring.statistics.interval import Z_95_TWO_SIDED, wilson_pair
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.score import composite_name, pass_name, state_name
from sidejudge.scoring.verdict.verdict import Verdict

from .inline import InlineJudge

if TYPE_CHECKING:
    from langfuse import Evaluation


class RubricEvaluator:
    """One rubric as an item evaluator: ``langfuse.run_experiment(…, evaluators=[…])`` awaits it."""

    def __init__(self, judge: InlineJudge, which: ScoreSelection) -> None:
        self._judge, self._which = judge, which
        self.__name__ = judge.rubric.id

    async def __call__(
        self,
        *,
        input: Json,  # noqa: A002  # the SDK's name
        output: object,
        expected_output: Json = None,
        metadata: object = None,
        **_: object,
    ) -> list[Evaluation]:
        """Judge one output; raises ``ValueError`` for one that cannot be read, which the SDK records."""
        judging = self._judge.verdict(input=input, output=output, expected=expected_output, metadata=metadata)
        rubric = self._judge.rubric
        aggregated = frozenset({composite_name(rubric.id), state_name(rubric.id)})
        return list(evaluations(await asyncio.wrap_future(judging), rubric, self._which, also=aggregated))


class RunAggregate:
    """The pass rate and the mean composite of one rubric over a run, each with its 95 % bounds."""

    def __init__(self, rubric: Rubric) -> None:
        self._rubric = rubric
        self.__name__ = f"{rubric.id}_run"

    def __call__(self, *, item_results: Sequence[Any], **_: object) -> list[Evaluation]:
        """Aggregate the evaluations of the items. One without a verdict is counted, and is no failure."""
        passes = self._values(item_results, pass_name(self._rubric.id))
        composites = self._values(item_results, composite_name(self._rubric.id))
        states = [str(each) for each in self._raw(item_results, state_name(self._rubric.id))]
        return list(self._aggregates(passes, composites, len(item_results), states.count(NOT_COUNTED)))

    def _aggregates(
        self, passes: Sequence[float], composites: Sequence[float], items: int, not_counted: int
    ) -> Iterator[Evaluation]:
        from langfuse import Evaluation  # noqa: PLC0415  # only where the SDK is used

        sure = "95 % between"
        left = f"; {items - len(passes)} of {items} have no verdict" if len(passes) < items else ""
        counts = {"items": items, "judged": len(passes), "not_counted": not_counted}
        if (share := wilson_pair(sum(passes), len(passes))) is not None:
            yield Evaluation(
                name=f"{self._rubric.id}_pass_rate", value=sum(passes) / len(passes),
                comment=f"{sum(passes):.0f} of {len(passes)}, {sure} {share.lower:.3f} and {share.upper:.3f}{left}",
                metadata={**counts, "lower": share.lower, "upper": share.upper},
            )  # fmt: skip
        if (mean := mean_estimate(((value, 1.0) for value in composites), z=Z_95_TWO_SIDED)) is not None:
            # A mean of few values has bounds beyond what a composite can be.
            lower, upper = max(0.0, mean.lower), min(self._rubric.scale, mean.upper)
            yield Evaluation(
                name=f"{self._rubric.id}_mean", value=mean.mean,
                comment=f"mean of {len(composites)} composites, {sure} {lower:.3f} and {upper:.3f}{left}",
                metadata={**counts, "lower": lower, "upper": upper},
            )  # fmt: skip

    def _raw(self, results: Sequence[Any], name: str) -> list[object]:
        return [each.value for result in results for each in result.evaluations if each.name == name]

    def _values(self, results: Sequence[Any], name: str) -> list[float]:
        return [float(value) for value in self._raw(results, name) if isinstance(value, int | float)]


def evaluators(
    *rubrics: str, config: Config | Path | str | None = None, scores: ScoreSelection = "summary"
) -> list[RubricEvaluator]:
    """Evaluators for ``langfuse.run_experiment``, one for each rubric.

    Args:
        rubrics: Names of rubrics: those that ship, or of the configuration.
        config: A configuration file, for rubrics of your own, thresholds and a judge; None: the defaults.
        scores: Which scores of a verdict become evaluations.

    Raises:
        ConfigError: The file is wrong.
        ValueError: There is no such rubric.
    """
    return [RubricEvaluator(InlineJudge(rubric, config), scores) for rubric in rubrics]


def run_evaluators(*rubrics: str, config: Config | Path | str | None = None) -> list[RunAggregate]:
    """Run evaluators for ``langfuse.run_experiment``: pass rate and mean of each rubric. Raises as ``evaluators``."""
    return [RunAggregate(InlineJudge(rubric, config).rubric) for rubric in rubrics]


def evaluations(
    verdict: Verdict, rubric: Rubric, which: ScoreSelection, *, also: frozenset[str] = frozenset()
) -> Iterator[Evaluation]:
    """The scores of a verdict that ``which`` selects or ``also`` names, as records of Langfuse's SDK."""
    from langfuse import Evaluation  # noqa: PLC0415  # as above

    names = names_of(rubric, which) | also
    for body in scores_of(replace(verdict, trace_id=verdict.trace_id or "inline"), rubric):
        if body["name"] not in names:
            continue
        metadata = {key: value for key, value in body["metadata"].items() if value is not None}
        yield Evaluation(
            name=body["name"], value=body["value"], comment=body["comment"], data_type=body["dataType"],
            metadata=metadata,
        )  # fmt: skip
