"""Observer: the events of judging. The exporter counts them, own traces record them, the log has outages of judges."""

# ruff: noqa: ARG002  # the methods do nothing unless a subclass has them
from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from sidejudge.integrations.judge.client import Completion
from sidejudge.integrations.provider.errors import ProviderUsage
from sidejudge.monitor.evaluate.judge.breaker import BreakerState, Circuit
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.question import Question

log = logging.getLogger("sidejudge.judge")

Flag = Literal["contradiction", "disagreement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAttempt:
    """One request to a model, over. ``model`` is its configured name, ``usage`` the request's tokens and dollars.

    ``failure`` is a ``ProviderErrorKind``, ``parse_error`` when no answer in it was valid, or None; ``completion`` the
    model's response, None without one. ``shapes`` counts what was read of it though it was not in the form that was
    asked for (``scoring.judging.shapes.SHAPES``).
    """

    model: str
    duration_s: float
    usage: ProviderUsage
    failure: str | None = None
    completion: Completion | None = None
    shapes: Mapping[str, int] = field(default_factory=dict)


class JudgeObserver(Protocol):
    """All methods are called in the event loop and must return at once.

    A subclass has those that it needs; the others do nothing. An observer in ``integrations``, which knows nothing of
    this one, has them all.
    """

    def judging(self, case: Case) -> None:
        """The running task judges this case: requests of it and of the tasks that it starts belong to the case."""
        return

    def asking(self, questions: Sequence[Question]) -> None:
        """The running task puts these questions to a model: its next requests are about them."""
        return

    def attempted(self, attempt: JudgeAttempt) -> None:
        """One request to a model is over."""
        return

    def repaired(self, model: str, *, requested: int, answered: int) -> None:
        """So many questions were asked again because their answers were invalid, and so many were answered then."""
        return

    def looked_up(self, *, hits: int, misses: int) -> None:
        """The cache answered ``hits`` questions and not ``misses`` others."""
        return

    def flagged(self, model: str, flag: Flag) -> None:
        """An answer contradicts what can be decided without a judge, or the members of a panel disagree."""
        return


class SilentJudgeObserver(JudgeObserver):
    """Ignores every event."""


class JudgeObservers(JudgeObserver):
    """Passes each event to several observers."""

    def __init__(self, *each: JudgeObserver) -> None:
        self._each = each

    def judging(self, case: Case) -> None:
        for observer in self._each:
            observer.judging(case)

    def asking(self, questions: Sequence[Question]) -> None:
        for observer in self._each:
            observer.asking(questions)

    def attempted(self, attempt: JudgeAttempt) -> None:
        for observer in self._each:
            observer.attempted(attempt)

    def repaired(self, model: str, *, requested: int, answered: int) -> None:
        for observer in self._each:
            observer.repaired(model, requested=requested, answered=answered)

    def looked_up(self, *, hits: int, misses: int) -> None:
        for observer in self._each:
            observer.looked_up(hits=hits, misses=misses)

    def flagged(self, model: str, flag: Flag) -> None:
        for observer in self._each:
            observer.flagged(model, flag)


class JudgeLogObserver(Protocol):
    """The circuit breaker of each model."""

    def states(self) -> Mapping[str, BreakerState]: ...


class JudgeLog(JudgeObserver):
    """Logs when a judge becomes unreachable and when it answers again. ``watch`` sets whose breakers are read."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._watched: JudgeLogObserver | None = None
        self._out: dict[str, float] = {}

    def watch(self, watched: JudgeLogObserver) -> None:
        self._watched = watched

    def attempted(self, attempt: JudgeAttempt) -> None:  # whichever it was
        for name, state in self._watched.states().items() if self._watched is not None else ():
            if state.circuit is Circuit.OPEN and name not in self._out:
                self._out[name] = state.since
                log.warning(
                    "the judge is unreachable; traces that need it wait", extra={"judge": name, "cause": state.reason}
                )
            elif state.circuit is Circuit.CLOSED and name in self._out:
                seconds = round(self._clock_s() - self._out.pop(name), 1)
                log.info("the judge answers again", extra={"judge": name, "outage_s": seconds})
