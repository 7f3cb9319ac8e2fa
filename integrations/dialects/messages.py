"""Messages in any vendor's shape → ``Message``.

Known shapes: OpenAI chat and responses, Anthropic, Gemini, Bedrock, the GenAI conventions' parts, the AI SDK's parts,
LangChain (plain and ``lc``-serialised), Haystack's and LlamaIndex's printed objects.
"""

from __future__ import annotations

from collections.abc import Iterator

from scoring.span import Json, Message

from . import message_parts, pyrepr, unwrap

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


def content(value: unwrap.Content) -> Json:
    """A message's content: text, or a list of parts, as one or as JSON text; a text that is other JSON is the text."""
    found = unwrap.decoded(value)
    parts = isinstance(found, list) and bool(found) and all(isinstance(part, dict) for part in found)
    return found if parts else unwrap.plain(value)


def last_text(messages: tuple[Message, ...], role: str) -> str | None:
    """Text of the last message of a role that has one."""
    return next((m.text for m in reversed(messages) if m.role == role and m.text), None)


def said(value: Json, role: str) -> Json:
    """What a role said last, where the value holds messages (a state, a request, an answer); else the value itself."""
    text = last_text(read(unwrap.decoded(value)), role) if isinstance(value, dict | list) else None
    return value if text is None else text


def said_in(value: Json, role: str) -> Json:
    """The same of a value that may be JSON text: LangGraph's state is sent so, as a list of messages."""
    found = said(unwrap.decoded(value), role)
    return found if isinstance(found, str) else value


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
            yield from _pair(item) if _is_pair(item) else _read(item, depth - 1)
    elif isinstance(value, dict):
        yield from _read_map(value, depth)


def _is_pair(item: Json) -> bool:
    """LangChain takes messages as pairs too: ``["user", "Where is it?"]``."""
    match item:
        case [str(role), str()]:
            return _ROLES.get(role, role) in _KNOWN
    return False


def _pair(item: Json) -> Iterator[Message]:
    match item:
        case [str(role), str(text)]:
            yield Message(role=_ROLES.get(role, role), text=text)


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
    elif isinstance(item.get("type"), str) and isinstance(data := item.get("data"), dict) and "content" in data:
        item = {**data, "type": item["type"]}
    if item.get("type") in ("function_call", "function_call_output"):
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
    call_id = message_parts.string(item.get("call_id")) or message_parts.string(item.get("id"))
    if item["type"] == "function_call":
        yield Message(role="assistant", tool_calls=message_parts.calls([item | {"id": call_id}]))
    else:
        yield Message(role="tool", text=message_parts.joined(item.get("output")), tool_call_id=call_id)


def _message(item: dict[str, Json], role: str) -> Iterator[Message]:
    content = next((item[key] for key in ("content", "parts", "_content", "blocks") if item.get(key)), None)
    parts: list[Json] = content if isinstance(content, list) else [content]
    texts = [text for text in map(message_parts.text_of, parts) if text]
    answers = [answer for part in parts if isinstance(part, dict) and (answer := message_parts.answer(part))]
    listed = item.get("tool_calls")
    legacy = item.get("function_call")
    calls = message_parts.calls(listed if isinstance(listed, list) else [legacy] if isinstance(legacy, dict) else [])
    calls = calls or message_parts.calls(parts, mixed=True)
    call_id = message_parts.string(item.get("tool_call_id"))
    name = message_parts.string(item.get("name")) or message_parts.string(item.get("_name"))
    if role == "tool" and message_parts.is_definition(content):
        return
    if role == "tool" and not texts and not answers:
        texts = [message_parts.joined(content)]  # a result that was left as an object
    if texts or calls or not answers:
        yield Message(
            role=role, text="\n".join(texts), tool_calls=calls, tool_call_id=call_id, name=name,
            error=item.get("status") == "error",
        )  # fmt: skip
    yield from answers
