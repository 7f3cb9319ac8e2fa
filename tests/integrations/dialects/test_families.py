"""What single families do that the recordings do not show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.integrations.raw import RawEvent, RawSpan
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.span import SpanKind, ToolCall, Usage
from sidejudge.scoring.trace.trace import Trace


def _raw(name: str = "step", /, scope: str = "", version: str = "", **given: Any) -> RawSpan:
    return RawSpan(
        trace_id="1" * 32, span_id="a" * 16, parent_id=None, name=name, start_ns=1, end_ns=2,
        scope_name=scope, scope_version=version, **given,
    )  # fmt: skip


def _langfuse(version: str, **attributes: Any) -> RawSpan:
    return _raw(
        "step", "langfuse-sdk", version, attributes={key.replace("__", "."): v for key, v in attributes.items()}
    )


def test_langfuse_metadata_is_decoded_as_each_version_encodes_it() -> None:
    three = _langfuse("3.15.0", langfuse__trace__metadata__n=4711, langfuse__trace__metadata__o='{"a": 1}')
    four = _langfuse("4.1.0", langfuse__trace__metadata__n="4711", langfuse__trace__metadata__s="research")
    five = _langfuse("5.0.4", langfuse__trace__metadata__n="4711", langfuse__trace__metadata__s='"research"')
    assert normalise(three).trace_metadata == {"n": 4711, "o": {"a": 1}}
    assert normalise(four).trace_metadata == {"n": "4711", "s": "research"}
    assert normalise(five).trace_metadata == {"n": 4711, "s": "research"}


def test_langfuse_experiments_give_the_expected_output() -> None:
    span = normalise(_langfuse("5.0.4", langfuse__experiment__item__expected_output='{"a": 1}'))
    assert span.metadata == {"langfuse.experiment.item.expected_output": {"a": 1}}


def test_langfuse_context_on_another_library_s_span_is_read_and_the_span_stays_the_library_s() -> None:
    span = normalise(
        _raw(
            "ChatCompletion", "openinference.instrumentation.openai",
            attributes={
                "openinference.span.kind": "LLM", "llm.model_name": "m", "langfuse.environment": "staging",
                "langfuse.trace.tags": ["a"], "session.id": "s", "langfuse.internal.is_app_root": True,
            },
        )
    )  # fmt: skip
    assert (span.dialect, span.kind, span.environment, span.tags) == ("openinference", SpanKind.LLM, "staging", ("a",))
    assert (span.session_id, span.root_hint) == ("s", True)


def test_inputs_and_outputs_in_langfuse_s_words_without_a_type_leave_the_span_to_those_who_say_what_it_is() -> None:
    asked, said = '[{"role": "user", "content": "Q"}]', '[{"role": "assistant", "content": "A"}]'
    beside = {"langfuse.observation.input": asked, "langfuse.observation.output": said}
    call = normalise(_raw("chat m", attributes={**beside, "gen_ai.operation.name": "chat"}))
    assert (call.dialect, call.kind, call.input, call.output) == ("genai", SpanKind.LLM, "Q", "A")
    given, returned = ('[{"role": "tool", "content": "{\\"id\\": 7}"}]', '[{"role": "tool", "content": "found"}]')
    held = {"gen_ai.input.messages": given, "gen_ai.output.messages": returned, "langfuse.observation.input": given}
    tool = normalise(_raw("execute_tool f", attributes={**held, "gen_ai.tool.name": "f"}))
    assert tool.tool == ToolCall(name="f", arguments={"id": 7}, result="found")
    assert normalise(_raw("step", attributes=beside)).dialect == "langfuse"


_TURNS = [{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}]
_REQUESTS: list[tuple[Any, str | None]] = [
    (_TURNS, "S"),
    ({"input": "Q", "tools": [{"type": "function", "name": "f"}], "tool_choice": "auto"}, None),
    ({"input": _TURNS, "tools": [{"type": "function", "name": "f"}]}, "S"),
    ({"input": "Q", "instructions": "S"}, "S"),
    ({"messages": _TURNS[1:], "system": [{"type": "text", "text": "S"}], "max_tokens": 9}, "S"),
    ({"args": [_TURNS], "kwargs": {}}, "S"),
    ({"args": [_TURNS, "gpt-x"], "kwargs": {"temperature": 0}}, "S"),
    ({"args": [], "kwargs": {"model": "gpt-x", "messages": _TURNS}}, "S"),
]


@pytest.mark.parametrize(("asked", "system"), _REQUESTS)
def test_a_request_to_a_model_is_read_in_every_form_in_which_langfuse_s_sdks_send_it(
    asked: Any, system: str | None
) -> None:
    span = normalise(_langfuse("5.0.4", langfuse__observation__type="generation",
                               langfuse__observation__input=json.dumps(asked)))  # fmt: skip
    assert (span.input, span.system_prompt) == ("Q", system)


@pytest.mark.parametrize("stated", ["S", '"S"'], ids=["sent", "read back"])
def test_instructions_that_langfuse_s_sdk_for_javascript_has_from_an_answer_are_the_system_prompt(stated: str) -> None:
    answered = {"langfuse.observation.type": "generation", "langfuse.observation.input": "Q",
                "langfuse.observation.metadata.instructions": stated}  # fmt: skip
    by_the_sdk = {**answered, "langfuse.observation.metadata.status": "completed"}
    found = [normalise(_raw("chat", "langfuse-sdk", "5.11.1", attributes=each)) for each in (by_the_sdk, answered)]
    assert [span.system_prompt for span in found] == ["S", None]


def test_the_messages_among_arguments_are_what_langfuse_s_step_was_asked_and_a_history_is_not() -> None:
    def asked(*args: Any) -> Any:
        given = json.dumps({"args": args, "kwargs": {}})
        return normalise(
            _langfuse("5.0.4", langfuse__observation__type="span", langfuse__observation__input=given)
        ).input

    assert asked(_TURNS, "gpt-x") == "Q"
    history = [*_TURNS, {"role": "assistant", "content": "A"}]
    assert asked("And now?", history) == json.dumps({"args": ["And now?", history], "kwargs": {}})


@pytest.mark.parametrize(
    "answered",
    [
        {"tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}]},
        [{"type": "thinking", "thinking": "…"}, {"type": "tool_use", "name": "f", "input": {"a": 1}}],
    ],
)
def test_an_answer_that_calls_a_tool_is_one_without_its_role_too(answered: Any) -> None:
    span = normalise(_langfuse("5.0.4", langfuse__observation__type="generation",
                               langfuse__observation__output=json.dumps(answered)))  # fmt: skip
    (message,) = span.output_messages
    assert (message.tool_calls, span.output) == ((ToolCall(name="f", arguments={"a": 1}),), None)


def test_langfuse_cost_is_the_total_or_the_sum_of_its_parts() -> None:
    for details in ('{"input": 0.25, "output": 0.5, "total": 0.75}', '{"input": 0.25, "output": 0.5}'):
        span = normalise(
            _langfuse("5.0.4", langfuse__observation__type="generation", langfuse__observation__cost_details=details)
        )
        assert span.cost_usd == 0.75


def test_a_langfuse_level_of_error_is_an_error_without_a_status() -> None:
    span = normalise(
        _langfuse("5.0.4", langfuse__observation__level="ERROR", langfuse__observation__status_message="no")
    )
    assert span.error == "no"
    stack = "E\n\nError: E\n    at f (x.mjs:1:2)"
    for stated, wanted in (("ParentCommand", None), ("GraphInterrupt: []", None), (stack, "Error: E")):
        given = {"langfuse.observation.level": "ERROR", "langfuse.observation.status_message": stated}
        assert normalise(_raw("step", "langfuse-sdk", "5.0.4", attributes=given)).error == wanted
        called = {"langfuse.observation.type": "tool", "langfuse.observation.input": '{"order": 7}'}
        tool = normalise(_raw("refund", "langfuse-sdk", "5.0.4", attributes=given | called))
        assert (tool.error, tool.tool and tool.tool.error) == (wanted, wanted)


@pytest.mark.parametrize(
    ("attributes", "switch"),
    [
        ({"langfuse.observation.type": "generation"}, "LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED"),
        ({"openinference.span.kind": "LLM", "input.value": "__REDACTED__"}, "OPENINFERENCE_HIDE_INPUTS"),
        ({"gen_ai.operation.name": "chat"}, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
        (
            {
                "openinference.span.kind": "LLM", "llm.model_name": "m", "input.value": "redacted-by-litellm",
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": "redacted-by-litellm",
            },
            "OPENINFERENCE_HIDE_OUTPUTS",
        ),
        (
            {
                "langfuse.observation.type": "generation", "langfuse.observation.model.name": "m",
                "langfuse.observation.input": '{"messages": [{"role": "user", "content": "redacted-by-litellm"}], '
                '"tools": [{"type": "function", "function": {"name": "find"}}]}',
                "langfuse.observation.output": '{"role": "assistant", "content": "redacted-by-litellm"}',
                "langfuse.trace.input": '{"messages": [{"role": "user", "content": "redacted-by-litellm"}]}',
            },
            "litellm.turn_off_message_logging",
        ),
        (
            {
                "gen_ai.operation.name": "chat", "gen_ai.input.messages": "HIDDEN:non-empty",
                "gen_ai.output.messages": "HIDDEN:non-empty", "system_instructions": "HIDDEN:non-empty",
            },
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
        ),
        (
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "<REDACTED>"}]}]',
                "gen_ai.output.messages": [{"role": "assistant", "content": "[REDACTED]"}],
            },
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
        ),
        (
            {"gen_ai.operation.name": "chat", "litellm.call_id": "c1", "litellm.call_type": "acompletion"},
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only",
        ),
        (
            {
                "gen_ai.operation.name": "chat", "traceloop.entity.path": "model",
                "traceloop.association.properties.lc_versions": '{"langchain-core": "1.8.3", "langchain": "1.5.2"}',
            },
            "TRACELOOP_TRACE_CONTENT",
        ),
    ],
)  # fmt: skip
def test_each_family_names_the_switch_that_captures_contents(attributes: dict[str, Any], switch: str) -> None:
    span = normalise(_raw(attributes=attributes))
    assert switch in (span.capture_switch or "")
    assert (span.input, span.output, span.input_messages, span.output_messages) == (None, None, (), ())
    assert (span.trace_input, span.system_prompt, span.unread) == (None, None, ())


@pytest.mark.parametrize(
    ("scope", "more"),
    [
        ("@opentelemetry/instrumentation-openai", ""),
        ("opentelemetry.instrumentation.botocore.bedrock-runtime", ", and logs sent"),
    ],
)
def test_clients_that_know_true_alone_name_it(scope: str, more: str) -> None:
    raw = _raw("chat", scope, attributes={"gen_ai.operation.name": "chat"})
    assert normalise(raw).capture_switch == f"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true{more}"


@pytest.mark.parametrize("client", ["google_genai", "vertexai"])
def test_ids_that_a_client_makes_of_a_tool_s_name_and_a_number_are_none(client: str) -> None:
    call = {"type": "tool_call", "id": "f_a_0", "name": "f_a", "arguments": {"n": 1}}
    answer = {"type": "tool_call_response", "id": "f_a_0", "response": "1"}
    other = {"type": "tool_call_response", "id": "8f2_0", "response": "2"}
    asked = [{"role": "assistant", "parts": [call]}, {"role": "user", "parts": [answer, other]}]
    attributes = {"gen_ai.operation.name": "generate_content", "gen_ai.input.messages": json.dumps(asked)}
    span = normalise(_raw("c", f"opentelemetry.instrumentation.{client}", attributes=attributes))
    assert [each.call_id for message in span.input_messages for each in message.tool_calls] == [None]
    answers = [(m.tool_call_id, m.name, m.text) for m in span.input_messages if m.role == "tool"]
    assert answers == [(None, "f_a", "1"), ("8f2_0", None, "2")]


def test_the_sdk_of_anthropic_names_its_own_setting() -> None:
    raw = _raw("chat", "com.anthropic.sdk.python", attributes={"gen_ai.operation.name": "chat"})
    assert normalise(raw).capture_switch == "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content"


def test_arguments_that_a_client_removed_are_unknown_and_words_that_only_mention_a_mark_are_contents() -> None:
    hidden = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find"}
    hidden |= {"gen_ai.tool.call.arguments": "HIDDEN:non-empty", "gen_ai.tool.call.result": "HIDDEN:non-empty"}
    assert normalise(_raw(attributes=hidden)).tool == ToolCall(name="find")
    asked = '[{"role": "user", "content": "Why is it \\"redacted-by-litellm\\"?"}]'
    span = normalise(_raw(attributes={"langfuse.observation.type": "generation", "langfuse.observation.input": asked}))
    assert span.input == 'Why is it "redacted-by-litellm"?'
    begins = {"langfuse.observation.type": "agent", "langfuse.observation.input": "[REDACTED] asked for a refund."}
    assert normalise(_raw(attributes=begins)).input == "[REDACTED] asked for a refund."


def test_genai_contents_may_be_structured_instead_of_json_text() -> None:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "Q"}]}],
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "A"}]}],
        "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
    }
    span = normalise(_raw(attributes=attributes))
    assert (span.input, span.output, span.system_prompt, span.capture_switch) == ("Q", "A", "Be brief.", None)


def test_genai_contents_on_span_events_are_read_in_both_forms() -> None:
    new = RawEvent(
        name="gen_ai.client.inference.operation.details", time_ns=1,
        attributes={
            "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Q"}]}]',
            "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "A"}]}]',
        },
    )  # fmt: skip
    old = (
        RawEvent(name="gen_ai.user.message", time_ns=1, attributes={"content": "Q"}),
        RawEvent(name="gen_ai.choice", time_ns=2, attributes={"index": 0, "message": '{"content": "A"}'}),
    )
    for events in ((new,), old):
        span = normalise(_raw(attributes={"gen_ai.operation.name": "chat"}, events=events))
        assert (span.input, span.output) == ("Q", "A")
        assert span.provenance["input"].startswith("event gen_ai.")


def test_genai_tools_retrieval_and_usage_are_read() -> None:
    tool = normalise(
        _raw(
            "execute_tool f",
            attributes={
                "gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": {"q": 1},
                "gen_ai.tool.call.result": '{"result": "x"}', "gen_ai.tool.call.id": "c",
            },
        )
    )  # fmt: skip
    assert tool.tool == ToolCall(name="f", arguments={"q": 1}, result="x", call_id="c")
    retrieval = normalise(
        _raw(
            attributes={
                "gen_ai.operation.name": "retrieval",
                "gen_ai.retrieval.documents": '[{"id": "1", "content": "D"}]',
            }
        )
    )
    assert (retrieval.kind, retrieval.documents) == (SpanKind.RETRIEVER, ("D",))
    llm = normalise(
        _raw(
            attributes={
                "gen_ai.request.model": "m",
                "gen_ai.usage.prompt_tokens": 3,
                "gen_ai.usage.completion_tokens": 1,
            }
        )
    )
    assert (llm.kind, llm.usage, llm.requested_model) == (SpanKind.LLM, Usage(input=3, output=1), "m")


def test_openinference_messages_are_ordered_by_number_and_not_by_letter() -> None:
    attributes = {"openinference.span.kind": "LLM"}
    for number in range(12):
        attributes[f"llm.input_messages.{number}.message.role"] = "user"
        attributes[f"llm.input_messages.{number}.message.content"] = f"turn {number}"
    span = normalise(_raw(attributes=attributes))
    assert [message.text for message in span.input_messages] == [f"turn {number}" for number in range(12)]
    assert span.input == "turn 11"


@pytest.mark.parametrize(
    ("scope", "request_", "response", "stated", "system"),
    [
        (
            "anthropic",
            {"system": "Be brief.", "messages": []},
            {"role": "assistant", "content": "Hi."},
            "Hi.",
            "Be brief.",
        ),
        ("anthropic", {"system": [{"type": "text", "text": "Be brief."}]}, {}, None, "Be brief."),
        ("openai_agents", [], {"instructions": "Be brief.", "output": []}, None, "Be brief."),
        ("openai_agents", [{"role": "system", "content": "First."}], {"instructions": "Second."}, None, "First."),
        (
            "google_genai",
            {"contents": [], "system_instruction": {"parts": [{"text": "Be brief."}], "role": "user"}},
            {"candidates": [{"content": {"parts": [{"text": "Hi."}], "role": "model"}, "index": 0}]},
            "Hi.",
            "Be brief.",
        ),
        ("autogen", {}, {"finish_reason": "stop", "content": "Hi."}, "Hi.", None),
        ("llama_index", {}, "assistant: Hi.", "Hi.", None),
        ("llama_index", {}, "assistant: None", "", None),
    ],
)
def test_openinference_s_raw_request_and_response_tell_what_its_messages_would(
    scope, request_, response, stated, system
) -> None:
    contents = {"input.value": json.dumps(request_),
                "output.value": response if isinstance(response, str) else json.dumps(response)}  # fmt: skip
    attributes = {"openinference.span.kind": "LLM", **contents}
    span = normalise(_raw("call", f"openinference.instrumentation.{scope}", attributes=attributes))
    assert span.system_prompt == system
    if stated is not None:
        assert span.output == stated


@pytest.mark.parametrize(("said", "printed"), [("", "assistant: "), ("Hi.", "assistant: Hi."), ("assistant: ", "x")])
def test_a_message_that_llamaindex_prints_is_its_text(said: str, printed: str) -> None:
    attributes = {
        "openinference.span.kind": "LLM",
        "output.value": printed,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": said,
    }
    span = normalise(_raw("OpenAI.achat", "openinference.instrumentation.llama_index", attributes=attributes))
    assert (span.output or "", [message.text for message in span.output_messages]) == (said, [said])


@pytest.mark.parametrize("text", ["", "7 degrees."])
def test_a_pipeline_of_haystack_that_returns_messages_answers_with_the_last_of_them(text: str) -> None:
    said = f"ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[TextContent(text='{text}')], _name=None)"
    value = json.dumps({"agent": {"messages": [said], "token_usage": {"prompt_tokens": 1}}})
    attributes = {"openinference.span.kind": "CHAIN", "output.value": value}
    span = normalise(_raw("Pipeline.run", "openinference.instrumentation.haystack", attributes=attributes))
    assert (span.output, span.unread) == (text, ())


@pytest.mark.parametrize(
    "answered",
    [
        {"role": "tool", "contents.0.message_content.text": "A-1"},
        {"role": "user", "content": "A-1", "tool_call_id": "c1"},
    ],
)
def test_a_tool_that_failed_is_in_the_body_alone_that_openinference_sends_of_claude_on_bedrock(
    answered: dict[str, str],
) -> None:
    body = {"system": "Be brief.", "messages": [
        {"role": "user", "content": "Where is A-17?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "find", "input": {"order": 17}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "A-1", "is_error": True}]},
    ]}  # fmt: skip
    at = "llm.input_messages."
    attributes = {
        "openinference.span.kind": "LLM", "llm.model_name": "claude", "input.value": json.dumps(body),
        f"{at}0.message.role": "system", f"{at}0.message.contents.0.message_content.text": "Be brief.",
        f"{at}1.message.role": "user", f"{at}1.message.contents.0.message_content.text": "Where is A-17?",
        f"{at}2.message.role": "assistant", f"{at}2.message.tool_calls.0.tool_call.id": "c1",
        f"{at}2.message.tool_calls.0.tool_call.function.name": "find",
        f"{at}2.message.tool_calls.0.tool_call.function.arguments": '{"order": 17}',
        **{f"{at}3.message.{key}": value for key, value in answered.items()},
    }  # fmt: skip
    span = normalise(_raw(attributes=attributes))
    answers = [(m.tool_call_id, m.text, m.error) for m in span.input_messages if m.role == "tool"]
    assert (answers, span.system_prompt) == ([("c1", "A-1", True)], "Be brief.")


def test_a_tool_that_failed_is_in_the_body_of_bedrock_s_converse_with_spaces_or_without() -> None:
    result = {"toolUseId": "c1", "content": [{"text": "A-1"}], "status": "error"}
    body = {"messages": [
        {"role": "user", "content": [{"text": "Where is A-17?"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "find", "input": {"order": 17}}}]},
        {"role": "user", "content": [{"toolResult": result}]},
    ]}  # fmt: skip
    at = "llm.input_messages."
    attributes = {
        "openinference.span.kind": "LLM", "llm.model_name": "claude",
        f"{at}0.message.role": "user", f"{at}0.message.content": "Where is A-17?",
        f"{at}1.message.role": "assistant", f"{at}1.message.tool_calls.0.tool_call.id": "c1",
        f"{at}1.message.tool_calls.0.tool_call.function.name": "find",
        f"{at}1.message.tool_calls.0.tool_call.function.arguments": '{"order": 17}',
        f"{at}2.message.role": "user", f"{at}2.message.tool_call_id": "c1", f"{at}2.message.content": "A-1",
    }  # fmt: skip
    for separators in ((", ", ": "), (",", ":")):
        span = normalise(_raw(attributes={**attributes, "input.value": json.dumps(body, separators=separators)}))
        assert [m.error for m in span.input_messages if m.role == "tool"] == [True]


def test_what_openinference_for_javascript_sends_of_anthropic_s_tool_results_is_no_question() -> None:
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "How warm is it?",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.tool_call_id": "c",
        "llm.input_messages.1.message.content": "4",
    }
    span = normalise(_raw("call", "@arizeai/openinference-instrumentation-anthropic", attributes=attributes))
    assert (span.input, span.input_messages[1].role, span.input_messages[1].tool_call_id) == (
        "How warm is it?",
        "tool",
        "c",
    )


def test_openinference_for_javascript_leaves_texts_in_parts_to_the_raw_body() -> None:
    """LangChain's ``createAgent``, in a stream whose answer is empty."""

    def dumped(kind: str, content: Any, **more: Any) -> dict[str, Any]:
        kwargs = {"content": content, "additional_kwargs": {}, **more}
        return {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", kind], "kwargs": kwargs}

    said = {
        "text": "",
        "generationInfo": {"prompt": 0, "finish_reason": "stop", "model_name": "m-1"},
        "message": dumped("AIMessageChunk", "", response_metadata={"model_provider": "p"}),
    }
    asked = [
        dumped("SystemMessage", [{"type": "text", "text": "Be brief."}]),
        dumped("HumanMessage", [{"type": "text", "text": "Where?"}]),
    ]
    attributes = {
        "openinference.span.kind": "LLM",
        "input.value": json.dumps({"messages": [asked]}),
        "output.value": json.dumps({"generations": [[said]], "llmOutput": {}}),
        "llm.model_name": "m",
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.1.message.role": "user",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "",
    }
    span = normalise(_raw("ChatOpenAI", "@arizeai/openinference-instrumentation-langchain", attributes=attributes))
    assert (span.system_prompt, span.input, span.model, span.requested_model) == ("Be brief.", "Where?", "m-1", "m")
    assert span.unread == ()


@pytest.mark.parametrize(
    ("written", "unread"),
    [("", []), ([], []), ([{"type": "image_url", "image_url": {"url": "a.png"}}], ["output.value"])],
)
def test_an_empty_answer_of_langchain_is_known_for_one_and_an_image_may_be_one(
    written: object, unread: list[str]
) -> None:
    kwargs = {
        "content": written, "additional_kwargs": {"refusal": None}, "type": "ai",
        "response_metadata": {"model_provider": "openai", "finish_reason": "stop"}, "tool_calls": [],
    }  # fmt: skip
    message = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": kwargs}
    generation = {"text": "", "generation_info": {"finish_reason": "stop"}, "message": message}
    attributes = {
        "openinference.span.kind": "LLM",
        "output.value": json.dumps({"generations": [[generation]], "llm_output": {"model_name": "m-1"}}),
        "llm.output_messages.0.message.role": "assistant",
    }
    span = normalise(_raw("ChatOpenAI", "openinference.instrumentation.langchain", attributes=attributes))
    assert (span.output, [each.source for each in span.unread]) == (None, unread)


@pytest.mark.parametrize(
    ("item", "unread"),
    [
        ({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ""}]}, []),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Which ship?"}]}, []),
        ({"type": "image_generation_call", "result": "aW1hZ2U="}, ["output.value"]),
    ],
)
def test_a_response_of_openai_answers_by_its_output_and_not_by_the_request_that_it_repeats(
    item: object, unread: list[str]
) -> None:
    body = {"object": "response", "instructions": "You are a clerk.", "tools": [{"name": "find"}], "output": [item]}
    attributes = {
        "openinference.span.kind": "LLM", "output.value": json.dumps(body),
        "llm.output_messages.0.message.role": "assistant",
    }  # fmt: skip
    span = normalise(_raw("response", "openinference.instrumentation.openai_agents", attributes=attributes))
    assert (span.output, [each.source for each in span.unread]) == (None, unread)


