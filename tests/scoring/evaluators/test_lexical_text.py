"""What lexical answers say of summaries: yes, no, and silence where words alone cannot tell."""

from __future__ import annotations

import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.lexical import answer
from sidejudge.scoring.questions.kinds import CorrectHighlight, SameHighlight, SameIntent, SummaryClaims, Supported
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.result.result import Method

OPEN = "open"
PURPOSE = "Customer requesting refund for duplicate charge"
REFERENCE = {
    "sentiment": [{"sentence_id": 10, "text": "I was charged twice", "label": "negative"}],
    "summary": {
        "call_purpose": PURPOSE,
        "highlights": ["Agent confirmed duplicate charge", "Refund initiated for $49"],
        "call_extracted_info": {
            "customer_name": "Priya Sharma", "issue_type": "Billing", "follow_up": "Credit in 3–5 business days",
        },
    },
    "emotion": {"anger": 60, "joy": 10},
}  # fmt: skip
CALL = """Customer: I was charged twice for my order on 12 March 2026, I'm Priya Sharma.
Agent: I can see the duplicate charge of $49. I have initiated the refund.
Agent: It arrives within three to five business days, ticket ORD-7731.
Customer: Can I have a discount?
Agent: No, I can't give a discount, and I won't waive the fee."""
CASE = Case(case_id="c", model_output=REFERENCE, expected_outcome=REFERENCE, transcript=CALL)
SILENT = Case(case_id="c", model_output=REFERENCE, expected_outcome=REFERENCE)


def stated(question, about=CASE):
    reply = answer(about, question)
    if not isinstance(reply, Answer):
        assert reply.failed is False
        return OPEN
    assert reply.method is Method.LEXICAL
    assert reply.reason
    return reply.value


@pytest.mark.parametrize(
    ("expected", "found", "level"),
    [
        (PURPOSE, "Customer requests a refund for a duplicate charge.", 1.0),
        (PURPOSE, "Customer asking about billing", 0.5),
        (PURPOSE, "Customer has a question about a payment", 0.5),
        (PURPOSE, "Customer wants to upgrade plan", 0.0),
        (PURPOSE, "Customer needs password reset", 0.0),
        (PURPOSE, "Customer wants money back", OPEN),
        (PURPOSE, "Customer does not want a refund for a duplicate charge", OPEN),
        (PURPOSE, "Customer disputing overcharge", OPEN),
        (PURPOSE, "Customer not asking about billing", OPEN),
        ("Customer reports an internet outage", "Customer asking about technical issue", 0.5),
        ("Customer reports an internet outage", "Customer asking about the internet", 0.5),
        ("Customer asking about billing", PURPOSE, OPEN),
        ("Kunde möchte Rückerstattung", "Kunde fragt wegen Störung", 0.0),
        ("Cliente solicita reembolso", "Cliente solicita reembolso", 1.0),
        ("Refund of $49", "Refund of $99", OPEN),
        ("Customer wants a credit for the outage", "Customer wants a refund", OPEN),
        ("", "", OPEN),
    ],
)
def test_intents(expected, found, level):
    assert stated(SameIntent(expected, found)) == level


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        ("Refund initiated for $49", "Refund of $49 initiated by agent", True),
        ("Refund initiated for $49", "Refund of $99 initiated", False),
        ("Refund initiated for $49", "Refund initiated", OPEN),
        ("Agent confirmed duplicate charge", "Refund initiated for $49", False),
        ("Agent confirmed duplicate charge", "Agent verified double billing", OPEN),
        ("Refund initiated", "Reimbursement started", OPEN),
        ("Agent confirmed duplicate charge", "Representative saw that it was billed two times", OPEN),
    ],
)
def test_highlights_that_say_the_same(expected, found, same):
    assert stated(SameHighlight(expected, found)) == same


@pytest.mark.parametrize(
    ("claim", "correct", "supported"),
    [
        ("Refund of $49 initiated", True, True),
        ("Agent initiated refund", True, True),
        ("Refund of $99", False, False),
        ("Agent offered a 10% discount", False, False),  # the 10 of the emotions and of the sentence ids is no support
        ("Agent gave a discount", OPEN, OPEN),
        ("Agent waived the fee", OPEN, OPEN),
        ("Refund was not initiated", False, OPEN),
        ("Credit in 7 days", False, False),
        ("Charged on 12 March 2026", OPEN, OPEN),
        ("Charged on 14 March 2026", False, False),
        ("Agent created ticket 7731", OPEN, OPEN),
        ("Agent created ticket 7732", False, False),
        ("Refund for Amit Verma was initiated by the agent today", False, False),
        ("Agent Confirmed The Double Billing", OPEN, OPEN),  # capitals of a title tell no names
        ("Se cobró dos veces el pedido", OPEN, OPEN),
        ("ग्राहक से दो बार शुल्क लिया गया", OPEN, OPEN),
    ],
)
def test_claims_of_a_summary(claim, correct, supported):
    assert (stated(CorrectHighlight(claim)), stated(Supported(claim))) == (correct, supported)


@pytest.mark.parametrize(
    ("about", "claim", "supported"),
    [
        ("customer_name", "Priya Sharma", True),
        ("customer_name", "Mrs. Sharma", True),
        ("customer_name", "Priya Verma", False),
        ("customer_name", "प्रिया वर्मा", OPEN),
        ("issue_type", "Billing", True),
        ("amount", "$49", True),
        ("amount", "$490", False),
        ("order", "ORD-7731", OPEN),
        ("resolution", "Escalated", OPEN),
    ],
)
def test_values_of_fields(about, claim, supported):
    assert stated(Supported(claim, about)) == supported


def test_without_a_transcript_nothing_is_made_up_but_the_reference_can_be_contradicted():
    assert stated(Supported("Agent offered a 10% discount"), SILENT) == OPEN
    assert stated(Supported("Priya Verma", "customer_name"), SILENT) == OPEN
    assert stated(CorrectHighlight("Refund of $99"), SILENT) is False
    assert stated(Supported("Refund of $49"), SILENT) is True


def test_claims_are_extracted_by_a_judge_only():
    assert stated(SummaryClaims(("a", "b"))) == OPEN


@pytest.mark.parametrize("kind", [CorrectHighlight, Supported])
def test_a_statement_of_any_length_costs_little_and_stays_open(kind):
    assert stated(kind("refund " * 5000)) == OPEN


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ("Tom ordered the new chain of the bike with Prime.", None),
        ("Tom and White ordered the new chain of the bike.", None),
        ("Nora heard that the White House paid for the new chain.", None),
        ("Nora heard that the World Health Organization paid for the new chain.", None),
        ("Nora heard that the United Nations paid for the new chain.", None),
        ("Nora heard that Priya Verma paid for the new chain.", False),
        ("Tom and Priya ordered the new chain of the bike.", False),
    ],
)
def test_everyday_words_and_spelt_out_abbreviations_are_no_names_that_were_made_up(claim, value):
    said = (
        "Tom: I ordered the new chain of the bike.\nNora: I heard of the new chain, the WHO and the U.N. paid for it."
    )
    about = Case(
        case_id="c", model_output={}, transcript=said,
        expected_outcome={"summary": {"call_purpose": "talk", "highlights": [], "call_extracted_info": {}}},
    )  # fmt: skip
    reply = answer(about, Supported(claim))
    assert (reply.value if isinstance(reply, Answer) else None) is value
