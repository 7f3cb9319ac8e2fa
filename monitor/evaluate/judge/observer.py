"""Observers: several that get each event of judging, and the log, which has outages of judges."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from sidejudge.integrations.provider.attempt import JudgeAttempt, JudgeObserver

if TYPE_CHECKING:
    from .judge_backend import JudgeBackend

log = logging.getLogger("sidejudge.judge")


class JudgeObservers(JudgeObserver):
    """Passes each event to several observers."""

    def __init__(self, *each: JudgeObserver) -> None:
        for event in (name for name in vars(JudgeObserver) if not name.startswith("_")):
            setattr(self, event, partial(_call_all, [getattr(observer, event) for observer in each]))


def _call_all(events: Iterable[Callable[..., None]], *stated: object, **named: object) -> None:
    for event in events:
        event(*stated, **named)


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