def test_openinference_retrievers_give_documents_and_rerankers_what_they_kept() -> None:
    documents = {f"retrieval.documents.{n}.document.content": f"d{n}" for n in range(11)}
    span = normalise(_raw(attributes={"openinference.span.kind": "RETRIEVER", **documents}))
    assert span.documents == tuple(f"d{n}" for n in range(11))
    reranked = {"openinference.span.kind": "RERANKER", "reranker.output_documents.0.document.content": "best"}
    assert normalise(_raw(attributes=reranked)).documents == ("best",)


@pytest.mark.parametrize("attributes", [
    {"openinference.span.kind": "RETRIEVER", "output.value": '[{"page_content": "D1"}, {"page_content": "D2"}]'},
    {"mlflow.spanType": '"RETRIEVER"', "mlflow.spanOutputs": '[{"page_content": "D1"}, {"page_content": "D2"}]'},
    {"langsmith.span.kind": "retriever", "gen_ai.completion": '{"documents": [{"page_content": "D1"}, "D2"]}'},
])  # fmt: skip
def test_what_a_retriever_returns_is_its_documents(attributes: dict[str, Any]) -> None:
    span = normalise(_raw(attributes=attributes))
    assert (span.kind, span.documents) == (SpanKind.RETRIEVER, ("D1", "D2"))


