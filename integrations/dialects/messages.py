"""Messages in any vendor's shape → ``Message``.

Known shapes: OpenAI chat and responses, Anthropic, Gemini, Bedrock, the GenAI conventions' parts, the AI SDK's parts,
LangChain (plain and ``lc``-serialised), OpenInference's dotted keys, Haystack's and LlamaIndex's printed objects.
"""

from __future__ import annotations

from sidejudge.scoring.trace.span import Json, Message

from . import message_parts, pyrepr, unwrap

ROLES = {
    "user": "user", "assistant": "assistant", "system": "system", "tool": "tool",
    "human": "user", "ai": "assistant", "model": "assistant", "function": "tool", "developer": "system",
    "humanmessage": "user", "aimessage": "assistant", "systemmessage": "system", "toolmessage": "tool",
    "aimessagechunk": "assistant", "chatbot": "assistant", "usermessage": "user", "assistantmessage": "assistant",
    "functionexecutionresultmessage": "tool",
}  # fmt: skip
_MORE = frozenset({"tool_call_id", "name", "_name", "status", "additional_kwargs"})
"""Fields of a message beside its content and its calls."""
_CONTENTS = ("content", "parts", "_content", "blocks", "contents")
_LISTS = ("messages", "choices", "generations", "replies", "candidates", "output", "contents", "input", "items")
"""Keys under which a request, a response or a state holds its messages, in order of preference."""

MAX_DEPTH = 6


def read(value: Json) -> tuple[Message, ...]:
    """The messages in a decoded content; empty when it holds none."""
    if value is None:
        return ()
    found: list[Message] = []
    _read(value, found, MAX_DEPTH)
    return tuple(found)


def content(value: unwrap.Content) -> Json:
    """A message's content: text, or a list of parts, as one or as JSON text; a text that is other JSON is the text."""
    found = unwrap.decoded(value)
    parts = isinstance(found, list) and bool(found) and all(isinstance(part, dict) for part in found)
    return found if parts else unwrap.plain(value)


def last_text(messages: tuple[Message, ...], role: str) -> str | None:
    """Text of the last message of a role that has one."""
    for message in reversed(messages):
        if message.role == role and message.text:
            return message.text
    return None


def last_content(value: Json, role: str) -> Json:
    """The last content of a role, where the value holds messages (a state, a request, an answer); else the value.

    A value of messages alone, none of which has text of the role, gives nothing; an agent's state gives the answer in
    the requested form.
    """
    if not isinstance(value, (dict, list)):
        return value
    found = read(unwrap.decoded(value))
    text = last_text(found, role)
    if text is not None or not found:
        return value if text is None else text
    if isinstance(value, list):
        return None
    others = {key: held for key, held in value.items() if key not in _LISTS and held not in (None, "", [], {})}
    if role == "assistant" and "structured_response" in others:
        return others["structured_response"]
    return None if not others or _role(_plain(value)) is not None else value


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


def _read(value: Json, found: list[Message], depth: int) -> None:
    if depth <= 0:
        return
    if isinstance(value, dict):
        _read_map(value, found, depth)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict) or not _pair(item, found):
                _read(item, found, depth - 1)
    elif isinstance(value, str) and value[:1].isalpha() and "(" in value[:40]:
        _read(_printed(value), found, depth)


def _pair(item: Json, found: list[Message]) -> bool:
    """LangChain takes messages as pairs too: ``["user", "Where is it?"]``."""
    match item:
        case [str(role), str(text)] if (known := ROLES.get(role)) is not None:
            found.append(Message(role=known, text=text))
            return True
    return False


def _printed(text: str) -> Json:
    try:
        return pyrepr.read(text)
    except (pyrepr.UnreadableError, RecursionError):
        return None


def _read_map(item: dict[str, Json], found: list[Message], depth: int) -> None:
    if "lc" in item or "data" in item or "message.role" in item:
        item = _plain(item)
    if item.get("type") in ("function_call", "function_call_output"):
        found.append(_responses_item(item))
        return
    named = item.get("role")
    role = (ROLES.get(named) if isinstance(named, str) else None) or _role(item)
    if role is not None:
        _message(item, role, found)
        return
    for key in ("message", "update"):
        if isinstance(inner := item.get(key), dict):
            _read(inner, found, depth - 1)
            return
    if isinstance(candidate := item.get("content"), dict) and "parts" in candidate:  # one of Gemini's
        _read(candidate, found, depth - 1)
        return
    for key in _LISTS:
        if isinstance(held := item.get(key), list):
            _read(held, found, depth - 1)
            return


def _plain(item: dict[str, Json]) -> dict[str, Json]:
    """A message that a framework has serialised, as the map that it was."""
    if item.get("lc") and isinstance(kwargs := item.get("kwargs"), dict):
        path = item.get("id")
        name = path[-1] if isinstance(path, list) and path else ""
        return {"type": str(name).lower(), **kwargs}
    if isinstance(data := item.get("data"), dict) and "content" in data and isinstance(item.get("type"), str):
        return {**data, "type": item["type"]}
    return _undotted(item) if "message.role" in item else item


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
    return None


def _responses_item(item: dict[str, Json]) -> Message:
    """OpenAI's responses put calls and their outputs beside the messages, not into them."""
    call_id = message_parts.string(item.get("call_id")) or message_parts.string(item.get("id"))
    if item["type"] == "function_call":
        return Message(role="assistant", tool_calls=message_parts.calls([item | {"id": call_id}]))
    failed = item.get("is_error") is True
    return Message(role="tool", text=message_parts.joined(item.get("output")), tool_call_id=call_id, error=failed)


def _message(item: dict[str, Json], role: str, found: list[Message]) -> None:
    """The message, and what its parts answer behind it."""
    content = next((item[key] for key in _CONTENTS if item.get(key)), None)
    if role == "tool" and message_parts.is_definition(content):
        return
    listed = item.get("tool_calls") or item.get("function_call")
    calls = message_parts.calls(_calls(item)) if listed else ()
    text = content or ""
    answers: list[Message] = []
    if not isinstance(text, str):
        parts: list[Json] = content if isinstance(content, list) else [content]
        texts, answers, others = message_parts.split(parts)
        calls = calls or (message_parts.calls(others, mixed=True) if others else ())
        if role == "tool" and not texts and not answers:
            texts = [message_parts.joined(content)]  # a result that was left as an object
        text = "\n".join(texts)
    if text or calls or not answers:
        if _MORE.isdisjoint(item):
            found.append(Message(role=role, text=text, tool_calls=calls))
        else:
            found.append(Message(
                role=role, text=text, tool_calls=calls, tool_call_id=_answered(item),
                name=message_parts.string(item.get("name")) or message_parts.string(item.get("_name")),
                error=item.get("status") == "error",
            ))  # fmt: skip
    found += answers


def _answered(item: dict[str, Json]) -> str | None:
    """The id of the call that a message answers; LlamaIndex keeps it with what else the API knows."""
    others = item.get("additional_kwargs")
    held = others.get("tool_call_id") if isinstance(others, dict) else None
    return message_parts.string(item.get("tool_call_id")) or message_parts.string(held)


def _calls(item: dict[str, Json]) -> list[Json]:
    """A message's list of calls; before there was one, the one call that it made."""
    listed, legacy = item.get("tool_calls"), item.get("function_call")
    return listed if isinstance(listed, list) else [legacy] if isinstance(legacy, dict) else []
