"""Build: the configuration of embeddings in, an embedding backend out. Nothing is loaded or called yet.

Probe: does a model of embeddings work at all? One short text, for people who set one up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sidejudge.integrations.embed.encoder import EmbeddingError
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.monitor.config.evaluators import EmbeddingSection

from .embedder import Embedder, EmbeddingModel, VectorCache, VectorCacheStorage
from .embedding_backend import EmbeddingBackend
from .observer import EmbeddingObserver


def embedding_backend(
    section: EmbeddingSection,
    *,
    library: LiteLLM,
    storage: VectorCacheStorage,
    clock_ns: Callable[[], int],
    observer: EmbeddingObserver | None = None,
) -> EmbeddingBackend:
    """A backend for the configured model; ``library`` serves a remote model, ``storage`` keeps vectors."""
    cache = VectorCache(storage, model=section.model, entries=section.cache_entries, clock_ns=clock_ns)
    embedder = Embedder(embedding_model(section, library), cache, observer=observer)
    return EmbeddingBackend(embedder, section.cosines)


def embedding_model(section: EmbeddingSection, library: LiteLLM) -> EmbeddingModel:
    """The model alone, in this process or at its endpoint."""
    if not section.remote:
        from sidejudge.integrations.embed.local import LocalModel  # noqa: PLC0415  # imported only where it is configured

        return LocalModel(section.model, device=section.device, batch_size=section.batch_size)
    from sidejudge.integrations.embed.remote import RemoteModel  # noqa: PLC0415  # imported only where it is configured

    from .retrying import Retrying  # noqa: PLC0415  # imported only where it is configured

    key = section.api_key.get_secret_value() if section.api_key is not None else None
    return Retrying(
        RemoteModel(section.model, library, api_base=section.api_base, api_key=key, batch_size=section.batch_size)
    )


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
