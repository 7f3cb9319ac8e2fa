"""What an agent reports of its own trouble is named at its step, in each instrumentation, and nothing else is."""

from __future__ import annotations

import json

import pytest

from sidejudge.integrations.dialects import normalise
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.trace import Trace
from tests.linear_time import assert_linear
from tests.scoring.metrics.test_run_health import model, run
from tests.simulation.agent_runs import DIALECTS, spans_of

TROUBLED = (
    "I will assume that the price is the one of last year and go on with it.",
    "Since the page is not there, let's simulate the result of the search and continue.",
    "I'm going to make up an order number for the request, so that it is accepted.",
    "Assuming the table has the same columns as before, the sum is 4711.",
    "Here is the list with placeholder data for the names that are missing.",
    "From my own memory, the bridge was opened in 1932 and is 503 metres long.",
    "I was not able to find the file in the folder that you named.",
    "We couldn't locate the page on which the table is said to be.",
    "The number of visitors is not provided in the search results that I have.",
    "We are stuck in a loop, because the same page is loaded again and again.",
    "There has been no progress in the last steps of the plan that we made.",
    "The agent keeps repeating the same request to the server of the shop.",
    json.dumps({"is_in_loop": {"reason": "dasselbe noch einmal", "answer": True}, "next": "x"}),
    json.dumps({"is_in_loop": {"answer": False}, "is_progress_being_made": {"reason": "x", "answer": False}}),
)
HEALTHY = (
    "I will look up the price of the port in the list of this year.",
    "The search brought three pages, and the first of them has the table.",
    "The bridge was opened in 1932, as the page of the city says in its second paragraph.",
    "I have booked the room for you, and the number of the booking is 4711.",
    "You can find the form on the page of the office, it is the second of the list.",
    "We make progress in the work on the bridge: two of the four lanes are open.",
    "The loop of the program ends when it is at the last line of the file.",
    json.dumps({"is_in_loop": {"reason": "no", "answer": False}, "is_progress_being_made": {"answer": True}}),
)
FOREIGN = (
    "Ich nehme an, dass der Preis gleich ist, und simuliere das Ergebnis der Suche.",
    "Je suppose que le prix est le même, et je continue avec cette valeur dans le tableau.",
    "我假设价格与去年相同，然后继续。",
    "Assumo che il prezzo sia lo stesso; simulate data placeholder values.",
)


WORDS = ("no_stated_trouble", "not_stuck")
STUCK = TROUBLED[9:]
"""The others say that something is assumed or not found."""


def judged(case):
    found = score(case, RUBRICS["run_health"], created_at="")
    return found, {each.metric: each.result for each in found.scores}


def traced(texts, dialect):
    steps = [("agent", {"input": "What is it?", "output": "It is nine."}, False)]
    steps += [("llm", {"text": text, "calls": [], "finish": "stop"}, False) for text in texts]
    return extract(Trace.of(f"{1:032x}", [normalise(raw) for raw in spans_of(steps, dialect, 1)], "batch"))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("text", TROUBLED)
def test_each_is_named_where_it_stands_and_fails_no_run(text, dialect):
    case = traced([HEALTHY[0], text, HEALTHY[1]], dialect)
    verdict, results = judged(case)
    sign_of, other = reversed(WORDS) if text in STUCK else WORDS
    found = results[sign_of]
    assert found.value == pytest.approx(2 / 3), found
    assert results[other].value == 1.0, "one statement is one sign"
    (sign,) = found.details["signs"]
    assert case.trace.by_id[sign["span_id"]].output_messages[0].text == text
    assert verdict.passed is True, "it has no weight"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_healthy_words_are_no_sign(dialect):
    _, results = judged(traced(HEALTHY, dialect))
    for name in WORDS:
        assert (results[name].value, results[name].details) == (1.0, {})


@pytest.mark.parametrize("text", FOREIGN)
def test_texts_of_other_languages_are_not_judged_by_english_words(text):
    alone = judged(run(model("m", 1, text)))[1]
    beside = judged(run(model("m", 1, text), model("m2", 2, HEALTHY[0])))[1]
    for name in WORDS:
        assert alone[name].status == "not_applicable"
        assert beside[name].value == 1.0


def test_reasons_hold_no_contents():
    _, results = judged(run(model("m", 1, "I will assume that the card is 4111 1111 and that it is not blocked.")))
    assert results["no_stated_trouble"].value == 0.0
    assert "4111" not in repr(results["no_stated_trouble"])


@pytest.mark.parametrize("text", ["i assume ", "stuck in a ", '"is_in_loop": {', "the is a ", "we could not "])
def test_a_hostile_text_takes_time_in_proportion(text):
    assert_linear(lambda length: judged(run(model("m", 1, (text * length)[:length]))))
