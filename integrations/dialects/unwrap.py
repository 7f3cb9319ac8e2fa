"""Unwrap: takes a content out of the shapes in which clients send it. All dialects use these functions.

A content may come as native text, as JSON text, as JSON text inside JSON text, as a Python repr, inside
``{"args": […], "kwargs": {…}}``, ``{"input": …}``, ``{"output": {…ToolMessage…}}``, and so on. What is not one of
these shapes is returned as it came: an unknown shape is content, not an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TypeAlias, TypeGuard

import orjson
from msgspec import Struct

from sidejudge.integrations.raw import AttributeValue
from sidejudge.scoring.trace.span import Json

from . import jsontext, pyrepr

Content: TypeAlias = "Json | AttributeValue"
"""A value as it came, or one that was taken out of it."""

_BY_LITELLM = "redacted-by-litellm"
LITELLM_SWITCH = "litellm.turn_off_message_logging = False"
_MARKS = ("__REDACTED__", "[Scrubbed due to ", "<elided>")
"""How texts begin that a client puts where it removed the value; such a value is absent."""
_WHOLE_MARKS = frozenset({_BY_LITELLM, "HIDDEN:non-empty", "<REDACTED>", "[REDACTED]"})
"""Marks that are the whole text: LiteLLM's, Koog's, Claude Code's and Codex's. Prose may begin so.

``[redacted]`` is none: kept contents are read as well, where it stands for what the operator's patterns match.
"""
_LONGEST_MARK = max(map(len, _WHOLE_MARKS))
_FIRST_OF_MARKS = frozenset("<[") | {mark[0] for mark in (*_MARKS, *_WHOLE_MARKS)}

_TASK_KEYS = frozenset({"task", "input", "question", "query", "prompt", "user_input", "text", "message"})
_RETURNED = frozenset({"output", "outputs", "result", "_value", "__default__"})
"""Around what a function returned; ``outputs`` is LangSmith's in JavaScript, the last two MLflow's with smolagents and
Agenta's."""
_ANSWER_KEYS = _RETURNED | {"raw", "response", "content", "text", "return_value"}
_NONE = ("None", "null", "")
"""The text that stands for *no arguments*."""
_OBJECT = re.compile(r"<[\w.]+(?: object)?(?: at 0x[0-9a-f]+)?>")
_AT_ADDRESS = re.compile(r"<[^\s\"']+ object(?: \S+)? at 0x[0-9a-fA-F]+>")
_OF_JAVASCRIPT = re.compile(r"\[object (?!Object\])[A-Z]\w*\]")
"""How an object of a class is printed; a map, ``[object Object]``, an application may print by mistake."""
_UNANSWERED = re.compile(r'\{"(?:status": ?"(?:suspended|aborted)"|tripwire": ?\{)')
_COMMAND = frozenset({"graph", "update", "resume", "goto", "lg_name"})
_OF_MCP = frozenset({"isError", "is_error", "structuredContent", "structured_content"})
_PARTS_OF_MCP = ("text", "image", "audio", "resource", "resource_link")
"""Compared, not looked up: a tool may return content of its own, of any type."""
_OF_A_PART = frozenset({"type", "id", "annotations", "meta", "_meta", "created_at"})
_STATES = {"success": False, "error": True, "denied": True, "interrupted": True}
"""What AgentScope states of a call beside the parts that it returned, and whether it failed."""
_OF_AGENTSCOPE = frozenset({"content", "state", "metadata", "id"})
_PRINTED = re.compile(r"""content=('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+") """, re.DOTALL)
_CALL_ID = re.compile(r" tool_call_id='([^'\\]{1,200})'")
_FAILED = " status='error'"


_BESIDE_AN_OBJECT = frozenset({"files", "toolCalls"})
_NAMED_ALONE = re.compile(r"\[tool(?:-result)?: [\w.:-]{1,200}\]")
"""What Mastra puts into a history in the place of a tool's call and of its result."""
_PRINTED_AS = {"[obje": _OF_JAVASCRIPT, "[tool": _NAMED_ALONE}


class ToolResult(Struct, frozen=True, kw_only=True):
    """What came back from a tool: a result or an error, and the call it answers where that is named."""

    result: Json = None
    error: str | None = None
    call_id: str | None = None


