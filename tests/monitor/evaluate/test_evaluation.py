"""Hearing: metrics go as far as answers carry them; what is left is asked together, and once."""

from __future__ import annotations

import time

import pytest

from sidejudge.monitor.evaluate.evaluator import TOO_MUCH, Evaluation
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.metrics.settle import settle
from sidejudge.scoring.questions.kinds import BorneOut, CitesTranscript
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import Failed, Judgement, Method, Scored, Unavailable
from sidejudge.scoring.verdict.rubric import Criterion, Rubric

CASE = Case(case_id="c", model_output={}, sampling_probability=0.5)
YES = Answer(value=True, method=Method.JUDGE)
AT = "2026-01-01T00:00:00Z"


def asking(*rounds: tuple) -> Rubric:
    def measure(_):
        stated = []
        for questions in rounds:
            settled = settle((yield questions), bool)
            if not isinstance(settled, tuple):
                return settled
            stated += settled[0]
        return Scored(value=sum(stated) / max(1, len(stated)), method=Method.JUDGE)

    name = "+".join(question.reason for questions in rounds for question in questions) or "plain"
    metric = Metric(id="m", title="t", meaning="m", formula="f", source="s", measure=measure)
    return Rubric(
        id=name, title=name, source="s", formula="f", criteria=(Criterion(metric=metric, weight=1.0),), pass_mark=0.5
    )


EASY, HARD, LATER = CitesTranscript("easy"), CitesTranscript("hard"), BorneOut("later")


def knows_the_easy_one(case, question):
    assert case is CASE
    return YES if question == EASY else NoAnswer("too hard for words")


def test_what_can_be_told_at_once_is_told_before_anybody_is_asked():
    evaluation = Evaluation(CASE, [asking((EASY,), (LATER,)), asking((HARD,))], knows_the_easy_one)
    assert evaluation.open == (HARD, LATER), "both travel in one call although one is a second round"
    evaluation.give({HARD: YES, LATER: YES})
    assert evaluation.open == ()
    assert [verdict.passed for verdict in evaluation.verdicts(created_at=AT)] == [True, True]


def test_what_was_answered_is_not_asked_again_in_a_later_round():
    evaluation = Evaluation(CASE, [asking((HARD,)), asking((LATER,), (HARD,))], None)
    assert evaluation.open == (HARD, LATER)
    evaluation.give({HARD: YES, LATER: YES})
    assert evaluation.open == ()


def test_what_nobody_answers_says_why_the_last_one_could_not():
    for replies, kind, reason in (
        ({}, Unavailable, "too hard for words"),
        ({HARD: NoAnswer("no vector")}, Unavailable, "no vector"),
        ({HARD: NoAnswer("timed out", failed=True)}, Failed, "timed out"),
    ):
        evaluation = Evaluation(CASE, [asking((HARD,))], knows_the_easy_one)
        evaluation.give(replies)
        (verdict,) = evaluation.verdicts(created_at=AT)
        assert (type(verdict.scores[0].result), verdict.scores[0].result.reason) == (kind, reason)
        assert evaluation.failures == (() if kind is Unavailable else (reason,))


def test_a_failure_at_once_is_final():
    evaluation = Evaluation(CASE, [asking((HARD,))], lambda *_: NoAnswer("broken", failed=True))
    assert (evaluation.open, evaluation.failures) == ((), ("broken",))


@pytest.mark.parametrize("probability", [0.25, None])
def test_drawing_concerns_only_the_rubrics_that_are_undecided(probability):
    evaluation = Evaluation(CASE, [asking((EASY,)), asking((HARD,))], knows_the_easy_one)
    assert evaluation.undecided == ("hard",)
    evaluation.draw(probability)
    if probability is None:
        assert (evaluation.open, evaluation.dropped) == ((), ("hard",))
    else:
        assert (evaluation.open, evaluation.dropped) == ((HARD,), ())
        evaluation.give({HARD: YES})
    reported = {verdict.rubric: verdict.sampling_probability for verdict in evaluation.verdicts(created_at=AT)}
    assert reported == ({"easy": 0.5} if probability is None else {"easy": 0.5, "hard": 0.25})


def test_the_cost_of_a_shared_call_is_apportioned_to_the_scores_it_served():
    def judging(name, *metrics):
        def measure(_):
            settled = settle((yield (HARD,)), bool)
            _, method, judgements = settled
            return Scored(value=1.0, method=method, judgements=judgements)

        made = [Metric(id=m, title=m, meaning="m", formula="f", source="s", measure=measure) for m in metrics]
        criteria = tuple(Criterion(metric=metric, weight=1 / len(made)) for metric in made)
        return Rubric(id=name, title=name, source="s", formula="f", criteria=criteria, pass_mark=0.5)

    paid = Judgement(model="m", prompt_version="p", cost_usd=0.00021, call="call-1")
    evaluation = Evaluation(CASE, [judging("one", "a", "b"), judging("two", "c")], None)
    evaluation.give({HARD: Answer(value=True, method=Method.JUDGE, judgement=paid)})
    verdicts = [verdict.to_json() for verdict in evaluation.verdicts(created_at=AT)]
    assert [each["judge"]["cost_usd"] for each in verdicts] == pytest.approx([0.00014, 0.00007])
    scores = [score["judge"] for each in verdicts for score in each["scores"]]
    assert sum(score["cost_usd"] for score in scores) == pytest.approx(0.00021)
    assert {tuple(score["call_ids"]) for score in scores} == {("call-1",)}
    assert [each["judge"]["call_ids"] for each in verdicts] == [["call-1"], ["call-1"]]


def burning(seconds: float, *questions) -> Rubric:
    """Two metrics, each of which takes so much CPU before and after it asks."""

    def measure(_):
        burn(seconds)
        if questions:
            yield questions
            burn(seconds)
        return Scored(value=1.0, method=Method.LEXICAL)

    criteria = tuple(
        Criterion(metric=Metric(id=name, title="t", meaning="m", formula="f", source="s", measure=measure), weight=0.5)
        for name in ("first", "second")
    )
    return Rubric(id="slow", title="t", source="s", formula="f", criteria=criteria, pass_mark=0.5)


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize("questions", [(), (EASY,), (HARD,)])
def test_what_a_case_has_no_work_left_for_has_failed(questions):
    evaluation = Evaluation(CASE, [burning(0.02, *questions)], knows_the_easy_one, max_cpu_s=0.01)
    evaluation.give(dict.fromkeys(evaluation.open, YES))
    assert evaluation.open == ()
    (verdict,) = evaluation.verdicts(created_at=AT)
    results = [score.result for score in verdict.scores]
    assert results[1] == Failed(TOO_MUCH)
    assert (results[0] == Failed(TOO_MUCH)) == bool(questions)
    assert (verdict.composite, verdict.state.value) == (None, "incomplete")


def test_an_answer_at_once_costs_work_too():
    asked = []

    def slow(_, question):
        asked.append(question)
        burn(0.02)
        return YES

    evaluation = Evaluation(CASE, [asking((EASY, HARD, LATER))], slow, max_cpu_s=0.01)
    assert (asked, evaluation.failures) == ([EASY], (TOO_MUCH, TOO_MUCH))


def test_a_case_within_its_work_is_not_touched():
    evaluation = Evaluation(CASE, [burning(0.001, EASY)], knows_the_easy_one, max_cpu_s=1.0)
    (verdict,) = evaluation.verdicts(created_at=AT)
    assert (verdict.composite, evaluation.failures) == (1.0, ())
