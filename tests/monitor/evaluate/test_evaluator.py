"""Evaluator: the rubrics of a case together, each question once."""

from __future__ import annotations

from collections import Counter

from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.metrics.settle import settle
from sidejudge.scoring.questions.kinds import BorneOut, CitesTranscript
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import Failed, Method, Scored, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.rubric import Criterion, Rubric
from sidejudge.scoring.verdict.verdict import State

CASE = Case(case_id="c", model_output={"a": 1}, sampling_probability=0.25)
AT = "2026-01-01T00:00:00Z"


def asking(*rounds: tuple) -> Metric:
    """A metric that asks in rounds and is the share of what was answered with yes."""

    def measure(case):
        stated = []
        for questions in rounds:
            settled = settle((yield questions), bool)
            if not isinstance(settled, tuple):
                return settled
            stated += settled[0]
        return Scored(value=sum(stated) / len(stated), method=Method.JUDGE)

    return Metric(id="asking", title="t", meaning="m", formula="f", source="s", measure=measure)


def rubric(name: str, metric: Metric) -> Rubric:
    return Rubric(
        id=name, title=name, source="s", formula="f", criteria=(Criterion(metric=metric, weight=1.0),), pass_mark=0.5
    )


class Answerer:
    """Says yes to everything and keeps count."""

    def __init__(self, value: object = True) -> None:  # noqa: FBT002  # it is the answer
        self.requested: Counter = Counter()
        self.value = value

    def __call__(self, case, question):
        assert case is CASE
        self.requested[question] += 1
        return self.value if isinstance(self.value, NoAnswer) else Answer(value=self.value, method=Method.JUDGE)


SHARED, OWN, SECOND = CitesTranscript("shared"), CitesTranscript("own"), BorneOut("second")
TWO = {"one": rubric("one", asking((SHARED, OWN))), "two": rubric("two", asking((SHARED,), (SECOND,)))}


def test_what_two_rubrics_ask_alike_is_asked_once():
    answerer = Answerer()
    verdicts = Evaluator(TWO, answerer).evaluate(CASE, ["one", "two"], created_at=AT)
    assert answerer.requested == {SHARED: 1, OWN: 1, SECOND: 1}
    assert [(v.rubric, v.composite, v.passed) for v in verdicts] == [("one", 1.0, True), ("two", 1.0, True)]


def test_the_same_words_asked_with_another_meaning_are_another_question():
    answerer = Answerer()
    rubrics = {"one": rubric("one", asking((CitesTranscript("x"),))), "two": rubric("two", asking((BorneOut("x"),)))}
    Evaluator(rubrics, answerer).evaluate(CASE, ["one", "two"], created_at=AT)
    assert len(answerer.requested) == 2


def test_verdicts_come_in_the_order_in_which_rubrics_were_named():
    evaluator = Evaluator(RUBRICS)
    names = ["workflow", "qa", "answer", "entity"]
    assert [v.rubric for v in evaluator.evaluate(CASE, names, created_at=AT)] == names
    assert [v.rubric for v in evaluator.evaluate(CASE, names[::-1], created_at=AT)] == names[::-1]
    assert evaluator.evaluate(CASE, [], created_at=AT) == ()


def test_a_rubric_that_is_named_twice_speaks_once():
    assert [v.rubric for v in Evaluator(TWO, Answerer()).evaluate(CASE, ["one", "two", "one"], created_at=AT)] == [
        "one",
        "two",
    ]


def test_metrics_of_one_name_in_two_rubrics_are_not_mixed_up():
    def fixed(value):
        return Metric(id="same", title="t", meaning="m", formula="f", source="s", measure=lambda _: Scored(value=value))

    rubrics = {"low": rubric("low", fixed(0.1)), "high": rubric("high", fixed(0.9))}
    verdicts = Evaluator(rubrics).evaluate(CASE, ["low", "high"], created_at=AT)
    assert [v.composite for v in verdicts] == [0.1, 0.9]


def test_what_nobody_can_answer_is_unavailable_and_what_was_tried_in_vain_is_an_error():
    for reply, kind in ((NoAnswer("nobody"), Unavailable), (NoAnswer("timed out", failed=True), Failed)):
        (verdict,) = Evaluator(TWO, Answerer(reply)).evaluate(CASE, ["one"], created_at=AT)
        assert isinstance(verdict.scores[0].result, kind)
        assert (verdict.state, verdict.passed) == (State.INCOMPLETE, None)


def test_without_an_answerer_the_lexical_one_answers():
    case = Case(case_id="c", model_output={}, transcript="[00:10] Agent: May I have your account number?")
    requested = CitesTranscript("At 00:10 the agent asked 'May I have your account number?'")
    (verdict,) = Evaluator({"one": rubric("one", asking((requested,)))}).evaluate(case, ["one"], created_at=AT)
    assert verdict.composite == 1.0


def test_a_verdict_tells_when_it_was_reached_how_it_was_drawn_and_which_revision_it_is():
    evaluation = Evaluator(TWO, Answerer()).open(CASE, ["one"])
    (verdict,) = evaluation.verdicts(created_at=AT, selection="forced")
    assert (verdict.created_at, verdict.selection, verdict.revision, verdict.sampling_probability) == (
        AT, "forced", 1, 0.25,
    )  # fmt: skip
