"""The fields that an attribute may be mapped to by hand (``sources.attributes``)."""

from __future__ import annotations

from typing import Literal, TypeAlias

MappedField: TypeAlias = Literal[
    "input", "output", "system_prompt", "documents", "kind", "agent", "tool", "arguments", "result", "error", "model",
    "requested_model", "input_tokens", "output_tokens", "session_id", "user_id", "tags",
]  # fmt: skip
"""``arguments``, ``result``, ``error`` are a tool's; ``kind`` is what a span did (``llm``, ``tool``, ``agent``, …)."""
