"""One look at a time: gather the facts, look, commit what changed, then notify the listeners.

What changed and the events of a look are committed together before a listener is called, and an event is deleted once
all listeners have taken it: each listener gets it at least once, under one id, whenever the process dies. A listener
that raises is called again at the next look.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sidejudge.integrations.store.sqlite import Store
from sidejudge.scoring.alerts.condition import Agreement, MonitorFacts, Observed
from sidejudge.scoring.alerts.event import AlertEvent, event_of_json
from sidejudge.scoring.statistics.descriptive import p95
from sidejudge.scoring.statistics.judge_drift import JudgeDrift
from sidejudge.scoring.statistics.ppi import LabelSums
from sidejudge.scoring.status.snapshots import JudgeSnapshot
from sidejudge.scoring.trace.time_units import MINUTE_NS

from .details import WatchedWindow, details
from .failures import illustrated_firing
from .watch import Watch
from .windows import Windows

log = logging.getLogger("sidejudge.alerts")

AlertListener: TypeAlias = Callable[[AlertEvent], Awaitable[None]]
"""Takes events. It raises when it cannot take one, and is then called again, perhaps in another order."""
LAG_NS = 10 * MINUTE_NS
"""The period over which the evaluation lag is measured."""
ILLUSTRATES_S = 5.0
"""How long the events of one look are illustrated in all: where very many begin at once, none waits for all others."""
_MOST_LAGS = 5_000
_EVENT = "event/"


@dataclass(kw_only=True)
class EvaluationSchedule:
    """Looks at the watch; ``monitor`` returns the monitor's own facts at a time, in ns."""

    watch: Watch
    windows: Windows
    store: Store
    judge: Callable[[], JudgeSnapshot | None]
    agreements: Callable[[], Sequence[Agreement]] = tuple
    drifts: Callable[[], Sequence[JudgeDrift]] = tuple
    labels: Callable[[], Mapping[str, LabelSums]] = dict
    monitor: Callable[[int], MonitorFacts | None] = lambda _now_ns: None
    listeners: list[AlertListener] = field(default_factory=list)
    failure: str | None = field(default=None, init=False)
    """Why no status could be decided at the last look; None where all were."""
    _lags: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=_MOST_LAGS), init=False)
    _kept: dict[str, str] = field(default_factory=dict, init=False)
    _waiting: dict[str, AlertEvent] = field(default_factory=dict, init=False)

    def restore(self) -> None:
        """Restore the state of the last run, including events that no listener took."""
        self._kept = self.store.kept.all()
        self.watch.take_labels(self.labels())
        self.watch.restore(self._kept, self.watch.watched)
        left = [event_of_json(json.loads(stated)) for name, stated in self._kept.items() if name.startswith(_EVENT)]
        order = {condition.id: place for place, condition in enumerate(self.watch.conditions)}
        for event in sorted(left, key=lambda event: (event.at_ns, order.get(event.condition, len(order)))):
            self._waiting[_EVENT + event.id] = event

    def lagged(self, ended_ns: int, lag_s: float) -> None:
        """Note that a trace was judged this long after its last span came."""
        self._lags.append((ended_ns, max(0.0, lag_s)))

    async def look(self, now_ns: int) -> list[AlertEvent]:
        """Look once. Where statuses cannot be decided the earlier ones stay, and that itself is an alert.

        Returns:
            The events that all listeners took.

        Raises:
            StoreError: what changed could not be committed; no listener was called.
        """
        try:
            bare = await self._decided(now_ns)
            self.failure = None
        except Exception as error:
            log.exception("a look at statuses failed; those of the last one stay")
            self.failure = f"no status can be decided ({type(error).__name__}); the log has the cause"
            bare = self.watch.look_at_trouble(self._facts(now_ns))
        for event in await asyncio.to_thread(self._illustrated, bare):
            self._waiting[_EVENT + event.id] = event
        await self.remember()
        return await self._notify()

    async def _decided(self, now_ns: int) -> list[AlertEvent]:
        self.watch.take_labels(self.labels())
        members = {key: self.windows.members(key, now_ns) for key in self.windows.keys()}  # noqa: SIM118 - not a dict
        effects, measure = dict(self.windows.design), self.watch.metrics.measured(now_ns)
        found, measured = await asyncio.to_thread(
            lambda: (
                {
                    key: details(held, self.watch.watched.get(key.rubric, WatchedWindow()), effects.get(key, 1.0))
                    for key, held in members.items()
                },
                measure(),
            )
        )
        acceptable = {rubric: watched.on_average for rubric, watched in self.watch.watched.items()}
        return self.watch.look(self._facts(now_ns), found, acceptable, measured)

    async def remember(self) -> None:
        """Commit what has changed since it was last remembered."""
        now = self.watch.to_memory()
        now |= {name: json.dumps(event.to_json()) for name, event in self._waiting.items()}
        changed: dict[str, str | None] = {
            name: stated for name, stated in now.items() if self._kept.get(name) != stated
        }
        changed |= dict.fromkeys(self._kept.keys() - now.keys())
        await self.store.kept.change(changed)
        self._kept = now

    async def _notify(self) -> list[AlertEvent]:
        taken = []
        for name, event in list(self._waiting.items()):
            stated = {"condition": event.condition, "turn": event.transition.value, "severity": event.severity.value}
            log.info("alert", extra={**stated, "fingerprint": event.fingerprint, "muted": event.muted})
            try:
                for listener in self.listeners:
                    await listener(event)
            except Exception:
                log.exception("an alert could not be passed on; it is passed on again at the next look")
                continue
            del self._waiting[name]
            taken.append(event)
        if taken:
            await self.remember()
        return taken

    def _facts(self, now_ns: int) -> Observed:
        # What is as far ahead is of a clock that was set back.
        self._lags = deque((each for each in self._lags if abs(now_ns - each[0]) < LAG_NS), maxlen=_MOST_LAGS)
        return Observed(
            now_ns=now_ns,
            lag_s=p95(lag for _, lag in self._lags),
            lag_n=len(self._lags),
            spool_bytes=self.store.size,
            judge=self.judge(),
            agreements=self.agreements(),
            drifts=self.drifts(),
            monitor=self.monitor(now_ns),
        )

    def _illustrated(self, events: Sequence[AlertEvent]) -> list[AlertEvent]:
        conditions, ends_s = {each.id: each for each in self.watch.conditions}, time.monotonic() + ILLUSTRATES_S
        return [
            illustrated_firing(self.store, conditions[each.condition], each, self.windows.window_ns)
            if time.monotonic() < ends_s
            else each
            for each in events
        ]