def test_openinference_agents_have_their_names_from_where_each_framework_puts_them() -> None:
    agent = {"openinference.span.kind": "AGENT"}
    assert (
        normalise(_raw("CodeAgent.run", "openinference.instrumentation.smolagents", attributes=agent)).agent
        == "CodeAgent"
    )
    assert normalise(_raw("r._execute_core", attributes={**agent, "graph.node.id": "writer"})).agent == "writer"
    named = {"openinference.span.kind": "CHAIN", "metadata": '{"lc_agent_name": "research", "ls_x": 1, "k": 2}'}
    span = normalise(_raw("LangGraph", attributes=named))
    assert (span.agent, span.kind, span.metadata) == ("research", SpanKind.CHAIN, {"k": 2})


@pytest.mark.parametrize(
    ("scope", "asked"),
    [
        ("@openlit/instrumentation-openai", [{"role": "user", "parts": [{"type": "text", "content": "Where?"}]}]),
        ("@traceloop/instrumentation-openai", [
            {"role": "user", "parts": [{"type": "text", "content": '[{"role":"user","content":"Where?"}]'}]},
        ]),
    ],
)  # fmt: skip
def test_an_answer_of_openai_s_responses_that_shows_nothing_may_have_called_tools(scope: str, asked: Any) -> None:
    given = {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "openai.api.type": "responses",
        "gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages":
        json.dumps([{"role": "assistant", "finish_reason": "stop", "parts": [{"type": "text", "content": ""}]}]),
    }  # fmt: skip
    span = normalise(_raw("chat m", scope, attributes=given))
    assert (span.input, span.output, span.output_messages) == ("Where?", None, ())


