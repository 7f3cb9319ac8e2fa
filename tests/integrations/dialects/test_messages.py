"""The same conversation in every vendor's shape: a question, a call, its result, an answer."""

from __future__ import annotations

import json

import pytest

from sidejudge.integrations.dialects import messages
from sidejudge.integrations.dialects.model_call import from_details, whole
from sidejudge.scoring.trace.span import Json, Message, ToolCall, Usage

ARGUMENTS = {"q": "x"}
OPENAI: Json = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Why?"}]},
    {"role": "assistant", "content": None,
     "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"q": "x"}'}}]},
    {"role": "tool", "tool_call_id": "c", "content": "found"},
    {"role": "assistant", "content": "Because."},
]  # fmt: skip
ANTHROPIC: Json = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Why?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": ARGUMENTS}]},
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "found"}]}],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Because."}]},
]
CONVENTIONS: Json = [
    {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
    {"role": "user", "parts": [{"type": "text", "content": "Why?"}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "f", "arguments": ARGUMENTS}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "found"}]},
    {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "Because."}],
     "finish_reason": "stop"},
]  # fmt: skip
ENUMERATED: Json = [{**message, "role": f"MessageRole.{message['role'].upper()}"} for message in CONVENTIONS]
"""Of smolagents, whose enumeration OpenTelemetry's instrumentation of OpenAI prints."""
LANGCHAIN: Json = {
    "messages": [
        {"type": "system", "content": "Be brief."},
        {"type": "human", "content": "Why?"},
        {"type": "ai", "content": "", "tool_calls": [{"name": "f", "args": ARGUMENTS, "id": "c", "type": "tool_call"}]},
        {"type": "tool", "content": "found", "tool_call_id": "c", "name": None},
        {"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {"content": "Because."}},
    ]
}
BEDROCK: Json = [
    {"role": "system", "content": [{"text": "Be brief."}]},
    {"role": "user", "content": [{"text": "Why?"}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "f", "input": ARGUMENTS}}]},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "found"}]}}]},
    {"role": "assistant", "content": [{"text": "Because."}]},
]
RESPONSES: Json = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "input_text", "text": "Why?"}]},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"q": "x"}', "id": "fc_1"},
    {"type": "function_call_output", "call_id": "c", "output": "found"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Because."}]},
]
GEMINI: Json = {
    "contents": [
        {"role": "system", "parts": [{"text": "Be brief."}]},
        {"role": "user", "parts": [{"text": "Why?"}]},
        {"role": "model", "parts": [{"function_call": {"id": "c", "name": "f", "args": ARGUMENTS}}]},
        {"role": "user", "parts": [{"function_response": {"id": "c", "response": "found"}}]},
        {"role": "model", "parts": [{"text": "Because."}]},
    ]
}
DOTTED: Json = {
    "messages": [
        {"message.role": "system", "message.content": "Be brief."},
        {"message.role": "user", "message.contents": [
            {"message_content.type": "text", "message_content.text": "Why?"},
        ]},
        {"message.role": "assistant", "message.tool_calls": [
            {"tool_call.id": "c", "tool_call.function.name": "f", "tool_call.function.arguments": '{"q": "x"}'},
        ]},
        {"message.role": "tool", "message.tool_call_id": "c", "message.content": "found"},
        {"message.role": "assistant", "message.content": "Because."},
    ]
}  # fmt: skip
LANGCHAIN4J: Json = [
    {"text": "Be brief.", "type": "SYSTEM"},
    {"contents": [{"text": "Why?", "type": "TEXT"}], "attributes": {}, "type": "USER"},
    {"toolExecutionRequests": [{"id": "c", "name": "f", "arguments": '{"q": "x"}'}], "attributes": {}, "type": "AI"},
    {"id": "c", "toolName": "f", "text": "found", "type": "TOOL_EXECUTION_RESULT"},
    {"text": "Because.", "toolExecutionRequests": [], "attributes": {}, "type": "AI"},
]
PRINTED_CALL = "ToolCall(tool_name='f', arguments={'q': 'x'}, id='c', extra=None)"
HAYSTACK: Json = [
    "ChatMessage(_role=<ChatRole.SYSTEM: 'system'>, _content=[TextContent(text='Be brief.')], _name=None, _meta={})",
    "ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[TextContent(text='Why?')], _name=None, _meta={})",
    f"ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[{PRINTED_CALL}])",
    f"ChatMessage(_role=<R.TOOL: 'tool'>, _content=[ToolCallResult(result='found', origin={PRINTED_CALL})])",
    "ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[TextContent(text='Because.')])",
]


