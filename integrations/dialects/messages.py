"""Messages in any vendor's shape → ``Message``.

Known shapes: OpenAI chat and responses, Anthropic, Gemini, Bedrock, the GenAI conventions' parts, the AI SDK's parts,
LangChain (plain and ``lc``-serialised), LangChain4j, OpenInference's dotted keys, Haystack's and LlamaIndex's printed
objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from sidejudge.scoring.trace.span import COMPLETED, Json, Message, ToolCall

from . import pyrepr, unwrap
from .span_fields import SpanFields

ROLES = {
    "user": "user", "assistant": "assistant", "system": "system", "tool": "tool",
    "human": "user", "ai": "assistant", "model": "assistant", "function": "tool", "developer": "system",
    "humanmessage": "user", "aimessage": "assistant", "systemmessage": "system", "toolmessage": "tool",
    "aimessagechunk": "assistant", "chatbot": "assistant", "usermessage": "user", "assistantmessage": "assistant",
    "functionexecutionresultmessage": "tool",
}  # fmt: skip
_LANGCHAIN4J = {"SYSTEM": "system", "USER": "user", "AI": "assistant", "TOOL_EXECUTION_RESULT": "tool"}
"""Types of its messages, of which only a user's has parts."""
_OF_CALLS = frozenset({"tool_calls", "content"})
"""Fields of an answer that calls tools, in a stream that Langfuse's client for JavaScript put together."""
_MORE = frozenset({"tool_call_id", "name", "_name", "status", "additional_kwargs"})
"""Fields of a message other than its content and its calls."""
_CONTENTS = ("content", "parts", "_content", "blocks", "contents")
_MOVED = ('[{"role": "', '[{"role":"', '[{"type": "text", "content": "', '[{"type":"text","content":"')
"""How a text begins that may be messages of the GenAI conventions, or parts of their instructions."""
_LISTS = ("messages", "choices", "generations", "replies", "candidates", "output", "contents", "input", "items")
"""Keys under which a request, a response or a state holds its messages, in order of preference."""

_ANSWERS = ("function_response", "functionResponse", "toolResult", "tool_result", "tool_call_result", "toolResponse")
_CALLS = ("function_call", "functionCall", "toolUse", "tool_call", "toolRequest")
"""Keys under which a part holds what it is, where it does not name its type."""
_ANY_ANSWER, _ANY_CALL = frozenset(_ANSWERS), frozenset(_CALLS)
_NO_TEXT = frozenset((*_ANSWERS, *_CALLS, pyrepr.CLASS))
"""Keys by which a part that calls itself a text may be more."""

_INVALID = "invalid_tool_call"
"""What LangChain calls one whose arguments are no JSON, which is carried out by nobody."""
_ARGUMENTS = ("arguments", "args", "input", "tool_kwargs", "toolInput", "tool_input", "parameters")
_TEXT_PARTS = (None, "text", "output_text", "input_text", "refusal")
_ANSWER_PARTS = ("tool_call_response", "tool_result", "tool-result", "tool_output", "server_tool_call_response")
_CALL_PARTS = (
    "tool_call", "tool_use", "tool-call", "function_call", "server_tool_call", "server_tool_use", "mcp_tool_use",
)  # fmt: skip
"""Compared, not looked up, because the value may be anything, even a list."""
_PROVIDED = "server_tool_call"
"""The GenAI conventions' part for a tool that the model's provider runs; the key of its details too."""
PROVIDED_ITEMS = ("web_search_call", "file_search_call", "code_interpreter_call", "mcp_call")
"""Such calls as OpenAI's responses have them, beside the messages. An image that was generated may be the answer."""
_MADE = ("function_call", "custom_tool_call")
_ITEMS = frozenset({*_MADE, "function_call_output", "custom_tool_call_output", *PROVIDED_ITEMS})
_UNFINISHED = ("queued", "in_progress")
"""States of OpenAI's responses whose output is not there yet."""
_LISTING = "mcp_list_tools"
"""What a server offers, which is sent as if it were a call."""

