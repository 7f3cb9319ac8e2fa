"""The kind of a value by its shape: a chat, an answer with tool calls, a call, documents, or a plain value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from sidejudge.integrations.contents_in_logs import CHAT
from sidejudge.integrations.dialects import messages, pyrepr, unwrap
from sidejudge.scoring.trace.span import Json, Message

from . import speech
from .words import words

_WRAPPED: Final = frozenset({"type", "value"})
_SOLE: Final = frozenset({("answer",), ("reply",), ("completion",), ("query",), ("question",)})
_AROUND: Final = ("inputs", "outputs")
_CALLED: Final = frozenset((*_AROUND, "tags", "metadata", "kwargs"))
_PARTS: Final = ("content", "parts")
_CALLS: Final = ("tool_calls", "toolCalls", "function_calls", "tool_call", "toolCall")
_CALL_NAMES: Final = ("name", "tool_name", "toolName", "function", "tool")
_CALL_ARGUMENTS: Final = (
    "arguments", "args", "input", "toolInput", "tool_input", "tool_kwargs", "kwargs", "parameters",
)  # fmt: skip
_TEXTS: Final = (
    "text", "content", "output", "answer", "response", "message", "result", "completion", "generated_text",
    "outputText", "output_text", "generation",
)  # fmt: skip
_DOCUMENT_TEXTS: Final = ("content", "text", "page_content", "document", "chunk", "passage", "body")
_PRINTED: Final = re.compile(r"[A-Z]\w*\(\w+=")
"""How an object of Python begins that was printed, often cut short: ``StopEvent(result=…``."""
_EMPTY: Final = frozenset({"{}", "[]", '""', "null", "None"})
_DESCRIBING: Final = frozenset({
    "role", "type", "id", "index", "object", "model", "name", "finish_reason", "finishReason", "stop_reason", "status",
    "created", "system_fingerprint", "service_tier", "mime_type", "role_name", "usage", "generationInfo",
    "generation_info", "response_metadata", "llm_output",
})  # fmt: skip
"""Keys whose texts describe a message and are none of it."""
_ENVELOPE: Final = frozenset({
    "usage", "finish_reason", "finishReason", "stop_reason", "object", "created", "choices", "candidates", "messages",
    "done", "generation_id",
})  # fmt: skip
"""Keys of a body that a server returned; a model's answer in JSON has none."""
_LONGEST: Final = 1 << 20
_STATE_DEPTH = 4
_ASKED: Final = ("prompt", "question", "query", "input", "task", "message")
_INSTRUCTED: Final = (
    "system", "instructions", "system_prompt", "systemPrompt", "system_instruction", "systemInstruction", "preamble",
)  # fmt: skip
_AROUND_IT: Final = ("config", "generation_config", "generationConfig", "kwargs")
"""Maps of a request's settings, where some clients put the instructions."""
_SETTINGS: Final = (
    "model", "temperature", "max_tokens", "stream", "top_p", "options", "chat_history", "seed", "format", "raw",
    "tools",
)  # fmt: skip
_REQUEST: Final = frozenset((*_ASKED, *_INSTRUCTED, *_SETTINGS))
_HISTORY: Final = ("history",)
_DEEPEST, _WIDEST = 4, 40
"""Levels of maps that are looked through for a chat, and entries of one."""


class Seen(Struct, frozen=True, kw_only=True):
    """A value without what a client wraps around every value, what it is as JSON, and the messages in it, if a chat."""

    value: Json
    read: Json
    messages: tuple[Message, ...] = ()


def unwrapped(read: Json) -> Json:
    """A value without the type that a client states with it: of ``{"type": "json", "value": {…}}`` the map."""
    typed = isinstance(read, dict) and read.keys() == _WRAPPED and isinstance(read["type"], str)
    return read["value"] if typed and isinstance(read, dict) else read


def look(given: unwrap.Content) -> Seen | None:
    """The kind of a value; None for a missing, empty or redacted value, and for a printed object."""
    value = _bare(unwrap.plain(given))
    read = unwrap.decoded(value)
    if (inside := unwrapped(read)) is not read:
        value = inside
        read = unwrap.decoded(value)
    if isinstance(read, list) and read and all(isinstance(item, str) for item in read):
        parts = [unwrap.decoded(item) for item in read]
        if all(isinstance(part, dict) for part in parts):  # an attribute holds no list of maps, but one of their JSON
            value = read = parts
        else:
            read = "\n".join(map(str, read))
            value = read if isinstance(value, list) or len(parts) == 1 else value  # a text of several is JSON itself
    if isinstance(read, dict) and len(read) == 1 and words(next(iter(read)))[-1:] in _SOLE:
        value = next(iter(read.values()))
        read = unwrap.decoded(value)
    if isinstance(read, dict) and read.keys() <= _CALLED and len(inner := [k for k in _AROUND if k in read]) == 1:
        value = read[inner[0]]  # LangChain's callbacks
        read = unwrap.decoded(value)
    if read is None or read in ("", [], {}) or (isinstance(read, str) and not read.strip()):
        return None
    if not isinstance(read, dict | list):
        stated = messages.stated(read) if isinstance(read, str) and CHAT.search(read[:400]) else ()
        if not stated and isinstance(read, str) and _PRINTED.match(read):
            text = _printed_text(read)
            return None if text is None else Seen(value=text, read=text)
        return Seen(value=value, read=read, messages=stated)
    return Seen(value=value, read=read, messages=_chat(read, value))


def _printed_text(printed: str) -> str | None:
    """The only text of an object of Python's that was printed whole: ``AgentRunResult(output='On its way.')``."""
    held = pyrepr.printed(printed)
    parts = held.get("parts") if isinstance(held, dict) else None
    given = (
        asked({key: value for key, value in held.items() if key != pyrepr.CLASS}) if isinstance(held, dict) else None
    )
    return given[0] if given else sole_text(parts or held)


def is_state(value: Json, depth: int = _STATE_DEPTH) -> bool:
    """Whether a value is a map of maps of maps: the state of a program, not what somebody asked of it."""
    if not isinstance(value, dict):
        return False
    return depth == 1 or any(is_state(held, depth - 1) for held in value.values())


def held_text(value: Json, keys: Sequence[str], depth: int = 5) -> str | None:
    """A short text under one of the keys of a map, or of the first maps in it."""
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, dict) or depth <= 0 or len(value) > _WIDEST:
        return None
    for key in keys:
        if isinstance(text := value.get(key), str) and 0 < len(text) <= 200:
            return text
    inner = (held_text(held, keys, depth - 1) for held in value.values() if isinstance(held, dict | list))
    return next((text for text in inner if text is not None), None)


