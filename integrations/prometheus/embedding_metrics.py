"""Embedding metrics: what embedding does, counted as it does it."""

from __future__ import annotations

from . import families as f
from .collect import MetricValues


class EmbeddingMetrics:
    """Counts every look into the cache and every call of the model. Lives on the event loop."""

    def __init__(self, counted: MetricValues) -> None:
        self._counted = counted

    def looked_up(self, *, hits: int, misses: int) -> None:
        """So many texts had their vectors in the cache, so many not."""
        self._counted.counter(f.EMBEDDING_CACHE_HITS).inc(hits)
        self._counted.counter(f.EMBEDDING_CACHE_MISSES).inc(misses)

    def embedded(self, model: str, *, texts: int, duration_s: float, failed: bool) -> None:  # noqa: ARG002  # there is one
        """The model was given so many texts at once, and is through."""
        self._counted.counter(f.EMBEDDING_TEXTS).inc(texts)
        if failed:
            self._counted.counter(f.EMBEDDING_TEXTS_FAILED).inc(texts)
        self._counted.histogram(f.EMBEDDING_DURATION).observe(max(0.0, duration_s))