@pytest.mark.parametrize(
    "conversation",
    [OPENAI, ANTHROPIC, CONVENTIONS, ENUMERATED, LANGCHAIN, BEDROCK, RESPONSES, GEMINI, DOTTED, HAYSTACK, LANGCHAIN4J],
    ids=[
        "openai",
        "anthropic",
        "conventions",
        "enumerated",
        "langchain",
        "bedrock",
        "responses",
        "gemini",
        "dotted",
        "haystack",
        "langchain4j",
    ],
)
def test_every_vendor_s_conversation_reads_alike(conversation: Json) -> None:
    found = messages.read(conversation)
    assert [m.role for m in found] == ["system", "user", "assistant", "tool", "assistant"]
    assert [m.text for m in found] == ["Be brief.", "Why?", "", "found", "Because."]
    assert found[2].tool_calls == (ToolCall(name="f", arguments=dict(ARGUMENTS), call_id="c"),)
    assert (found[3].tool_call_id, found[3].error) == ("c", False)
    assert messages.system_text(found) == "Be brief."
    assert messages.last_text(found, "assistant") == "Because."


def _by_ai_sdk(**output: Json) -> Json:
    return {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "f", "output": output}]}


def test_an_answer_of_a_tool_that_failed_says_so() -> None:
    for failed in (
        {"type": "tool", "content": "no", "tool_call_id": "c", "status": "error"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": True}]},
        f"ChatMessage(_role=<R.T: 'tool'>, _content=[ToolCallResult(result='no', origin={PRINTED_CALL}, error=True)])",
        _by_ai_sdk(type="error-text", value="no"),
        _by_ai_sdk(type="execution-denied", reason="no"),
    ):
        (message,) = messages.read([failed])
        assert (message.role, message.text, message.tool_call_id, message.error) == ("tool", "no", "c", True)


def test_the_name_of_a_tool_that_was_called_in_a_role_s_place_is_that_of_its_result() -> None:
    """Langfuse's handler of LangChain for JavaScript."""
    called = {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    asks: Json = {"role": "assistant", "content": "", "tool_calls": [called]}
    returned: Json = {"role": "look_up", "content": "Error: no such tool", "additional_kwargs": {}}
    (_, message) = messages.read([asks, returned])
    assert (message.role, message.name, message.text) == ("tool", "look_up", "Error: no such tool")
    assert messages.read([returned]) == messages.read([asks, {**returned, "role": "other"}])[1:] == ()


def test_what_the_ai_sdk_s_tool_returned_is_read_without_its_form() -> None:
    for returned, text in (
        ({"type": "text", "value": "found"}, "found"),
        ({"type": "json", "value": {"n": 1}}, '{"n": 1}'),
        ({"type": "content", "value": [{"type": "text", "text": "found"}]}, "found"),
        ({"type": "json", "value": None}, ""),
        ({"type": "euro", "value": 5}, '{"type": "euro", "value": 5}'),
    ):
        (message,) = messages.read([_by_ai_sdk(**returned)])
        assert (message.text, message.error) == (text, False)


def test_a_whole_response_yields_its_message() -> None:
    assert messages.read({"id": "x", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}}]}) == (
        Message(role="assistant", text="Hi"),
    )


def test_the_ai_sdk_s_answer_states_no_role_and_a_placeholder_is_no_result() -> None:
    call = {"toolCallId": "c", "toolName": "look_up", "args": {"id": 1}}
    assert messages.read({"text": "", "toolCalls": [call]}) == (
        Message(role="assistant", tool_calls=(ToolCall(name="look_up", arguments={"id": 1}, call_id="c"),)),
    )
    assert messages.read({"text": "A", "toolCalls": [], "object": {"n": 1}})[0].text == '{"n": 1}'
    held = [{"role": "assistant", "content": "[tool: look_up]"}, {"role": "tool", "content": "[tool-result: look_up]"}]
    assert messages.read(held) == ()


def test_a_result_that_was_left_as_an_object_becomes_its_json() -> None:
    (message,) = messages.read([{"role": "tool", "tool_call_id": "c", "content": {"rows": 3}}])
    assert message.text == '{"rows": 3}'


def test_a_result_that_is_a_schema_becomes_its_json() -> None:
    columns: Json = [{"name": "order_id", "type": ["string", "null"]}]
    (message,) = messages.read([{"role": "tool", "tool_call_id": "c", "content": columns}])
    assert json.loads(message.text) == columns


def test_lists_of_available_tools_are_not_messages() -> None:
    assert messages.read([{"role": "tool", "content": {"type": "function", "function": {"name": "f"}}}]) == ()


