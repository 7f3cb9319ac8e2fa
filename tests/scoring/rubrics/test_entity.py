"""entity: what no golden story tells of seed 000, Task 2, the edges of rubrics §4, and scikit-learn's opinion."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.questions.kinds import SameEntity
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import Method
from sidejudge.scoring.rubrics import RUBRICS, entity
from sidejudge.scoring.verdict.verdict import State
from tests.scoring.rubrics.made import Made

MADE = Made("entity")
verdict, line, result, value = MADE.verdict, MADE.line, MADE.result, MADE.value
CALL = "Agent: hello. Customer: I want a refund, please cancel my account. Billing was wrong."


def output(keywords=(), topics=(), valid=()):
    return {"detected_keywords": list(keywords), "detected_topics": list(topics), "valid_entity_set": list(valid)}


def case(found, expected, **more):
    return Case(case_id="c", model_output=found, expected_outcome=expected, **{"transcript": CALL, **more})


def test_insurance_that_nobody_mentioned_is_fabricated():
    assert value("fabricated_entity_count", case(output(["insurance"]), output(["refund"]))) == 1


@pytest.mark.parametrize(
    ("entities", "count"),
    [
        (["refund", "REFUND"], 0),
        (["cancel_account"], 0),  # every word of it was spoken
        (["cancel-billing account"], 0),
        (["cancel_policy"], 1),
        (["refunds"], 1),  # another word
        (["a", "b", "b", "d"], 2),  # each once; "a" was spoken
    ],
)
def test_fabricated_means_in_neither_reference_nor_transcript_word_by_word(entities, count):
    assert value("fabricated_entity_count", case(output(entities), output(["x"]))) == count


def test_an_entity_is_counted_once_over_keywords_and_topics():
    assert value("fabricated_entity_count", case(output(["loan"], ["Loan"]), output())) == 1


@pytest.mark.parametrize(
    ("count", "state", "rating"), [(2, State.DISQUALIFIED, "warning"), (3, State.INVALID, "blocker")]
)
def test_more_than_two_fabricated_entities_leave_no_number(count, state, rating):
    about = case(output(["refund", *"xyz"[:count]]), output(["refund"], valid=["refund"]))
    found = verdict(about)
    assert found.state is state
    assert (found.composite is None) == (state is State.INVALID)
    assert next(s.rating for s in found.scores if s.metric == "fabricated_entity_count") == rating


def test_text_is_compared_after_normalisation_and_duplicates_count_once():
    about = case(output(["Refund", "refund ", "४९"]), output(["REFUND", "49"]))
    assert value("keyword_f1", about) == 1


@pytest.mark.parametrize(
    ("config", "valid", "adherence"),
    [
        ({"keywords": ["a"], "topics": ["b"]}, ["x"], 1),
        ({"entities": ["a", "b"]}, ["x"], 1),
        ({"keywords": [], "topics": []}, ["a"], 0.5),
        ({}, ["a", "b"], 1),
        ({"keywords": ["a"]}, ["b"], 0.5),
    ],
)
def test_the_configured_list_is_the_cases_own_and_else_the_references(config, valid, adherence):
    about = case(output(["a"], ["b"]), output(["a"], ["b"], valid), config=config)
    assert value("configured_entity_compliance", about) == adherence


def test_without_any_configured_list_adherence_is_unavailable_and_the_verdict_incomplete():
    expected = {"detected_keywords": ["a"], "detected_topics": []}
    about = case(dict(expected), expected)
    assert value("configured_entity_compliance", about) == "unavailable"
    assert verdict(about).state is State.INCOMPLETE


def test_without_transcript_doubtful_entities_cannot_be_told_and_leave_a_mark():
    about = case(output(["a", "z"]), output(["a"], valid=["a", "z"]), transcript=None)
    assert value("fabricated_entity_count", about) == "unavailable"
    found = verdict(about)
    assert found.state is State.PARTIAL
    assert "fabricated_entity_count unavailable" in found.reason


def test_without_transcript_entities_of_the_reference_are_certainly_not_fabricated():
    about = case(output(["a"]), output(["a"], valid=["a"]), transcript=None)
    assert value("fabricated_entity_count", about) == 0


def test_across_languages_text_decides_alone_when_it_can():
    found = result("cross_language_match_rate", case(output(["refund"]), output(["Refund"])))
    assert (found.value, found.method) == (1.0, Method.EXACT)


def test_across_languages_the_rest_needs_embeddings():
    about = case(output(["रिफंड"]), output(["refund"]))
    assert value("cross_language_match_rate", about) == "unavailable"
    seen = []

    def embeddings(_case, requested):
        seen.append(requested)
        return Answer(value=(0,), method=Method.EMBEDDING) if isinstance(requested, SameEntity) else NoAnswer("no")

    found = line("cross_language_match_rate", about, embeddings)
    assert (found.result.value, found.result.method, found.rating) == (1.0, Method.EMBEDDING, "good")
    assert seen == [SameEntity(("refund",), ("रिफंड",))]


@pytest.mark.parametrize("wrong", [(0, 0), (5, None), (None,), "ab", (True, None), (0.0, None)])
def test_matches_that_are_not_one_to_one_are_an_error(wrong):
    about = case(output(["x", "y"]), output(["a", "b"]))
    found = result("cross_language_match_rate", about, lambda *_: Answer(value=wrong, method=Method.EMBEDDING))
    assert found.status == "error"


NAMES = st.lists(st.sampled_from("abcdefgh"), max_size=10)


@given(NAMES, NAMES)
def test_precision_recall_and_f1_agree_with_scikit_learn(found, expected):
    both = entity.Detection(frozenset(found), frozenset(expected))
    if not found and not expected:
        assert (both.precision, both.recall, both.f1) == (1.0, 1.0, 1.0)
        return
    names = "abcdefgh"
    theirs = precision_recall_fscore_support(
        [name in expected for name in names], [name in found for name in names], average="binary", zero_division=0
    )
    assert (both.precision, both.recall, both.f1) == pytest.approx(theirs[:3])


@given(NAMES, NAMES)
def test_swapping_the_sides_swaps_precision_and_recall(found, expected):
    one, other = (
        entity.Detection(frozenset(found), frozenset(expected)),
        entity.Detection(frozenset(expected), frozenset(found)),
    )
    assert (one.precision, one.recall, one.f1) == (other.recall, other.precision, other.f1)


def test_items_that_are_no_strings_are_no_entities():
    found = verdict(case(output([1, 2, None, {"x": 1}], [True]), output()))
    assert (found.state, found.passed) == (State.INVALID, False)
    assert found.blockers == ("response_structure_compliance",)
    assert "$.detected_keywords[0]: number, expected string" in found.reason


@pytest.mark.parametrize("expected", [output([1]), {**output(), "valid_entity_set": "loan"}, {"detected_keywords": []}])
def test_a_reference_without_usable_lists_is_never_the_models_fault(expected):
    found = verdict(case(output(["refund"]), expected))
    assert found.state is State.INCOMPLETE
    assert "response_structure_compliance unavailable: expected_outcome." in found.reason


def test_entities_of_symbols_alone_are_looked_for_literally():
    symbols = ["💰", "🚗", "!!!", "€"]
    found = verdict(case(output(symbols), output()))
    assert value("fabricated_entity_count", case(output(symbols), output())) == 4
    assert found.state is State.INVALID
    assert value("fabricated_entity_count", case(output(symbols), output(), transcript="5 € 🚗💰!!!")) == 0


def test_speakers_and_times_of_structured_turns_were_not_spoken():
    turns = (Utterance("I want a refund", "Agent Smith", "00:42"),)
    found = case(output(["agent", "smith", "00", "42", "refund"]), output(), transcript=turns)
    assert value("fabricated_entity_count", found) == 4


@pytest.mark.parametrize("key", ["keywords", "topics", "entities"])
@pytest.mark.parametrize("wrong", ["loan", {"loan": 1}, ["loan", 1], 5])
def test_a_configured_list_that_is_none_is_told_and_not_passed_over(key, wrong):
    found = result("configured_entity_compliance", case(output(["a"]), output(["a"], valid=["a"]), config={key: wrong}))
    assert (found.status, found.reason) == ("unavailable", f"config.{key} is not a list of strings")


def test_a_verdict_stays_small_whatever_the_entities():
    found = [f"{n}{'x' * 50_000}" for n in range(40)]
    other = [f"{n}{'y' * 50_000}" for n in range(40)]
    for about in (case(output(found, found), output(other, other, found)), case(output(found), output(other))):
        assert len(str(verdict(about).to_json())) < 40_000
    about = case(output(found), output(other))
    matched = verdict(about, lambda *_: Answer(value=tuple(range(40)), method=Method.EMBEDDING))
    assert len(str(matched.to_json())) < 40_000


@pytest.mark.parametrize("more", [{}, {"completion": "pressure", "complete": False}])
def test_cases_with_nothing_to_compare_share_one_outcome(more):
    """Nearly all traces of an application without references: what is the same of all is reckoned and written once."""
    evaluator = Evaluator(RUBRICS)
    two = [Case(case_id=text, model_output=text, scenario={"name": "any"}, **more) for text in ("refund", "loan")]
    one, other = (evaluator.evaluate(each, ("entity", "workflow"), created_at="") for each in two)
    for first, second in zip(one, other, strict=True):
        assert all(a is b for a, b in zip(first.scores, second.scores, strict=True))


def test_without_a_reference_no_output_is_read():
    given = case("{" * 100, None)
    assert verdict(given).state is State.INCOMPLETE
    assert "output" not in vars(given)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda case: pickle.loads(pickle.dumps(case))])
def test_a_judged_case_can_be_copied_and_sent_to_another_process(copied):
    given = case(output(["a"], []), None)
    first = verdict(given).to_json()
    assert verdict(copied(given)).to_json() == first
