from __future__ import annotations

import json
import random

import pytest
from msgspec.structs import replace

from sidejudge.integrations.contents_in_logs import join
from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.raw import EVALUATION, RawEvent, RawLogRecord, RawSpan
from sidejudge.scoring.trace.span import ToolCall

CHAT = RawSpan(
    trace_id="1" * 32, span_id="2" * 16, parent_id=None, name="chat m", start_ns=1, end_ns=9,
    attributes={"gen_ai.operation.name": "chat"}, events=(RawEvent(name="own", time_ns=4),),
)  # fmt: skip


def _record(event: str, time_ns: int, body: object) -> RawLogRecord:
    return RawLogRecord(
        trace_id=CHAT.trace_id, span_id=CHAT.span_id, time_ns=time_ns, event=event, body=body,
        attributes={"gen_ai.system": "openai"},
    )  # fmt: skip


ASKED = _record("gen_ai.user.message", 3, {"content": "Where is it?"})
CALLED = _record("gen_ai.choice", 5, {"message": {"tool_calls": [
    {"id": "c1", "function": {"name": "look_up", "arguments": '{"id": 7}'}}]}})  # fmt: skip
AS_TEXT = _record("gen_ai.choice", 5, '{"message": {"role": "assistant", "content": "Here."}}')


def test_events_are_put_on_their_span_in_order_of_time() -> None:
    (span,) = join([CHAT], [CALLED, ASKED])
    assert [event.name for event in span.events] == ["gen_ai.user.message", "own", "gen_ai.choice"]
    assert span.events[0].attributes == {"gen_ai.system": "openai", "content": "Where is it?"}


def test_a_dialect_reads_what_was_said_in_log_records() -> None:
    span = normalise(join([CHAT], [ASKED, CALLED])[0])
    assert span.input == "Where is it?"
    (call,) = span.output_messages[0].tool_calls
    assert (call.name, call.arguments, call.call_id) == ("look_up", {"id": 7}, "c1")
    assert span.provenance["input"] == "event gen_ai.user.message"
    assert span.provenance["output"] == "event gen_ai.choice"
    assert span.capture_switch is None


def test_a_body_that_is_json_text_is_read_as_one_that_is_a_map() -> None:
    assert normalise(join([CHAT], [AS_TEXT])[0]).output == "Here."


def test_a_body_that_is_neither_is_kept_under_its_own_name() -> None:
    (span,) = join([CHAT], [_record("an.event", 3, "a text")])
    assert span.events[0].attributes["body"] == "a text"


def _moved(span: RawSpan, given: object, returned: object) -> RawSpan:
    """The span with the one record into which AWS's distribution moves what it was given and returned."""
    body = {"input": {"messages": [given]}, "output": {"messages": [returned]}}
    (joined,) = join([span], [_record(span.scope_name, 9, body)])
    return joined


STRANDS = replace(CHAT, events=(), scope_name="strands.telemetry.tracer")


