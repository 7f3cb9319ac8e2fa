"""Observers: several that get each event of judging, and the log, which has outages of judges."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sidejudge.integrations.provider.attempt import Flag, JudgeAttempt, JudgeObserver
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.question import Question

if TYPE_CHECKING:
    from .judge_backend import JudgeBackend

log = logging.getLogger("sidejudge.judge")


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


class JudgeLog(JudgeObserver):
    """Logs when a judge becomes unreachable and when it answers again. ``watch`` sets whose breakers are read."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._watched: JudgeBackend | None = None
        self._out: dict[str, float] = {}

    def watch(self, watched: JudgeBackend) -> None:
        self._watched = watched

    def attempted(self, attempt: JudgeAttempt) -> None:  # noqa: ARG002  # whichever it was
        for name, state in self._watched.states().items() if self._watched is not None else ():
            if state.circuit == "open" and name not in self._out:
                self._out[name] = state.since_s or self._clock_s()
                log.warning(
                    "the judge is unreachable; traces that need it wait", extra={"judge": name, "cause": state.reason}
                )
            elif state.circuit == "closed" and name in self._out:
                seconds = round(self._clock_s() - self._out.pop(name), 1)
                log.info("the judge answers again", extra={"judge": name, "outage_s": seconds})