@pytest.mark.parametrize(
    ("details", "wanted"),
    [
        ({"prompt_tokens": 47, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": 4}},
         Usage(input=47, output=12, cached_input=4)),
        ({"input": 43, "output": 12, "total": 59, "input_cache_read": 4, "output_reasoning": 0},
         Usage(input=47, output=12, cached_input=4)),
        ({"input": 43, "output": 10, "input_cache_read": 4, "output_reasoning": 2},
         Usage(input=47, output=12, cached_input=4, reasoning_output=2)),
        ({"input": 47, "output": 12, "total": 59, "input_cache_read": 4}, Usage(input=47, output=12, cached_input=4)),
        ({"input_tokens": 43, "output_tokens": 12, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1},
         Usage(input=48, output=12, cached_input=4)),
        ({"input_tokens": 47, "output_tokens": 12, "input_tokens_details": {"cached_tokens": 4}},
         Usage(input=47, output=12, cached_input=4)),
        ({"prompt_tokens": 47, "completion_tokens": None}, Usage(input=47, output=None)),
        ({"input_tokens": None, "output_tokens": 12}, Usage(input=None, output=12)),
        ({"input": 47}, Usage(input=47, output=None)), ({"input": 47, "total": 47}, Usage(input=47, output=0)),
        ({"total": 5}, None), ({}, None), ("text", None), (None, None), ({"input": -1}, None),
    ],
)  # fmt: skip
def test_usage_is_read_in_every_vendor_s_words(details: Json, wanted: Usage | None) -> None:
    assert from_details(details) == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (3, 3),
        (3.0, 3),
        ("3", 3),
        (3.5, None),
        (-1, None),
        (True, None),
        (None, None),
        ("x", None),
        (float("nan"), None),
        (1e30, None),
    ],
)
def test_a_count_is_a_count_or_unknown(value: object, wanted: int | None) -> None:
    assert whole(value) == wanted


_PREAMBLE = {"type": "ai", "content": "Let me look.", "tool_calls": [{"name": "look_up", "args": {}, "id": "c"}]}
_RESULT = {"type": "tool", "content": "7", "tool_call_id": "c"}
_ASKED, _ANSWERED, _SILENT = (
    {"type": "human", "content": "Q"},
    {"type": "ai", "content": "A"},
    {"type": "ai", "content": ""},
)


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        ([_ASKED, _PREAMBLE, _RESULT, _ANSWERED], "A"),
        ([_ASKED, _PREAMBLE, _RESULT, _SILENT], None),
        ([_ASKED, _PREAMBLE, _RESULT], "Let me look."),
        ([_ASKED, _ANSWERED, _SILENT], "A"),  # of another agent in the same turn
        ([_ASKED, _ANSWERED, _ASKED, _SILENT], None),
        ([_ASKED, _ANSWERED, _ASKED, {**_PREAMBLE, "content": ""}], None),
        ([_ASKED, _ANSWERED, {"type": "human", "content": "TERMINATE"}], "A"),
    ],
)
def test_what_stands_before_the_last_question_or_beside_a_call_is_no_answer_where_none_follows(
    state: list[Json], answer: str | None
) -> None:
    for more in ({}, {"topic": "ships"}) if state[-1] is _SILENT or answer else ({},):
        assert messages.last_content({"messages": state, **more}, "assistant") == answer


def test_a_state_in_which_nothing_is_said_says_nothing_and_one_that_holds_more_is_itself() -> None:
    asks = {"type": "ai", "content": "", "tool_calls": [{"name": "look_up", "args": {}, "id": "c"}]}
    for held in ({"messages": [asks]}, [asks], asks, {"messages": [asks], "remaining": None}):
        assert messages.last_content(held, "assistant") is None
        assert messages.stated_in(json.dumps(held), "assistant") is None
    kept = {"messages": [asks], "topic": "ships"}
    assert messages.last_content(kept, "assistant") == kept
    assert messages.last_content({"messages": [asks], "structured_response": {"n": 1}}, "assistant") == {"n": 1}
    prose = {"type": "ai", "content": 'Returning structured response: {"n":1}'}
    assert messages.last_content({"messages": [prose], "structuredResponse": {"n": 1}}, "assistant") == {"n": 1}
    assert messages.last_content({"messages": [prose]}, "assistant") == '{"n":1}'
    for value in ("{}", {"n": 1}, {"messages": []}, [1]):
        assert messages.stated_in(value, "user") == value


def test_tools_that_anthropic_runs_are_called_and_answered_in_one_message() -> None:
    refused = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    parts: list[Json] = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "pike"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": refused},
        {"type": "mcp_tool_use", "id": "m", "name": "find_fish", "server_name": "lake", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": False, "content": [{"type": "text", "text": "p"}]},
        {"type": "text", "text": "Pike."},
    ]
    said, *answers = messages.read({"role": "assistant", "content": parts})
    assert (said.text, [(call.name, call.arguments) for call in said.tool_calls]) == (
        "Pike.", [("web_search", {"query": "pike"}), ("find_fish", {})],
    )  # fmt: skip
    assert [(each.tool_call_id, each.text, each.error) for each in answers] == [
        ("s", "max_uses_exceeded", True), ("m", "p", False),
    ]  # fmt: skip