def asked(value: Json) -> tuple[str, str | None] | None:
    """The prompt and the instructions of ``{"system": …, "prompt": …}``; None for another value."""
    if not isinstance(value, dict) or not value.keys() <= _REQUEST:
        return None
    text = next((held for key in _ASKED if isinstance(held := value.get(key), str) and held), None)
    return None if text is None else (text, instructions(value))


def instructions(value: Json) -> str | None:
    """The instructions in the body of a request, which stand beside its messages: a text, or parts of one."""
    if not isinstance(value, dict):
        return None
    settings = [inner for key in _AROUND_IT if isinstance(inner := value.get(key), dict)]
    for held in (held for body in (value, *settings) for key in _INSTRUCTED if (held := body.get(key))):
        if isinstance(held, str):
            return held
        content = held.get("parts", [held]) if isinstance(held, dict) else held
        if (text := messages.system_text(messages.read({"role": "system", "content": content}))) is not None:
            return text
    return None


def _bare(value: Json) -> Json:
    """The text inside a quoted JSON string. It may be JSON itself, and is not decoded further."""
    return unwrap.from_json(value) if isinstance(value, str) and value[:1] == '"' and value[-1:] == '"' else value


def _chat(value: Json, given: Json) -> tuple[Message, ...]:
    if _reads_like_chat(given if isinstance(given, str) else messages.joined(value)):
        found = messages.stated(value)
        if found and (not isinstance(value, list) or len(found) >= len(value)):
            return found
        if found:  # what some of them say stands under another key
            return max(found, speech.history(value), key=len)
        nested = _nested(value, _DEEPEST)
        if len(nested) == 1:
            return nested[0]
    stated = given if isinstance(given, str) else str(value)
    if speech.SPOKEN.search(stated) and asked(value) is None and (spoken := speech.history(value)):
        return spoken
    answered = _answer_with_calls(value)
    return () if answered is None else (answered,)