def removed(text: str) -> bool:
    """Whether a text is what a client puts where it removed the value, or printed an object that is not its contents.

    >>> removed("__REDACTED__"), removed("<REDACTED>"), removed("<REDACTED> asked about a refund.")
    (True, True, False)
    >>> removed("<openai.Stream object at 0x7fc851275370>"), removed("<generator object f.<locals>.g at 0x7f>")
    (True, True)
    >>> removed("[object ToolMessage]"), removed("[object Object]")
    (True, False)
    """
    if text[:1] not in _FIRST_OF_MARKS:  # nearly every text
        return False
    if len(text) <= _LONGEST_MARK and text in _WHOLE_MARKS:
        return True
    printed = _PRINTED_AS.get(text[:5]) if text[:1] == "[" else _AT_ADDRESS if text[:1] == "<" else None
    return text.startswith(_MARKS) or (printed is not None and printed.fullmatch(text) is not None)


def without_texts(value: Content) -> bool:
    """Whether a text is a request or response as JSON from which LiteLLM removed the texts: it removes all or none."""
    return isinstance(value, str) and value[:1] in ("{", "[") and f'"{_BY_LITELLM}"' in value


def plain(value: Content) -> Json:
    """The value as JSON data, nothing taken off: bytes become text, removed texts None."""
    if isinstance(value, str):
        return None if removed(value) else value
    if isinstance(value, (dict, list)):
        return value if _is_plain(value) else _cleaned(value)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _is_plain(value: Content) -> TypeGuard[Json]:
    """Whether JSON can hold all of it, and no mark stands anywhere in it; to write it is quicker than to look."""
    try:
        written = orjson.dumps(value).decode()  # in a text a search costs a fraction of one in bytes
    except orjson.JSONEncodeError:
        return False
    for mark in _MARKS:  # noqa: SIM110 - a generator would cost more than the search
        if mark in written:
            return False
    return True


def _cleaned(value: Content) -> Json:
    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return plain(value)


def decoded(value: Content, *, scalars: bool = False) -> Json:
    """The value with JSON text and Python reprs read: maps, lists and quoted texts, at most twice.

    Numbers and the like stay text (an answer ``30`` is a text) unless ``scalars`` states that all of it is JSON.
    """
    if isinstance(value, str):
        if removed(value):
            return None
        if not scalars and (not value or value[0].isalnum()):  # most contents are prose
            return value
        text: str = value
    else:
        found = None if value is None else plain(value)
        if not isinstance(found, str):
            return found
        text = found
    read = jsontext.loads(text, scalars=scalars)
    if read is None:
        return text
    again = jsontext.loads(read, scalars=scalars) if isinstance(read, str) and read != text else None
    return read if again is None else again


def from_json(value: Content) -> Json:
    """The value of a client that writes every value as JSON, texts too: read once, for a text may itself be JSON."""
    found = plain(value)
    if not isinstance(found, str) or found.strip() == "null":
        return None if isinstance(found, str) else found
    read = jsontext.loads(found, scalars=True)
    return found if read is None else read


def as_text(value: Content) -> str | None:
    """The value if it is a text with something in it, and not what stands in the place of one."""
    return value if isinstance(value, str) and value and not removed(value) else None


def entries(value: Content) -> dict[str, Json]:
    """The entries of a map, as a client has it or in JSON; none of another value."""
    found = decoded(value)
    return found if isinstance(found, dict) else {}


def task(value: Content) -> Json:
    """The task: the text in a one-argument call or a one-key wrapper, else the value as it came."""
    found = _peel(value, _TASK_KEYS)
    return None if _resumes(found) else found


def _resumes(given: Json) -> bool:
    """Whether this is LangGraph's ``Command`` by which a run goes on after a person's consent: it asks nothing."""
    if '"resume"' not in given if isinstance(given, str) else not isinstance(given, dict) or "resume" not in given:
        return False
    found = decoded(given)
    if not isinstance(found, dict) or not found.keys() <= _COMMAND:
        return False
    return {"graph", "update", "resume"} <= found.keys() or (found.get("lg_name") == "Command" and "resume" in found)


