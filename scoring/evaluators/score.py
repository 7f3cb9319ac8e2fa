"""Score: one case under one rubric, with one evaluator that answers at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import GeneratorType

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.question import NoAnswer, Question, Reply, Steps, run
from sidejudge.scoring.result.reason import Reason
from sidejudge.scoring.result.result import Judgement, Result
from sidejudge.scoring.verdict.outcome import OutcomeMemo
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.verdict import Verdict, reach_verdict

from . import lexical

PlainEvaluator = Callable[[Case, Question], Reply]
"""An evaluator as a function that answers at once."""


def score(
    case: Case,
    rubric: Rubric,
    *,
    answer: PlainEvaluator = lexical.answer,
    created_at: str,
    memo: OutcomeMemo | None = None,
) -> Verdict:
    """The verdict on a case, with a plain function as the only evaluator (offline use, tests).

    ``created_at`` is an ISO 8601 time in UTC: this layer has no clock.
    """
    results: dict[str, Result] = {}
    asking: dict[str, Steps] = {}
    for metric in rubric.metrics:
        begun = metric.start(case)
        if isinstance(begun, GeneratorType):
            asking[metric.id] = begun
        else:
            results[metric.id] = begun  # type: ignore[assignment]  # all steps are generators of Python's own
    judgements: Mapping[str, tuple[Judgement, ...]] = {}
    if asking:
        done = run(asking, lambda question: answer(case, question))
        results |= done.results
        judgements = done.judgements
    return reach_verdict(rubric, case, results, judgements=judgements, created_at=created_at, memo=memo)


def nobody(_case: Case, _question: Question) -> Reply:
    """An evaluator that answers nothing."""
    return NoAnswer(Reason("no evaluator is configured"))
