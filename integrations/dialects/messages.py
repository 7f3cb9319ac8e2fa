"""Messages in any vendor's shape → ``Message``.

Known shapes: OpenAI chat and responses, Anthropic, Gemini, Bedrock, the GenAI conventions' parts, the AI SDK's parts,
LangChain (plain and ``lc``-serialised), Haystack's and LlamaIndex's printed objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from scoring.span import Json, Message, ToolCall

from . import pyrepr, unwrap

_ROLES = {
    "human": "user", "ai": "assistant", "model": "assistant", "function": "tool", "developer": "system",
    "humanmessage": "user", "aimessage": "assistant", "systemmessage": "system", "toolmessage": "tool",
    "aimessagechunk": "assistant", "chatbot": "assistant",
}  # fmt: skip
_KNOWN = frozenset({"user", "assistant", "system", "tool"})
_LISTS = ("messages", "choices", "generations", "replies", "candidates", "output", "contents", "input")
"""Keys under which a request, a response or a state holds its messages, in order of preference."""

MAX_DEPTH = 6


def read(value: Json) -> tuple[Message, ...]:
    """The messages in a decoded content; empty when it holds none."""
    return tuple(_read(value, MAX_DEPTH))


def last_text(messages: tuple[Message, ...], role: str) -> str | None:
    """Text of the last message of a role that has one."""
    return next((m.text for m in reversed(messages) if m.role == role and m.text), None)


def system_text(messages: tuple[Message, ...]) -> str | None:
    """Text of the first system message."""
    return next((m.text for m in messages if m.role == "system" and m.text), None)


def _read(value: Json, depth: int) -> Iterator[Message]:
    if depth <= 0:
        return
    if isinstance(value, str) and value[:1].isalpha() and "(" in value[:40]:
        value = _printed(value)
    if isinstance(value, list):
        for item in value:
            yield from _read(item, depth - 1)
    elif isinstance(value, dict):
        yield from _read_map(value, depth)


def _printed(text: str) -> Json:
    try:
        return pyrepr.read(text)
    except (pyrepr.UnreadableError, RecursionError):
        return None


def _read_map(item: dict[str, Json], depth: int) -> Iterator[Message]:
    if item.get("lc") and isinstance(kwargs := item.get("kwargs"), dict):
        path = item.get("id")
        name = path[-1] if isinstance(path, list) and path else ""
        item = {"type": str(name).lower(), **kwargs}
    if item.get("type") in {"function_call", "function_call_output"}:
        yield from _responses_item(item)
        return
    role = _role(item)
    if role is not None:
        yield from _message(item, role)
        return
    for key in ("message", "update"):
        if isinstance(inner := item.get(key), dict):
            yield from _read(inner, depth - 1)
            return
    for key in _LISTS:
        if isinstance(held := item.get(key), list):
            yield from _read(held, depth - 1)
            return


def _role(item: dict[str, Json]) -> str | None:
    for key in ("role", "_role", "type"):
        named = item.get(key)
        if isinstance(named, str):
            role = _ROLES.get(named.lower(), named.lower())
            if role in _KNOWN:
                return role
    return None


def _responses_item(item: dict[str, Json]) -> Iterator[Message]:
    """OpenAI's responses put calls and their outputs beside the messages, not into them."""
    call_id = _string(item.get("call_id")) or _string(item.get("id"))
    if item["type"] == "function_call":
        yield Message(role="assistant", tool_calls=_calls([item | {"id": call_id}]))
    else:
        yield Message(role="tool", text=_text(item.get("output")), tool_call_id=call_id)


def _message(item: dict[str, Json], role: str) -> Iterator[Message]:
    content = next((item[key] for key in ("content", "parts", "_content", "blocks") if item.get(key)), None)
    parts: list[Json] = content if isinstance(content, list) else [content]
    texts = [text for text in map(_part_text, parts) if text]
    answers = [answer for part in parts if isinstance(part, dict) and (answer := _answer(part))]
    listed = item.get("tool_calls")
    legacy = item.get("function_call")
    calls = _calls(listed if isinstance(listed, list) else [legacy] if isinstance(legacy, dict) else [])
    calls += _calls([part for part in parts if isinstance(part, dict)], among=parts) if not calls else ()
    call_id = _string(item.get("tool_call_id"))
    name = _string(item.get("name")) or _string(item.get("_name"))
    if role == "tool" and _is_definition(content):
        return
    if texts or calls or not answers:
        yield Message(
            role=role, text="\n".join(texts), tool_calls=calls, tool_call_id=call_id, name=name,
            error=item.get("status") == "error",
        )  # fmt: skip
    yield from answers


def _is_definition(content: Json) -> bool:
    """LangChain's handler lists the tools a model may use as if they were messages from tools."""
    return isinstance(content, dict) and content.get("type") == "function" and "function" in content


def _part_text(part: Json) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or _answer(part):
        return None
    kind = part.get("type")
    if kind not in {None, "text", "output_text", "input_text"} or "function_call" in part:
        return None
    text = part.get("text", part.get("content"))
    if isinstance(text, dict):  # some clients wrap once more: {"type": "text", "text": {"value": …}}
        text = text.get("value")
    return text if isinstance(text, str) else None


def _answer(part: dict[str, Json]) -> Message | None:
    """A part that answers a tool call, whoever's message it travels in."""
    for key in ("function_response", "functionResponse", "toolResult", "tool_result"):
        if isinstance(inner := part.get(key), dict):
            part = {"type": "tool_result", **inner}
    printed = part.get(pyrepr.CLASS) == "ToolCallResult"
    if not printed and part.get("type") not in {"tool_call_response", "tool_result", "tool-result"}:
        return None
    origin = part.get("origin") if printed else None
    origin = origin if isinstance(origin, dict) else {}
    keys = ("response", "result", "output", "content")
    return Message(
        role="tool",
        text=_text(next((part[key] for key in keys if part.get(key) is not None), None)),
        tool_call_id=_first(part, "id", "tool_use_id", "toolUseId", "toolCallId", "tool_call_id")
        or _string(origin.get("id")),
        name=_first(part, "name", "toolName") or _string(origin.get("tool_name")),
        error=part.get("error") is True or part.get("is_error") is True or part.get("status") == "error",
    )


_CALL_PARTS = frozenset({"tool_call", "tool_use", "tool-call", "function_call", "server_tool_call"})


def _calls(items: list[Json], among: list[Json] | None = None) -> tuple[ToolCall, ...]:
    """Tool calls in a list of them or, with ``among``, those parts of a content that are calls."""
    found = []
    for item in items:
        if not isinstance(item, dict):
            continue
        call = item
        for key in ("function_call", "functionCall", "toolUse", "tool_call"):
            if isinstance(inner := item.get(key), dict):
                call = {"type": "tool_call", **inner}
        if among is not None and call.get("type") not in _CALL_PARTS and call.get(pyrepr.CLASS) != "ToolCall":
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


def _text(value: Json) -> str:
    """A tool's answer as text: the texts of its parts, or the JSON of what has none."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, dict) and "text" in part for part in value):
        return "\n".join(str(part["text"]) for part in value if isinstance(part, dict))
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _first(item: dict[str, Json], *keys: str) -> str | None:
    return next((found for key in keys if (found := _string(item.get(key)))), None)


def _string(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None
