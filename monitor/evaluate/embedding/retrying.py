"""An embedding model at an endpoint, called again after transient failures; others are an ``EmbeddingError``."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final

from sidejudge.integrations.embed.encoder import EmbeddingError
from sidejudge.integrations.embed.remote import RemoteModel
from sidejudge.integrations.provider.errors import ProviderError, ProviderErrorKind
from sidejudge.monitor.evaluate.judge.breaker import REACTIONS, pause
from sidejudge.scoring.evaluators.embedding import Vector

RETRIES: Final = 3
_OF_TEXTS: Final = (
    ProviderErrorKind.BAD_REQUEST,
    ProviderErrorKind.CONTEXT_OVERFLOW,
    ProviderErrorKind.CONTENT_REFUSED,
)


class Retrying:
    """A remote model with the retries of a judge (``monitor.evaluate.judge.breaker``)."""

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
