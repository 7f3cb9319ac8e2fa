"""What words prove: a quote at its time, a number or name that contradicts. Everything else is left to the judge."""

from __future__ import annotations

import pytest

from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.questions.kinds import (
    BorneOut,
    CitesTranscript,
    CorrectHighlight,
    PiecesUsed,
    SameFact,
    SameHighlight,
    SameIntent,
)
from sidejudge.scoring.questions.question import Answer

FORMATS = {
    "bare": "00:05 Customer: Where is my money?\n00:12 Agent: I can refund you today.\n00:20 Customer: Thanks",
    "in brackets": "[00:05] Customer: Where is my money?\n[00:12] Agent: I can refund you today.",
    "with fractions": "[00:00:05.100] Customer: Where is my money?\n[00:00:12.340] Agent: I can refund you today.",
    "in seconds": (
        Utterance("Where is my money?", "customer", "5.0"), Utterance("I can refund you today.", "agent", "12.0"),
    ),
}  # fmt: skip
QUOTE = 'Agent said "I can refund you today" at 00:12.'


def case(transcript):
    return Case(case_id="c", model_output={}, transcript=transcript)


def proven(transcript, question):
    reply = lexical.prove(case(transcript), question)
    return reply.value if isinstance(reply, Answer) else None


@pytest.mark.parametrize("transcript", FORMATS.values(), ids=FORMATS)
def test_a_quote_at_its_time_is_proven_however_the_time_is_written(transcript):
    assert proven(transcript, CitesTranscript(QUOTE)) is True
    assert proven(transcript, BorneOut(QUOTE)) is True
    for question in (CitesTranscript(QUOTE), BorneOut(QUOTE)):
        assert lexical.answer(case(transcript), question).value is True


@pytest.mark.parametrize(
    "transcript",
    [
        "Customer: Where is my money?\nAgent: I can refund you today.",
        (Utterance("I can refund you today.", "agent", "2026-01-01T10:00:12Z"),),
        (Utterance("I can refund you today.", "agent", "a while later"),),
    ],
)
def test_a_time_that_cannot_be_looked_up_leaves_it_open(transcript):
    assert proven(transcript, CitesTranscript(QUOTE)) is None
    assert proven(transcript, BorneOut(QUOTE)) is None
    assert not isinstance(lexical.answer(case(transcript), BorneOut(QUOTE)), Answer)


@pytest.mark.parametrize(
    "reason",
    [
        "The agent verified the account at 00:12.",
        "Agent greeted politely.",
        'At 00:12 the agent said "I can refund you today" and was empathetic.',
        'Agent said "I can refund you today" at 00:05.',
        'Agent said "I can refund you tomorrow" at 00:12.',
        '"I can refund you today"',
        "The agent did not verify the caller.",
    ],
)
def test_what_takes_judgement_is_left_to_the_judge(reason):
    assert proven(FORMATS["in brackets"], BorneOut(reason)) is None


@pytest.mark.parametrize(
    "reason", ["Agent quoted a refund of $99 at 00:12", "The agent promised it within 48 hours, which was friendly."]
)
def test_a_number_that_stands_nowhere_contradicts(reason):
    assert proven(FORMATS["in brackets"], BorneOut(reason)) is False


def test_a_blank_reason_is_no_evidence():
    assert (proven("x", CitesTranscript(" ")), proven("x", BorneOut(""))) == (False, False)


@pytest.mark.parametrize(
    ("question", "estimate"),
    [
        (SameIntent("The customer wants a refund", "The customer asks about a delivery"), 0.0),
        (SameHighlight("The customer wants a refund", "A delivery is late"), False),
    ],
)
def test_no_word_list_gives_a_no_where_a_judge_is_configured(question, estimate):
    about = Case(case_id="c", model_output={}, expected_outcome={}, transcript="Agent: Hello.")
    assert lexical.answer(about, question).value == estimate, "the estimate without a judge"
    assert not isinstance(lexical.prove(about, question), Answer)


def test_figures_and_equal_words_are_proof():
    about = Case(case_id="c", model_output={}, expected_outcome={"x": "Refund of $49"}, transcript="Agent: Hello.")
    assert lexical.prove(about, SameIntent("get a refund", "Get a refund.")).value == 1.0
    assert lexical.prove(about, SameHighlight("A refund of $49", "A refund of $99")).value is False
    assert lexical.prove(about, SameFact("A refund of $49", "A refund of $99")).value is False
    assert lexical.prove(about, CorrectHighlight("A refund of $99")).value is False
    assert not isinstance(lexical.prove(about, PiecesUsed(("Hello there, how are you",))), Answer)
