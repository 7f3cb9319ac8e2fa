"""EmbeddingAnswerer: questions that likeness in meaning answers, all texts of a round in one call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from sidejudge.integrations.embed.encoder import EmbeddingError
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.embedding import OF_THE_SEED, QUESTIONS, CosineThresholds, Vector, answer, texts
from sidejudge.scoring.questions.question import NoAnswer, Question, Reply
from sidejudge.scoring.result.reason import Reason, own, quoted

from .embedder import Embedder

log = logging.getLogger("sidejudge.embedding")


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
            return await asyncio.to_thread(_replies, tuple(wanted), vectors, self.thresholds)
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


def _replies(
    questions: Sequence[Question], vectors: Mapping[str, Vector], at: CosineThresholds
) -> dict[Question, Reply]:
    return {question: answer(question, vectors, at) for question in questions}
