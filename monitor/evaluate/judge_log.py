"""Judge log: passes judge events on, and logs when a judge becomes unreachable and when it answers again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from integrations.judge.client import Completion
from integrations.provider.errors import ProviderUsage
from monitor.evaluate.judge.breaker import BreakerState, Circuit
from monitor.evaluate.judge.observer import Flag, JudgeObserver
from scoring.case.case import Case

log = logging.getLogger("sidejudge.judge")


class JudgeLogObserver(Protocol):
    """The circuit breaker of each model."""

    def states(self) -> Mapping[str, BreakerState]: ...


class JudgeLog:
    """An observer in front of another one. ``watch`` sets whose breakers are read after each attempt."""

    def __init__(self, then: JudgeObserver, clock_s: Callable[[], float]) -> None:
        self._then = then
        self._clock_s = clock_s
        self._watched: JudgeLogObserver | None = None
        self._out: dict[str, float] = {}

    def watch(self, watched: JudgeLogObserver) -> None:
        self._watched = watched

    def judging(self, case: Case) -> None:
        self._then.judging(case)

    def attempted(
        self,
        model: str,
        *,
        duration_s: float,
        usage: ProviderUsage,
        failure: str | None,
        completion: Completion | None = None,
    ) -> None:
        self._then.attempted(model, duration_s=duration_s, usage=usage, failure=failure, completion=completion)
        for name, state in self._watched.states().items() if self._watched is not None else ():
            if state.circuit is Circuit.OPEN and name not in self._out:
                self._out[name] = state.since
                log.warning(
                    "the judge is unreachable; traces that need it wait", extra={"judge": name, "cause": state.reason}
                )
            elif state.circuit is Circuit.CLOSED and name in self._out:
                seconds = round(self._clock_s() - self._out.pop(name), 1)
                log.info("the judge answers again", extra={"judge": name, "outage_s": seconds})

    def repaired(self, model: str, *, requested: int, answered: int) -> None:
        self._then.repaired(model, requested=requested, answered=answered)

    def looked_up(self, *, hits: int, misses: int) -> None:
        self._then.looked_up(hits=hits, misses=misses)

    def flagged(self, model: str, flag: Flag) -> None:
        self._then.flagged(model, flag)
