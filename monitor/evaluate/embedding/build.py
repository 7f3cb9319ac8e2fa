"""Build: the configuration of embeddings in, an embedding backend out. Nothing is loaded or called yet.

Probe: does a model of embeddings work at all? One short text, for people who set one up.

An embedding model at an endpoint, called again after transient failures; others are an ``EmbeddingError``.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final

from sidejudge.integrations.embed.encoder import EmbeddingError
from sidejudge.integrations.embed.remote import RemoteModel
from sidejudge.integrations.provider.errors import ProviderError, ProviderErrorKind
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.monitor.config.evaluators import EmbeddingSection
from sidejudge.monitor.evaluate.judge.breaker import REACTIONS, pause
from sidejudge.scoring.evaluators.embedding import Vector

from .embedder import Embedder, EmbeddingModel, VectorCache, VectorCacheStorage
from .embedding_backend import EmbeddingBackend
from .observer import EmbeddingObserver

RETRIES: Final = 3
_OF_TEXTS: Final = (
    ProviderErrorKind.BAD_REQUEST,
    ProviderErrorKind.CONTEXT_OVERFLOW,
    ProviderErrorKind.CONTENT_REFUSED,
)


class Retrying:
    """A remote model with the retries of a judge (``monitor.evaluate.judge.failure_policy``)."""

    def __init__(self, model: RemoteModel, *, jitter: Callable[[], float] = random.random) -> None:
        self.name: Final = model.name
        self._model = model
        self._jitter = jitter

    async def start(self) -> None:
        """Load what it takes to ask. Raises ``EmbeddingError``."""
        try:
            await self._model.start()
        except ProviderError as error:
            raise self._named(error) from None

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text. Raises ``EmbeddingError``."""
        for attempt in range(RETRIES + 1):
            try:
                return await self._model.embed(texts)
            except ProviderError as error:
                wait_s = pause(attempt, error.retry_after_s, self._jitter())
                if not REACTIONS[error.kind].retry or wait_s is None or attempt == RETRIES:
                    raise self._named(error) from None
                await asyncio.sleep(wait_s)
        raise AssertionError("a loop of at least one attempt")

    async def close(self) -> None:
        """Nothing of its own."""
        await self._model.close()

    def _named(self, error: ProviderError) -> EmbeddingError:
        return EmbeddingError(f"embeddings of {self.name}: {error}", of_texts=error.kind in _OF_TEXTS)


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
