"""Evaluator: a case and the names of its rubrics → verdicts."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence

from sidejudge.monitor.config.judge_choice import ONE_JUDGE
from sidejudge.monitor.config.rubrics import reported_names
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.questions.question import Question, Reply
from sidejudge.scoring.result.reason import Reason, own, quoted
from sidejudge.scoring.result.result import Failed
from sidejudge.scoring.verdict.outcome import OutcomeMemo
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.verdict import Verdict, reach_verdict

from .backends import Admit, Backends, JudgeAccount
from .evaluation import NOBODY, Evaluation


class Evaluator:
    """Advances all metrics of all chosen rubrics of a case together: a question that two of them share is asked once.

    ``at_once`` answers first and without waiting; by default it is the lexical evaluator, which is pure and always
    available. ``others`` get the questions that it leaves open. A metric whose question has no answer is *unavailable*.
    Once the metrics of a case have taken ``max_cpu_s`` seconds of CPU the others of its metrics fail.
    """

    def __init__(
        self,
        rubrics: Mapping[str, Rubric],
        at_once: Callable[[Case, Question], Reply] | None = lexical.answer,
        others: Backends | None = None,
        *,
        max_cpu_s: float = math.inf,
    ) -> None:
        self._max_cpu_s = max_cpu_s
        self._rubrics = rubrics
        self._at_once = at_once
        self.others = others
        self._memo = OutcomeMemo()

    def open(self, case: Case, names: Sequence[str]) -> Evaluation:
        """Start an evaluation and answer what ``at_once`` can. A rubric that is named twice is evaluated once.

        Without ``others`` no question stays open.
        """
        rubrics = [self._rubrics[name] for name in dict.fromkeys(names)]
        choice = self.others.choice if self.others is not None else ONE_JUDGE
        alone = self.others is None
        return Evaluation(case, rubrics, self._at_once, self._memo, self._max_cpu_s, choice=choice, alone=alone)

    def reported(self, names: Sequence[str]) -> frozenset[str]:
        """The names of scores that these rubrics take from others."""
        return frozenset(reported_names(self._rubrics[name] for name in names))

    async def finish(
        self, evaluation: Evaluation, admit: Admit = lambda: None, account: JudgeAccount | None = None
    ) -> None:
        """Ask the others, round after round and judge after judge, until nothing is open.

        Metrics advance in the default thread pool.

        Args:
            evaluation: advanced in place.
            admit: called before each round of the judge.
            account: the judge's cost record of the case; None: a new one.
        """
        account = account or JudgeAccount()
        while self.others is not None:
            while questions := evaluation.open:
                replies = await self.others.ask(evaluation.case, questions, admit, account)
                if evaluation.open:  # ``admit`` may have dropped it
                    await asyncio.to_thread(evaluation.give, replies)
            if not await asyncio.to_thread(evaluation.escalate):
                break

    def evaluate(self, case: Case, names: Sequence[str], *, created_at: str) -> tuple[Verdict, ...]:
        """One verdict for each rubric named, in that order, from what ``at_once`` answers."""
        if self.others is None and self._max_cpu_s == math.inf:
            return self._evaluate_alone(case, names, created_at)
        evaluation = self.open(case, names)
        while evaluation.open:
            evaluation.give({})
        return evaluation.verdicts(created_at=created_at)

    def _evaluate_alone(self, case: Case, names: Sequence[str], created_at: str) -> tuple[Verdict, ...]:
        """As ``evaluate``, without waiting and without counting work, which takes a third less time."""
        known: dict[Question, Reply] = {}

        def answer(about: Case, question: Question) -> Reply:
            reply = known.get(question)
            if reply is None:
                reply = known[question] = NOBODY if self._at_once is None else self._at_once(about, question)
            return reply

        return tuple(
            [
                score(case, self._rubrics[name], answer=answer, created_at=created_at, memo=self._memo)
                for name in dict.fromkeys(names)
            ]
        )

    def verdicts(self, case: Case, names: Sequence[str], *, created_at: str) -> tuple[Verdict, ...]:
        """As ``evaluate``; a bug in a metric costs this case its values and does not end the run."""
        try:
            return self.evaluate(case, names, created_at=created_at)
        except Exception as error:  # noqa: BLE001  # every verdict records it
            return self.failed(case, names, error, created_at=created_at)

    def failed(self, case: Case, names: Sequence[str], error: Exception, *, created_at: str) -> tuple[Verdict, ...]:
        """The verdicts on a case whose evaluation raised: every metric has failed."""
        why = Failed(Reason("{kind}: {why}", kind=own(type(error).__name__), why=quoted(str(error))))
        return tuple(
            reach_verdict(rubric, case, {c.metric.id: why for c in rubric.criteria}, created_at=created_at)
            for rubric in (self._rubrics[name] for name in dict.fromkeys(names))
        )
