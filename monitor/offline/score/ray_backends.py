"""Backends in actors of Ray: one judge for the whole run, with its budget, rate limits and cache; models of embeddings.

The actor of the judge runs beside the driver, and is not started again: another one would begin with a budget of its
own. A piece that was lost with its worker asks once more, and the cache answers.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from itertools import cycle
from typing import Any, Final

from sidejudge.integrations.embed import EmbeddingError
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.evaluators import EmbeddingSection, Priority
from sidejudge.monitor.evaluate.backends import JudgeAccount, plain
from sidejudge.monitor.evaluate.build import EvaluationBackends, arrange_backends
from sidejudge.monitor.offline.engine import WorkersLostError
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.judging.request import can_judge
from sidejudge.scoring.questions.question import Question, Reply

from .chunks import LOOK_S
from .request import Actors, ScoreRequest
from .tally import Expense

ray: Any = import_module("ray")  # its types fit no actor

_JUDGE: Final = "judge"
_AT_ONCE: Final = 1_000
"""Calls that an actor has under way; its rate limits are narrower."""


class JudgeActor:
    """The judge of a run, with its spending."""

    def __init__(self, request: ScoreRequest) -> None:
        self._expense = Expense()
        self._backends = request.backends(request.settings(), self._expense)
        if self._backends.judge is None:
            raise ValueError("no judge is configured")
        self._judge = self._backends.judge
        self._under_way: set[asyncio.Task[Mapping[Question, Reply]]] = set()

    async def answer(
        self, case: Case, questions: Sequence[Question], account: JudgeAccount
    ) -> tuple[Mapping[Question, Reply], bool, str | None]:
        """The replies, whether the case is counted, and why the judge cannot be asked any more."""
        answering = asyncio.ensure_future(self._judge.answer(case, questions, account))
        self._under_way.add(answering)
        answering.add_done_callback(self._under_way.discard)
        replies = await answering
        return replies, account.counted, self._judge.outage

    async def end(self) -> None:
        """Return once nothing is under way, and the store is there for the next run."""
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._backends.close()

    async def outage(self) -> str | None:
        return self._judge.outage

    async def reachable(self) -> bool:
        return self._judge.reachable

    async def outage_cause(self) -> str | None:
        return self._judge.outage_cause

    async def share(self, priority: Priority) -> float:
        return self._judge.share(priority)

    async def expense(self) -> Expense:
        """The requests so far."""
        return self._expense


class EmbeddingActor:
    """One model of embeddings."""

    def __init__(self, request: ScoreRequest) -> None:
        # The judge's memory has one owner, which is the actor that asks it.
        embedding = replace(request, memory=None).backends(request.settings()).embedding
        if embedding is None:
            raise ValueError("no embeddings are configured")
        self._embedding = embedding

    async def start(self) -> None:
        """Load the model. Raises ``EmbeddingError``."""
        await self._embedding.start()

    async def answer(
        self, case: Case, questions: Sequence[Question]
    ) -> tuple[Mapping[Question, Reply], EmbeddingError | None]:
        """The replies, and why the endpoint cannot be asked any more."""
        return await self._embedding.answer(case, questions), self._embedding.outage

    async def outage(self) -> EmbeddingError | None:
        return self._embedding.outage


def actors_of(request: ScoreRequest, settings: Config) -> tuple[Actors, list[Any]]:
    """Start the actors that a configuration needs: how many, and their handles, which keep them.

    Raises:
        EmbeddingError: The model cannot be loaded.
        OtherConfigError: An actor reads another configuration.
    """
    held: list[Any] = []
    if settings.evaluators.judge is not None:
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        judge = ray.remote(num_cpus=0, max_restarts=0, max_concurrency=_AT_ONCE)(JudgeActor)
        held.append(judge.options(name=_JUDGE, scheduling_strategy=here).remote(request))
    models = embeddings_of(request, settings.evaluators.embedding) if settings.evaluators.embedding is not None else []
    return Actors(judge=settings.evaluators.judge is not None, embeddings=len(models)), held + models


def embeddings_of(request: ScoreRequest, section: EmbeddingSection) -> list[object]:
    """Start a model of embeddings for each GPU, or for each node where there is none; their handles, which keep them.

    Raises:
        EmbeddingError: The model cannot be loaded.
        OtherConfigError: An actor reads another configuration.
    """
    gpus = 0 if section.remote else int(ray.cluster_resources().get("GPU", 0))
    count = 1 if section.remote else gpus or sum(node["Alive"] for node in ray.nodes())
    model = ray.remote(num_cpus=0, num_gpus=min(1, gpus), max_restarts=-1, max_task_retries=3)(EmbeddingActor)
    models = [
        model.options(name=f"embedding-{number}", max_concurrency=_AT_ONCE, scheduling_strategy="SPREAD").remote(
            request
        )
        for number in range(count)
    ]
    ray.get([each.start.remote() for each in models])  # a model that is not there costs no verdict
    return models


def end_judge(within_s: float) -> None:
    """Give the run's judge these seconds to end: calls under way are paid for, whichever worker made them."""
    with suppress(ValueError, ray.exceptions.RayError):
        ray.get(ray.get_actor(_JUDGE).end.remote(), timeout=within_s)


