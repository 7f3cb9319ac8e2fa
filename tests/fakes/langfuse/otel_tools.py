"""Tools that a model was offered: a Langfuse takes their definitions from the attributes and puts them into the input.

Grounded in `normalizeToolMetadataForObservation` of langfuse/langfuse (version 4, summer of 2026).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.fakes.langfuse.otel_values import listed, read, text

_TOOL = re.compile(r"llm\.tools\.(\d+)\.tool\.json_schema")


def with_tools(requested: Any, kept: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    """Definitions of tools go from the kept attributes to the input, which becomes an object for them."""
    tools: list[Any] = []
    left = dict(kept)
    for key in ("ai.prompt.tools", "gen_ai.tool.definitions"):
        offered = [read(each) for each in listed(read(kept.get(key)))]
        if offered and all(_is_tool(each) for each in offered):
            tools += offered
            del left[key]
    parameters = read(kept.get("model_request_parameters"))
    if isinstance(parameters, dict) and (functions := listed(parameters.pop("function_tools", None))):
        tools += functions
        left["model_request_parameters"] = text(parameters)
    numbered = {int(found[1]): key for key in kept if (found := _TOOL.fullmatch(key))}
    for key in (numbered[number] for number in sorted(numbered)):
        if _is_tool(tool := read(kept[key])):
            tools.append(tool)
            del left[key]
    if not tools:
        return requested, dict(kept)
    whole = read(requested)
    if isinstance(whole, list):
        return {"messages": whole, "tools": tools}, left
    if isinstance(whole, dict):
        already = listed(whole.get("tools"))
        names = {_tool_name(each) for each in already}
        return {**whole, "tools": [*already, *(each for each in tools if _tool_name(each) not in names)]}, left
    if whole is None:
        return {"tools": tools}, left
    return ({"prompt": whole, "tools": tools}, left) if isinstance(whole, str) else (requested, dict(kept))


def _is_tool(value: Any) -> bool:
    return isinstance(value, dict) and bool(_tool_name(value))


def _tool_name(value: Any) -> str:
    inner = value.get("function") if isinstance(value.get("function"), dict) else value
    name = inner.get("name")
    return name if isinstance(name, str) else ""
