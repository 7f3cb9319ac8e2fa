"""Wrappers of a tool's result: parts of a message, or a whole message as it is printed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sidejudge.scoring.trace.span import Json

from . import pyrepr

_OF_MCP = frozenset({"isError", "is_error", "structuredContent", "structured_content"})
_OF_A_PART = frozenset({"type", "id", "annotations", "meta", "_meta"})
_PRINTED = re.compile(r"""content=('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+") """, re.DOTALL)
_CALL_ID = re.compile(r" tool_call_id='([^'\\]{1,200})'")
_FAILED = " status='error'"


def lone_text(result: Json) -> str | None:
    """The text of ``[{"type": "text", "text": …}]``, which is how MCP and others after it return one; else None."""
    match result[0] if isinstance(result, list) and len(result) == 1 else result:
        case {"text": str(text), **others} if _is_text_part(others, listed=isinstance(result, list)):
            return text
    return None


def _is_text_part(others: Mapping[object, object], *, listed: bool) -> bool:
    """Whether beside its text stands only what a part has; a map with a text alone may be what a tool returned."""
    given = {key for key, value in others.items() if value is not None}
    return given <= _OF_A_PART and (others.get("type") == "text" or (listed and not given))


def of_mcp(result: Mapping[str, Json]) -> tuple[Json, bool] | None:
    """The parts of what a server of MCP returns, or AutoGen's text, and whether it marks the call as failed.

    None for another map.
    """
    if not isinstance(parts := result.get("content"), list | str) or _OF_MCP.isdisjoint(result):
        return None
    return parts, result.get("isError") is True or result.get("is_error") is True


def printed_message(text: str) -> dict[str, Json] | None:
    """LangChain's message as it is printed, ``content='…' name='…' tool_call_id='…'``, as a map; None for others."""
    if (found := _PRINTED.match(text)) is None or (call_id := _CALL_ID.search(text, found.end() - 1)) is None:
        return None
    try:
        content = pyrepr.read(f"[{found[1]}]")
    except pyrepr.UnreadableError:
        return None
    status = "error" if _FAILED in text[found.end() - 1 :] else "success"
    return {"content": content[0] if isinstance(content, list) else None, "tool_call_id": call_id[1], "status": status}