@pytest.mark.parametrize(("operation", "agent"), [("invoke_swarm", None), ("invoke_agent", "swarm")])
def test_a_swarm_of_strands_is_no_agent(operation: str, agent: str | None) -> None:
    given = {"gen_ai.operation.name": operation, "gen_ai.agent.name": "swarm", "gen_ai.system": "strands-agents"}
    span = normalise(_raw(f"{operation} swarm", "strands-agents", attributes=given))
    assert (span.dialect, span.agent) == ("strands", agent)


def test_what_strands_in_javascript_repeats_of_a_chat_in_its_loop_is_no_answer_that_was_not_understood() -> None:
    stated = {
        "user": '[{"text":"Where?"}]',
        "assistant": '[{"toolUse":{"name":"look_up","toolUseId":"c","input":{"q":"x"}}}]',
    }
    events = tuple(
        RawEvent(name=f"gen_ai.{role}.message", time_ns=1, attributes={"content": text})
        for role, text in stated.items()
    )
    assert not normalise(_raw("execute_agent_loop_cycle", "strands-agents", events=events)).unread


def test_a_hand_off_of_openai_s_agents_in_javascript_has_the_name_that_the_model_calls() -> None:
    given = {
        "openinference.span.kind": "TOOL", "tool.name": "handoff_to_bird", "input.value": '{"from_agent":"desk"}',
        "output.value": '{"to_agent":"bird"}',
    }  # fmt: skip
    span = normalise(_raw("handoff to bird", "@arizeai/openinference-instrumentation-openai-agents", attributes=given))
    assert (span.tool, span.input, span.output) == (ToolCall(name="transfer_to_bird", handoff=True), "desk", "bird")


