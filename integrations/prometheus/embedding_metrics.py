"""Embedding metrics: what embedding does, counted as it does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from prometheus_client import Counter, Histogram

from . import families as f
from .collect import Instrument


class EmbeddingMetrics:
    """Hears of every look into the cache and every call of the model. Lives on the event loop."""

    def __init__(self, counted: Mapping[f.Family, Instrument]) -> None:
        self._counted = counted

    def looked_up(self, *, hits: int, misses: int) -> None:
        """So many texts had their vectors in the cache, so many not."""
        self._counter(f.EMBEDDING_CACHE_HITS).inc(hits)
        self._counter(f.EMBEDDING_CACHE_MISSES).inc(misses)

    def embedded(self, model: str, *, texts: int, duration_s: float, failed: bool) -> None:  # noqa: ARG002  # there is one
        """The model was given so many texts at once, and is through."""
        self._counter(f.EMBEDDING_TEXTS).inc(texts)
        if failed:
            self._counter(f.EMBEDDING_TEXTS_FAILED).inc(texts)
        cast("Histogram", self._counted[f.EMBEDDING_DURATION]).observe(max(0.0, duration_s))

    def _counter(self, family: f.Family) -> Counter:
        return cast("Counter", self._counted[family])
