"""Judge log: logs when a judge becomes unreachable and when it answers again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from sidejudge.monitor.evaluate.judge.breaker import BreakerState, Circuit
from sidejudge.monitor.evaluate.judge.observer import JudgeAttempt, JudgeObserver

log = logging.getLogger("sidejudge.judge")


class JudgeLogObserver(Protocol):
    """The circuit breaker of each model."""

    def states(self) -> Mapping[str, BreakerState]: ...


class JudgeLog(JudgeObserver):
    """``watch`` sets whose breakers are read after each attempt."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._watched: JudgeLogObserver | None = None
        self._out: dict[str, float] = {}

    def watch(self, watched: JudgeLogObserver) -> None:
        self._watched = watched

    def attempted(self, attempt: JudgeAttempt) -> None:  # noqa: ARG002  # whichever it was
        for name, state in self._watched.states().items() if self._watched is not None else ():
            if state.circuit is Circuit.OPEN and name not in self._out:
                self._out[name] = state.since
                log.warning(
                    "the judge is unreachable; traces that need it wait", extra={"judge": name, "cause": state.reason}
                )
            elif state.circuit is Circuit.CLOSED and name in self._out:
                seconds = round(self._clock_s() - self._out.pop(name), 1)
                log.info("the judge answers again", extra={"judge": name, "outage_s": seconds})