@pytest.mark.parametrize(("path", "agent"), [("boss:7d|agent:51", "boss"), ("agent:51", None)])
def test_the_node_of_langgraph_s_prebuilt_agent_in_javascript_is_of_the_graph_that_it_lies_in(path, agent) -> None:
    metadata = json.dumps({"langgraph_node": "agent", "langgraph_checkpoint_ns": path})
    given = {"openinference.span.kind": "CHAIN", "metadata": metadata}
    assert normalise(_raw("agent", "@arizeai/openinference-instrumentation-langchain", attributes=given)).agent == agent
    keys = {"type": "span", "metadata.langgraph_node": "agent", "metadata.langgraph_checkpoint_ns": path}
    observed = {f"langfuse.observation.{key}": value for key, value in keys.items()}
    assert normalise(_raw("agent", "langfuse-sdk", "5.0.4", attributes=observed)).agent == agent


@pytest.mark.parametrize(
    ("key", "named"), [("langsmith.span.kind", "LLM"), ("langfuse.observation.type", "GENERATION")]
)
def test_kinds_are_read_in_capitals_too_as_those_write_them_who_set_them_by_hand(key: str, named: str) -> None:
    assert normalise(_raw(attributes={key: named})).kind is SpanKind.LLM
    assert normalise(_raw("find", attributes={key: "Tool"})).tool == ToolCall(name="find")


