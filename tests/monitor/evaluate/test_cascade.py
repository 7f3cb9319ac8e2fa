"""Cascade: a stronger judge is asked where the one before is in doubt, or the trace is drawn."""

from __future__ import annotations

import dataclasses

import pytest

from sidejudge.monitor.config.evaluators import CascadeSection
from sidejudge.monitor.config.judge_choice import JudgeChoice
from sidejudge.monitor.evaluate import cascade
from sidejudge.monitor.evaluate.backends import FILTERED, OUTAGE, OVER_BUDGET, Addressed, Backends, plain
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.declared.metric import Sources
from sidejudge.scoring.declared.rubric import declared_rubric
from sidejudge.scoring.judging.request import requests
from sidejudge.scoring.questions.kinds import FollowsInstructions
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.reason import Reason, own, quoted
from sidejudge.scoring.result.result import Judgement, Method
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.escalation import Escalation, EscalationCause

AT = "2026-01-01T00:00:00Z"
CASE = Case(case_id="c", trace_id="ab" * 16, input="Refund?", model_output="Your refund of $49 is booked.")
POLITE = {"id": "polite", "ask": "Is it polite?", "answer": {"scale": [0, 10]}, "weight": 0.5}
TRUE = {"id": "true", "ask": "Is it true?", "answer": {"scale": [0, 10]}, "weight": 0.5}
RUBRIC = declared_rubric("own", {"metrics": [POLITE, TRUE], "pass_mark": 0.5}, Sources(rubrics=RUBRICS))
NEVER = CascadeSection(rate=0.0)


class Judges:
    """Answers by judge, order and metric; ``None`` has no answer."""

    outage = None

    def __init__(self, **answers):
        self.answers, self.requested, self.calls = answers, [], 0

    def can_answer(self, question):
        return True

    def share(self, priority):
        return 1.0

    async def answer(self, case, questions, account):
        return {question: self.reply(question) for question in questions}

    def reply(self, question):
        judge = question.judge if isinstance(question, Addressed) else "default"
        judge += "_permuted" * (isinstance(question, Addressed) and question.permuted)
        self.requested.append((judge, plain(question).metric.partition("-")[0]))
        said = self.answers.get(judge, self.answers.get(judge.partition("_")[0]))
        said = said[plain(question).metric.partition("-")[0]] if isinstance(said, dict) else said
        if isinstance(said, NoAnswer):
            return said
        value, *flags = said if isinstance(said, tuple) else (said,)
        sure = next((flag for flag in flags if isinstance(flag, float)), None)
        flags = tuple(flag for flag in flags if not isinstance(flag, float))
        self.calls += 1
        judgement = Judgement(judge, "v", cost_usd=1.0, call=f"call-{self.calls}", flags=flags, certainty=sure)
        return Answer(value=value, method=Method.JUDGE, reason="so it is", judgement=judgement)

    @property
    def asked(self):
        return list(dict.fromkeys(judge for judge, _ in self.requested))


async def judged(policy=NEVER, *, case=CASE, names=("default", "strong"), choice=None, rubric=RUBRIC, **answers):
    judges = Judges(**answers)
    choice = choice or JudgeChoice({"own": names}, cascade=policy)
    evaluator = Evaluator({"own": rubric}, None, Backends(order=(judges,), judge=judges, choice=choice))
    evaluation = evaluator.open(case, ["own"])
    await evaluator.finish(evaluation)
    (verdict,) = evaluation.verdicts(created_at=AT)
    return judges, verdict, evaluation


FAILS = NoAnswer("the panel is split", failed=True)
STOPPED = NoAnswer(Reason("{filtered}: {error}", filtered=own(FILTERED), error=quoted("content refused")), final=True)
(TOO_LONG,) = requests(CASE, [FollowsInstructions(("word " * 5000,))], context_tokens=1024)[1].values()
CANNOT_TELL = NoAnswer(Reason("cannot tell: {why}", why=quoted("it is filtered: no")), final=True)


@pytest.mark.parametrize(
    ("answers", "asked", "why"),
    [
        ({"default": 9, "strong": 2}, ["default", "default_permuted"], None),
        ({"default": 5, "strong": 2}, ["default", "strong"], cascade.NEAR_MARK),
        ({"default": (9, "a claim states 3"), "strong": 2}, ["default", "strong"], cascade.CONTRADICTS),
        ({"default": (9, "the judges disagree"), "strong": 2}, ["default", "strong"], cascade.DIFFERS),
        ({"default": (9, "redacted", "cost not known"), "strong": 2}, ["default", "default_permuted"], None),
        ({"default": FAILS, "strong": 2}, ["default", "strong"], cascade.NO_ANSWER),
        ({"default": STOPPED, "strong": 2}, ["default", "strong"], cascade.NO_ANSWER),
        ({"default": TOO_LONG, "strong": 2}, ["default", "strong"], cascade.NO_ANSWER),
        ({"default": 9, "default_permuted": 3, "strong": 2}, ["default", "default_permuted", "strong"],
         cascade.OTHER_ORDER),
        ({"default": 9, "default_permuted": FAILS, "strong": 2}, ["default", "default_permuted"], None),
    ],
)  # fmt: skip
async def test_the_strong_judge_is_asked_where_the_small_one_is_in_doubt(answers, asked, why):
    judges, verdict, _ = await judged(**answers)
    assert judges.asked == asked
    assert verdict.composite == pytest.approx(0.2 if why else 0.9)
    assert verdict.cascade.why == (why or "")
    assert verdict.cascade.cause == ("doubt" if why else "sure")
    assert verdict.cascade.judge == ("strong" if why else "default")
    assert verdict.to_json()["cascade"] == verdict.cascade.to_json()
    assert Escalation.from_json(verdict.cascade.to_json()) == verdict.cascade


