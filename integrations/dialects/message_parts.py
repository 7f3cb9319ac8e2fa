"""Parts of a message in any vendor's shape: its texts, the tool calls it makes, the tool calls it answers."""

from __future__ import annotations

import json

from scoring.span import Json, Message, ToolCall

from . import pyrepr, unwrap


def is_definition(content: Json) -> bool:
    """LangChain's handler lists the tools a model may use as if they were messages from tools."""
    return isinstance(content, dict) and content.get("type") == "function" and "function" in content


def text_of(part: Json) -> str | None:
    """A part's text, None for one that is something else: a call, an image, the model's reasoning."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or answer(part):
        return None
    kind = part.get("type")
    if kind not in (None, "text", "output_text", "input_text") or "function_call" in part:
        return None
    text = part.get("text", part.get("content"))
    if isinstance(text, dict):  # some clients wrap once more: {"type": "text", "text": {"value": …}}
        text = text.get("value")
    return text if isinstance(text, str) else None


def answer(part: dict[str, Json]) -> Message | None:
    """A part that answers a tool call, whoever's message it travels in."""
    for key in ("function_response", "functionResponse", "toolResult", "tool_result", "tool_call_result"):
        if isinstance(inner := part.get(key), dict):
            part = {"type": "tool_result", **inner}
    printed = part.get(pyrepr.CLASS) == "ToolCallResult"
    if not printed and part.get("type") not in ("tool_call_response", "tool_result", "tool-result"):
        return None
    origin = part.get("origin")  # Haystack's: the call itself
    origin = origin if isinstance(origin, dict) else {}
    keys = ("response", "result", "output", "content")
    return Message(
        role="tool",
        text=joined(next((part[key] for key in keys if part.get(key) is not None), None)),
        tool_call_id=_first(part, "id", "tool_use_id", "toolUseId", "toolCallId", "tool_call_id")
        or string(origin.get("id")),
        name=_first(part, "name", "toolName") or string(origin.get("tool_name")),
        error=part.get("error") is True or part.get("is_error") is True or part.get("status") == "error",
    )


_CALL_PARTS = ("tool_call", "tool_use", "tool-call", "function_call", "server_tool_call")
"""Compared, not looked up: what stands there may be anything, a list too."""


def calls(items: list[Json], *, mixed: bool = False) -> tuple[ToolCall, ...]:
    """Tool calls in a list of them or, when it is ``mixed``, those parts of a content that say they are calls."""
    found = []
    for item in items:
        if not isinstance(item, dict):
            continue
        call = item
        for key in ("function_call", "functionCall", "toolUse", "tool_call"):
            if isinstance(inner := item.get(key), dict):
                call = {"type": "tool_call", **inner}
        if mixed and call.get("type") not in _CALL_PARTS and call.get(pyrepr.CLASS) != "ToolCall":
            continue
        function = call.get("function")
        body = function if isinstance(function, dict) else call
        name = _first(body, "name", "tool_name", "toolName")
        if not name:
            continue
        raw = next((body[key] for key in ("arguments", "args", "input", "tool_kwargs") if key in body), None)
        call_id = _first(call, "id", "tool_call_id", "toolCallId", "toolUseId", "call_id")
        found.append(ToolCall(name=name, arguments=unwrap.arguments(raw), call_id=call_id))
    return tuple(found)


def joined(value: Json) -> str:
    """A tool's answer as text: the texts of its parts, or the JSON of what has none."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, dict) and "text" in part for part in value):
        return "\n".join(str(part["text"]) for part in value if isinstance(part, dict))
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _first(item: dict[str, Json], *keys: str) -> str | None:
    return next((found for key in keys if (found := string(item.get(key)))), None)


def string(value: Json) -> str | None:
    """The value if it is a text with something in it."""
    return value if isinstance(value, str) and value else None
