"""Probe: a judge model in, why it cannot answer one structured question out."""

from __future__ import annotations

import asyncio

from integrations.judge.client import JudgeClient, JudgeModel
from integrations.provider.errors import ProviderError
from integrations.provider.library import LiteLLM

from .health_probe import HEALTH_PROBE


def try_model(model: JudgeModel) -> str | None:
    """Why the model does not answer; None when it does. The key is never part of it."""
    return asyncio.run(_try(model))


async def _try(model: JudgeModel) -> str | None:
    library = LiteLLM()
    try:
        completion = await JudgeClient(library).complete(HEALTH_PROBE, model)
    except ProviderError as error:
        return str(error)
    finally:
        await library.close()
    return None if completion.text.strip() else "its answer is empty"
