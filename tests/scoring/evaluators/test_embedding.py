"""What likeness in meaning answers, and what it leaves open."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.evaluators.embedding import MAX_COMPARISONS, MAX_TEXT, MAX_TEXTS, answer, states, texts
from sidejudge.scoring.questions.kinds import BorneOut, SameEntity, SameFact, SameHighlight, SentenceSimilarity
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import Method


def at(degrees):
    return (math.cos(math.radians(degrees)), math.sin(math.radians(degrees)))


def alike(question):
    """The answer where all texts mean the same."""
    return answer(question, dict.fromkeys(texts(question), at(0)))


def value(reply):
    assert isinstance(reply, Answer), reply
    assert reply.method is Method.EMBEDDING
    return reply.value


def test_similarity_is_a_cosine_for_each_pair_in_order():
    question = SentenceSimilarity((("a", "b"), ("a", "a"), ("a", "c")))
    vectors = {"a": at(0), "b": at(60), "c": at(180)}
    assert value(answer(question, vectors)) == pytest.approx((0.5, 1.0, -1.0))


def test_a_text_that_is_compared_twice_is_asked_for_once():
    assert texts(SentenceSimilarity((("a", "b"), ("a", "c")))) == ("a", "b", "c")


def test_entities_match_from_a_cosine_of_eight_tenths():
    near, far = math.degrees(math.acos(0.8001)), math.degrees(math.acos(0.7999))
    question = SameEntity(("wanted",), ("found",))
    assert value(answer(question, {"wanted": at(0), "found": at(near)})) == (0,)
    assert value(answer(question, {"wanted": at(0), "found": at(far)})) == (None,)


def test_entities_match_one_to_one_and_as_many_as_can_be():
    # The first wanted one is nearest to the only match of the second, and has another.
    question = SameEntity(("one", "two"), ("near", "farther"))
    vectors = {"one": at(0), "two": at(20), "near": at(1), "farther": at(-30)}
    assert value(answer(question, vectors)) == (1, 0)


def test_of_several_that_fit_the_nearest_is_taken():
    question = SameEntity(("one",), ("far", "near", "same"))
    assert value(answer(question, {"one": at(0), "far": at(30), "near": at(5), "same": at(0)})) == (2,)


def test_with_nothing_found_nothing_matches_and_no_vector_is_needed():
    question = SameEntity(("one", "two"), ())
    assert texts(question) == ()
    assert value(answer(question, {})) == (None, None)


@given(st.lists(st.integers(0, 359), min_size=1, max_size=6), st.lists(st.integers(0, 359), min_size=1, max_size=6))
def test_matches_are_one_to_one_and_each_lies_near(wanted, found):
    question = SameEntity(tuple(f"w{n}" for n in range(len(wanted))), tuple(f"f{n}" for n in range(len(found))))
    vectors = {f"w{n}": at(d) for n, d in enumerate(wanted)} | {f"f{n}": at(d) for n, d in enumerate(found)}
    matches = value(answer(question, vectors))
    used = [at for at in matches if at is not None]
    assert len(matches) == len(wanted)
    assert len(used) == len(set(used))
    for place, other in enumerate(matches):
        if other is not None:
            assert math.cos(math.radians(wanted[place] - found[other])) >= 0.8 - 1e-9


ALIKE = [
    (SameHighlight("Refund of $49 initiated", "A repayment of $49 was started"), True),
    (SameHighlight("Refund initiated", "A repayment of $49 was started"), True),  # a highlight may say more
    (SameHighlight("Refund of $49 initiated", "A repayment of $94 was started"), False),
    (SameFact("Refund of $49 initiated", "A repayment of $49 was started"), True),
    (SameFact("Refund of $49 initiated", "A repayment of $94 was started"), False),
    (SameFact("Erstattung von 49 EUR", "रिफंड ४९ EUR"), True),  # digits of any script
    (SameFact("The card was blocked", "The card was not blocked"), False),
]


@pytest.mark.parametrize(("question", "expected"), ALIKE)
def test_alike_statements_are_the_same_where_figures_agree(question, expected):
    assert value(alike(question)) is expected


LEFT_OPEN = [
    SameHighlight("Refund of $49 initiated", "A repayment was started"),  # "forty-nine" would stand there unseen
    SameFact("Refund initiated", "A repayment of $49 was started"),
    SameFact("The refund was given", "The repayment was refused"),
    SameFact("The customer cancelled the order", "The client might end the contract"),
]


@pytest.mark.parametrize("question", LEFT_OPEN)
def test_what_a_cosine_does_not_see_is_left_to_a_judge(question):
    reply = alike(question)
    assert isinstance(reply, NoAnswer)
    assert not reply.failed
    assert "judge" in reply.reason


@pytest.mark.parametrize("question", [SameHighlight("one", "other"), SameFact("one", "other")])
def test_statements_that_are_not_alike_are_not_the_same(question):
    assert value(answer(question, {"one": at(0), "other": at(40)})) is False


@pytest.mark.parametrize("missing", ["one", "other"])
def test_a_text_without_a_vector_fails_and_gives_no_number(missing):
    vectors = {text: at(0) for text in ("one", "other") if text != missing}
    reply = answer(SentenceSimilarity((("one", "other"),)), vectors)
    assert isinstance(reply, NoAnswer)
    assert reply.failed


TOO_MUCH = [
    SentenceSimilarity(tuple((f"{n}", "x") for n in range(MAX_TEXTS))),
    SameEntity(tuple(map(str, range(MAX_COMPARISONS))), ("a", "b")),
    SameFact("x " * 3000, "y"),
]


@pytest.mark.parametrize("question", TOO_MUCH, ids=["texts", "names", "long statement"])
def test_more_than_is_done_for_one_question_is_left_open(question):
    assert isinstance(texts(question), NoAnswer)
    reply = answer(question, {})
    assert isinstance(reply, NoAnswer)
    assert not reply.failed


def test_a_blank_text_has_no_meaning_to_compare():
    assert answer(SentenceSimilarity((("a", " "),)), {"a": at(0)}) == NoAnswer("a blank text has no meaning to compare")


def test_long_texts_and_broken_characters_are_given_to_no_model():
    question = SentenceSimilarity((("x" * (MAX_TEXT + 5), "half of a pair: \ud800"),))
    assert [len(text) for text in texts(question)] == [MAX_TEXT, 17]
    for text in texts(question):
        text.encode()
    assert value(alike(question)) == (1.0,)


def test_other_questions_need_no_vectors_and_get_no_answer():
    assert texts(BorneOut("reason")) == ()
    assert isinstance(answer(BorneOut("reason"), {}), NoAnswer)


@pytest.mark.parametrize(
    ("likeness", "least", "stated"),
    [
        (0.5, 0.8, "cosine 0.500 < 0.80"),
        (0.79996, 0.8, "cosine 0.79996 < 0.80"),
        (0.741, 0.7421, "cosine 0.741 < 0.7421"),
    ],
)
def test_a_cosine_below_its_threshold_reads_so(likeness, least, stated):
    assert states("One text", "Another", likeness, least, more_is_less=False).reason == stated