def may_be_chat(value: unwrap.Content) -> bool:
    """Whether an attribute of any name may hold a chat: JSON, a list or a map with the parts of every chat."""
    if isinstance(value, str):
        return value[:1] in {"[", "{"} and _reads_like_chat(value)
    return isinstance(value, list | dict) and _reads_like_chat(str(value))


def _reads_like_chat(text: str) -> bool:
    return len(text) <= _LONGEST and (CHAT.search(text) or speech.SPOKEN.search(text)) is not None


def _nested(value: Json, depth: int) -> list[tuple[Message, ...]]:
    """The chats in a map of maps: what a step was given stands under the names of its parameters."""
    if not isinstance(value, dict) or depth <= 0 or len(value) > _WIDEST:
        return []
    found = []
    for key, held in value.items():
        if isinstance(held, dict | list):
            inner = messages.stated(held)
            if inner and words(key)[-1:] == _HISTORY:
                inner = _with_turn(inner, value)
            found += [inner] if inner else _nested(held, depth - 1)
    return found


def _with_turn(history: tuple[Message, ...], beside: dict[str, Json]) -> tuple[Message, ...]:
    """The history of a chat with the turn that stands beside it: ``{"history": […], "question": …, "answer": …}``."""
    asking = next((key for key in _ASKED if isinstance(beside.get(key), str) and beside[key]), None)
    if asking is None or history[-1].role != "assistant":
        return history
    replied = next((text for key in _TEXTS if key != asking and isinstance(text := beside.get(key), str)), "")
    turn = Message(role="user", text=str(beside[asking])), Message(role="assistant", text=replied)
    if history[-1].text == replied or (not replied and messages.last_text(history, "user") == turn[0].text):
        return history  # which some clients keep with the turn in it
    return history + (turn if replied else turn[:1])


def _answer_with_calls(value: Json) -> Message | None:
    """An answer whose calls stand beside its text: ``{"text": "", "toolCalls": […]}``; or a list of calls alone."""
    if isinstance(value, list):
        calls = messages.calls(value) if value and all(map(is_call, value)) else ()
        return Message(role="assistant", tool_calls=calls) if calls else None
    if not isinstance(value, dict):
        return None
    for key in _CALLS:
        held = value.get(key)
        listed: list[Json] = held if isinstance(held, list) else [held] if isinstance(held, dict) else []
        if calls := messages.calls(listed):
            text = next((value[name] for name in _TEXTS if isinstance(value.get(name), str)), "")
            return Message(role="assistant", text=str(text), tool_calls=calls)
    for key in _PARTS:
        held = value.get(key)
        if "role" not in value and isinstance(held, list) and held and all(map(is_call, held)):
            return Message(role="assistant", tool_calls=messages.calls(held))
    return None


def is_call(value: Json) -> bool:
    """Whether a value names a tool and what it is given; the definition of one does not."""
    if not isinstance(value, dict) or "description" in value:
        return False
    held = value.get("function")
    body = held if isinstance(held, dict) else value
    named = any(isinstance(body.get(key), str) and body[key] for key in _CALL_NAMES)
    return named and any(key in body for key in _CALL_ARGUMENTS)


def is_documents(value: Json) -> bool:
    """Whether a value is a list of texts with something beside each: an id, a score, a source."""
    if not isinstance(value, list) or not value:
        return False
    return all(
        isinstance(item, dict) and len(item) > 1 and "role" not in item
        and any(isinstance(item.get(key), str) for key in _DOCUMENT_TEXTS)
        for item in value
    )  # fmt: skip


def is_data(given: unwrap.Content) -> bool:
    """Whether a value is a list of maps, or a map, in JSON or not: of a model call that says nothing else, its chat."""
    value = unwrap.decoded(given)
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def is_texts(given: unwrap.Content) -> bool:
    """Whether a value is a list of texts, such as the pieces of an answer."""
    value = unwrap.decoded(given)
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)


def says_something(given: unwrap.Content) -> bool:
    """Whether a value holds any text other than descriptions; a message without a text holds none."""
    value = None if unwrap.without_texts(given) else unwrap.decoded(given)
    deepest = 2 * messages.MAX_DEPTH  # a message's parts lie within it
    return isinstance(value, str | dict | list) and _says(value, deepest)