def only_text(given: Json) -> Json:
    """The only argument of a function, by name, if it is a text; else what was given.

    >>> only_text('{"q": "Where is it?"}'), only_text({"a": "1", "b": "2"})
    ('Where is it?', {'a': '1', 'b': '2'})
    """
    held = None if isinstance(given, dict) and len(given) != 1 else decoded(given)
    if isinstance(held, dict) and len(held) == 1 and isinstance(text := next(iter(held.values())), str):
        return text
    return given


def answer(value: Content) -> Json:
    """The answer: the text in a one-key wrapper, else the value as it came (JSON text stays text)."""
    return _peel(value, _ANSWER_KEYS) if unanswered(value) is None else None


def unanswered(value: Content) -> dict[str, Json] | None:
    """What Mastra states in the place of an answer.

    A run waits for a person's consent to a call, was left by its caller, or was stopped by a processor.
    """
    if isinstance(value, str) and _UNANSWERED.match(value) is None:
        return None
    if isinstance(value, dict) and "status" not in value and "tripwire" not in value:
        return None
    found = decoded(value)
    if not isinstance(found, dict):
        return None
    state, stopped = found.get("status"), found.get("tripwire")
    waits = state == "suspended" and "toolCallId" in found
    left = state == "aborted" and "reason" in found
    return found if waits or left or (isinstance(stopped, dict) and "processorId" in stopped) else None


def _peel(value: Content, keys: frozenset[str]) -> Json:
    if without_texts(value):
        return None
    found = decoded(value)
    if isinstance(found, dict):
        if isinstance(args := found.get("args"), list) and "kwargs" in found:
            kwargs = found["kwargs"]
            if len(args) == 1:
                return _peel_inner(args[0], keys)
            if not args and isinstance(kwargs, dict) and len(kwargs) < 2:
                return _peel_inner(next(iter(kwargs.values()), None), keys)
        elif len(found) == 1 and (key := next(iter(found))) in keys:
            return _peel_inner(found[key], keys)
        elif keys is _ANSWER_KEYS:
            if isinstance(found.get("raw"), str) and "tasks_output" in found:
                return found["raw"]
            if "text" in found and (stated := _of_text(found)) is not None:
                return stated
    return plain(value) if isinstance(value, str | bytes) and not isinstance(found, str) else found


def _of_text(found: Mapping[str, Json]) -> Json:
    """The AI SDK's answer: the requested object or the text, beside files and calls, if any."""
    others = {key: held for key, held in found.items() if key != "text" and held not in (None, "", [], {})}
    if not others or (others.keys() == {"toolCalls"} and _are_calls(others["toolCalls"])):
        return found["text"]
    form = others.keys() <= {"object", "toolCalls"} and not _BESIDE_AN_OBJECT.isdisjoint(found)
    if not form or not isinstance(text := found["text"], str):
        return None
    return text if decoded(text) == others["object"] else others["object"]


def _are_calls(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) and "toolCallId" in each for each in value)


def _peel_inner(value: Json, keys: frozenset[str]) -> Json:
    if isinstance(value, dict) and len(value) == 1 and (key := next(iter(value))) in keys:
        return value[key]
    return value


def arguments(value: Content) -> Json:
    """A tool's arguments: a map where it can be had, without the live objects that frameworks pass along."""
    found = None if isinstance(value, str) and value in _NONE else _without_role(decoded(value))
    if isinstance(found, dict):
        if isinstance(kwargs := found.get("kwargs"), dict) and found.keys() <= {"args", "kwargs"}:
            args = found.get("args")
            if not args:
                found = kwargs
            elif not kwargs and isinstance(args, list) and len(args) == 1:
                found = args[0]
        elif len(found) == 1 and "input" in found:
            found = decoded(found["input"])
    if isinstance(found, dict):
        return {k: v for k, v in found.items() if not (isinstance(v, str) and v[:1] == "<" and _OBJECT.fullmatch(v))}
    return found


