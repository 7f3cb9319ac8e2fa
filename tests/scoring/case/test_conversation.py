"""Turns of a conversation: what a judge's turn indices point to."""

from __future__ import annotations

from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.case.conversation import turns
from sidejudge.scoring.result.result import Unavailable


def texts(**fields):
    found = turns(Case(case_id="c", **{"model_output": None, **fields}))
    return found if isinstance(found, Unavailable) else [turn.text for turn in found]


def test_a_structured_transcript_is_its_turns():
    assert texts(transcript=(Utterance("Hi", "user"), Utterance("Bye", "agent"))) == ["Hi", "Bye"]


def test_a_text_has_a_turn_a_line():
    assert texts(transcript="User: hi\n\n Agent: bye \n") == ["User: hi", "Agent: bye"]


def test_messages_of_the_input_are_turns_without_the_system_prompt():
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "t"}}]},
        "odd",
    ]
    found = texts(input=messages, model_output="Bye")
    assert found[0] == "Hi"
    assert '"tool_calls"' in found[1]
    assert found[2:] == ["odd", "Bye"]


def test_a_question_that_is_taken_for_the_transcript_is_one_turn():
    assert texts(transcript="one\ntwo", input="one\ntwo", model_output={"a": 1}) == ["one\ntwo", '{"a": 1}']


def test_the_output_is_the_last_turn_unless_it_is_already():
    assert texts(transcript="User: hi\nAgent: Good bye", model_output="good  bye") == ["User: hi", "Agent: Good bye"]
    assert texts(transcript="User: hi", model_output="bye") == ["User: hi", "bye"]


def test_nothing_said_is_no_conversation():
    assert texts() == Unavailable("no conversation")
    reported = texts(content_captured=False, capture_switch="X=1")
    assert reported == Unavailable("contents were not captured; X=1 would capture them")


def test_part_of_a_trace_is_no_conversation_either():
    assert texts(transcript="User: hi", complete=False) == Unavailable("the trace is incomplete (cut short)")
