"""Why a model stopped and which tools it was offered, as the instrumentations write it."""

from __future__ import annotations

import json

import pytest

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.raw import RawEvent, RawSpan


def _span(**attributes):
    return normalise(
        RawSpan(
            trace_id="1" * 32, span_id="2" * 16, parent_id=None, name="chat", start_ns=1, end_ns=2,
            attributes={k: v for k, v in ({"gen_ai.operation.name": "chat"} | attributes).items() if v is not None},
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"gen_ai.response.finish_reasons": ["length", "stop"]}, "length"),
        ({"gen_ai.response.finish_reasons": '["tool_use"]'}, "tool_calls"),
        ({"gen_ai.response.finish_reason": "FinishReason.MAX_TOKENS"}, "length"),
        ({"llm.finish_reason": "SAFETY"}, "content_filter"),
        ({"ai.response.finishReason": "content-filter"}, "content_filter"),
        ({"ai.response.finish_reason": "length"}, "length"),
        ({"genkit:output": json.dumps({"finishReason": "length", "message": {}})}, "length"),
        ({"gen_ai.operation.name": None, "span.type": "llm", "llm.finish_reason": "length"}, "length"),
        ({"anthropic.message.stop_reason": "end_turn"}, "stop"),
        ({"langfuse.observation.metadata.finish_reason": '"tool_calls"'}, "tool_calls"),
        ({"output.value": json.dumps({"choices": [{"finish_reason": "length", "message": {}}]})}, "length"),
        ({"llm.openai.choices": "[{'finish_reason': 'stop'}]"}, "stop"),
        ({"output.value": json.dumps({"incomplete_details": {"reason": "max_output_tokens"}, "output": []})}, "length"),
        ({"output.value": json.dumps({"incomplete_details": None, "status": "completed"})}, None),
        (
            {
                "langfuse.observation.output": json.dumps(
                    {"type": "message", "role": "assistant", "status": "incomplete"}
                )
            },
            "length",
        ),
        ({"langfuse.observation.output": json.dumps({"order": "A-17", "status": "incomplete"})}, None),
        ({"output.value": json.dumps({"content": json.dumps({"finish_reason": "length"})})}, None),
        ({"gen_ai.response.finish_reasons": []}, None),
        ({"gen_ai.response.finish_reasons": [7, None]}, None),
        ({"llm.finish_reason": "x" * 1000}, None),
        ({"llm.finish_reason": "vendor_word"}, "vendor_word"),
    ],
)
def test_a_reason_is_read_wherever_a_client_writes_it(attributes, reason):
    assert _span(**attributes).finish_reason == reason


@pytest.mark.parametrize(("reasons", "reason"), [(["length"], "length"), (["tool_calls", "length"], None), ([], None)])
def test_a_step_of_langchain_s_above_a_call_states_why_the_call_stopped_if_its_answer_is_the_only_one(reasons, reason):
    answers = [{"content": "He", "response_metadata": {"finish_reason": each}} for each in reasons]
    stated = {"langfuse.observation.type": "span", "langfuse.observation.output": json.dumps({"messages": answers})}
    assert _span(**{"gen_ai.operation.name": None} | stated).finish_reason == reason


@pytest.mark.parametrize(
    ("attributes", "texts"),
    [
        ({"gen_ai.tool.definitions": '[{"name": "a"}]'}, ['[{"name": "a"}]']),
        ({"gen_ai.tool.definitions": [{"name": "a"}]}, ['{"name":"a"}']),
        ({"llm.tools.1.tool.json_schema": '{"name":"b"}', "llm.tools.0.tool.json_schema": '{"name":"a"}'},
         ['{"name":"a"}', '{"name":"b"}']),
        ({"llm.request.functions.0.name": "a", "llm.request.functions.0.parameters": "{}"},
         ['{"name":"a","parameters":"{}"}']),
        ({"llm.tools.0.tool.name": "a", "llm.tools.0.tool.json_schema": '{"type":"object"}'},
         ['{"name":"a","parameters":"{\\"type\\":\\"object\\"}"}']),
        ({"llm.invocation_parameters": '{"temperature": 0}'}, []),
        ({"llm.invocation_parameters": '{"tools": [{"name": "a"}]}'}, ['{"tools": [{"name": "a"}]}']),
        ({"ai.prompt.tools": ['{"name":"a"}', '{"name":"b"}']}, ['{"name":"a"}', '{"name":"b"}']),
    ],
)  # fmt: skip
def test_definitions_of_tools_are_kept_as_they_were_sent(attributes, texts):
    assert list(_span(**attributes).tool_definitions) == texts


@pytest.mark.parametrize(
    ("attributes", "seconds"),
    [
        ({"gen_ai.response.time_to_first_chunk": 0.25}, 0.25),
        ({"gen_ai.server.time_to_first_token": 1}, 1.0),
        ({"ai.response.msToFirstChunk": 250.0}, 0.25),
        ({"langfuse.observation.completion_start_time": '"1970-01-01T00:00:01.000000001Z"'}, 0.999999999),
        ({"langfuse.observation.completion_start_time": "soon"}, None),
        ({"gen_ai.server.time_to_first_token": -1}, None),
        ({"gen_ai.server.time_to_first_token": float("nan")}, None),
        ({"gen_ai.server.time_to_first_token": True}, None),
    ],
)
def test_the_time_to_the_first_token_is_read_in_seconds(attributes, seconds):
    found = _span(**attributes).first_token_s
    assert found is None if seconds is None else found == pytest.approx(seconds, abs=1e-6)


def test_strands_sends_the_time_to_the_first_token_in_milliseconds():
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.server.time_to_first_token": 566}
    raw = RawSpan(
        trace_id="1" * 32, span_id="2" * 16, parent_id=None, name="chat", start_ns=1, end_ns=10**9,
        scope_name="strands.telemetry.tracer", attributes=attributes,
    )  # fmt: skip
    assert normalise(raw).first_token_s == pytest.approx(0.566)


def test_an_event_at_the_first_token_tells_its_time():
    raw = RawSpan(
        trace_id="1" * 32, span_id="2" * 16, parent_id=None, name="chat", start_ns=10, end_ns=10**9,
        attributes={"openinference.span.kind": "LLM"},
        events=(RawEvent(name="First Token Stream Event", time_ns=500_000_010),),
    )  # fmt: skip
    assert normalise(raw).first_token_s == pytest.approx(0.5)


def test_a_step_that_is_no_model_call_has_neither():
    span = normalise(
        RawSpan(
            trace_id="1" * 32, span_id="2" * 16, parent_id=None, name="step", start_ns=1, end_ns=2,
            attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.response.finish_reasons": ["stop"]},
        )
    )  # fmt: skip
    assert span.finish_reason is None