def is_empty_answer(given: unwrap.Content) -> bool:
    """Whether a value is a model's message that holds nothing, or the body of a response around one."""
    match unwrapped(unwrap.decoded(given)):
        case {"role": str(role)}:
            return speech.speaker(role) == "assistant" and not says_something(given)
        case {"message": inner} | {"choices": [inner]} | {"candidates": [inner]} | {"content": inner} | [inner]:
            return is_empty_answer(inner)
    return False


def _says(value: Json, depth: int) -> bool:
    if isinstance(value, str):
        return bool(value.strip()) and value.strip() not in _EMPTY and not unwrap.removed(value)
    if depth <= 0:
        return False
    if isinstance(value, dict):
        if value.get("type") == "reasoning":  # what a model thought is no answer
            return False
        if value.get("object") == "response" and isinstance(items := value.get("output"), list):
            return _says(items, depth - 1)  # the rest repeats the request
        return any(_says(held, depth - 1) for key, held in value.items() if key not in _DESCRIBING)
    return isinstance(value, list) and any(_says(held, depth - 1) for held in value)


def of_parts(value: Json, role: str) -> tuple[Message, ...]:
    """The message whose parts a list is, for it states no role: ``[{"type": "text", "text": …}, …]``."""
    if not isinstance(value, list) or not value:
        return ()
    if not all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in value):
        return ()
    return messages.stated({"role": role, "content": value})


def sole_text(value: Json) -> str | None:
    """The only text in the body of a response that has one under a usual key: ``{"text": …, "usage": {…}}``."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        return None
    texts = [held for key in _TEXTS if isinstance(held := value.get(key), str) and held]
    return texts[0] if len(texts) == 1 else None


def joined_pieces(given: Sequence[unwrap.Content]) -> str | None:
    """The text that the events of a stream add up to: plain, or where the providers' chunks have it; None for no text.

    The first event shows which: a piece of a plain text may itself be JSON, such as a quoted word.
    """
    if isinstance(unwrap.decoded(given[0]), dict):
        texts = [_in_chunk(unwrap.decoded(each)) for each in given]
    else:
        plain = [each for each in given if isinstance(each, str) and not unwrap.removed(each)]
        quoted = all(each[:1] == each[-1:] == '"' for each in plain)
        texts = [str(_bare(each)) if quoted else each for each in plain]
    return "".join(text for text in texts if text) or None


def _in_chunk(value: Json) -> str | None:
    if not isinstance(value, dict):
        return None
    if isinstance(choices := value.get("choices"), list) and choices:
        value = choices[0]
    for _ in range(2):
        if isinstance(value, dict):
            value = next((held for key in ("delta", *_TEXTS) if (held := value.get(key)) is not None), None)
    return value if isinstance(value, str) else None


def is_blank(given: unwrap.Content) -> bool:
    """Whether a text is an empty list or map in JSON, which may be an answer, or stand for none."""
    return isinstance(given, str) and given.strip() in ("[]", "{}")


def is_envelope(value: Json) -> bool:
    """Whether a value holds more than a message, in a form that is not known: a list, or the body of a response."""
    if isinstance(value, list):
        return True
    return isinstance(value, dict) and (not _ENVELOPE.isdisjoint(value) or _reads_like_chat(messages.joined(value)))


def is_body(value: Json) -> bool:
    """Whether a value is a provider's response body. Otherwise it is an answer in JSON, written whole by the model."""
    return isinstance(value, dict) and (is_envelope(value) or sole_text(value) is not None)


def describe(given: unwrap.Content) -> str:
    """A value's shape in words, without anything of its contents but the names of its keys."""
    value = unwrap.decoded(given)
    match value:
        case str():
            return f"text of {len(value)} characters"
        case dict():
            return f"object with {_keys(value)}" if value else "empty object"
        case [dict() as first, *_]:
            return f"list of {len(value)} object{'s' * (len(value) > 1)} with {_keys(first)}"
        case list():
            return f"list of {len(value)}"
    return type(value).__name__


def _keys(value: dict[str, Json]) -> str:
    shown = ", ".join(str(key)[:40] for key in list(value)[:4])
    return f"{shown}, …" if len(value) > 4 else shown
