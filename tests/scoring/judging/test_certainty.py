"""The probability of an answer by the tokens that it is made of."""

from __future__ import annotations

import json
import math

import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.declared.ask import ask
from sidejudge.scoring.judging.request import requests
from sidejudge.scoring.questions.kinds import GradeDimension, SameFact

CASE = Case(case_id="c", input="Refund?", model_output="Your refund is booked.", expected_outcome="A refund.")
POLITE, TONE, GRADE = (
    ask("Is {{output}} polite?"), ask("The tone of {{output}}?", answer={"one_of": ["warm", "curt"]}),
    ask("How good is {{output}}?", answer={"scale": [1, 5]}),
)  # fmt: skip


def answered(*questions, spaces=" ", probability=0.5, reason='It says "answer": false.', values=None):
    """A request, an answer to it, and its tokens: those of values have this probability, all others are sure."""
    ((made,), _) = requests(CASE, questions, context_tokens=30_000)
    values = values or [True] * len(questions)
    text, tokens = "", []

    def write(part, of=1.0):
        nonlocal text
        text += part
        tokens.append((part, math.log(of)))

    write('{"answers": [')
    for number, (name, question, value) in enumerate(zip(made.ids, made.questions, values, strict=True)):
        metric = getattr(question, "metric", "same_fact")
        write(", " * bool(number) + json.dumps({"id": name, "metric": metric, "reason": reason})[:-1] + ', "answer":')
        for piece in (spaces + json.dumps(value)[:1], json.dumps(value)[1:]):
            if piece:
                write(piece, probability**0.5)
        write("}")
    write("]}")
    return made, text, tokens


def certainty(*questions, **how):
    made, text, tokens = answered(*questions, **how)
    return [each.certainty for each in made.read(text, tokens).answers.values()]


@pytest.mark.parametrize("spaces", ["", " ", "\n\t"])
def test_a_yes_and_a_category_have_the_probability_of_their_tokens_together(spaces):
    assert certainty(POLITE, TONE, values=[True, "curt"], spaces=spaces) == [pytest.approx(0.5)] * 2


def test_a_grade_has_none_for_the_grade_beside_it_is_no_other_verdict():
    assert certainty(GRADE, values=[4]) == [None]


def test_cannot_tell_has_one_too():
    assert certainty(POLITE, values=["cannot tell"]) == [pytest.approx(0.5)]


def test_a_text_that_its_tokens_do_not_make_up_or_that_is_in_another_form_has_no_certainty():
    made, text, tokens = answered(POLITE)
    assert [each.certainty for each in made.read(text, tokens[1:]).answers.values()] == [None]
    fenced = f"```json\n{text}\n```"
    reading = made.read(fenced, [("```json\n", 0.0), *tokens, ("\n```", 0.0)])
    assert [each.certainty for each in reading.answers.values()] == [None]
    assert [each.value for each in reading.answers.values()] == [True]


def test_no_certainty_changes_what_is_read():
    made, text, tokens = answered(POLITE, TONE, values=[True, "curt"])
    with_tokens, without = made.read(text, tokens), made.read(text)
    assert {q: each.value for q, each in with_tokens.answers.items()} == {
        q: a.value for q, a in without.answers.items()
    }


def test_an_answer_that_is_split_over_one_token_has_the_probability_of_that_token():
    made, text, _ = answered(POLITE)
    (answer,) = made.read(text, [(text, math.log(0.25))]).answers.values()
    assert answer.certainty == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("question", "fields", "sure"),
    [
        (SameFact("a", "b"), {"score": 1, "expected_outcome_reference": "", "model_output_observed": ""}, 0.25),
        (GradeDimension("completeness"), {"level": "good"}, None),
    ],
)
def test_only_a_choice_of_two_or_of_categories_has_one(question, fields, sure):
    ((made,), _) = requests(CASE, [question], context_tokens=30_000)
    metric = "same_fact" if isinstance(question, SameFact) else "completeness"
    item = {"id": made.ids[0], "metric": metric, "reason": "So.", **fields}
    text = json.dumps({"answers": [item]})
    (answer,) = made.read(text, [(text, math.log(0.25))]).answers.values()
    assert answer.certainty == (None if sure is None else pytest.approx(sure))
