"""Pydantic AI's own messages, requests and responses of several parts, as a client that records objects sends them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sidejudge.scoring.trace.span import Json, Message

from . import messages

_KIND: Final = "part_kind"
_ROLES: Final = {
    "system-prompt": "system", "user-prompt": "user", "text": "assistant", "tool-return": "tool",
    "builtin-tool-return": "tool",
}  # fmt: skip
_CALLS: Final = frozenset({"tool-call", "builtin-tool-call"})
_RETRY: Final = "retry-prompt"


def read(value: Json) -> tuple[Message, ...]:
    """The messages in a list under ``messages``, or in one message; empty where there are none of Pydantic AI's.

    >>> read({"parts": [{"part_kind": "text", "content": "It is open."}], "kind": "response"})[0].text
    'It is open.'
    """
    held = value.get("messages", [value]) if isinstance(value, dict) else value
    found: list[Json] = []
    for message in held if isinstance(held, list) else []:
        parts = message.get("parts") if isinstance(message, dict) else None
        found += _stated([part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else [])
    return messages.read(found)


def _stated(parts: list[dict[str, Json]]) -> Iterator[Json]:
    """A message for each part, but one for all calls of tools, which are made side by side."""
    called: list[Json] = []
    for part in parts:
        kind, content, call_id = part.get(_KIND), part.get("content"), part.get("tool_call_id")
        if kind in _CALLS:
            function: Json = {"name": part.get("tool_name"), "arguments": part.get("args")}
            called.append({"id": call_id, "function": function})
        elif kind == _RETRY:  # of a tool, or of the answer as a whole
            yield {"role": "user" if call_id is None else "tool", "content": content, "tool_call_id": call_id}
        elif isinstance(kind, str) and (role := _ROLES.get(kind)) is not None:
            yield {"role": role, "content": content, **({} if role != "tool" else {"tool_call_id": call_id})}
    if called:
        yield {"role": "assistant", "content": None, "tool_calls": called}
