"""Observer: who is told what judging does, as it does it. The exporter counts it, traces of our own record it."""

from __future__ import annotations

from typing import Literal, Protocol

from integrations.judge.client import Completion
from integrations.provider.errors import ProviderUsage
from scoring.case.case import Case

Flag = Literal["contradiction", "disagreement"]


class JudgeObserver(Protocol):
    """All methods are called in the event loop and must return at once."""

    def judging(self, case: Case) -> None:
        """The running task has this case judged: what it and the tasks that it starts attempt from now on is for it."""

    def attempted(
        self,
        model: str,
        *,
        duration_s: float,
        usage: ProviderUsage,
        failure: str | None,
        completion: Completion | None = None,
    ) -> None:
        """One request to a model is over. ``failure`` is a ``Kind``, ``parse_error``, or None when it was answered.

        ``completion`` is what the model said, None when nothing came of it.
        """

    def looked_up(self, *, hits: int, misses: int) -> None:
        """So many questions were answered by the cache, so many not."""

    def flagged(self, model: str, flag: Flag) -> None:
        """An answer contradicts what can be decided without a judge, or the members of a panel disagree."""


class SilentJudgeObserver:
    """Nobody looks."""

    def judging(self, case: Case) -> None: ...
    def attempted(
        self,
        model: str,
        *,
        duration_s: float,
        usage: ProviderUsage,
        failure: str | None,
        completion: Completion | None = None,
    ) -> None: ...
    def looked_up(self, *, hits: int, misses: int) -> None: ...
    def flagged(self, model: str, flag: Flag) -> None: ...


class JudgeObservers:
    """Several who look at the same."""

    def __init__(self, *each: JudgeObserver) -> None:
        self._each = each

    def judging(self, case: Case) -> None:
        for observer in self._each:
            observer.judging(case)

    def attempted(
        self,
        model: str,
        *,
        duration_s: float,
        usage: ProviderUsage,
        failure: str | None,
        completion: Completion | None = None,
    ) -> None:
        for observer in self._each:
            observer.attempted(model, duration_s=duration_s, usage=usage, failure=failure, completion=completion)

    def looked_up(self, *, hits: int, misses: int) -> None:
        for observer in self._each:
            observer.looked_up(hits=hits, misses=misses)

    def flagged(self, model: str, flag: Flag) -> None:
        for observer in self._each:
            observer.flagged(model, flag)
