"""Probe: does a model of embeddings work at all? One short text, for people who set one up."""

from __future__ import annotations

import asyncio

from sidejudge.integrations.embed.errors import EmbeddingError
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.monitor.config.evaluators import EmbeddingSection

from .build import embedding_model

_TEXT = "Where is my parcel?"


def try_embedding(section: EmbeddingSection) -> int:
    """The number of dimensions of what the model makes. Raises ``EmbeddingError``; the key is never part of it.

    A model in this process is loaded for it; an endpoint is called once, and again after a transient failure.
    """
    return asyncio.run(_try(section))


async def _try(section: EmbeddingSection) -> int:
    library = LiteLLM()
    model = embedding_model(section, library)
    try:
        await model.start()
        vectors = await model.embed([_TEXT])
    finally:
        await model.close()
        await library.close()
    if not vectors or not vectors[0]:
        raise EmbeddingError(f"the embedding model {section.model} answered with no vector")
    return len(vectors[0])
