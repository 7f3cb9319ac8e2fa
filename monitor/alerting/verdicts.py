"""Committed results come in; windows, the watch and the schedule learn of their verdicts."""

from __future__ import annotations

from integrations.store.sqlite import Store
from monitor.evaluate.result import TraceResult

from .observation import observe, observe_stored
from .schedule import EvaluationSchedule
from .watch import Watch
from .windows import Windows


class VerdictObserver:
    """What alerting learns of verdicts. ``committed`` is a listener of the commit."""

    def __init__(self, *, store: Store, windows: Windows, watch: Watch, schedule: EvaluationSchedule) -> None:
        self._store, self._windows, self._watch, self._schedule = store, windows, watch, schedule

    def committed(self, result: TraceResult) -> None:
        """Put new and changed verdicts into their windows, and take out what is withdrawn."""
        for rubric in result.withdrawn:
            self._windows.withdraw(result.trace_id.hex(), rubric)
        for verdict in result.changed:
            key, seen = observe(verdict, result.place_ns)
            if seen.at_ns > result.ended_ns - self._windows.window_ns:
                self._windows.add(key, seen)
            self._watch.learn(key, seen)
        if result.lag_s is not None:
            self._schedule.lagged(result.ended_ns, result.lag_s)

    def restore(self, now_ns: int) -> None:
        """Fill the windows again, and let the watch learn what was judged after it was last remembered."""
        self._schedule.restore()
        begin_ns, known_ns = now_ns - self._windows.window_ns, self._watch.cursor_ns
        for key, seen in observe_stored(self._store.verdicts_since(min(begin_ns, known_ns or begin_ns))):
            if seen.at_ns > begin_ns:
                self._windows.add(key, seen)
            if seen.at_ns > known_ns:
                self._watch.learn(key, seen)
