"""Evaluator: a case and the rubrics chosen for it → verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from scoring import lexical
from scoring.case import Case
from scoring.effects import Question, Reply, run
from scoring.result import Failed
from scoring.rubric import Rubric
from scoring.verdict import Selection, Verdict, reach_verdict


class Evaluator:
    """Drives all metrics of all chosen rubrics of a case together, so that what two of them ask is asked once.

    ``answer`` is who answers the questions: by default the lexical answerer, which is pure and always there. What it
    cannot answer honestly stays unanswered, and the metric *unavailable*.
    """

    def __init__(
        self, rubrics: Mapping[str, Rubric], answer: Callable[[Case, Question], Reply] = lexical.answer
    ) -> None:
        self._rubrics = rubrics
        self._answer = answer

    def evaluate(
        self, case: Case, names: Sequence[str], *, created_at: str, selection: Selection = "random", revision: int = 1
    ) -> tuple[Verdict, ...]:
        """One verdict for each rubric named, in that order; a rubric that is named twice speaks once."""
        chosen = [self._rubrics[name] for name in dict.fromkeys(names)]
        started = {
            (rubric.id, criterion.metric.id): criterion.metric.start(case)
            for rubric in chosen
            for criterion in rubric.criteria
        }
        results = run(started, partial(self._answer, case))
        return tuple(
            reach_verdict(
                rubric,
                case,
                {metric: result for (owner, metric), result in results.items() if owner == rubric.id},
                created_at=created_at,
                selection=selection,
                revision=revision,
            )
            for rubric in chosen
        )

    def verdicts(self, case: Case, names: Sequence[str], *, created_at: str) -> tuple[Verdict, ...]:
        """As ``evaluate``; a bug in a metric costs this case its values, not the run that it is part of."""
        try:
            return self.evaluate(case, names, created_at=created_at)
        except Exception as error:  # noqa: BLE001  # what it is stands in every verdict
            why = Failed(f"{type(error).__name__}: {error}")
            return tuple(
                reach_verdict(rubric, case, {c.metric.id: why for c in rubric.criteria}, created_at=created_at)
                for rubric in (self._rubrics[name] for name in dict.fromkeys(names))
            )
