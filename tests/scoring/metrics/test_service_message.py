"""What services put in the place of an answer is known in many spellings, and no answer is taken for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sidejudge.scoring.metrics.answer_failure import answer_failure, sole_text
from sidejudge.scoring.metrics.service_message import service_message
from tests.linear_time import assert_linear
from tests.scoring.metrics.test_run_health import SOUND, judged, run, tool

HELD = yaml.safe_load((Path(__file__).parent / "data" / "service_messages.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("text", HELD["messages"])
def test_a_message_is_known_however_it_is_decorated(text):
    assert service_message(text) is not None
    for decorated in (f"  {text}\n", text.upper(), f"Error: {text}", f"**{text}**"):
        assert answer_failure(decorated, "Fix the parser in utils.py") is not None, decorated


@pytest.mark.parametrize("text", HELD["answers"])
def test_an_answer_is_no_message(text):
    assert service_message(text) is None


def test_a_message_that_was_asked_about_is_an_answer():
    assert service_message("Credit balance is too low") == "an account's limit"
    assert service_message("Credit balance is too low", ["How much credit do I have?"]) is None
    assert service_message("Credit balance is too low", ["go on"], ["the balance is 3.20 EUR"]) is None
    assert service_message("Connection error.", ["What does the red light at my network plug mean?"]) is None
    assert service_message("Connection error.", ["go on"], ["the server is up"]) == "the connection failed"
    quoted = "Translate into English, in two words. " + "x " * 400 + "'Connection error.'"
    assert service_message("Connection error.", [quoted.replace("x 'C", "'C")]) == "the connection failed"


def test_a_long_request_speaks_of_a_message_only_where_it_begins_with_it():
    task = "Mend the client so that it reports the usage of each account. " + "More of the same code. " * 60
    assert service_message("You've hit your limit · resets 3pm", [task]) == "an account's limit"


def test_a_long_text_explains_and_is_no_message():
    assert service_message("Connection error. " + "Check the cable. " * 30) is None


@pytest.mark.parametrize(
    "wrap", [str, lambda text: [text], lambda text: {"output": text}, lambda text: [{"text": text}]]
)
def test_a_run_that_ends_with_a_message_fails_in_whatever_the_answer_is_wrapped(wrap):
    for text in HELD["messages"]:
        found = judged(run(*SOUND, answer=wrap(text)))
        assert (found.passed, found.blockers) == (False, ("answer_intact",)), text
    for text in HELD["answers"]:
        assert judged(run(*SOUND, answer=wrap(text))).passed is True, text


def test_a_tool_that_failed_with_the_message_is_no_reason_to_believe_it():
    failed = tool("t9", 7, "Insufficient credits")
    assert judged(run(*SOUND, failed, answer="Insufficient credits")).blockers == ("answer_intact",)
    told = tool("t9", 7, {"customer": "Amit", "credit": 0})
    assert judged(run(*SOUND, told, answer="Insufficient credits")).passed is True


def test_the_only_words_of_an_answer_are_found_and_several_are_none():
    assert sole_text({"a": ["x "]}) == "x"
    assert sole_text({"a": "x", "b": "y"}) == sole_text([]) == sole_text(None) == sole_text(3) == ""


@pytest.mark.parametrize(
    "text", ["you have exceeded ", "max number of ", "the agent reached the maximum ", "a b ", "( "]
)
def test_a_hostile_text_takes_time_in_proportion(text):
    assert_linear(
        lambda length: [service_message((text * length)[:400], [text * (length // len(text))]) for _ in range(5)]
    )