def test_a_session_and_a_user_may_be_whole_numbers() -> None:
    span = normalise(_raw(attributes={"openinference.span.kind": "CHAIN", "session.id": 42, "user.id": 7}))
    assert (span.session_id, span.user_id) == ("42", "7")


def test_a_redacted_session_is_unknown() -> None:
    span = normalise(_raw(attributes={"session.id": "[Scrubbed due to 'session']", "gen_ai.conversation.id": "c"}))
    assert span.session_id == "c"


def test_a_thread_is_langwatch_s_session_and_no_operating_system_s() -> None:
    attributes = {"thread.id": 7, "langwatch.thread.id": "desk-4"}
    assert normalise(_raw(attributes=attributes)).session_id == "desk-4"
    assert normalise(_raw(attributes={"thread.id": 7})).session_id is None


@pytest.mark.parametrize("nobody", ["unknown", "None", "null", "undefined", " ", " none "])
def test_a_session_or_user_that_a_client_does_not_know_joins_nothing(nobody: str) -> None:
    for sent in ({"nat.conversation.id": nobody, "user.id": nobody}, {"metadata": f'{{"session_id": "{nobody}"}}'}):
        span = normalise(_raw(attributes={"openinference.span.kind": "CHAIN"} | sent))
        assert (span.session_id, span.user_id) == (None, None)
    assert normalise(_raw(attributes={"session.id": nobody, "nat.conversation.id": "c"})).session_id == "c"
    by_handler = {"langfuse.observation.type": "generation", "langfuse.observation.metadata.langfuse_user_id": nobody}
    assert normalise(_raw(attributes=by_handler)).user_id is None


