"""Observer: who is told what judging does, as it does it. The exporter counts it, traces of our own record it."""

from __future__ import annotations

from typing import Literal, Protocol

from integrations.provider.errors import Usage

Flag = Literal["contradiction", "disagreement"]


class Observer(Protocol):
    """All methods are called in the event loop and must return at once."""

    def attempted(self, model: str, *, duration_s: float, usage: Usage, failure: str | None) -> None:
        """One request to a model is over. ``failure`` is a ``Kind``, ``parse_error``, or None when it was answered."""

    def looked_up(self, *, hits: int, misses: int) -> None:
        """So many questions were answered by the cache, so many not."""

    def flagged(self, model: str, flag: Flag) -> None:
        """An answer contradicts what can be decided without a judge, or the members of a panel disagree."""


class Unobserved:
    """Nobody looks."""

    def attempted(self, model: str, *, duration_s: float, usage: Usage, failure: str | None) -> None: ...
    def looked_up(self, *, hits: int, misses: int) -> None: ...
    def flagged(self, model: str, flag: Flag) -> None: ...