GATE = {"weight": 0.5, "blocker": "disqualify"}
GATES = declared_rubric(
    "own",
    {"metrics": [{"id": "polite", "ask": "Is it polite?", **GATE}, {"id": "true", "ask": "Is it true?", **GATE}]},
    Sources(rubrics=RUBRICS),
)
SURE = 0.99


async def asked_strong(policy=NEVER, **answers):
    judges, verdict, _ = await judged(policy, rubric=GATES, strong={"polite": True, "true": True}, **answers)
    return {metric for judge, metric in judges.requested if judge == "strong"}, judges.asked, verdict


@pytest.mark.parametrize(
    ("default", "asked", "passed"),
    [
        ({"polite": True, "true": (True, "the judges disagree")}, {"true"}, True),
        ({"polite": (True, "a claim states 3"), "true": FAILS}, {"polite", "true"}, True),
        ({"polite": (True, SURE), "true": (True, 0.6)}, {"true"}, True),
        ({"polite": (True, SURE), "true": (False, 0.6)}, {"true"}, True),
        ({"polite": (False, SURE), "true": (True, 0.6)}, set(), False),
        ({"polite": (False, SURE), "true": (True, "the judges disagree")}, set(), False),
        ({"polite": (False, SURE), "true": FAILS}, {"true"}, False),
        ({"polite": (False, 0.6), "true": (False, 0.6)}, {"polite", "true"}, True),
    ],
    ids=["differs", "each its doubt", "tokens", "a doubtful no", "a sure no decides", "whatever the doubt",
         "but no answer is asked for", "two doubtful ones"],
)  # fmt: skip
async def test_the_strong_judge_is_asked_about_what_is_in_doubt_and_can_change_the_verdict(default, asked, passed):
    found, _, verdict = await asked_strong(default=default)
    assert (found, verdict.passed) == (asked, passed)


async def test_another_order_has_only_what_moved_asked_about():
    first, other = {"polite": True, "true": True}, {"polite": True, "true": False}
    found, _, verdict = await asked_strong(default=first, default_permuted=other)
    assert (found, verdict.cascade.why, verdict.passed) == ({"true"}, cascade.OTHER_ORDER, True)
    refused = {"polite": False, "true": True}
    found, _, verdict = await asked_strong(default=refused, default_permuted={"polite": False, "true": False})
    assert (found, verdict.passed) == (set(), False)  # what blocks in both orders decides


async def test_what_rests_on_one_question_is_answered_by_one_judge():
    def graded(quality, correct):
        return {"answer_quality": quality, "factual_correctness": correct, "completeness": 1.0, "reasoning": "so it is"}

    class Grades(Judges):
        def reply(self, question):
            judge = question.judge if isinstance(question, Addressed) else "default"
            permuted = isinstance(question, Addressed) and question.permuted
            self.requested.append((judge, permuted))
            value = graded(0.8, 0.8) if judge == "strong" else graded(0.2 if permuted else 0.9, 0.4)
            return Answer(value=value, method=Method.JUDGE, judgement=Judgement(judge, "v", call=f"{judge} {permuted}"))

    judges = Grades()
    choice = JudgeChoice({"quality": ("default", "strong")}, cascade=NEVER)
    evaluator = Evaluator(RUBRICS, None, Backends(order=(judges,), judge=judges, choice=choice))
    evaluation = evaluator.open(
        dataclasses.replace(CASE, expected_outcome="A refund of $49.", context=("Booked.",)), ["quality"]
    )
    await evaluator.finish(evaluation)
    (verdict,) = evaluation.verdicts(created_at=AT)
    assert judges.requested == [("default", False), ("default", True), ("strong", False)]
    assert [score.result.value for score in verdict.scores] == [0.8, 0.8, 1.0]


async def test_a_judge_whose_tokens_are_known_is_not_asked_twice_and_leaves_its_certainty():
    _, asked, verdict = await asked_strong(default={"polite": (True, SURE), "true": (True, SURE)})
    assert asked == ["default"]
    _, asked, verdict = await asked_strong(default={"polite": (True, SURE), "true": (True, 0.6)})
    assert asked == ["default", "strong"]
    assert (verdict.cascade.why, verdict.cascade.certainty_before) == (cascade.UNSURE, 0.6)
    assert Escalation.from_json(verdict.cascade.to_json()) == verdict.cascade
    lax = CascadeSection(rate=0.0, sure_from=0.5)
    assert (await asked_strong(lax, default={"polite": (True, SURE), "true": (True, 0.6)}))[0] == set()


