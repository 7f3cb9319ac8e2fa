"""Answers against the facts: what is decidable is told, and what is not is left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.judging.check import contradiction
from sidejudge.scoring.questions.kinds import (
    BorneOut,
    CitesTranscript,
    CorrectHighlight,
    GradeAgent,
    GradeAnswer,
    GradeDimension,
    GradeQuality,
    HowFluent,
    KeepsFact,
    OutcomeDrift,
    SameEntity,
    SameFact,
    SameHighlight,
    SameIntent,
    StatedClaims,
    SummaryClaims,
    Supported,
    VerifyClaims,
)
from sidejudge.scoring.trace.span import ToolCall
from tests.scoring.judging.asking import HONEST

CALL = Case(
    case_id="c",
    input="What about my refund of $49 from 12 March 2026?",
    model_output="Your refund of $49 is on its way.",
    transcript=(
        Utterance("I was charged forty nine dollars twice on 12 March", "customer", "00:05"),
        Utterance("I have verified your account, code 9 9 8 7", "agent", "01:23"),
    ),
    expected_outcome={"summary": {"call_purpose": "Refund of $49 for a duplicate charge", "highlights": []}},
    context=("Refunds take 3 to 15 days.",),
    tools_used=(ToolCall(name="refund", arguments={"amount": 49}, result="refunded 49"),),
    scenario={"tools_should_include": ["refund"]},
)


def grade(accuracy, faithfulness):
    return {"accuracy_score": accuracy, "faithfulness_score": faithfulness, "rationale": "r"}


def quality(correct):
    return {"answer_quality": 1.0, "factual_correctness": correct, "completeness": 1.0, "reasoning": "r"}


def claims(claim, *, accurate):
    return {"claims": [{"claim": claim, "importance": "major", "accurate": accurate}]}


def agent(score, *turns):
    return {"score": score, "failure_code": None, "turns": list(turns), "reason": "r"}


@pytest.mark.parametrize(
    ("question", "value", "stated"),
    [
        (CitesTranscript("At 01:23 the agent said 'I have verified your account'"), False, "quotes the transcript"),
        (BorneOut("At 07:31 the agent verified the account"), True, "the time 07:31 does not stand"),
        (BorneOut("The agent said 'your lottery prize is confirmed'"), True, "does not stand in the transcript"),
        (BorneOut("The agent offered a voucher of $500"), True, "the number 500 does not stand"),
        (Supported("A refund of $99"), True, "the figure 99 stands neither in transcript nor in reference"),
        (Supported("A charge on 13 March"), True, "the date 03-13 stands neither"),
        (Supported("Refund of $49 for a duplicate charge"), False, "stands in the reference word for word"),
        (CorrectHighlight("Refund of €4,900"), True, "the figure 4,900"),
        (SameHighlight("Refund of $49", "Refund of $99"), True, "with other figures"),
        (SameHighlight("Refund of $49", "refund of $49."), False, "in the same words"),
        (SameIntent("Refund of $49", "Refund of $99"), 1.0, "with other figures"),
        (SameIntent("Refund of an order", "Refund of an order"), 0.0, "in the same words"),
        (SummaryClaims(("Refund of $49",)), ("Refund of $50",), "the figure 50, which the text does not"),
        (StatedClaims(("Refund of $49",)), ("Refund of $50",), "the figure 50, which the text does not"),
        (SameFact("Refund of $49", "Refund of $99"), True, "with other figures"),
        (KeepsFact("₹49", "₹९९ का रिफंड"), True, "held to be kept"),
        (KeepsFact("₹49", "₹४९ का रिफंड"), False, "held to be lost"),
        (
            OutcomeDrift((("Escalated.", ""),)),
            {"outcomes": [{"outcome": "escalated", "kept": True}], "added": []},
            "nothing was translated",
        ),
        (VerifyClaims(), claims("The refund is $77", accurate=True), "the figure 77, which the output does not"),
        (GradeAgent("response_delivery"), agent(2, 0, 99), "turn 99 does not exist"),
        (GradeAgent("response_delivery"), agent(2, -1), "turn -1 does not exist"),
    ],
)
def test_an_answer_against_the_facts_is_told(question, value, stated):
    assert stated in contradiction(CALL, question, value)


@pytest.mark.parametrize(
    ("changed", "question", "value", "stated"),
    [
        ({"model_output": "Your refund of $88 is on its way."}, GradeQuality(), quality(1.0), "the figure 88"),
        ({"model_output": "Your refund came on 5 May 2026."}, GradeQuality(), quality(0.95), "the date 2026-05-05"),
        ({"model_output": "Your refund of $88."}, GradeAnswer(), grade(2, 1), "none of the reference's figures"),
        ({"model_output": "$49, code 55123."}, GradeAnswer(), grade(1, 2), "the figure 55123 stands in no source"),
        ({"model_output": ""}, GradeAnswer(), grade(2, 2), "credit for an empty answer"),
        ({"model_output": " "}, GradeQuality(), quality(0.0), "credit for an empty answer"),
        ({"expected_outcome": "Yes.", "model_output": "yes."}, GradeAnswer(), grade(0, 2), "the reference's own words"),
        ({"model_output": "It is $77."}, VerifyClaims(), claims("It is $77", accurate=True), "in the ground truth"),
        ({"tools_used": ()}, GradeAgent("tool_routing"), agent(5), "refund was not"),
    ],
)
def test_an_answer_about_the_output_against_the_facts_is_told(changed, question, value, stated):
    assert stated in contradiction(replace(CALL, **changed), question, value)


@pytest.mark.parametrize(
    ("question", "value"),
    [
        (CitesTranscript("Agent was polite"), False),
        (CitesTranscript("Agent was polite"), True),
        (BorneOut("At 01:23 the agent verified the account"), True),
        (BorneOut("The agent verified the account"), False),
        (BorneOut("The agent never offered $500"), True),
        (Supported("The customer was charged $49"), True),
        (Supported("The code is 9987"), True),
        (Supported("The charge was on 12 March"), True),
        (Supported("The customer was angry"), True),
        (Supported("A refund of $99"), False),
        (CorrectHighlight("A refund after 2 calls"), True),
        (SameHighlight("Refund of $49", "He gets his money back"), True),
        (SameHighlight("Refund of $49", "Refund of $99"), False),
        (SameIntent("Refund of $49", "Refund of $99"), 0.5),
        (SummaryClaims(("Refund of $49",)), ("The refund is $49",)),
        (HowFluent("x"), 1.0),
        (KeepsFact("refund approved", "रिफंड"), True),
        (OutcomeDrift((("Escalated.", "Closed."),)), {"outcomes": [{"outcome": "x", "kept": True}], "added": []}),
        (GradeAnswer(), grade(2, 2)),
        (GradeAnswer(), grade(0, 0)),
        (GradeQuality(), quality(1.0)),
        (VerifyClaims(), claims("The refund is $49", accurate=True)),
        (VerifyClaims(), claims("The refund is $49", accurate=False)),
        (GradeDimension("completeness"), {"level": "excellent", "reason": "r"}),
        (GradeAgent("tool_routing"), agent(5)),
        (GradeAgent("tool_routing"), agent(2, 0, 1)),
        (SameEntity(("a",), ("b",)), (None,)),
    ],
)
def test_what_the_facts_allow_or_leave_open_is_not_told(question, value):
    assert contradiction(CALL, question, value) is None


def test_without_a_transcript_nothing_is_said_of_what_stands_in_it():
    unknown = replace(CALL, transcript=None)
    assert contradiction(unknown, Supported("A refund of $99"), True) is None
    assert contradiction(unknown, BorneOut("At 07:31 the agent said so"), True) is None


def test_a_tool_that_may_have_been_called_unseen_is_not_missing():
    for changed in ({"complete": False, "tools_used": ()}, {"tools_used": None}):
        assert contradiction(replace(CALL, **changed), GradeAgent("tool_routing"), agent(5)) is None


def test_what_is_too_long_to_be_looked_up_is_left_alone():
    long = replace(CALL, transcript="word " * 200_000)
    assert contradiction(long, Supported("A refund of $99"), True) is None
    assert contradiction(long, BorneOut("At 07:31 the agent said so"), True) is None


@settings(max_examples=80)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["claims", "claim", "turns", "score", "outcomes", "kept"]), inner)
        ),
        max_leaves=8,
    )
)
def test_no_value_makes_it_fail(value):
    for question in HONEST:
        found = contradiction(CALL, question, value)
        assert found is None or 0 < len(found) < 300, question


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_makes_it_fail(one, other):
    about = Case(case_id="c", model_output=one, transcript=other, expected_outcome=other, context=(other,))
    for question, value in (
        (Supported(one), True),
        (BorneOut(one), True),
        (CitesTranscript(one), False),
        (SameHighlight(one, other), True),
        (GradeAnswer(), grade(2, 2)),
        (GradeQuality(), quality(1.0)),
    ):
        found = contradiction(about, question, value)
        assert found is None or 0 < len(found) < 300
