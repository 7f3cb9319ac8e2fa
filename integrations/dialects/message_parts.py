"""Parts of a message in any vendor's shape: its texts, the tool calls it makes, the tool calls it answers."""

from __future__ import annotations

import json

from sidejudge.scoring.trace.span import Json, Message, ToolCall

from . import pyrepr, unwrap


def is_definition(content: Json) -> bool:
    """LangChain's handler lists the tools a model may use as if they were messages from tools."""
    return isinstance(content, dict) and content.get("type") == "function" and "function" in content


_ANSWERS = ("function_response", "functionResponse", "toolResult", "tool_result", "tool_call_result", "toolResponse")
_CALLS = ("function_call", "functionCall", "toolUse", "tool_call", "toolRequest")
"""Keys under which a part holds what it is, where it does not name its type."""
_ANY_ANSWER, _ANY_CALL = frozenset(_ANSWERS), frozenset(_CALLS)
_NO_TEXT = frozenset((*_ANSWERS, *_CALLS, pyrepr.CLASS))
"""Keys by which a part that calls itself a text may be more."""

_ARGUMENTS = ("arguments", "args", "input", "tool_kwargs", "toolInput", "tool_input", "parameters")
_TEXT_PARTS = (None, "text", "output_text", "input_text")
_ANSWER_PARTS = ("tool_call_response", "tool_result", "tool-result")
_CALL_PARTS = ("tool_call", "tool_use", "tool-call", "function_call", "server_tool_call")
"""Compared, not looked up: what stands there may be anything, a list too."""


def split(parts: list[Json]) -> tuple[list[str], list[Message], list[Json]]:
    """The texts of a content's parts, the messages that answer tool calls, and which parts may be such calls.

    An answer is one whoever's message it travels in.
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
    text = part["text"] if "text" in part else part.get("content")
    if isinstance(text, dict):  # some clients wrap once more: {"type": "text", "text": {"value": …}}
        text = text.get("value")
    return text if isinstance(text, str) else None


def _answer(part: dict[str, Json]) -> Message | None:
    if not _ANY_ANSWER.isdisjoint(part):
        for key in _ANSWERS:
            if isinstance(inner := part.get(key), dict):
                part = {"type": "tool_result", **inner}
    if part.get("type") not in _ANSWER_PARTS and part.get(pyrepr.CLASS) != "ToolCallResult":
        return None
    origin = part.get("origin")  # Haystack's: the call itself
    origin = origin if isinstance(origin, dict) else {}
    keys = ("response", "result", "output", "content")
    return Message(
        role="tool",
        text=joined(next((part[key] for key in keys if part.get(key) is not None), None)),
        tool_call_id=_first(part, "id", "tool_use_id", "toolUseId", "toolCallId", "tool_call_id", "ref")
        or string(origin.get("id")),
        name=_first(part, "name", "toolName") or string(origin.get("tool_name")),
        error=part.get("error") is True or part.get("is_error") is True or part.get("status") == "error",
    )


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
        if not name:
            continue
        raw = None
        for key in _ARGUMENTS:
            if key in body:
                raw = body[key]
                break
        call_id = _first(call, "call_id", "id", "tool_call_id", "toolCallId", "toolUseId", "ref")
        found.append(ToolCall(name=name, arguments=unwrap.arguments(raw), call_id=call_id))
    return tuple(found)


def _is_call(part: dict[str, Json], function: Json) -> bool:
    """Whether a part is marked as a call; OpenAI's list of calls stands in the content's place with some clients."""
    if part.get("type") == "function":
        return isinstance(function, dict) and "arguments" in function
    if "type" not in part and "arguments" in part and "name" in part:
        return "description" not in part
    return (part.get("type") or part.get("block_type")) in _CALL_PARTS or part.get(pyrepr.CLASS) == "ToolCall"


def joined(value: Json) -> str:
    """A tool's answer as text: the texts of its parts, or the JSON of what has none."""
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


def string(value: Json) -> str | None:
    """The value if it is a text with something in it."""
    return value if isinstance(value, str) and value else None
