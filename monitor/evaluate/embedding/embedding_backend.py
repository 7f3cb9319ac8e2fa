"""Embedding backend: answers questions by likeness in meaning, all texts of a round in one call."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from sidejudge.integrations.embed.local import EmbeddingError
from sidejudge.integrations.provider.errors import ProviderError, ProviderErrorKind
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.monitor.config.evaluators import EmbeddingSection
from sidejudge.monitor.evaluate.judge.breaker import REACTIONS, pause
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.embedding import OF_THE_SEED, QUESTIONS, CosineThresholds, Vector, answer, texts
from sidejudge.scoring.questions.question import NoAnswer, Question, Reply
from sidejudge.scoring.result.reason import Reason, own, quoted

from .embedder import Embedder, EmbeddingModel, VectorCache, VectorCacheStorage

if TYPE_CHECKING:
    from sidejudge.integrations.embed.remote import RemoteModel
    from sidejudge.integrations.prometheus.judge_metrics import EmbeddingMetrics

log = logging.getLogger("sidejudge.embedding")

RETRIES: Final = 3
"""Further attempts at an endpoint, after transient failures."""
_OF_TEXTS: Final = (
    ProviderErrorKind.BAD_REQUEST,
    ProviderErrorKind.CONTEXT_OVERFLOW,
    ProviderErrorKind.CONTENT_REFUSED,
)


class EmbeddingBackend:
    """A backend (``monitor.evaluate.backends``); formulas and thresholds are in ``scoring.evaluators.embedding``."""

    def __init__(self, embedder: Embedder, thresholds: CosineThresholds = OF_THE_SEED) -> None:
        self._embedder = embedder
        self.thresholds = thresholds
        self._reported: str | None = None

    async def start(self) -> None:
        """Load the model now rather than with the first case. Raises ``EmbeddingError``."""
        await self._embedder.start()

    async def warm(self) -> None:
        """Load the model now. What fails is logged, and is the reason of what it leaves unanswered."""
        try:
            await self.start()
        except EmbeddingError as error:
            self._report(error)

    async def close(self) -> None:
        """End the model; idempotent."""
        await self._embedder.close()

    async def answer(self, case: Case, questions: Sequence[Question]) -> Mapping[Question, Reply]:  # noqa: ARG002  # a question holds all that is compared
        """Replies to the questions that embeddings can answer; others are left out. It never raises."""
        wanted = {question: texts(question) for question in questions if isinstance(question, QUESTIONS)}
        needed = [text for each in wanted.values() if not isinstance(each, NoAnswer) for text in each]
        try:
            vectors = await self._embedder.vectors(list(dict.fromkeys(needed))) if needed else {}
            return await asyncio.to_thread(lambda: {each: answer(each, vectors, self.thresholds) for each in wanted})
        except EmbeddingError as error:
            self._report(error)
            failed = NoAnswer(Reason("{error}", error=quoted(str(error))), failed=True)
        except ValueError as error:  # a store that holds vectors of another model of the same name
            failed = NoAnswer(Reason("the vectors cannot be compared: {error}", error=quoted(str(error))), failed=True)
        except Exception as error:  # noqa: BLE001  # a bug costs one case its answers; its text may quote a trace
            log.error("could not embed", extra={"cause": type(error).__name__})  # noqa: TRY400  # likewise
            failed = NoAnswer(Reason("embedding error: {kind}", kind=own(type(error).__name__)), failed=True)
        return {question: each if isinstance(each, NoAnswer) else failed for question, each in wanted.items()}

    async def vectors(self, wanted: Sequence[str]) -> Mapping[str, Vector]:
        """The vectors of texts; empty where the model fails, which is logged."""
        try:
            return await self._embedder.vectors(wanted)
        except EmbeddingError as error:
            self._report(error)
            return {}

    def _report(self, error: EmbeddingError) -> None:
        if str(error) != self._reported:
            self._reported = str(error)
            log.error("could not embed", extra={"cause": error.cause, "remedy": error.remedy})


def embedding_backend(
    section: EmbeddingSection,
    *,
    library: LiteLLM,
    storage: VectorCacheStorage,
    clock_ns: Callable[[], int],
    observer: EmbeddingMetrics | None = None,
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
    """Embed one short text and return the number of its dimensions. Raises ``EmbeddingError``, without the key.

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


class Retrying:
    """A remote model with the retries of a judge (``monitor.evaluate.judge.breaker``).

    A failure that stays is an ``EmbeddingError``.
    """

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
