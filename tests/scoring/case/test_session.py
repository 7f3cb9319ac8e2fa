"""A conversation of several traces as one case."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.cases.fields import case_of
from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.case.conversation import turns
from sidejudge.scoring.case.session import conversation, turn_of
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.trace.span import ToolCall


def case(number: int, **more) -> Case:
    stated = {"input": f"question {number}", "model_output": f"answer {number}", "session_id": "chat"}
    return Case(**{"case_id": f"c{number}", "trace_id": f"t{number}", **stated, **more})


def of(*cases: Case, completion="idle", **more) -> Case:
    return conversation("key", [turn_of(one, at, **more) for at, one in enumerate(cases)], completion)


def texts(found: Case) -> list[str]:
    return [f"{one.speaker}: {one.text}" for one in found.transcript]


@given(st.permutations([1, 2, 3]))
def test_turns_are_told_in_order_of_time_whatever_the_order_of_arrival(order):
    found = conversation("key", [turn_of(case(n), n) for n in order], "idle")
    assert texts(found) == [f"{who} {n}" for n in (1, 2, 3) for who in ("user: question", "agent: answer")]
    assert (found.case_id, found.trace_id, found.session_id, found.model_output) == ("key", None, "chat", "answer 3")


def test_a_client_that_sends_its_history_with_every_call_says_it_once():
    history = [
        {"role": "system", "content": "be kind"}, {"role": "user", "content": "question 1"},
        {"role": "assistant", "content": "answer 1"}, {"role": "user", "content": "question 2"},
    ]  # fmt: skip
    found = of(case(1), case(2, input=history))
    assert texts(found) == ["user: question 1", "agent: answer 1", "user: question 2", "agent: answer 2"]
    assert found.input == [
        {"role": "user", "content": "question 1"}, {"role": "assistant", "content": "answer 1"},
        {"role": "user", "content": "question 2"},
    ]  # fmt: skip


def test_a_transcript_of_its_own_goes_before_question_and_answer():
    own = (Utterance("Hello", "agent"), Utterance("Hi", "customer"))
    assert texts(of(case(1, transcript=own, model_output=None), case(2))) == [
        "agent: Hello", "customer: Hi", "user: question 2", "agent: answer 2",
    ]  # fmt: skip


def test_what_the_judge_is_shown_is_exactly_what_was_said():
    found = of(case(1), case(2))
    assert turns(found) == found.transcript


def test_tools_agents_and_documents_are_those_of_all_turns():
    one = case(1, agents_called=("a",), tools_used=(ToolCall(name="x"),), context=("d", "e"), tags=("t",))
    two = case(2, agents_called=("b",), tools_used=(ToolCall(name="x"),), context=("e",), tags=("t", "u"))
    found = of(one, case(3), two)
    assert found.agents_called == ("a", "b")
    assert [call.name for call in found.tools_used] == ["x", "x"]
    assert (found.context, found.tags) == (("d", "e"), ("t", "u"))
    assert (of(case(1)).agents_called, of(case(1)).context) == (None, None)


def test_sums_are_unknown_as_soon_as_one_part_is():
    known = {"input_tokens": 3, "cost_usd": 0.5, "latency_e2e_ms": 10.0}
    found = of(case(1, **known), case(2, **known))
    assert (found.input_tokens, found.cost_usd, found.latency_e2e_ms) == (6, 1.0, 20.0)
    assert of(case(1, **known), case(2)).input_tokens is None


@pytest.mark.parametrize(
    "found",
    [
        of(case(1), case(2, complete=False)),
        of(case(1), case(2), completion="pressure"),
        of(case(1), case(2), thinned=True),
    ],
)
def test_a_conversation_with_gaps_is_not_complete_and_not_judged(found):
    assert not found.complete
    assert isinstance(turns(found), Unavailable)


def test_what_was_said_last_of_the_expected_outcome_and_first_of_the_rest_holds():
    one = case(1, expected_outcome="old", metadata={"a": 1, "b": 1}, error="boom", user_id="u")
    found = of(one, case(2, expected_outcome="new", metadata={"b": 2, "c": 2}))
    assert (found.expected_outcome, dict(found.metadata), found.error, found.user_id) == (
        "new", {"a": 1, "b": 1, "c": 2}, "boom", "u",
    )  # fmt: skip


def test_a_turn_comes_back_from_the_store_as_it_was():
    call = ToolCall(name="x", arguments={"k": [1]}, error="no", call_id="1", handoff=True)
    rich = case(
        1, agents_called=("a",), tools_used=(call,), context=("d",),
        config={"keywords": ["k"]}, metadata={"m": {"deep": None}}, tags=("t",), scenario={"s": 1},
        latency_e2e_ms=1.5, input_tokens=2, cost_usd=0.1, complete=False, completion="idle", content_captured=False,
        service="shop", environment="prod", model="m", expected_outcome=["x"], task="qa",
    )  # fmt: skip
    stored = json.loads(json.dumps(turn_of(rich, 5).to_json()))
    read = case_of(stored["case"])
    for name in ("tools_used", "agents_called", "context", "config", "metadata", "tags", "scenario", "latency_e2e_ms",
                 "input_tokens", "cost_usd", "complete", "completion", "content_captured", "service", "environment",
                 "model", "expected_outcome", "task", "session_id", "model_output", "trace_id"):  # fmt: skip
        assert getattr(read, name) == getattr(rich, name), name
    assert stored["said"] == [
        {"speaker": "user", "text": "question 1", "at": None}, {"speaker": "agent", "text": "answer 1", "at": None},
    ]  # fmt: skip
