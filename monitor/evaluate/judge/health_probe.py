"""Greeting: one short question to which every model knows an answer, to learn whether it answers at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}},
    "required": ["ready"],
    "additionalProperties": False,
}


class _HealthProbe:
    """The request: what the client needs to know of one."""

    messages: Final[tuple[Mapping[str, str], ...]] = (
        {"role": "user", "content": 'Answer with the JSON {"ready": true}.'},
    )
    schema: Final = _SCHEMA
    schema_name: Final = "ready"
    prompt_tokens: Final = 32
    answer_tokens: Final = 64


HEALTH_PROBE: Final = _HealthProbe()
"""It holds nothing of any trace: what comes of it says something of the provider alone."""
