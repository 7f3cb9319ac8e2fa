"""Judge metrics: what a judge and a model of embeddings do, counted as they do it, and how the judge stands."""

from __future__ import annotations

from collections.abc import Iterator

from sidejudge.integrations.provider.attempt import Flag, JudgeAttempt, JudgeObserver
from sidejudge.integrations.provider.errors import ProviderErrorKind
from sidejudge.scoring.status.snapshots import CIRCUITS, JudgeSnapshot

from . import families as f
from .collect import MetricValues, Series, known
from .labels import KnownJudge, LabelCap


class JudgeMetrics(JudgeObserver):
    """Counts everything that judging does. Lives on the event loop."""

    def __init__(self, counted: MetricValues, known: KnownJudge, *, label_cap: int) -> None:
        self._counted = counted
        self._reasons = LabelCap("reason", label_cap, known.failures)
        models = tuple(known.models)
        counted.zeros(
            (f.JUDGE_REQUESTS, models), (f.JUDGE_COST, models), (f.JUDGE_FILTERED, models),
            (f.JUDGE_ESTIMATED, models), (f.JUDGE_REPAIRS, models, ("answered", "unanswered")),
            (f.JUDGE_TOKENS, models, ("input", "output")), (f.JUDGE_REQUESTS_FAILED, models, known.failures),
            (f.JUDGE_SHAPES, models, known.shapes), (f.JUDGE_FLAGS, models, known.flags),
        )  # fmt: skip
        for model in models:
            counted.histogram(f.JUDGE_DURATION, model)

    def attempted(self, attempt: JudgeAttempt) -> None:
        """One request to a model is over."""
        model, usage, failure = attempt.model, attempt.usage, attempt.failure
        self._counted.counter(f.JUDGE_REQUESTS, model).inc()
        if failure is not None:
            self._counted.counter(f.JUDGE_REQUESTS_FAILED, model, self._reasons.bound(failure, "unknown")).inc()
        if failure == ProviderErrorKind.CONTENT_REFUSED:
            self._counted.counter(f.JUDGE_FILTERED, model).inc()
        if usage.estimated:
            self._counted.counter(f.JUDGE_ESTIMATED, model).inc()
        for shape, count in attempt.shapes.items():
            self._counted.counter(f.JUDGE_SHAPES, model, shape).inc(count)
        self._counted.histogram(f.JUDGE_DURATION, model).observe(max(0.0, attempt.duration_s))
        self._counted.counter(f.JUDGE_TOKENS, model, "input").inc(usage.input_tokens)
        self._counted.counter(f.JUDGE_TOKENS, model, "output").inc(usage.output_tokens)
        self._counted.counter(f.JUDGE_COST, model).inc(usage.cost_usd or 0.0)

    def repaired(self, model: str, *, requested: int, answered: int) -> None:
        """Questions that were asked again, and how many of them were answered then."""
        self._counted.counter(f.JUDGE_REPAIRS, model, "answered").inc(answered)
        self._counted.counter(f.JUDGE_REPAIRS, model, "unanswered").inc(requested - answered)

    def looked_up(self, *, hits: int, misses: int) -> None:
        """So many questions were answered by the cache, so many not."""
        self._counted.counter(f.JUDGE_CACHE_HITS).inc(hits)
        self._counted.counter(f.JUDGE_CACHE_MISSES).inc(misses)

    def flagged(self, model: str, flag: Flag) -> None:
        """An answer is doubtful."""
        self._counted.counter(f.JUDGE_FLAGS, model, flag).inc()


def gauges(snapshot: JudgeSnapshot) -> Iterator[Series]:
    """The judge at this moment."""
    for model in snapshot.models:
        for state in CIRCUITS:
            yield f.JUDGE_BREAKER, (model.model, state), float(state == model.circuit)
    for spending in snapshot.spending:
        budget = (f.JUDGE_BUDGET_SPENT, spending.spent_usd), (f.JUDGE_BUDGET_LIMIT, spending.limit_usd)
        yield from known((spending.period,), *budget)
    for priority, share in snapshot.shares.items():
        yield f.JUDGE_SHARE, (priority,), share
    yield f.JUDGE_IN_FLIGHT, (), snapshot.under_way


class EmbeddingMetrics:
    """Counts every look into the cache and every call of the model. Lives on the event loop."""

    def __init__(self, counted: MetricValues) -> None:
        self._counted = counted

    def looked_up(self, *, hits: int, misses: int) -> None:
        """So many texts had their vectors in the cache, so many not."""
        self._counted.counter(f.EMBEDDING_CACHE_HITS).inc(hits)
        self._counted.counter(f.EMBEDDING_CACHE_MISSES).inc(misses)

    def embedded(self, *, texts: int, duration_s: float, failed: bool) -> None:
        """The model was given so many texts at once, and is through."""
        self._counted.counter(f.EMBEDDING_TEXTS).inc(texts)
        if failed:
            self._counted.counter(f.EMBEDDING_TEXTS_FAILED).inc(texts)
        self._counted.histogram(f.EMBEDDING_DURATION).observe(max(0.0, duration_s))
