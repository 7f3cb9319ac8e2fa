"""The statuses and alerts that pages, metrics and notices show: the fleet's while they are known, else one's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence

from sidejudge.monitor.alerting.watch import Watch
from sidejudge.monitor.fleet.fleet import Fleet
from sidejudge.scoring.alerts.condition import Condition
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.event import AlertEvent
from sidejudge.scoring.alerts.lifecycle import Posted
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.service_status import ServiceStatus

from .status import ALONE_AFTER_S, FleetStatus


class FleetBoard:
    """In place of a monitor's own watch where it is one of a fleet. Conditions about the monitor stay its own."""

    def __init__(self, watch: Watch, fleet: Fleet, clock_ns: Callable[[], int]) -> None:
        self._watch, self._fleet, self._clock_ns = watch, fleet, clock_ns
        self.status: FleetStatus | None = None

    @property
    def declared(self) -> Declaration:
        """What decides about statuses and alerts."""
        return self._watch.declared

    @property
    def conditions(self) -> Sequence[Condition]:
        """What is watched, by the fleet or by this monitor."""
        return self._watch.conditions

    @property
    def alone(self) -> bool:
        """Whether this monitor notifies for itself: the database has been away for long."""
        return self._fleet.away_for_s >= ALONE_AFTER_S

    def service_statuses(self, now_ns: int) -> list[ServiceStatus]:
        """The status of every service: of the whole fleet, or of what this monitor alone has seen."""
        document = self.status.current(now_ns) if self.status is not None else None
        return list(document.services) if document is not None else self._watch.service_statuses(now_ns)

    def each_service_status(self, now_ns: int) -> Iterator[ServiceStatus]:
        """The same one by one, for who does not compute all of them without a pause."""
        document = self.status.current(now_ns) if self.status is not None else None
        yield from document.services if document is not None else self._watch.each_service_status(now_ns)

    def own_statuses(self, now_ns: int) -> list[ServiceStatus]:
        """The statuses by what this monitor alone has seen."""
        return self._watch.service_statuses(now_ns)

    def metric_statuses(self) -> Iterator[MetricStatus]:
        """The statuses of continuous metrics under their limits, of the whole fleet or of this monitor."""
        document = self.status.current(self._clock_ns()) if self.status is not None else None
        found = document.metrics if document is not None else None
        yield from self._watch.metric_statuses() if found is None else found

    def posted(self) -> Iterator[Posted]:
        """The alerts of this moment, in no order."""
        status = self.status
        fleet = status if status is not None and status.current(self._clock_ns()) is not None else None
        if fleet is not None:
            yield from fleet.posted()
        for posted in self._watch.posted():
            if fleet is None or not fleet.covers(posted.condition.id):
                yield posted

    def is_quiet(self, condition: str | None) -> bool:
        """Whether notices about a condition (None: reports) are another monitor's to send."""
        status = self.status
        if status is None or self.alone or status.leads:
            return False
        return condition is None or status.covers(condition)

    def own_events(self, take: Callable[[AlertEvent], Awaitable[None]]) -> Callable[[AlertEvent], Awaitable[None]]:
        """A listener of this monitor's own events, for those that no fleet watches."""

        async def taken(event: AlertEvent) -> None:
            status = self.status
            if status is None or self.alone or not status.covers(event.condition):
                await take(event)

        return taken