_HELD = frozenset({
    "text", "content", "response", "result", "output", _ANSWER_PARTS[-1], _PROVIDED, *_ANSWERS, *_ARGUMENTS,
})  # fmt: skip
_OF_A_TEXT = frozenset({"type", "text"})
_BY_DIFY = frozenset({"text", "finish_reason", "usage"})
"""What a step of Dify's that asks a model always returns."""
_BESIDE_BY_DIFY = frozenset({"reasoning_content", "structured_output", "files"})
"""What it may return beside its text."""
_OF_CONTENTS = ("text", *_ANSWER_PARTS, *_CALL_PARTS)
"""Types of parts that hold something; a client that is to send no contents leaves it out and sends the type."""

_OF_BURR = frozenset({"__SEQUENCE_ID", "__PRIOR_STEP"})
"""What Burr itself keeps in an application's state."""
_STRUCTURED = "Returning structured response: "
MAX_DEPTH = 6


def read(value: Json) -> tuple[Message, ...]:
    """The messages in a decoded content; empty when it holds none."""
    if value is None:
        return ()
    found: list[Message] = []
    _read(value, found, MAX_DEPTH)
    return tuple(found)


def stated(value: Json) -> tuple[Message, ...]:
    """The messages with a text or a call in a decoded content; clients also send empty ones."""
    return tuple(message for message in read(value) if message.text or message.tool_calls)


def hold_something(found: Sequence[Message]) -> bool:
    """Whether any of these messages has a text or a call, or had a content that was withheld."""
    for message in found:  # noqa: SIM110 - a generator would cost more than the look
        if message.text or message.tool_calls or message.withheld:
            return True
    return False


def content(value: unwrap.Content) -> Json:
    """A message's content: text, or a list of parts, as one or as JSON text; a text that is other JSON is the text."""
    found = unwrap.decoded(value)
    parts = isinstance(found, list) and bool(found) and all(isinstance(part, dict) for part in found)
    return found if parts else unwrap.plain(value)


def last_text(messages: Sequence[Message], role: str) -> str | None:
    """Text of the last message of a role that has one; of the assistant, in the turn with which the messages end.

    A turn is what came after the last words of the user that were answered in any way; clients send whole histories.
    What an assistant wrote beside its calls is no answer where nothing followed.
    """
    answers, answered = role == "assistant", False
    silent = answers and _ends_silent(messages)
    for message in reversed(messages):
        if message.role == role:
            if message.text and not (silent and message.tool_calls):
                return message.text
            answered = True
        elif answers and message.role != "user":
            answered = True
        elif answers and answered:
            break
    return None


