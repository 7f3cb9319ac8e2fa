"""Observer: receives the events of embedding as they happen."""

# ruff: noqa: ARG002  # the methods do nothing unless a subclass has them
from __future__ import annotations

from typing import Protocol


class EmbeddingObserver(Protocol):
    """All methods are called in the event loop and must return at once."""

    def looked_up(self, *, hits: int, misses: int) -> None:
        """So many texts had their vectors in the cache, so many not."""
        return

    def embedded(self, model: str, *, texts: int, duration_s: float, failed: bool) -> None:
        """The model was given so many texts at once, and is through."""
        return


class SilentEmbeddingObserver(EmbeddingObserver):
    """Ignores every event."""
