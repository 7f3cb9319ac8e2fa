"""Lent embedding: the models of a backfill's embeddings in actors of Ray. All else stays with the process that runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sidejudge.monitor.config import Config
from sidejudge.monitor.evaluate.backends import Backend
from sidejudge.monitor.offline.engine import LOOK_S, ElsewhereError, Engine, RayCluster
from sidejudge.monitor.offline.score.request import ScoreRequest, fingerprint
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.question import Question, Reply


class LentEmbedding:
    """A backend whose ``models`` may be lost: no verdict is reached without them, and ``lost`` states why.

    While an answer is waited for, ``look`` is called; it raises ``ElsewhereError`` where none will come.
    """

    def __init__(self, models: Backend, look: Callable[[], None]) -> None:
        self._models, self._look = models, look
        self.lost: ElsewhereError | None = None

    async def answer(self, case: Case, questions: Sequence[Question]) -> Mapping[Question, Reply]:
        """As ``Backend.answer``. Where the models are lost it never returns: the run ends, and cancels it."""
        answer = asyncio.ensure_future(self._models.answer(case, questions))
        try:
            while not (await asyncio.wait({answer}, timeout=LOOK_S))[0]:
                await asyncio.to_thread(self._look)
            return answer.result()
        except ElsewhereError as error:
            self.lost = error
        finally:
            answer.cancel()
        never: asyncio.Future[Mapping[Question, Reply]] = asyncio.get_running_loop().create_future()
        return await never


def is_lent(settings: Config) -> bool:
    """Whether there is a model that this process would work with itself; an endpoint works elsewhere already."""
    section = settings.evaluators.embedding
    return section is not None and not section.remote


@contextmanager
def lent_embedding(engine: Engine, config: Path, settings: Config) -> Iterator[LentEmbedding | None]:
    """The models of a configuration on the engine, while they run; None where this process is to hold its own.

    Raises:
        ElsewhereError: The engine cannot be reached.
        EmbeddingError: The model cannot be loaded there.
    """
    section = settings.evaluators.embedding
    if not isinstance(engine, RayCluster) or section is None or not is_lent(settings):
        yield None
        return
    engine.start()
    from sidejudge.monitor.offline.score.ray_backends import RemoteEmbedding, embeddings_of  # noqa: PLC0415  # it imports Ray, an extra

    held = embeddings_of(ScoreRequest(config=config, fingerprint=fingerprint(settings)), section)
    yield LentEmbedding(RemoteEmbedding(range(len(held))), engine.look)