def _ends_silent(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[-1].role == "assistant" and not hold_something(messages[-1:])


def says_nothing(value: Json) -> bool:
    """Whether the assistant's message with which a chat ends holds nothing at all, an image neither."""
    listed = value
    if isinstance(value, dict):
        listed = next((held for key in _LISTS if isinstance(held := value.get(key), list)), None)
    last = listed[-1] if isinstance(listed, list) and listed else None
    if not isinstance(last, dict):
        return False
    contents = [held for key in _CONTENTS if (held := _plain(last).get(key))]
    parts = [part for held in contents for part in (held if isinstance(held, list) else [held])]
    texts = all(
        isinstance(part, str) or (isinstance(part, dict) and {"text"} <= part.keys() <= _OF_A_TEXT) for part in parts
    )
    return texts and _ends_silent(read(last))


def last_content(value: Json, role: str) -> Json:
    """The last content of a role, where the value holds messages (a state, a request, an answer); else the value.

    A value of messages alone, none of which has text of the role, gives nothing; an agent's state gives the answer in
    the requested form.
    """
    if not isinstance(value, (dict, list)):
        return value
    if role == "assistant" and isinstance(value, dict) and value.get("structuredResponse") is not None:
        return value["structuredResponse"]  # LangChain JS has a message of its own say it once more, in prose
    found = read(unwrap.decoded(value))
    text = last_text(found, role)
    if text is not None or not found:
        return value if text is None else _structured(text)
    if isinstance(value, list):
        return None
    others = {
        key: held for key, held in value.items()
        if key not in _LISTS and key not in _OF_BURR and held not in (None, "", [], {})
    }  # fmt: skip
    if role == "assistant" and "structured_response" in others:
        return others["structured_response"]
    if not others or _role(_plain(value)) is not None or (role == "assistant" and says_nothing(value)):
        return None
    return value


def _structured(text: str) -> str:
    """The JSON answer that LangChain.js repeats in a message of its own; any other text unchanged."""
    held = text.removeprefix(_STRUCTURED)
    return held if held is not text and held[:1] in {"{", "["} else text


def stated_in(value: Json, role: str) -> Json:
    """The same of a value that may be JSON text: LangGraph's state is sent so, as a list of messages."""
    held = unwrap.decoded(value)
    found = last_content(held, role)
    return value if found is held else found


def system_text(messages: tuple[Message, ...]) -> str | None:
    """Text of the first system message."""
    for message in messages:
        if message.role == "system" and message.text:
            return message.text
    return None


CLAUDE_DELEGATES: Final = frozenset({"Agent", "Task"})
"""The tool by which Claude Code and the Claude Agent SDK run another agent: its name, and what it was once called.

The agent is named in its argument ``subagent_type``, and its steps stand below it.
"""


def delegated(tool: ToolCall) -> tuple[ToolCall, str | None]:
    """A hand-off, and the agent's name, if the call is one of a hand-off tool; another call unchanged."""
    if tool.name not in CLAUDE_DELEGATES:
        return tool, None
    named = tool.arguments.get("subagent_type") if isinstance(tool.arguments, dict) else None
    return replace(tool, handoff=True), unwrap.as_text(named)


def handoff_tool(agent: str) -> str:
    """The tool as which the OpenAI Agents SDK offers the model a hand-off to an agent: messages call it so."""
    return f"transfer_to_{re.sub('[^a-z0-9_]', '_', agent.lower())}"


def asked(found: tuple[Message, ...]) -> SpanFields:
    """The fields of a step that was given these messages."""
    return {"input_messages": found, "input": last_text(found, "user"), "system_prompt": system_text(found)}


def answered(found: tuple[Message, ...]) -> SpanFields:
    """The fields of a step that returned these messages."""
    return {"output_messages": found, "output": last_text(found, "assistant")}


def _read(value: Json, found: list[Message], depth: int) -> None:
    if depth <= 0:
        return
    if isinstance(value, dict):
        _read_map(value, found, depth)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                if depth > 1:
                    _read_map(item, found, depth - 1)
            elif not _pair(item, found):
                _read(item, found, depth - 1)
    elif isinstance(value, str) and value[:1].isalpha() and "(" in value[:40]:
        _read(pyrepr.printed(value), found, depth)


def _pair(item: Json, found: list[Message]) -> bool:
    """LangChain takes messages as pairs too: ``["user", "Where is it?"]``."""
    match item:
        case [str(role), str(text)] if (known := ROLES.get(role)) is not None:
            found.append(Message(role=known, text=text))
            return True
    return False


def _read_map(item: dict[str, Json], found: list[Message], depth: int) -> None:
    named = item.get("role")
    serialised = "lc" in item or "data" in item or "message.role" in item
    if serialised or (named is None and _langchain4j_role(item) is not None):
        item = _plain(item)
        named = item.get("role")
    elif found and isinstance(named, str) and named not in ROLES:
        item = _of_a_tool(item, named, found)
    if isinstance(kind := item.get("type"), str) and kind in _ITEMS:
        _responses_item(item, found)
        return
    role = (ROLES.get(named) if isinstance(named, str) else None) or _role(item)
    if role is None and item.keys() <= _OF_CALLS and isinstance(item.get("tool_calls"), list):
        role = "assistant"
    if role is None and isinstance(item.get("text"), str) and isinstance(listed := item.get("toolCalls"), list):
        item, role = {"content": joined(unwrap.answer(item)), "tool_calls": listed}, "assistant"  # the AI SDK's answer
    elif role is None and item.keys() >= _BY_DIFY and _is_of_dify(item):
        item, role = {"content": item["text"]}, "assistant"
    if role is not None:
        _message(item, role, found)
    else:
        _read_around(item, found, depth)


def _read_around(item: dict[str, Json], found: list[Message], depth: int) -> None:
    """The messages in a map that is none itself."""
    for key in ("message", "update"):
        if isinstance(inner := item.get(key), dict):
            _read(inner, found, depth - 1)
            return
    if isinstance(candidate := item.get("content"), dict) and "parts" in candidate:  # one of Gemini's
        _read(candidate, found, depth - 1)
        return
    held = next((held for key in _LISTS if isinstance(held := item.get(key), list)), [])
    _read(held, found, depth - 1)
    if item.get("object") == "response" and item.get("output") == []:  # OpenAI's agents make it of an empty stream
        found.append(Message(role="assistant", withheld=item.get("status") in _UNFINISHED))


def are_moved(content: Json) -> bool:
    """Whether a text is messages of the GenAI conventions as JSON, or the parts of their instructions.

    AWS's distribution moves ``gen_ai.input.messages`` and the like from a span into one message of a log record.
    """
    if not isinstance(content, str) or not content.startswith(_MOVED):
        return False
    held = unwrap.decoded(content)
    return isinstance(held, list) and all(map(_is_moved, held))


def _is_moved(item: Json) -> bool:
    return isinstance(item, dict) and (
        (isinstance(item.get("role"), str) and isinstance(item.get("parts"), list))
        or (item.get("type") == "text" and item.keys() == {"type", "content"})
    )


def _is_of_dify(item: dict[str, Json]) -> bool:
    """Whether the text is what a step of Dify's answered. Beside an empty one, files or an object are the answer."""
    beside = {key for key, held in item.items() if held} - _BY_DIFY
    return isinstance(item["text"], str) and beside <= (_BESIDE_BY_DIFY if item["text"] else {"reasoning_content"})


def _of_a_tool(item: dict[str, Json], named: str, found: Sequence[Message]) -> dict[str, Json]:
    """The item; one that has the name of a tool that was just called in a role's place is what the tool returned.

    So sends Langfuse's handler of LangChain for JavaScript.
    """
    asking = next((message for message in reversed(found) if message.role != "tool"), None)
    called = asking is not None and any(call.name == named for call in asking.tool_calls)
    return {**item, "role": "tool", "name": named} if called else item


def _plain(item: dict[str, Json]) -> dict[str, Json]:
    """The map behind a message that a framework has serialised."""
    if item.get("lc") and isinstance(kwargs := item.get("kwargs"), dict):
        path = item.get("id")
        name = path[-1] if isinstance(path, list) and path else ""
        return {"type": str(name).lower(), **kwargs}
    if isinstance(data := item.get("data"), dict) and "content" in data and isinstance(item.get("type"), str):
        return {**data, "type": item["type"]}
    if (role := _langchain4j_role(item)) is not None:
        parts = item.get("contents")
        texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        return {
            "role": role, "content": [*texts] or item.get("text"), "tool_calls": item.get("toolExecutionRequests"),
            "tool_call_id": item.get("id"), "name": item.get("toolName"),
            "status": "error" if item.get("isError") is True else None,
        }  # fmt: skip
    return _undotted(item) if "message.role" in item else item


def _langchain4j_role(item: dict[str, Json]) -> str | None:
    if "role" in item:
        return None
    named = item.get("type")
    return _LANGCHAIN4J.get(named) if isinstance(named, str) else None


def _undotted(item: dict[str, Json]) -> dict[str, Json]:
    """A message under the keys of OpenInference's attributes: ``message.role``, ``tool_call.function.name``."""
    body = {key.removeprefix("message."): value for key, value in item.items()}
    for key, *prefixes in (("tool_calls", "tool_call.", "function."), ("contents", "message_content.")):
        if isinstance(parts := body.get(key), list):
            for prefix in prefixes:
                parts = [{k.removeprefix(prefix): v for k, v in p.items()} for p in parts if isinstance(p, dict)]
            body[key] = parts
    return {**body, "content": body.get("content") or body.get("contents")}


def _role(item: dict[str, Json]) -> str | None:
    for key in ("role", "_role", "type"):
        named = item.get(key)
        if isinstance(named, str) and (role := ROLES.get(named) or ROLES.get(named.lower())) is not None:
            return role
    named = item.get("role")  # smolagents hands an enumeration on, which is printed: MessageRole.USER
    return ROLES.get(named.rpartition("Role.")[2].lower()) if isinstance(named, str) else None


def _responses_item(item: dict[str, Json], found: list[Message]) -> None:
    """OpenAI's responses put calls and their outputs beside the messages, not into them."""
    if item["type"] in PROVIDED_ITEMS:
        part = {"type": _PROVIDED, "id": item.get("id"), "name": item.get("name") or item["type"], _PROVIDED: item}
        _message({"content": [part]}, "assistant", found)
        return
    call_id = unwrap.as_text(item.get("call_id")) or unwrap.as_text(item.get("id"))
    if item["type"] in _MADE:
        found.append(Message(role="assistant", tool_calls=calls([item | {"id": call_id}])))
        return
    failed = item.get("is_error") is True
    found.append(Message(role="tool", text=joined(item.get("output")), tool_call_id=call_id, error=failed))


def _message(item: dict[str, Json], role: str, found: list[Message]) -> None:
    """The message, and what its parts answer behind it."""
    content = item.get("content") or item.get("parts") or next((item[key] for key in _CONTENTS if item.get(key)), None)
    if role == "tool" and _is_definition(content):
        return
    listed = item.get("tool_calls") or item.get("invalid_tool_calls") or item.get("function_call")
    made = calls(_calls_of(item)) if listed else ()
    text = content or ""
    answers: list[Message] = []
    withheld = False
    if not isinstance(text, str):
        withheld = isinstance(content, list) and _withheld(content)
        parts: list[Json] = content if isinstance(content, list) else [content]
        texts, answers, others = _split(parts)
        made = made or (calls(others, mixed=True) if others else ())
        if role == "tool" and not texts and not answers:
            texts = [joined(content)]  # a result that was left as an object
        text = "\n".join(texts)
    if not text and role == "assistant" and not made:
        text = _refusal(item)
    if unwrap.removed(text):
        text = ""
        if not made and not answers:
            return
    if text or made or not answers:
        withheld = withheld or (bool(made) and not text and all(call.arguments is None for call in made))
        if _MORE.isdisjoint(item):
            found.append(Message(role=role, text=text, tool_calls=made, withheld=withheld))
        else:
            found.append(Message(
                role=role, text=text, tool_calls=made, tool_call_id=_answered(item),
                name=unwrap.as_text(item.get("name")) or unwrap.as_text(item.get("_name")),
                error=item.get("status") == "error", withheld=withheld,
            ))  # fmt: skip
    found += answers


def _refusal(item: dict[str, Json]) -> str:
    """What a model that refuses writes beside a content that is empty, as OpenAI and LangChain send it."""
    others = item.get("additional_kwargs")
    found = item.get("refusal") or (others.get("refusal") if isinstance(others, dict) else None)
    return found if isinstance(found, str) else ""


def _withheld(content: list[Json]) -> bool:
    """Whether there are parts that hold something, and of each of them only its type was sent."""
    found = False
    for part in content:
        if isinstance(part, dict):
            if not _HELD.isdisjoint(part):
                return False
            found = found or part.get("type") in _OF_CONTENTS
    return found


def _is_empty(part: dict[str, Json]) -> bool:
    """Whether a part lacks what its type holds."""
    return part.get("type") in _OF_CONTENTS and _HELD.isdisjoint(part)


def _answered(item: dict[str, Json]) -> str | None:
    """The id of the call that a message answers; LlamaIndex keeps it with what else the API knows."""
    if (own := unwrap.as_text(item.get("tool_call_id"))) is not None:
        return own
    others = item.get("additional_kwargs")
    return unwrap.as_text(others.get("tool_call_id")) if isinstance(others, dict) else None


def _calls_of(item: dict[str, Json]) -> list[Json]:
    """A message's list of calls, including the ones that LangChain lists apart for invalid arguments.

    Before there was a list, the one call that it made.
    """
    lists = [held for key in ("tool_calls", "invalid_tool_calls") if isinstance(held := item.get(key), list)]
    legacy = item.get("function_call")
    return [call for held in lists for call in held] if lists else [legacy] if isinstance(legacy, dict) else []


def _is_definition(content: Json) -> bool:
    """LangChain's handler lists the tools a model may use as if they were messages from tools."""
    return isinstance(content, dict) and content.get("type") == "function" and "function" in content


def _split(parts: list[Json]) -> tuple[list[str], list[Message], list[Json]]:
    """The texts of a content's parts, the messages that answer tool calls, and which parts may be such calls.

    An answer counts in any role's message.
    """
    texts: list[str] = []
    answers: list[Message] = []
    others: list[Json] = []
    for part in parts:
        if isinstance(part, str):
            text: str | None = part
        elif not isinstance(part, dict):
            continue
        elif part.get("type") == "text" and _NO_TEXT.isdisjoint(part):
            text = _held(part)
        else:
            others.append(part)
            if (answered := _answer(part)) is not None:
                answers.append(answered)
                continue
            text = _text(part)
        if text:
            texts.append(text)
    return texts, answers, others


def _text(part: dict[str, Json]) -> str | None:
    """A part's text, None for one that is something else: a call, an image, the model's reasoning."""
    if part.get("type") not in _TEXT_PARTS or "function_call" in part:
        return None
    return _held(part)


def _held(part: dict[str, Json]) -> str | None:
    text = part["text"] if "text" in part else part.get("content", part.get("refusal"))
    if isinstance(text, dict):  # some clients wrap once more: {"type": "text", "text": {"value": …}}
        text = text.get("value")
    return text if isinstance(text, str) else None


def _answer(part: dict[str, Json]) -> Message | None:
    if not _ANY_ANSWER.isdisjoint(part):
        for key in _ANSWERS:
            if isinstance(inner := part.get(key), dict):
                part = {"type": "tool_result", **inner}
    kind = part.get("type")
    if kind == _PROVIDED:
        return _came_of(part)
    of_anthropic = isinstance(kind, str) and kind.endswith("_tool_result")  # web_search_tool_result, mcp_tool_result, …
    of_autogen = kind is None and "call_id" in part and "is_error" in part
    if kind not in _ANSWER_PARTS and not of_anthropic and not of_autogen and part.get(pyrepr.CLASS) != "ToolCallResult":
        return None
    origin = part.get("origin")  # Haystack's: the call itself
    origin = origin if isinstance(origin, dict) else {}
    keys = ("response", "result", "output", "content", "server_tool_call_response")
    returned, failed = _of_ai_sdk(next((part[key] for key in keys if part.get(key) is not None), None))
    return Message(
        role="tool",
        text=joined(returned),
        tool_call_id=_first(part, "id", "tool_use_id", "toolUseId", "toolCallId", "tool_call_id", "ref", "call_id")
        or unwrap.as_text(origin.get("id")),
        name=_first(part, "name", "toolName") or unwrap.as_text(origin.get("tool_name")),
        error=failed or part.get("error") is True or part.get("is_error") is True or part.get("status") == "error",
        withheld=_is_empty(part),
    )


def _came_of(part: dict[str, Json]) -> Message | None:
    """What came of a tool that the provider ran, where its call shows it; else it stands in a part of its own.

    Of most searches OpenAI states only that they are completed: then what they found is unknown, not nothing.
    """
    body = part.get(_PROVIDED)
    if not isinstance(body, dict):
        return None
    error, status = body.get("error"), body.get("status")
    failed = bool(error) or status in ("failed", "incomplete")
    returned = next((body[key] for key in ("output", "outputs", "results") if body.get(key) is not None), None)
    if not failed and returned is None and status != COMPLETED:
        return None
    unknown = not failed and returned is None
    return Message(
        role="tool", text=COMPLETED if unknown else joined(error or returned), tool_call_id=_first(part, "id"),
        name=_first(part, "name"), error=failed, withheld=unknown,
    )  # fmt: skip


def _provided_arguments(call: dict[str, Json]) -> Json:
    body = call.get(_PROVIDED)
    if not isinstance(body, dict):
        return None
    found = next((body[key] for key in ("arguments", "action") if body.get(key) is not None), None)
    return found or {key: body[key] for key in ("code", "queries") if body.get(key) is not None} or None


def _of_ai_sdk(returned: Json) -> tuple[Json, bool]:
    """What a tool returned, without the AI SDK's word for its form, and whether that word says that it failed."""
    match returned:
        case {"type": "text" | "json" | "content", "value": value}:
            return value, False
        case {"type": str(kind), "error_code": why} if kind.endswith("_tool_result_error"):  # Anthropic ran it
            return why, True
        case {"type": "error-text" | "error-json", "value": why} | {"type": "execution-denied", "reason": why}:
            return why, True
        case {"type": "execution-denied" as why}:
            return why, True
    return returned, False


def calls(items: list[Json], *, mixed: bool = False) -> tuple[ToolCall, ...]:
    """Tool calls in a list of them or, when it is ``mixed``, those parts of a content that are marked as calls."""
    found = []
    for item in items:
        if not isinstance(item, dict):
            continue
        call = item
        if not _ANY_CALL.isdisjoint(item):
            for key in _CALLS:
                if isinstance(inner := item.get(key), dict):
                    call = {"type": "tool_call", **inner}
        function = call.get("function")
        if mixed and not _is_call(call, function):
            continue
        body = function if isinstance(function, dict) else call
        name = _first(body, "name", "tool_name", "toolName")
        provided = call.get("type") == _PROVIDED
        if not name or (provided and name == _LISTING):
            continue
        raw = body.get("arguments") or next((body[key] for key in _ARGUMENTS if key in body), None)
        raw = _provided_arguments(call) if provided and raw is None else raw
        call_id = _first(call, "call_id", "id", "tool_call_id", "toolCallId", "toolUseId", "ref")
        error = _first(call, "error") if call.get("type") == _INVALID else None
        found.append(ToolCall(name=name, arguments=unwrap.arguments(raw), call_id=call_id, error=error))
    return tuple(found)


def _is_call(part: dict[str, Json], function: Json) -> bool:
    """Whether a part is marked as a call; OpenAI's list of calls stands in the content's place with some clients."""
    if part.get("type") == "function":
        return isinstance(function, dict) and "arguments" in function
    if "type" not in part and "arguments" in part and "name" in part:
        return "description" not in part
    return (part.get("type") or part.get("block_type")) in _CALL_PARTS or part.get(pyrepr.CLASS) == "ToolCall"


def joined(value: Json) -> str:
    """A tool's answer as text: the texts of its parts, or JSON where there are none."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, dict) and "text" in part for part in value):
        return "\n".join(str(part["text"]) for part in value if isinstance(part, dict))
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _first(item: dict[str, Json], *keys: str) -> str | None:
    for key in keys:
        found = item.get(key)
        if isinstance(found, str) and found:
            return found
    return None
