"""Evaluator: a case and the rubrics chosen for it → verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from scoring.case.case import Case
from scoring.evaluators import lexical
from scoring.questions.question import Question, Reply
from scoring.result.result import Failed
from scoring.verdict.rubric import Rubric
from scoring.verdict.verdict import Selection, Verdict, reach_verdict

from .backends import Admit, Backends
from .evaluation import Evaluation


class Evaluator:
    """Drives all metrics of all chosen rubrics of a case together, so that what two of them ask is asked once.

    ``at_once`` answers first and without waiting: by default the lexical answerer, which is pure and always there.
    ``others`` are asked what it left open. What nobody can answer honestly stays unanswered, and the metric
    *unavailable*.
    """

    def __init__(
        self,
        rubrics: Mapping[str, Rubric],
        at_once: Callable[[Case, Question], Reply] | None = lexical.answer,
        others: Backends | None = None,
    ) -> None:
        self._rubrics = rubrics
        self._at_once = at_once
        self.others = others

    def open(self, case: Case, names: Sequence[str]) -> Evaluation:
        """Begin: everything that can be told without waiting. A rubric that is named twice speaks once.

        Where nobody else is configured nothing is left open.
        """
        hearing = Evaluation(case, [self._rubrics[name] for name in dict.fromkeys(names)], self._at_once)
        while self.others is None and hearing.open:
            hearing.give({})
        return hearing

    async def finish(self, hearing: Evaluation, admit: Admit = lambda: None) -> None:
        """Ask the others, round after round, until nothing is open. Metrics are advanced in a worker thread."""
        while self.others is not None and (questions := hearing.open):
            replies = await self.others.ask(hearing.case, questions, admit)
            if hearing.open:  # it may have been dropped when it was admitted
                await asyncio.to_thread(hearing.give, replies)

    def evaluate(
        self, case: Case, names: Sequence[str], *, created_at: str, selection: Selection = "random", revision: int = 1
    ) -> tuple[Verdict, ...]:
        """One verdict for each rubric named, in that order, by what can be told without waiting."""
        hearing = self.open(case, names)
        while hearing.open:
            hearing.give({})
        return hearing.verdicts(created_at=created_at, selection=selection, revision=revision)

    def verdicts(self, case: Case, names: Sequence[str], *, created_at: str) -> tuple[Verdict, ...]:
        """As ``evaluate``; a bug in a metric costs this case its values, not the run that it is part of."""
        try:
            return self.evaluate(case, names, created_at=created_at)
        except Exception as error:  # noqa: BLE001  # what it is stands in every verdict
            return self.failed(case, names, error, created_at=created_at)

    def failed(self, case: Case, names: Sequence[str], error: Exception, *, created_at: str) -> tuple[Verdict, ...]:
        """The verdicts on a case that a bug of ours kept from being judged: every metric has failed."""
        why = Failed(f"{type(error).__name__}: {error}")
        return tuple(
            reach_verdict(rubric, case, {c.metric.id: why for c in rubric.criteria}, created_at=created_at)
            for rubric in (self._rubrics[name] for name in dict.fromkeys(names))
        )
