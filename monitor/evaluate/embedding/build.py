"""Build: the configuration of embeddings in, an embedding backend out. Nothing is loaded or called yet."""

from __future__ import annotations

from collections.abc import Callable

from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.monitor.config.evaluators import EmbeddingSection

from .embedder import Embedder, EmbeddingModel
from .embedding_backend import EmbeddingBackend
from .observer import EmbeddingObserver
from .vector_cache import VectorCache, VectorCacheStorage


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