def test_what_aws_s_distribution_moves_out_of_strands_spans_is_read_as_if_it_stood_there() -> None:
    asked = {"role": "user", "content": {"content": '[{"text": "Where is it?"}]'}}
    answer = {"role": "assistant", "content": {"message": '[{"text": "Here."}]', "finish_reason": "end_turn"}}
    span = normalise(_moved(STRANDS, asked, answer))
    assert (span.input, span.output, span.unread) == ("Where is it?", "Here.", ())
    agent = replace(STRANDS, attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "finder"})
    plain = {"role": "assistant", "content": {"message": "Here.\n", "finish_reason": "end_turn"}}
    assert normalise(_moved(agent, {"role": "user", "content": "Where?"}, plain)).output == "Here."
    tool = replace(STRANDS, attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up"})
    given = {"role": "tool", "content": {"content": '{"id": 7}', "role": "tool", "id": "c1"}}
    returned = {"role": "assistant", "content": {"message": '[{"text": "on a ship"}]', "id": "c1"}}
    assert normalise(_moved(tool, given, returned)).tool == ToolCall(
        name="look_up", arguments={"id": 7}, result="on a ship"
    )


def test_so_are_the_arguments_and_the_result_of_a_tool_of_another_client_which_it_calls_messages() -> None:
    tool = replace(
        CHAT, events=(), scope_name="openinference.instrumentation.langchain",
        attributes={"openinference.span.kind": "TOOL", "tool.name": "look_up"},
    )  # fmt: skip
    given, returned = {"role": "user", "content": "{'id': 7}"}, {"role": "assistant", "content": "on a ship"}
    assert normalise(_moved(tool, given, returned)).tool == ToolCall(
        name="look_up", arguments={"id": 7}, result="on a ship"
    )


U, A = {"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "Here."}
CALL = {"name": "look_up", "arguments": {"id": 7}}


@pytest.mark.parametrize(
    "bodies",
    [(U, A), (json.dumps(U), json.dumps(A)), ([U], {"choices": [{"message": A}]}),
     ({"messages": [U]}, {"response": {"choices": [{"message": A}]}}),
     ({"prompt": "Where is it?", "completion": "Here."},),
     ("an exchange", {"role": "user", "text": "Where is it?"}, A, {"function": "handler", "args": [1]})],
)  # fmt: skip
def test_a_record_without_a_name_is_read_by_its_shape(bodies: tuple[object, ...]) -> None:
    span = normalise(join([CHAT], [_record("", time, body) for time, body in enumerate(bodies)])[0])
    assert (span.input, span.output) == ("Where is it?", "Here.")
    assert span.provenance["output"].endswith("(by shape)")


@pytest.mark.parametrize("bodies", [(CALL, {"role": "tool", "content": "shelf 3"}), ({**CALL, "result": "shelf 3"},)])
def test_so_are_a_call_of_a_tool_and_its_result(bodies: tuple[object, ...]) -> None:
    tool = replace(CHAT, attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up"})
    span = normalise(join([tool], [_record("", time, body) for time, body in enumerate(bodies)])[0])
    assert span.tool == ToolCall(name="look_up", arguments={"id": 7}, result="shelf 3")
    (calls,) = normalise(join([CHAT], [_record("", 3, CALL)])[0]).output_messages
    assert calls.tool_calls == (ToolCall(name="look_up", arguments={"id": 7}),)


@pytest.mark.parametrize(
    "body",
    ["GET /orders 200", "Request options: {'messages': [{'role': 'user'}]}", {"function": "handler", "args": [1]},
     {"name": "nightly", "input": {"day": 3}}, {"role": "admin", "content": "signed in"},
     {"user": "b", "message": "hi"}, None, '{"response": "200 OK"}', {**CALL, "description": "Looks up."}],
)  # fmt: skip
def test_a_plain_line_of_a_log_is_left_out(body: object) -> None:
    assert join([CHAT], [_record("", 3, body)]) == [CHAT]


def test_a_record_that_was_delivered_twice_is_one_event() -> None:
    assert join([CHAT], [ASKED, ASKED]) == join([CHAT], [ASKED])


def test_the_order_of_records_changes_nothing() -> None:
    wanted = join([CHAT], [ASKED, CALLED])
    for seed in range(4):
        assert join([CHAT], random.Random(seed).sample([ASKED, CALLED], 2)) == wanted


def test_plain_log_lines_and_records_of_other_spans_change_nothing() -> None:
    line = replace(ASKED, event="")
    elsewhere = replace(ASKED, span_id="3" * 16)
    nowhere = replace(ASKED, trace_id=None, span_id=None)
    assert join([CHAT], [line, elsewhere, nowhere]) == [CHAT]


def test_an_application_s_own_span_with_such_events_is_read_too() -> None:
    plain = replace(CHAT, attributes={})
    assert normalise(join([plain], [ASKED])[0]).input == "Where is it?"


def test_what_was_said_is_text_even_when_it_is_json() -> None:
    requested, answer = '{"rate": "this"}', '{"questions": [{"score": 2}]}'
    span = normalise(join([CHAT], [_record("gen_ai.user.message", 3, {"content": requested}),
                              _record("gen_ai.choice", 4, {"message": answer})])[0])  # fmt: skip
    assert (span.input, span.output) == (requested, answer)


def test_events_whose_contents_were_left_out_are_no_messages() -> None:
    span = normalise(join([CHAT], [_record("gen_ai.user.message", 3, {"content": "<elided>"})])[0])
    assert (span.input, span.input_messages) == (None, ())
    assert span.capture_switch is not None


def test_a_verdict_of_others_without_a_span_is_that_of_the_response_it_names_else_of_the_root() -> None:
    call = replace(CHAT, span_id="7" * 16, parent_id=CHAT.span_id, attributes={"gen_ai.response.id": "r-1"})
    given = {"gen_ai.evaluation.name": "helpful", "gen_ai.evaluation.score.value": 0.4}
    root = replace(CHAT, parent_id=None)
    for more, place in ({}, 0), ({"gen_ai.response.id": "r-1"}, 1), ({"gen_ai.response.id": "r-2"}, 0):
        record = replace(_record(EVALUATION, 3, None), span_id=None, attributes={**given, **more})
        found = [normalise(span).reported for span in join([root, call], [record])]
        assert [len(each) for each in found] == [1 - place, place]
        assert found[place][0].value == 0.4
    elsewhere = replace(_record("gen_ai.user.message", 3, "hi"), span_id=None)
    assert join([root], [elsewhere]) == [root]