def expense_of_run() -> Expense | None:
    """The cost of the run's judge; None where it is gone."""
    try:
        found: Expense = ray.get(ray.get_actor(_JUDGE).expense.remote())
    except (ValueError, ray.exceptions.RayError):
        return None
    return found


def remote_backends(settings: Config, actors: Actors) -> EvaluationBackends:
    """The backends of a process of a run, which ask the actors."""
    return arrange_backends(
        settings,
        judge=RemoteJudge() if actors.judge else None,
        embedding=RemoteEmbedding([os.getpid() % actors.embeddings]) if actors.embeddings else None,
    )


class RemoteJudge:
    """The judge of the run. It raises ``WorkersLostError`` when its actor has ended: no verdict may say so instead."""

    def __init__(self) -> None:
        self._actor: Any = None
        self._outage: str | None = None
        self._looked_s = 0.0

    @property
    def _held(self) -> Any:
        if self._actor is None:
            try:
                self._actor = ray.get_actor(_JUDGE)
            except ValueError:
                raise _gone() from None
        return self._actor

    def can_answer(self, question: Question) -> bool:
        return can_judge(plain(question))

    @property
    def outage(self) -> str | None:
        """As of the last answer; while it lasts, as of the last look."""
        if self._outage is not None and time.monotonic() - self._looked_s >= LOOK_S:
            self._outage, self._looked_s = self._now(self._held.outage.remote()), time.monotonic()
        return self._outage

    @property
    def reachable(self) -> bool:
        """As of now."""
        found: bool = self._now(self._held.reachable.remote())
        return found

    @property
    def outage_cause(self) -> str | None:
        """As of now."""
        found: str | None = self._now(self._held.outage_cause.remote())
        return found

    def share(self, priority: Priority) -> float:
        found: float = self._now(self._held.share.remote(priority))
        return found

    async def answer(
        self, case: Case, questions: Sequence[Question], account: JudgeAccount
    ) -> Mapping[Question, Reply]:
        found: Mapping[Question, Reply]
        try:
            found, account.counted, self._outage = await self._held.answer.remote(case, list(questions), account)
        except ray.exceptions.RayActorError:
            raise _gone() from None
        return found

    def _now(self, asked: Any) -> Any:
        try:
            return ray.get(asked)
        except ray.exceptions.RayActorError:
            raise _gone() from None


class RemoteEmbedding:
    """Some of the run's models of embeddings, by their numbers, which are asked in turn."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._names = cycle([f"embedding-{number}" for number in numbers])
        self._actors: dict[str, Any] = {}
        self._outage: EmbeddingError | None = None
        self._looked_s = 0.0

    @property
    def outage(self) -> EmbeddingError | None:
        """As of the last answer; while it lasts, as of the last look. Only an endpoint has one, and that one actor."""
        if self._outage is not None and time.monotonic() - self._looked_s >= LOOK_S:
            try:
                self._outage = ray.get(next(iter(self._actors.values())).outage.remote())
            except ray.exceptions.RayActorError:
                raise _gone() from None
            self._looked_s = time.monotonic()
        return self._outage

    async def answer(self, case: Case, questions: Sequence[Question]) -> Mapping[Question, Reply]:
        name = next(self._names)
        try:
            if name not in self._actors:
                self._actors[name] = ray.get_actor(name)
            found: Mapping[Question, Reply]
            found, self._outage = await self._actors[name].answer.remote(case, list(questions))
        except (ValueError, ray.exceptions.RayActorError):
            raise _gone() from None
        return found


def _gone() -> WorkersLostError:
    return WorkersLostError("the actor that is asked has ended", "look at the memory of its node")
