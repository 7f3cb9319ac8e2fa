"""Build: configuration in, evaluation backends out. A backend that is not configured is not imported."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from sidejudge.integrations.prometheus.labels import KnownJudge
from sidejudge.integrations.provider.attempt import FLAGS
from sidejudge.integrations.provider.errors import ProviderError, ProviderErrorKind
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.evaluators import JudgeSection
from sidejudge.monitor.config.judge_choice import judge_choice, judge_sections
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.questions.question import Question, Reply
from sidejudge.scoring.status.snapshots import JudgeSnapshot, Spending

from .backends import Backends, EmbeddingBackendProtocol, JudgeBackendProtocol, Synchronous

if TYPE_CHECKING:
    from sidejudge.integrations.judge.batch import BatchJudgeClient, BatchNotes
    from sidejudge.integrations.judge.client import JudgeModel
    from sidejudge.integrations.prometheus.judge_metrics import EmbeddingMetrics
    from sidejudge.integrations.provider.attempt import JudgeObserver
    from sidejudge.integrations.provider.library import LiteLLM
    from sidejudge.integrations.store.contents import JudgeCallTable
    from sidejudge.monitor.evaluate.embedding import EmbeddingBackend
    from sidejudge.monitor.evaluate.judge.answer_cache import CacheStorage
    from sidejudge.monitor.evaluate.judge.judge_backend import JudgeBackend, JudgeStorage, OnAnswered
    from sidejudge.monitor.evaluate.judge.panel import JudgeSettings
    from sidejudge.monitor.evaluate.judge.panel_member import Client

    from .judge_queue import JudgeQueue

log = logging.getLogger("sidejudge.judge")

PARSE_ERROR = "parse_error"


class Closeable(Protocol):
    """A judge's memory, if it belongs to these backends alone."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationBackends:
    """``at_once`` answers without waiting; the ``others`` are asked after it. ``memory`` is closed with them."""

    at_once: Callable[[Case, Question], Reply] | None
    others: Backends | None = None
    judge: JudgeBackend | None = None
    embedding: EmbeddingBackend | None = None
    library: LiteLLM | None = None
    batches: BatchJudgeClient | None = None
    memory: Closeable | None = None

    async def warm(self) -> None:
        """Load slow libraries before the first case needs them. A failure is logged and recurs when they are needed."""
        if self.judge is not None and self.library is not None:
            try:
                await self.library.start()
            except ProviderError as error:
                log.error("the judge cannot be loaded", extra={"cause": str(error)})  # noqa: TRY400  # the traceback adds nothing to the cause
        if self.embedding is not None:
            await self.embedding.warm()

    async def close(self) -> None:
        """Close all that was loaded."""
        if self.embedding is not None:
            await self.embedding.close()
        if self.batches is not None:
            await self.batches.close()
        if self.library is not None:
            await self.library.close()
        if self.memory is not None:
            self.memory.close()


BY_WORDS: Final = EvaluationBackends(at_once=lexical.answer)
"""Words alone answer."""


def build_backends(
    config: Config,
    *,
    memory: JudgeStorage,
    vectors: CacheStorage[bytes],
    observer: JudgeObserver | None,
    embedding_observer: EmbeddingMetrics | None = None,
    calls: JudgeCallTable | None = None,
    batches: BatchNotes | None = None,
    on_answered: OnAnswered | None = None,
    clock_ns: Callable[[], int],
) -> EvaluationBackends:
    """The backends of a configuration, in its order. Nothing is loaded and no endpoint is called yet.

    Args:
        config: its section ``evaluators`` is read.
        memory: keeps the judge's answers and costs.
        vectors: keeps the vectors of embedded texts.
        observer: is called with each request to a judge.
        embedding_observer: the same for embeddings.
        calls: keeps the prompts and answers of judges, where that is configured.
        batches: keeps the open batches, where judges are asked in batches. None: one by one.
        on_answered: is called with each request that a judge answered.
        clock_ns: ns since the epoch.
    """
    section = config.evaluators
    if section.judge is None and section.embedding is None:
        return EvaluationBackends(at_once=lexical.answer if "lexical" in section.order else None)
    from sidejudge.integrations.provider.library import LiteLLM  # noqa: PLC0415  # imported only where it is configured

    library = LiteLLM()
    judge = embedding = in_lots = None
    if section.judge is not None:
        from sidejudge.integrations.judge.client import JudgeClient  # noqa: PLC0415  # imported only where it is configured
        from sidejudge.monitor.evaluate.judge.judge_backend import JudgeBackend  # noqa: PLC0415  # likewise
        from sidejudge.monitor.evaluate.judge.observer import JudgeLog, JudgeObservers  # noqa: PLC0415  # likewise

        client: Client = JudgeClient(library)
        settings = judge_settings(config)
        if batches is not None:
            from sidejudge.integrations.judge.batch import LONGEST_S, BatchJudgeClient  # noqa: PLC0415  # imported only where it is wanted

            client = in_lots = BatchJudgeClient(JudgeClient(library), library, batches)
            settings = in_batches(settings, LONGEST_S)
        outages = JudgeLog(lambda: clock_ns() / 1e9)
        judge = JudgeBackend(
            settings, client=client, memory=memory, observer=JudgeObservers(*filter(None, (observer, outages))),
            calls=calls, on_answered=on_answered, clock_ns=clock_ns,
        )  # fmt: skip
        outages.watch(judge)
    if section.embedding is not None:
        from sidejudge.monitor.evaluate.embedding import embedding_backend  # noqa: PLC0415  # imported only where it is configured

        embedding = embedding_backend(
            section.embedding, library=library, storage=vectors, clock_ns=clock_ns, observer=embedding_observer
        )
    arranged = arrange_backends(config, judge=judge, embedding=embedding)
    return replace(arranged, judge=judge, embedding=embedding, library=library, batches=in_lots)


