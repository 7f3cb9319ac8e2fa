"""Lists and maps that were flattened into attributes: ``prefix.0.role``, ``prefix.0.tool_calls.1.name``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.raw import AttributeValue

from . import unwrap


def tree(attributes: Mapping[str, AttributeValue], prefix: str) -> dict[str, Any]:
    """The keys under a prefix as nested maps, numbers still as keys."""
    tree: dict[str, Any] = {}
    for key, value in attributes.items():
        if not key.startswith(prefix):
            continue
        *path, last = key[len(prefix) :].split(".")[:12]
        node: Any = tree
        for step in path:
            node = node.setdefault(step, {})
            if not isinstance(node, dict):
                break
        else:
            node[last] = unwrap.plain(value)
    return tree


def listed(node: Any) -> list[dict[str, Any]]:
    """The entries of a map whose keys are numbers, in order of the numbers."""
    if not isinstance(node, dict):
        return []
    numbered = [(int(key), item) for key, item in node.items() if key.isdecimal() and len(key) < 10]
    return [item for _, item in sorted(numbered, key=lambda pair: pair[0]) if isinstance(item, dict)]
