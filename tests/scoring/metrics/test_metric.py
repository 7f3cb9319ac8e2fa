from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.questions.kinds import CitesTranscript
from sidejudge.scoring.questions.question import Answer, NoAnswer, PendingMetrics
from sidejudge.scoring.result.result import Failed, Method, Scored, Unavailable

CASE = Case(case_id="c", model_output={"answer": "yes"})
QUESTION = CitesTranscript("he said so")


def metric(measure):
    return Metric(id="m", title="M", meaning="M.", formula="m", source="here", measure=measure)


def asks_first(case):
    (reply,) = yield (QUESTION,)
    if isinstance(reply, NoAnswer):
        return Unavailable(reply.reason)
    return Scored(value=1 / len(reply.value))


def test_a_metric_that_asks_nothing_is_its_result_at_once():
    assert metric(lambda case: Scored(value=0.5)).start(CASE) == Scored(value=0.5)


def test_what_is_told_at_once_and_what_has_to_be_asked_for_are_evaluated_together():
    evaluation = PendingMetrics({"told": Scored(value=0.5), "asked": metric(asks_first).start(CASE)})
    assert evaluation.results == {"told": Scored(value=0.5)}
    assert evaluation.questions == (QUESTION,)
    evaluation.give({QUESTION: NoAnswer("nobody")})
    assert evaluation.results == {"told": Scored(value=0.5), "asked": Unavailable("nobody")}


def test_an_error_in_a_metric_is_its_failure_before_a_question_and_after_it():
    assert metric(lambda case: case.model_output["none"]).start(CASE) == Failed("KeyError: 'none'")
    evaluation = PendingMetrics({"m": metric(asks_first).start(CASE)})
    evaluation.give({QUESTION: Answer(value=[], method=Method.JUDGE)})
    assert evaluation.results == {"m": Failed("ZeroDivisionError: division by zero")}