def arrange_backends(
    config: Config, *, judge: JudgeBackendProtocol | None, embedding: EmbeddingBackendProtocol | None
) -> EvaluationBackends:
    """Backends in the order of a configuration; only their creator closes them."""
    words = lexical.answer if judge is None else lexical.prove
    known = {"lexical": Synchronous(words), "embedding": embedding, "judge": judge}
    order = {name: backend for name in config.evaluators.order if (backend := known[name]) is not None}
    first = next(iter(order)) == "lexical"
    return EvaluationBackends(
        at_once=words if first else None,
        others=Backends(
            order=tuple(order.values())[first:], judge=judge, embedding=embedding, choice=judge_choice(config)
        ),
    )


def in_batches(settings: JudgeSettings, timeout_s: float) -> JudgeSettings:
    """The judges asked in batches: with this timeout, and no limit on simultaneous requests."""
    many = {"concurrency": 100_000, "requests_per_minute": None, "tokens_per_minute": None}
    retries = min(1, settings.section.retries)
    return replace(
        settings,
        section=settings.section.model_copy(update={**many, "retries": retries}),
        models=tuple(replace(model, timeout_s=timeout_s) for model in settings.models),
        others={name: in_batches(other, timeout_s) for name, other in settings.others.items()},
    )


def judge_settings(config: Config) -> JudgeSettings:
    """The settings of the default judge, and with it of all others by name. ``evaluators.judge`` must be there."""
    logprobs = config.evaluators.cascade.logprobs
    first, *others = ((name, _settings(section, logprobs=logprobs)) for name, section in judge_sections(config).items())
    return replace(first[1], others=dict(others))


def _settings(section: JudgeSection, *, logprobs: bool) -> JudgeSettings:
    from sidejudge.monitor.evaluate.judge.panel import JudgeSettings  # noqa: PLC0415  # imported only where it is configured

    names = (section.model, *section.panel)
    return JudgeSettings(
        section=section, models=tuple(replace(_model(name, section), logprobs=logprobs) for name in names)
    )


def _model(name: str, section: JudgeSection) -> JudgeModel:
    """One model. Address, key and price belong to ``model``; panel members of other providers have their own."""
    from sidejudge.integrations.judge.client import JudgeModel, TokenPrice  # noqa: PLC0415  # imported only where it is configured

    own = name.partition("/")[0] == section.model.partition("/")[0]
    price = section.price
    return JudgeModel(
        name=name,
        api_base=section.api_base if own else None,
        api_key=section.api_key.get_secret_value() if section.api_key is not None and own else None,
        timeout_s=section.timeout.seconds,
        temperature=section.temperature,
        top_p=section.top_p,
        max_tokens=section.max_tokens,
        seed=section.seed,
        structured=section.structured,
        price=TokenPrice(**price.model_dump()) if price is not None and name == section.model else None,
    )


def known_judge(config: Config) -> KnownJudge | None:
    """The label values of the judge's metrics, known before the first request; None without a judge."""
    sections = judge_sections(config).values()
    if not sections:
        return None
    from sidejudge.scoring.judging.shapes import SHAPES  # noqa: PLC0415  # only a judge needs it

    models = dict.fromkeys(name for each in sections for name in (each.model, *each.panel))
    failures = (*ProviderErrorKind, PARSE_ERROR)
    return KnownJudge(models=tuple(models), failures=failures, flags=FLAGS, shapes=tuple(SHAPES))


def judge_snapshot(
    config: Config, judge: JudgeBackend | None, judge_queue: JudgeQueue, now_s: float
) -> JudgeSnapshot | None:
    """The state of the judge now; None without a judge."""
    section = config.evaluators.judge
    if judge is None or section is None:
        return None
    from sidejudge.monitor.evaluate.judge.budget import DAY_S, HOUR_S  # noqa: PLC0415  # imported only where it is configured

    oldest_ns = judge_queue.deferred.oldest_ns
    return JudgeSnapshot(
        name=judge.name,
        models=tuple(judge.states().values()),
        outage=judge.outage,
        spending=(
            Spending(period="hour", spent_usd=judge.budget.spent(HOUR_S, now_s), limit_usd=section.budget_usd_per_hour),
            Spending(period="day", spent_usd=judge.budget.spent(DAY_S, now_s), limit_usd=section.budget_usd_per_day),
        ),
        shares={priority: judge.budget.q(priority, now_s) for priority in ("high", "normal", "low")},
        under_way=judge_queue.under_way,
        waiting=judge_queue.waiting - len(judge_queue.without_vectors),
        oldest_s=oldest_ns / 1e9 if oldest_ns is not None else None,
        estimating=tuple(sorted(judge.estimating)),
        unpriced=tuple(sorted(judge.unpriced)),
    )
