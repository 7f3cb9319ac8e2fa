"""How often a lexical answer is right, on dialogues and claims about them that are in no other test.

A lexical *no* needs proof, a lexical *yes* subject, relation and object; what is neither stays open. So the bound is on
what is decided: at least 98 % of it is right, on texts that rules were tuned on and on those written afterwards.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.lexical import answer
from sidejudge.scoring.questions.kinds import CorrectHighlight, SameHighlight, Supported
from sidejudge.scoring.questions.question import Answer, run
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.rubrics import RUBRICS

SUMMARIES = yaml.safe_load((Path(__file__).parent / "data" / "dialogue_summaries.yaml").read_text(encoding="utf-8"))
DIALOGUES = yaml.safe_load((Path(__file__).parent / "data" / "summaries.yaml").read_text(encoding="utf-8"))
LEAST = 0.98
REFERENCE = {"summary": {"call_purpose": "talk", "highlights": [], "call_extracted_info": {}}}


def decided(dialogue, question):
    case = Case(case_id="c", model_output={}, transcript=dialogue["transcript"], expected_outcome=REFERENCE)
    reply = answer(case, question)
    return reply.value if isinstance(reply, Answer) else None


def claims_of(dialogue):
    yield from ((True, "correct", claim) for claim in dialogue["correct"])
    yield from ((False, kind, claim) for kind, claim in dialogue["wrong"])


@pytest.mark.parametrize("held_out", [False, True], ids=["tuned on", "held out"])
@pytest.mark.parametrize("question", [Supported, CorrectHighlight])
def test_what_is_decided_is_right(question, held_out, record_property):
    found = Counter()
    wrong = []
    for dialogue in DIALOGUES:
        if bool(dialogue.get("held_out")) is held_out:
            for truth, kind, claim in claims_of(dialogue):
                value = decided(dialogue, question(claim))
                found[kind, value] += 1
                if value is not None and value is not truth:
                    wrong.append((dialogue["id"], kind, claim))
    total = sum(number for (_, value), number in found.items() if value is not None)
    record_property("decided", total)
    record_property("claims", found.total())
    assert len(wrong) <= (1 - LEAST) * total, wrong
    # Silence is right, too; so the kinds that can be proved must be noticed often enough.
    made_up = sum(found[kind, False] for kind in ("number", "name"))
    assert made_up >= 0.35 * sum(found[kind, value] for kind in ("number", "name") for value in (True, False, None))


def judged(dialogue, summary, reference):
    """Whether a summary is free of fabrications by the rubric, against another person's summary; None if undecided."""
    case = Case(
        case_id="c", transcript=dialogue["transcript"],
        model_output={"summary": {"call_purpose": summary, "highlights": [], "call_extracted_info": {}}},
        expected_outcome={"summary": {"call_purpose": reference, "highlights": [], "call_extracted_info": {}}},
    )  # fmt: skip
    free = next(each for each in RUBRICS["text"].criteria if each.metric.id == "fabrication_free_rate").metric
    result = run({"free": free.start(case)}, lambda question: answer(case, question)).results["free"]
    return result.value if isinstance(result, Scored) else None


def test_no_correct_summary_is_called_fabricated_and_no_degraded_one_is_borne_out(record_property):
    """At most 1 % of the summaries that different people could have written, each held against another one's."""
    correct, degraded = [], Counter()
    for dialogue in SUMMARIES:
        written = dialogue["correct"]
        for at, summary in enumerate(written):
            value = judged(dialogue, summary, written[at - 1])
            correct.append((value, summary))
        for kind, summary in dialogue["wrong"]:
            degraded[kind, judged(dialogue, summary, written[0])] += 1
    fabricated = [summary for value, summary in correct if value is not None and value < 1.0]
    record_property("summaries", len(correct))
    record_property("degraded noticed", sum(number for (_, value), number in degraded.items() if value == 0.0))
    assert len(correct) > 200
    assert len(fabricated) <= 0.01 * len(correct), fabricated
    assert not [kind for (kind, value), number in degraded.items() if value == 1.0]
    assert sum(degraded[kind, 0.0] for kind in ("number", "name")) >= 0.3 * sum(
        number for (kind, _), number in degraded.items() if kind in ("number", "name")
    )


