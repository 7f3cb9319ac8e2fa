"""Health probe: one short request that every model can answer, to learn whether the provider answers."""

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
    """A request as the client takes it."""

    messages: Final[tuple[Mapping[str, str], ...]] = (
        {"role": "user", "content": 'Answer with the JSON {"ready": true}.'},
    )
    schema: Final = _SCHEMA
    schema_name: Final = "ready"
    prompt_tokens: Final = 32
    answer_tokens: Final = 64


HEALTH_PROBE: Final = _HealthProbe()
"""It contains nothing of any trace, so its result depends on the provider alone."""
