"""Builds a monitor's part in the status of the fleet.

The fleet's database as the status of the fleet uses it.

The statuses and alerts that pages, metrics and notices show: the fleet's while they are known, else one's own.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from sidejudge.integrations.postgres.database import DatabaseError
from sidejudge.integrations.postgres.leases import Lease
from sidejudge.integrations.postgres.shared import MonitorRow
from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.alerting.failures import illustrated_firing
from sidejudge.monitor.alerting.notify.build import Notifications
from sidejudge.monitor.alerting.observation import Key
from sidejudge.monitor.alerting.schedule import AlertListener
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.monitor.fleet.fleet import Fleet
from sidejudge.scoring.alerts.condition import Condition
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.event import AlertEvent
from sidejudge.scoring.alerts.lifecycle import Posted
from sidejudge.scoring.statistics.ppi import LabelSums
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.service_status import FleetMonitor, FleetReport, MonitorState, ServiceStatus
from sidejudge.scoring.status.status import Behind
from sidejudge.scoring.verdict.rubric import Rubric

from .document import FleetDocument
from .publish import SlicePublisher
from .status import ALONE_AFTER_S, LEASE, LOOKS_MISSED, FleetStatus, FleetTables

log = logging.getLogger("sidejudge.fleet")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetParts:
    """What the parts of a monitor share about the fleet's status."""

    fleet: Fleet
    watch: Watch
    publisher: SlicePublisher
    status: FleetStatus

    def report(self, now_ns: int) -> FleetReport:
        """The fleet at this moment."""
        document, present = self.status.current(now_ns), {*self.fleet.present}
        shares = document.shares if document is not None else {}
        monitors = [_monitor(row, row.monitor in present, shares.get(row.monitor, 0)) for row in self.fleet.monitors]
        own = self.watch.service_statuses(now_ns)
        if document is not None:
            return FleetReport(
                name=self.fleet.name, monitors=monitors, services=document.services, own=own,
                leader=document.leader, at_ns=document.at_ns, other_settings=self.status.other_settings,
            )  # fmt: skip
        alone = (
            self.fleet.away
            or self.fleet.wrong_clock
            or "no monitor has reached a status of the fleet within the last minutes"
        )
        return FleetReport(name=self.fleet.name, monitors=monitors, services=own, own=own, alone=alone)

    async def round(self) -> None:
        """Share once, if the database is reachable; otherwise the next round goes on."""
        if self.fleet.away is not None:
            return
        try:
            lease = self.fleet.held(LEASE)
            await self.status.round(partial(self._tables, lease), leading=lease is not None)
        except (DatabaseError, StoreError) as error:
            log.warning("the fleet's status could not be shared; it is tried again", extra={"cause": str(error)})

    async def end(self) -> None:
        """Publish the last verdicts, and save which events receivers have, if the database is reachable."""
        if self.fleet.away is not None:
            return
        with suppress(DatabaseError, StoreError):
            await self.status.end(partial(self._tables, self.fleet.held(LEASE)))

    @asynccontextmanager
    async def _tables(self, lease: Lease | None) -> AsyncIterator[FleetTables]:
        async with self.fleet.transaction() as transaction:
            yield FleetTables(transaction, self.fleet.name, lease)


def fleet_parts(
    fleet: Fleet, board: FleetBoard, watch: Watch, windows: Windows, *, figures: Windows,
    rubrics: Mapping[str, Rubric], store: Store, notifications: Notifications, count: AlertListener,
    labels: Callable[[], Mapping[str, LabelSums]], clock_ns: Callable[[], int], hash_key: bytes = b"",
    waiting: Callable[[int], Mapping[Key, float]] = lambda _now_ns: {},
    behind: Callable[[int], Mapping[Key, Behind]] = lambda _now_ns: {},
) -> FleetParts:  # fmt: skip
    """The status of the fleet over these parts of a monitor; ``board`` shows it from now on."""

    def version(rubric: str) -> str | None:
        known = rubrics.get(rubric)
        return None if known is None else known.version

    def in_force(rubric: str, by: str | None) -> bool:
        known = version(rubric)
        return known is None or (known == by and rubric in watch.watched)  # a reload may have removed it

    async def pass_on(event: AlertEvent) -> None:
        await notifications.take(event)
        await count(event)

    def shown(event: AlertEvent) -> AlertEvent:
        return illustrated_firing(store, status.conditions_by_id[event.condition], event, windows.window_ns)

    fleet.want(LEASE, by_time=True)
    limits = watch.declared.metrics
    publisher = SlicePublisher(windows, watch.watched, version, figures=figures if limits else None, limits=limits)
    status = FleetStatus(
        name=fleet.name, declared=watch.declared, watched=watch.watched, publisher=publisher, clock_ns=clock_ns,
        pass_on=pass_on, note=notifications.note, illustrated=shown,
        in_force=in_force,
        undelivered=lambda: sum(each.waiting for each in notifications.exports()), labels=labels,
        hash_key=hash_key, waiting=waiting, behind=behind,
    )  # fmt: skip
    board.status = status
    return FleetParts(fleet=fleet, watch=watch, publisher=publisher, status=status)