async def test_a_drawn_trace_has_all_asked_whatever_is_sure():
    found, _, _ = await asked_strong(CascadeSection(rate=1.0), default={"polite": (True, SURE), "true": (True, SURE)})
    assert found == {"polite", "true"}


async def test_learned_thresholds_are_those_in_force():
    class Learned:
        def policy(self, rubric, stated):
            return stated.model_copy(update={"margin": 0.5})

    choice = JudgeChoice({"own": ("default", "strong")}, cascade=NEVER, learned=Learned())
    judges, verdict, _ = await judged(choice=choice, default=9, strong=2)
    assert (judges.asked, verdict.cascade.why) == (["default", "strong"], cascade.NEAR_MARK)


async def test_a_drawn_trace_is_seen_by_the_strongest_judge_whatever_the_small_one_says():
    _, verdict, _ = await judged(CascadeSection(rate=1.0), default=9, strong=2)
    assert verdict.passed is False
    assert verdict.cascade == Escalation(
        judge="strong", cause=EscalationCause.DRAWN, rate=1.0, judge_before="default", passed_before=True,
        composite_before=pytest.approx(0.9),
    )  # fmt: skip


async def test_doubt_goes_up_judge_by_judge_and_a_draw_at_once_to_the_last():
    names = ("default", "middle", "strong")
    judges, verdict, _ = await judged(names=names, default=5, middle=9, strong=2)
    assert (judges.asked[:2], verdict.cascade.judge, verdict.cascade.cause) == (["default", "middle"], "middle", "sure")
    judges, verdict, _ = await judged(CascadeSection(rate=1.0), names=names, default=9, middle=9, strong=2)
    assert "middle" not in judges.asked
    judges, verdict, _ = await judged(CascadeSection(rate=1.0), names=names, default=5, middle=9, strong=2)
    assert (verdict.cascade.cause, verdict.cascade.judge_before) == ("drawn", "middle")


async def test_only_metrics_that_name_several_judges_are_asked_about_again():
    choice = JudgeChoice(by_metric={("own", "true"): ("default", "strong")}, cascade=NEVER)
    judges, verdict, _ = await judged(choice=choice, default=5, strong=9)
    assert {metric for judge, metric in judges.requested if judge == "strong"} == {"true"}
    assert verdict.composite == pytest.approx(0.7)


SPENT, OUT = (NoAnswer(why, failed=True) for why in (f"{OVER_BUDGET}: the budget is spent", f"{OUTAGE}: timeout"))


@pytest.mark.parametrize("reply", [SPENT, OUT, STOPPED, TOO_LONG])
async def test_where_the_strong_judge_gives_no_answer_the_small_ones_counts(reply):
    _, verdict, evaluation = await judged(CascadeSection(rate=1.0), default=9, strong=reply)
    assert verdict.composite == pytest.approx(0.9)
    assert (verdict.cascade.judge, verdict.cascade.unanswered, verdict.cascade.cause) == ("default", True, "sure")
    assert bool(evaluation.failures) == (reply is OUT), "an outage passes; a spent budget drops no verdict"


async def test_a_judge_that_cannot_tell_has_answered():
    judges, verdict, _ = await judged(default=CANNOT_TELL, strong=2)
    assert (judges.asked, verdict.composite, verdict.cascade) == (["default"], None, None)
    _, verdict, _ = await judged(CascadeSection(rate=1.0), default=9, strong=CANNOT_TELL)
    assert (verdict.composite, verdict.cascade.judge, verdict.cascade.unanswered) == (None, "strong", False)


async def test_where_no_judge_gives_an_answer_no_judge_decided():
    _, verdict, _ = await judged(default=NoAnswer(f"{OUTAGE}: out", failed=True), strong=NoAnswer("no", failed=True))
    assert (verdict.passed, verdict.cascade) == (None, None)


async def test_the_verdict_carries_what_all_its_judges_cost():
    _, verdict, _ = await judged(default=9, default_permuted=3, strong=2)
    assert verdict.to_json()["judge"]["cost_usd"] == pytest.approx(6.0), "two questions, asked three times"
    assert verdict.to_json()["judge"]["model"] == "strong"


async def test_a_case_that_needs_no_judge_goes_through_no_cascade():
    empty = dataclasses.replace(CASE, model_output=None)
    _, verdict, _ = await judged(case=empty, default=NoAnswer("nobody"), strong=2)
    assert verdict.cascade is None


def test_the_same_share_of_traces_is_drawn_by_every_process():
    policy = CascadeSection(rate=0.1)
    drawn = [policy.draws(f"{number:032x}") for number in range(20_000)]
    assert sum(drawn) / len(drawn) == pytest.approx(0.1, abs=0.01)
    assert drawn == [CascadeSection(rate=0.1).draws(f"{number:032x}") for number in range(20_000)]
    other = [CascadeSection(rate=0.1, seed=1).draws(f"{number:032x}") for number in range(20_000)]
    assert sum(a and b for a, b in zip(drawn, other, strict=True)) / len(drawn) == pytest.approx(0.01, abs=0.004)
