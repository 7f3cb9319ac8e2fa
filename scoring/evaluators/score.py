"""Score: one case under one rubric from start to end, with one evaluator that answers at once."""

from __future__ import annotations

from collections.abc import Callable

from scoring.case.case import Case
from scoring.questions.question import NoAnswer, Question, Reply, run
from scoring.verdict.rubric import Rubric
from scoring.verdict.verdict import Verdict, reach_verdict

from . import lexical

Answerer = Callable[[Case, Question], Reply]


def score(case: Case, rubric: Rubric, *, answer: Answerer = lexical.answer, created_at: str) -> Verdict:
    """The verdict on a case, with a plain function as the only answerer (offline use, tests).

    ``created_at`` is an ISO 8601 time in UTC: this layer has no clock.
    """
    started = {criterion.metric.id: criterion.metric.start(case) for criterion in rubric.criteria}
    done = run(started, lambda question: answer(case, question))
    return reach_verdict(rubric, case, done.results, judgements=done.judgements, created_at=created_at)


def nobody(_case: Case, _question: Question) -> Reply:
    """An answerer that knows nothing."""
    return NoAnswer("no answerer is configured")