@pytest.mark.parametrize(
    ("status", "exception", "error_type", "wanted"),
    [
        (
            "ConnectionError: no",
            {"exception.type": "ConnectionError", "exception.message": "no"},
            None,
            "ConnectionError: no",
        ),
        ("no", {"exception.type": "builtins.ConnectionError"}, None, "builtins.ConnectionError: no"),
        ("", {"exception.message": "no"}, None, "no"),
        ("no", {}, "TimeoutError", "TimeoutError: no"),
        ("no\nTraceback (most recent call last):\n  File", {}, None, "no"),
        ("", {}, None, "error"),
    ],
)
def test_an_error_names_its_type_and_its_message_once(
    status: str, exception: dict[str, Any], error_type: str | None, wanted: str
) -> None:
    events = (RawEvent(name="exception", time_ns=1, attributes=exception),) if exception else ()
    attributes = {"error.type": error_type} if error_type else {}
    assert normalise(_raw(status_code=2, status_message=status, events=events, attributes=attributes)).error == wanted
    assert normalise(_raw(status_code=1, status_message=status, events=events)).error is None


def test_an_application_s_own_tags_and_metadata_are_read_under_its_own_prefix() -> None:
    span = normalise(_raw(attributes={"app.tags": ["a"], "shop.metadata.k": '{"x": 1}', "http.metadata": "no"}))
    assert (span.dialect, span.tags, span.metadata) == ("generic", ("a",), {"k": {"x": 1}})


