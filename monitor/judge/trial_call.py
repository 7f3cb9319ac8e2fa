"""Trial call: does a model answer at all? One short question, for people who set up a judge."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from integrations.judge.client import JudgeClient, Model
from integrations.provider.errors import ProviderError
from integrations.provider.library import LiteLLM

_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}},
    "required": ["ready"],
    "additionalProperties": False,
}


class _Greeting:
    """The request: what the client needs to know of one."""

    messages: Final[tuple[Mapping[str, str], ...]] = (
        {"role": "user", "content": 'Answer with the JSON {"ready": true}.'},
    )
    schema: Final = _SCHEMA
    schema_name: Final = "ready"
    questions: Final[tuple[object, ...]] = ()
    prompt_tokens: Final = 32
    answer_tokens: Final = 64


def try_model(model: Model) -> str | None:
    """Why the model does not answer; None when it does. The key is never part of it."""
    return asyncio.run(_try(model))


async def _try(model: Model) -> str | None:
    library = LiteLLM()
    try:
        await JudgeClient(library).complete(_Greeting(), model)
    except ProviderError as error:
        return str(error)
    finally:
        await library.close()
    return None