def _monitor(row: MonitorRow, is_present: bool, verdicts: int) -> FleetMonitor:  # noqa: FBT001  # all there is to it
    there: MonitorState = "working" if verdicts else "quiet"
    return FleetMonitor(
        name=row.monitor, version=row.version, host=row.host, started_s=row.started_at.timestamp(), seen_s=row.age_s,
        state="left" if row.left else there if is_present else "gone", verdicts=verdicts,
    )  # fmt: skip


class FleetBoard:
    """Replaces a monitor's own watch where it belongs to a fleet. Conditions on the monitor stay its own."""

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
        """Whether this monitor notifies for itself: for long, nobody has reached a status of the fleet."""
        status, look_s = self.status, self._watch.declared.look_ns / 1e9
        unknown_for_s = status.unknown_for_s if status is not None else 0.0
        return self._fleet.away_for_s >= ALONE_AFTER_S or unknown_for_s >= max(ALONE_AFTER_S, LOOKS_MISSED * look_s)

    def _document(self, now_ns: int) -> FleetDocument | None:
        return self.status.current(now_ns) if self.status is not None else None

    def service_statuses(self, now_ns: int) -> list[ServiceStatus]:
        """The status of every service: of the whole fleet, or of what this monitor alone has seen."""
        return list(self.each_service_status(now_ns))

    def each_service_status(self, now_ns: int) -> Iterator[ServiceStatus]:
        """The same one by one, for callers that must pause between them."""
        document = self._document(now_ns)
        yield from document.services if document is not None else self._watch.each_service_status(now_ns)

    def metric_statuses(self) -> Iterator[MetricStatus]:
        """The statuses of continuous metrics under their limits, of the whole fleet or of this monitor."""
        document = self._document(self._clock_ns())
        found = document.metrics if document is not None else None
        yield from self._watch.metric_statuses() if found is None else found

    def posted(self) -> Iterator[Posted]:
        """The alerts of this moment, in no order: the fleet's last ones until this monitor notifies for itself."""
        status = self.status
        fleet = status if status is not None and status.document is not None and not self.alone else None
        if fleet is not None:
            yield from fleet.posted()
        for posted in self._watch.posted():
            if fleet is None or not fleet.covers(posted.condition.id):
                yield posted

    def is_shared(self, condition: str) -> bool:
        """Whether the fleet's alerts of a condition are those that receivers get: whoever leads ends them."""
        return self.status is not None and not self.alone and self.status.covers(condition)

    def is_quiet(self, condition: str) -> bool:
        """Whether notices about a condition are another monitor's to send."""
        return self.is_shared(condition) and not (self.status is not None and self.status.leads)

    async def reports(self, due_s: int) -> bool | None:
        """Whether this monitor sends the report that was due then; None: nobody does so far."""
        if self.status is None or self.alone:
            return True
        try:
            due = datetime.fromtimestamp(due_s, UTC)
            return await self._fleet.claim(f"report of {due:%Y-%m-%d %H:%M}", take=self.status.leads)
        except DatabaseError:
            return None

    def own_events(self, take: Callable[[AlertEvent], Awaitable[None]]) -> Callable[[AlertEvent], Awaitable[None]]:
        """A listener of this monitor's own events, for those that no fleet watches."""

        async def taken(event: AlertEvent) -> None:
            status = self.status
            if status is None or self.alone or not status.covers(event.condition):
                await take(event)

        return taken