def test_events_on_a_tool_s_own_span_are_what_it_was_given_and_what_it_returned() -> None:
    events = (
        RawEvent(
            name="gen_ai.tool.message", time_ns=1, attributes={"role": "tool", "content": '{"q": "refund"}', "id": "c1"}
        ),
        RawEvent(name="gen_ai.choice", time_ns=2, attributes={"message": '[{"text": "30 days"}]', "id": "c1"}),
    )
    attributes = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.id": "c1",
    }  # fmt: skip
    span = normalise(_raw(attributes=attributes, events=events))
    assert span.tool == ToolCall(name="search", arguments={"q": "refund"}, result="30 days", call_id="c1")
    assert (span.input_messages, span.output_messages) == ((), ())
    assert (span.provenance["tool.arguments"], span.provenance["tool.result"]) == (
        "event gen_ai.tool.message", "event gen_ai.choice",
    )  # fmt: skip
    failed = normalise(_raw(attributes=attributes, events=events, status_code=2, status_message="no such page"))
    assert failed.tool == ToolCall(name="search", arguments={"q": "refund"}, error="no such page", call_id="c1")


def test_a_question_and_its_answer_may_come_in_two_events() -> None:
    events = tuple(
        RawEvent(
            name="gen_ai.client.inference.operation.details",
            time_ns=1,
            attributes={
                f"gen_ai.{way}.messages": f'[{{"role": "{role}", "parts": [{{"type": "text", "content": "{text}"}}]}}]'
            },
        )
        for way, role, text in (("input", "user", "Why?"), ("output", "assistant", "Because."))
    )
    span = normalise(_raw(attributes={"gen_ai.operation.name": "chat"}, events=events))
    assert (span.input, span.output) == ("Why?", "Because.")


@pytest.mark.parametrize("client", ["strands", "strands-latest"])
@pytest.mark.parametrize(("scenario", "tool"), [("s2_agents", "pdf_retrieval"), ("s4_error", "lookup_order")])
def test_strands_tools_come_out_as_the_program_called_them(shared: Path, client: str, scenario: str, tool: str) -> None:
    folder = shared / "corpus" / "otlp" / client / scenario
    truth = next(
        each for each in json.loads((folder / "manifest.json").read_text())["truth"]["tools"] if each["name"] == tool
    )
    spans = [
        normalise(raw) for path in sorted(folder.glob("[0-9][0-9][0-9].pb")) for raw in decode_spans(path.read_bytes())
    ]
    (call,) = [span.tool for span in spans if span.tool is not None and span.tool.name == tool]
    assert (call.arguments, call.result, call.error) == (truth["args"], truth.get("result"), truth.get("error"))
    requested = [span.input for span in spans if span.kind is SpanKind.AGENT]
    assert requested
    assert None not in requested


@pytest.mark.parametrize("kind", ["CHAIN", "AGENT", "LLM"])
@pytest.mark.parametrize(
    ("mime", "sent", "read"),
    [
        ("text/plain", '"so be it"', '"so be it"'),
        ("text/plain", "so be it", "so be it"),
        ("application/json", '"so be it"', "so be it"),
        (None, '"so be it"', "so be it"),
    ],
)
def test_openinference_plain_text_keeps_its_quotation_marks(kind, mime, sent, read) -> None:
    attributes: dict[str, Any] = {"openinference.span.kind": kind, "input.value": sent, "output.value": sent}
    if mime is not None:
        attributes |= {"input.mime_type": mime, "output.mime_type": mime}
    span = normalise(_raw("s", "openinference.instrumentation.x", attributes=attributes))
    assert (span.input, span.output) == (read, read)


def test_a_part_of_an_answer_is_no_model_call_of_mastra_s() -> None:
    """With Arize's exporter each is an LLM span of a millisecond, whose output can be ``{}``, below its step's."""
    stated = {"openinference.span.kind": "LLM", "output.value": "{}", "mastra.span.type": "model_chunk"}
    part = normalise(_raw("model_chunk Angler", "@mastra/otel-exporter", attributes=stated))
    assert (part.kind, part.output, part.output_messages) == (SpanKind.CHAIN, None, ())
    stated["mastra.span.type"] = "model_step"
    step = normalise(_raw("model_step Angler", "@mastra/otel-exporter", attributes=stated))
    assert step.kind is SpanKind.LLM


def test_a_run_of_voltagent_without_a_tool_called_none_though_no_answer_stands_in_its_model_s_span() -> None:
    called = {"llm.operation": "generateText", "llm.model": "gpt-4o-mini", "llm.tools": "look_up", "span.type": "llm"}
    run = {"entity.type": "agent", "entity.name": "helper", "input": "Where?", "output": "Oslo."}
    model = replace(_raw("llm:generateText", "@voltagent/core", attributes=called), span_id="b" * 16)
    spans = [_raw("helper", "@voltagent/core", attributes=run), replace(model, parent_id="a" * 16)]
    case = extract(Trace.of("1" * 32, [normalise(span) for span in spans], "batch"))
    assert (case.agents_called, case.tools_used, case.model) == (("helper",), (), "gpt-4o-mini")
    assert (case.input, case.model_output) == ("Where?", "Oslo.")
