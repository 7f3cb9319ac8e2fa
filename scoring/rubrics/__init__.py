"""The rubrics, by an explicit list, and ``score``: one case under one rubric from start to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scoring.case.case import Case
from scoring.evaluators import lexical as lexical
from scoring.questions.question import NoAnswer, Question, Reply, run
from scoring.rubrics import agent, benchmarks, dimensions, entity, qa, quality, run_health, translation, workflow
from scoring.rubrics import answer as answer_rubric
from scoring.rubrics import text as text_rubric
from scoring.verdict.rubric import Rubric
from scoring.verdict.verdict import Verdict, reach_verdict

RUBRICS: Mapping[str, Rubric] = {
    rubric.id: rubric
    for rubric in (
        qa.RUBRIC, entity.RUBRIC, text_rubric.RUBRIC, translation.RUBRIC, workflow.RUBRIC, answer_rubric.RUBRIC,
        agent.RUBRIC, quality.RUBRIC, dimensions.RUBRIC, benchmarks.RUBRIC, run_health.RUBRIC,
    )
}  # fmt: skip
"""Every rubric by its id."""

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