@pytest.mark.parametrize("kind", ["roles", "negated"])
def test_swapped_roles_and_denials_are_never_supported(kind):
    reported = [(dialogue["id"], claim) for dialogue in DIALOGUES for truth, found, claim in claims_of(dialogue)
            if found == kind and decided(dialogue, Supported(claim))]  # fmt: skip
    assert reported == []


def test_two_wrong_statements_are_never_the_same_highlight():
    reported = [
        (right, claim)
        for dialogue in DIALOGUES
        for right in dialogue["correct"]
        for claim in (claim for _, _, claim in claims_of(dialogue) if claim != right)
        if decided(dialogue, SameHighlight(right, claim)) and claim not in dialogue["correct"]
    ]
    assert reported == []


@pytest.mark.parametrize(
    ("transcript", "claim"),
    [
        ("Ravi: The Fernandes family rents our flat.", "The Fernandes' flat is rented."),
        ("Ravi: The Fernandes family rents our flat.", "Ravi's tenants are the Fernandes."),
        ("Ann: It was nineteen dollars and ninety-five cents.", "Ann paid $19.95."),
        ("Ann: It was half the price.", "Ann got 50% off."),
        ("Ann: He lived in Norway.", "Ann talks about a Norwegian."),
        ("Ann: We leave at 7:00.", "They leave at 7."),
        ("Ann: We leave at 19:00.", "They leave at 7 pm."),
        ("Ann: Three tickets at 12 euros.", "The tickets are 36 euros."),
        ("Ann: It takes two hours.", "It takes 120 minutes."),
        ("#Person1#: I moved in 14 days ago.", "#Person1# moved in two weeks ago."),
        ("Speaker 7: I broke it.", "Speaker 7 broke it."),
        ("Ann: It cost four hundred dollars.", "It cost $400."),
        ("Ana: Costó cuarenta euros.", "Costó 40 euros."),
        ("Anna: Es hat fünfunddreißig Euro gekostet.", "Es kostete 35 Euro."),
    ],
)
def test_the_same_in_other_words_is_not_called_made_up(transcript, claim):
    assert decided({"transcript": transcript}, Supported(claim)) is not False


@pytest.mark.parametrize(
    ("transcript", "claim"),
    [
        ("Ben: I lent Anna my car.", "Anna lent Ben her car."),
        ("Ben: My brother paid Anna for the car.", "Ben paid Anna for the car."),
        ("Ben: The friend of Anna lost her purse.", "Anna lost her purse."),
        ("Ben: I think Anna lost her purse.", "Anna lost her purse."),
        ("Ben: Did Anna lose her purse?", "Anna lost her purse."),
        ("Ben: If Anna lost her purse, she would call.", "Anna lost her purse."),
        ("Ben: Anna almost lost her purse.", "Anna lost her purse."),
        ("Ben: Anna lost her purse? No, never.", "Anna lost her purse."),
        ("Ben: I never sold the old boat.", "Ben sold the old boat."),
    ],
)
def test_the_same_words_in_another_sense_support_nothing(transcript, claim):
    assert decided({"transcript": transcript}, Supported(claim)) is not True


@pytest.mark.parametrize(
    ("transcript", "claim"),
    [
        ("Ben: I sold the old boat yesterday.", "Ben sold the old boat."),
        ("Ben: Anna lost her purse in Paris.", "Anna lost her purse."),
        ("Agent: I have cancelled the order for you.", "The agent cancelled the order."),
        ("Kunde: Die Lieferung kam gestern beschädigt an.", "Die Lieferung kam gestern beschädigt an."),
    ],
)
def test_subject_relation_and_object_together_support(transcript, claim):
    assert decided({"transcript": transcript}, Supported(claim)) is True