def result(value: Content) -> ToolResult:
    """A tool's result: off come LangChain's ToolMessage, LlamaIndex's ToolOutput, MCP's parts and one-key wrappers."""
    found = _without_role(decoded(value))
    if isinstance(found, str) and found.startswith("content="):
        found = _printed_message(found) or found
    for _ in range(3):
        if not isinstance(found, dict):
            break
        inner = found.get("kwargs") if found.get("lc") else found.get("data")
        body = inner if isinstance(inner, dict) and (found.get("lc") or "tool_call_id" in inner) else found
        if "tool_call_id" in body and "content" in body:
            content, call_id = body["content"], body["tool_call_id"]
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            failed = body.get("status") == "error"
            return ToolResult(
                result=None if failed else _lone_text(decoded(content)),
                error=text if failed else None,
                call_id=call_id if isinstance(call_id, str) else None,
            )
        if "raw_output" in body and "tool_name" in body:
            raw = body["raw_output"]
            return ToolResult(error=str(raw)) if body.get("is_error") is True else ToolResult(result=decoded(raw))
        if (parts := _of_mcp(body)) is not None:
            returned = _lone_text(parts[0])
            return ToolResult(error=str(returned)) if parts[1] else ToolResult(result=returned)
        if len(body) != 1 or next(iter(body)) not in _RETURNED:
            break
        found = decoded(next(iter(body.values())))
    return ToolResult(result=_lone_text(found))


def _without_role(value: Json) -> Json:
    """What a tool was given, or returned, out of the message of a tool as which TanStack AI states both."""
    match value:
        case [{"role": "tool", "content": content, **others}] if not others:
            return decoded(content)
    return value


def _lone_text(result: Json) -> Json:
    match result:
        case [{"json": held, **others}] if not others:  # a part of Bedrock's
            return held
    text = _part_text(result)
    return result if text is None else decoded(text)


def _part_text(result: Json) -> str | None:
    """The text of ``[{"type": "text", "text": …}]``, the form in which MCP and its followers return one; else None."""
    match result[0] if isinstance(result, list) and len(result) == 1 else result:
        case {"text": str(text), **others} if _is_text_part(others, listed=isinstance(result, list)):
            return text
    return None


def _is_text_part(others: Mapping[object, object], *, listed: bool) -> bool:
    """Whether beside its text stands only what a part has; a map with a text alone may be what a tool returned."""
    given = {key for key, value in others.items() if value is not None}
    return given <= _OF_A_PART and (others.get("type") == "text" or (listed and not given))


def _of_mcp(result: Mapping[str, Json]) -> tuple[Json, bool] | None:
    """The parts that an MCP or AgentScope server returns, or AutoGen's text, and whether the call failed.

    None for another map.
    """
    if not isinstance(parts := result.get("content"), list | str):
        return None
    if not _OF_MCP.isdisjoint(result):
        return parts, result.get("isError") is True or result.get("is_error") is True
    if isinstance(parts, list) and len(result) == 1 and parts and all(map(_is_of_mcp, parts)):
        return parts, False  # a success may leave out that it is none
    state = result.get("state")
    if isinstance(parts, list) and isinstance(state, str) and state in _STATES and result.keys() <= _OF_AGENTSCOPE:
        return parts, _STATES[state]
    return None


def _is_of_mcp(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") in _PARTS_OF_MCP


def _printed_message(text: str) -> dict[str, Json] | None:
    """LangChain's message as it is printed, ``content='…' name='…' tool_call_id='…'``, as a map; None for others."""
    if (found := _PRINTED.match(text)) is None or (call_id := _CALL_ID.search(text, found.end() - 1)) is None:
        return None
    content = pyrepr.printed(f"[{found[1]}]")
    if not isinstance(content, list):
        return None
    status = "error" if _FAILED in text[found.end() - 1 :] else "success"
    return {"content": content[0], "tool_call_id": call_id[1], "status": status}


def documents(value: Content) -> tuple[str, ...]:
    """Texts of retrieved documents: a list (or one) of texts, or of objects that hold theirs under a usual key."""
    found = decoded(value)
    if isinstance(found, dict):
        held = next(
            (found[key] for key in ("documents", "nodes", "results", "matches", "output") if key in found), None
        )
        found = held if isinstance(held, list) else [found]
    items = found if isinstance(found, list) else [found]
    return tuple(text for text in map(_document, items) if text)


def _document(item: Json) -> str | None:
    for _ in range(3):
        if not isinstance(item, dict):
            break
        keys = ("page_content", "content", "text", "document", "node", "kwargs", "parts")
        item = next((item[key] for key in keys if item.get(key)), None)
    if isinstance(item, list):
        item = "\n".join(part for part in item if isinstance(part, str)) or None
    return item if isinstance(item, str) else None
