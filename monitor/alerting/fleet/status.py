"""The status of the fleet: one monitor, the leader, reaches it from all monitors' slices, and all show it.

Every round a monitor publishes its slices. The lease holder reads the slices of all, looks as often as a single monitor
would, and saves state, document and events under its lease; a monitor that wrongly believes it leads saves nothing.
Events are passed on once they are saved, and stay with the state until receivers have them, so that the next leader
goes on where the last one ended. The others read in the document which events were sent, and could go on from there.

While the database is away, or nobody reaches a status, a monitor shows its own, marked as such. After
``ALONE_AFTER_S`` it notifies for itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Final, TypeAlias

from sidejudge.integrations.postgres import shared
from sidejudge.integrations.postgres.database import LeaseLost, Transaction
from sidejudge.integrations.postgres.leases import Lease
from sidejudge.integrations.postgres.shared import WindowRow
from sidejudge.monitor.alerting.details import WatchedWindow
from sidejudge.monitor.alerting.metric_watch import MetricWatch
from sidejudge.monitor.alerting.observation import First, Key, SliceFirst
from sidejudge.monitor.alerting.schedule import AlertListener
from sidejudge.monitor.alerting.watch import READ_AGAIN_NS, Watch
from sidejudge.scoring.alerts.condition import Condition, Observed
from sidejudge.scoring.alerts.conditions import conditions
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.event import AlertEvent, event_of_json
from sidejudge.scoring.alerts.lifecycle import Posted
from sidejudge.scoring.alerts.quality import metric_conditions, quality
from sidejudge.scoring.statistics.ppi import LabelSums
from sidejudge.scoring.status.status import Behind
from sidejudge.scoring.trace.time_units import HOUR_NS, MINUTE_NS

from .document import DOCUMENT, REMEDY, FleetDocument, read_document, settings_digest
from .publish import SlicePublisher
from .slices import BEHIND, BEHIND_PASSED, MOST_AHEAD, MOST_BYTES, SLICE_NS, WAITING, encoded_waiting, end_ns, slice_of
from .windows import MAX_KEYS, FleetValues, FleetWindows, InForce, divided

log = logging.getLogger("sidejudge.fleet")
_WAITS: Final = frozenset({WAITING, BEHIND, BEHIND_PASSED})

LEASE: Final = "alerts"
ALONE_AFTER_S: Final = 600.0
"""How long no status of the fleet is known until a monitor notifies for itself; leaders change within a minute."""
STALE_NS: Final = 5 * MINUTE_NS
"""An older document is no present status, unless looks are rarer: no monitor leads."""
LOOKS_MISSED: Final = 3
"""Looks that may be missing until there is no present status, where that is longer."""
_STATE: Final = "alerts/state"
_OWN: Final = "SELECT name, body FROM windows WHERE monitor = %s"
_HELD: Final = "SELECT name, extract(epoch FROM written_at)::float8 FROM windows WHERE monitor = %s"
_OVERLAP_S: Final = 60.0
"""How far each reading overlaps the last, so that a transaction that took this long is not missed."""
_GRACE_NS: Final = 30 * 10**9
"""Time for which slices are waited for until verdicts are followed in their order: two rounds of ``fleet.every``.

Later slices are followed when they come.
"""
_MOST_SENT: Final = 200
_LONGEST_NAME: Final = 15
_PAUSE_S, _PAUSES = 0.1, 20
"""For two seconds receivers are waited for, to have what was just passed on."""
_DIFFERS_AFTER_NS: Final = HOUR_NS
"""How long a leader may use other thresholds before that is reported: configurations differ during a roll-out."""
_UNREADABLE: Final = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError, zlib.error)
"""The errors of reading a record that another version wrote."""


class FleetTables:
    """Slices and states in one transaction of the fleet's database; the name of a slice is its number."""

    def __init__(self, transaction: Transaction, monitor: str, lease: Lease | None) -> None:
        self._transaction, self._monitor, self._lease = transaction, monitor, lease

    async def publish(self, slices: Mapping[str, bytes]) -> None:
        """Write slices of this monitor."""
        await shared.put_windows(self._transaction, self._monitor, slices)

    async def published(self, younger_s: float) -> Sequence[WindowRow]:
        """Slices of all monitors that were written within so many seconds."""
        return await shared.windows(self._transaction, younger_s=younger_s)

    async def own(self) -> Mapping[str, bytes]:
        """The slices of this monitor."""
        return {name: bytes(body) for name, body in await self._transaction.rows(_OWN, (self._monitor,))}

    async def held(self) -> Mapping[str, float]:
        """When each slice of this monitor was written, s since the epoch by the database's clock."""
        return dict(await self._transaction.rows(_HELD, (self._monitor,)))

    async def save(self, states: Mapping[str, bytes]) -> None:
        """Write states under the lease. Raises ``LeaseLost`` where another monitor holds it."""
        if self._lease is None:
            raise LeaseLost(f"the lease {LEASE} is not held")
        await shared.save(self._transaction, self._lease, states)

    async def load(self, names: Sequence[str]) -> Mapping[str, bytes]:
        """The states of these names that there are."""
        return {name: state.body for name, state in (await shared.load(self._transaction, names)).items()}


OpenTables: TypeAlias = Callable[[], AbstractAsyncContextManager[FleetTables]]
"""Begins a transaction."""


class FleetStatus:
    """One monitor's part in the status of the fleet.

    Args:
        name: of this monitor.
        declared: what is watched, and when.
        watched: what is watched of each rubric.
        publisher: what this monitor publishes.
        in_force: whether verdicts by a rubric's version count.
        clock_ns: ns since the epoch.
        pass_on: gives an event to receivers.
        note: notes that receivers have got an event from another monitor.
        illustrated: an event with examples.
        undelivered: how many notices wait for their receivers here.
        waiting: what waits for an answer here at a time, in ns, as how many traces stand for it.
        behind: what waits here behind a slow judge likewise.
        labels: people's labels by rubric, of the whole fleet (``alerts.corrected``).
        hash_key: what traces are drawn by, the same in all of the fleet.
        clock_s: seconds that never go back.
    """

    def __init__(
        self, *, name: str, declared: Declaration, watched: Mapping[str, WatchedWindow], publisher: SlicePublisher,
        clock_ns: Callable[[], int], pass_on: AlertListener, note: AlertListener,
        in_force: InForce = lambda _, __: True, illustrated: Callable[[AlertEvent], AlertEvent] = lambda event: event,
        undelivered: Callable[[], int] = lambda: 0, labels: Callable[[], Mapping[str, LabelSums]] = dict,
        waiting: Callable[[int], Mapping[Key, float]] = lambda _now_ns: {},
        behind: Callable[[int], Mapping[Key, Behind]] = lambda _now_ns: {},
        hash_key: bytes = b"", clock_s: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.name, self._waiting, self._behind, self._read_again_ns = name, waiting, behind, 0
        self._has_waited: frozenset[str] = frozenset()
        self._clock_s, self._known_s = clock_s, clock_s()
        self.document: FleetDocument | None = None
        self._followed = b""
        self._declared, self._watched, self._publisher, self._in_force = declared, watched, publisher, in_force
        self._clock_ns, self._pass_on, self._note = clock_ns, pass_on, note
        self._illustrated, self._undelivered, self._labels = illustrated, undelivered, labels
        among = {each.id for each in quality(declared)}
        limited = {each.id for each in metric_conditions(declared)} if declared.metrics else set()
        among |= limited | {"judge_failure_rate"}
        self.conditions = [each for each in conditions(declared) if each.id in among]
        self._limited = limited
        self.conditions_by_id: Mapping[str, Condition] = {each.id: each for each in self.conditions}
        self._shown = self._new_watch(FleetWindows(declared.window_ns))
        self._leading: _Leader | None = None
        self.leads = False
        """Whether this monitor leads, as far as the running round and the one before have shown."""
        self._is_known, self._restarts = False, 0
        self._watches = settings_digest(declared, watched, hash_key)
        self._differs_since_ns: int | None = None
        self.other_settings: str | None = None

    def restart(self) -> None:
        """Begin again with what is saved: a rubric has another version by now."""
        self._leading = None
        self._restarts += 1

    def covers(self, condition: str) -> bool:
        """Whether the fleet watches this condition; the others are about each monitor itself."""
        if condition in self._limited and self.document is not None and self.document.metrics is None:
            return False  # the leader is of a version that watches no limits
        return condition in self.conditions_by_id

    def current(self, now_ns: int) -> FleetDocument | None:
        """The status of the fleet; None where it is unknown or too old."""
        found = self.document
        stale_ns = max(STALE_NS, LOOKS_MISSED * self._declared.look_ns)
        return found if found is not None and now_ns - found.at_ns < stale_ns else None

    @property
    def unknown_for_s(self) -> float:
        """For how many seconds nobody has reached a status of the fleet."""
        return self._clock_s() - self._known_s

    def posted(self) -> Iterator[Posted]:
        """The alerts of the fleet."""
        return self._shown.posted()

    async def round(self, transaction: OpenTables, *, leading: bool) -> None:
        """Publish, and read or reach the status of the fleet. Nothing is computed within a transaction."""
        try:
            await self._round(transaction, leading=leading)
        finally:
            self.leads = self._leading is not None

    async def _round(self, transaction: OpenTables, *, leading: bool) -> None:
        now_ns, leader = self._clock_ns(), self._leading
        self._leading = None  # whatever fails below, the next round begins with what is saved
        self.leads = self.leads and leading
        await self._know_published(transaction, now_ns)
        slices = await self._publisher.due(now_ns)
        async with transaction() as tables:
            if rows := self._rows(slices, now_ns):
                await tables.publish(rows)
            held = {_number(name): at_s for name, at_s in (await tables.held()).items()}
            loaded = {} if leading else await tables.load([DOCUMENT])
        self._publisher.published(list(slices), held, now_ns, self._declared.reach_ns)
        if leading:
            await self._lead(transaction, leader, now_ns)
        elif (body := loaded.get(DOCUMENT)) is not None:
            await self._follow(body)

    async def _know_published(self, transaction: OpenTables, now_ns: int) -> None:
        if self._is_known:
            return
        async with transaction() as tables:
            held = await tables.own()
        own = {_number(name): body for name, body in held.items()}
        self._has_waited, self._read_again_ns = _WAITS & set(held), now_ns + READ_AGAIN_NS
        latest = slice_of(now_ns) + MOST_AHEAD
        await self._publisher.known({n: body for n, body in own.items() if 0 <= n <= latest}, now_ns)
        self._is_known = True

    async def _lead(self, transaction: OpenTables, leader: _Leader | None, now_ns: int) -> None:
        restarts = self._restarts
        if leader is None:
            leader = await self._take_over(transaction, now_ns)
        async with transaction() as tables:
            rows = await tables.published(leader.unread_s(now_ns))
        if leader.is_due(now_ns):
            leader.watch.take_labels(self._labels())
            document = replace(await asyncio.to_thread(leader.look, rows, now_ns), watches=self._watches)
            self._compare(document)
            async with transaction() as tables:
                await tables.save({_STATE: leader.state(), DOCUMENT: document.encoded()})
            self._show(document)
        self._leading = leader if restarts == self._restarts else None
        self.leads = self._leading is not None
        for event in leader.unnoted():
            await self._note(event)
        unsent = leader.unsent()
        for event in unsent:
            await self._pass_on(event)
            leader.passed(event)
        await self._settle(leader, transaction, wait=bool(unsent))

    async def end(self, transaction: OpenTables) -> None:
        """This monitor ends: the fleet gets its last verdicts, the next leader the events that receivers have."""
        now_ns = self._clock_ns()
        await self._know_published(transaction, now_ns)
        if rows := self._rows(await self._publisher.due(now_ns, ends=True), now_ns):
            async with transaction() as tables:
                await tables.publish(rows)
        if self._leading is not None:
            await self._settle(self._leading, transaction, wait=True)

    def _rows(self, slices: Mapping[int, bytes], now_ns: int) -> dict[str, bytes]:
        """Slices to publish, and what waits beside them: in each round while there is some, and once when it is over.

        What an earlier run of this monitor has left there is over, or waits again.
        """
        rows = {str(number): body for number, body in slices.items()}
        self._read_again_ns = min(self._read_again_ns, now_ns + READ_AGAIN_NS)  # the clock may have been set back
        behind = self._behind(now_ns)
        for name, weights in (
            (WAITING, self._waiting(now_ns)),
            (BEHIND, {key: each.traces for key, each in behind.items()}),
            (BEHIND_PASSED, {key: each.passed for key, each in behind.items()}),
        ):
            if weights or (name in self._has_waited and now_ns >= self._read_again_ns):
                self._has_waited = self._has_waited - {name} if not weights else self._has_waited | {name}
                rows[name] = encoded_waiting(weights, self._publisher.versions({key.rubric for key in weights}))
        return rows

    async def _settle(self, leader: _Leader, transaction: OpenTables, *, wait: bool) -> None:
        """Save at once that receivers have the passed events, because the next leader would send them again."""
        for _ in range(_PAUSES if wait and leader.owes else 0):
            if not self._undelivered():
                break
            await asyncio.sleep(_PAUSE_S)
        if not leader.owes or self._undelivered():
            return
        leader.all_sent()
        if self.document is None:
            return
        self.document = replace(self.document, sent=leader.sent)
        async with transaction() as tables:
            await tables.save({_STATE: leader.state(), DOCUMENT: self.document.encoded()})

    async def _take_over(self, transaction: OpenTables, now_ns: int) -> _Leader:
        async with transaction() as tables:
            kept = (await tables.load([_STATE])).get(_STATE)
        leader = self._new_leader()
        leader.watch.take_labels(self._labels())
        if kept is not None:
            try:
                leader.restore(kept)
            except _UNREADABLE as error:
                cause = f"{type(error).__name__}: {error}"[:300]
                log.warning("what the last leader left could not be read; this one begins anew", extra={"cause": cause})
                leader, kept = self._new_leader(), None
                leader.watch.take_labels(self._labels())
        log.info("this monitor leads the fleet", extra={"restored": kept is not None})
        reach_s = self._declared.window_ns / 1e9
        while True:
            async with transaction() as tables:
                rows = await tables.published(reach_s + _OVERLAP_S)
            if not await asyncio.to_thread(leader.wants_more, rows, now_ns, reach_s):
                return leader
            reach_s *= 2

    def _new_leader(self) -> _Leader:
        windows = FleetWindows(
            self._declared.window_ns, longest_ns=self._declared.reach_ns,
            enough=self._declared.policy.min_samples if self._declared.policy.mode == "adaptive" else 0.0,
            in_force=self._in_force,
        )  # fmt: skip
        values = FleetValues(self._declared, self._in_force)
        watch = self._new_watch(windows, values.metrics)
        watch.awaited, watch.behind = windows.waiting, windows.behind
        return _Leader(
            self.name, watch=watch, windows=windows, values=values,
            watched=self._watched, illustrated=self._illustrated,
        )  # fmt: skip

    async def _follow(self, body: bytes) -> None:
        try:
            document = read_document(body)
            if body == self._followed:
                return
            sent = [event_of_json(stated) for stated in document.sent]
            self._show(document)
            self._compare(document)
            self._followed = body
        except _UNREADABLE as error:
            log.warning("the fleet's status could not be read", extra={"cause": f"{error}"[:300]})
            return
        for event in sent:
            await self._note(event)

    def _show(self, document: FleetDocument) -> None:
        shown = self._new_watch(FleetWindows(self._declared.window_ns))
        shown.show(document.alerts)
        self.document, self._shown, self._known_s = document, shown, self._clock_s()

    def _compare(self, document: FleetDocument) -> None:
        """Note for how long the leader watches by other settings; two fleets in one schema do so for good."""
        if document.watches in (None, self._watches):
            self._differs_since_ns = self.other_settings = None
            return
        self._differs_since_ns = self._differs_since_ns or document.at_ns
        if document.at_ns - self._differs_since_ns < _DIFFERS_AFTER_NS or self.other_settings is not None:
            return
        self.other_settings = (
            "for over an hour the fleet's leader has other rubrics, thresholds, windows or randomness_key than this "
            f"monitor; {REMEDY}"
        )
        log.warning("one fleet, two configurations", extra={"leader": document.leader, "cause": self.other_settings})

    def _new_watch(self, windows: FleetWindows, metrics: MetricWatch | None = None) -> Watch:
        among = self.conditions
        return Watch(
            self._declared, windows, self._watched, max_keys=MAX_KEYS, among=among, metrics=metrics,
            known_until=lambda now_ns: _complete(now_ns) * SLICE_NS,  # what comes in a slice counts from its beginning
        )  # fmt: skip


class _Leader:
    """The leader's state in memory, made anew with each lease."""

    def __init__(
        self, name: str, *, watch: Watch, windows: FleetWindows, values: FleetValues,
        watched: Mapping[str, WatchedWindow], illustrated: Callable[[AlertEvent], AlertEvent],
    ) -> None:  # fmt: skip
        self.watch, self._values = watch, values
        self._name, self._windows, self._watched, self._illustrated = name, windows, watched, illustrated
        self._declared = watch.declared
        self._learned: dict[str, int] = {}
        self._firsts: dict[int, dict[Key, Counter[First | SliceFirst]]] = {}
        self._pending: set[tuple[str, int]] = set()
        self._bodies: dict[tuple[str, int], int] = {}
        self._refused: set[str] = set()
        self._waiting: dict[str, AlertEvent] = {}
        self._passed: set[str] = set()
        self._sent: list[Mapping[str, object]] = []
        self._restored: list[AlertEvent] = []
        self._looked_ns = self._read_ns = 0

    def is_due(self, now_ns: int) -> bool:
        """Whether a look is due. A round comes a little early or late.

        A look comes with a slice that has just become complete, up to half a slice's time early: between two it would
        find nothing new, and the next slice would wait for the look after it.
        """
        since_ns, look_ns = now_ns - self._looked_ns, self._declared.look_ns
        if since_ns < 0:  # the clock was set back
            return True
        if look_ns < SLICE_NS:
            return since_ns >= look_ns - 10**9
        return since_ns >= look_ns - SLICE_NS // 2 and _complete(now_ns) > _complete(self._looked_ns)

    def wants_more(self, rows: Sequence[WindowRow], now_ns: int, reach_s: float) -> bool:
        """Take in slices published in the last ``reach_s``; return whether some window reaches further back."""
        self._take(rows, now_ns)
        self._windows.advance(now_ns)
        self._read_ns = now_ns
        further = reach_s < self._declared.reach_ns / 1e9
        more = self._windows.wants_more(slice_of(now_ns - int(reach_s * 1e9)))
        return further and (more or self._values.wants_more())

    def unread_s(self, now_ns: int) -> float:
        """How far to read back, in s."""
        return max(0, now_ns - self._read_ns) / 1e9 + _OVERLAP_S

    def look(self, rows: Sequence[WindowRow], now_ns: int) -> FleetDocument:
        """Take in what was published, follow what is complete, look, and state what was found."""
        self._take(rows, now_ns)
        self._read_ns = now_ns
        complete = _complete(now_ns)
        for number in sorted(each for each in self._firsts if each <= complete):
            for key, firsts in sorted(self._firsts.pop(number).items()):
                verdicts = {first: n for first, n in firsts.items() if isinstance(first, First)}
                self.watch.learn_together(key, verdicts, number * SLICE_NS, end_ns(number))
                sliced = {first: n for first, n in firsts.items() if isinstance(first, SliceFirst)}
                self.watch.learn_slices(key, sliced, number * SLICE_NS)
        for monitor, number in sorted(each for each in self._pending if each[1] <= complete):
            self._learned[monitor] = max(self._learned.get(monitor, -1), number)
            self._pending.discard((monitor, number))
        self._windows.advance(now_ns)
        self._windows.leave_unknown(self._watched)
        self._values.advance(complete, slice_of(now_ns - self._declared.reach_ns))
        keys = self._windows.keys()
        details = {key: self._windows.details(key, self._watched.get(key.rubric, WatchedWindow())) for key in keys}
        acceptable = {rubric: watched.on_average for rubric, watched in self._watched.items()}
        measured = self._values.metrics.measured(now_ns)()
        for event in self.watch.look(Observed(now_ns=now_ns), details, acceptable, measured):
            self._waiting[event.id] = self._illustrated(event)
        self._looked_ns = now_ns
        return FleetDocument(
            at_ns=now_ns, leader=self._name, services=self.watch.service_statuses(now_ns),
            metrics=list(self.watch.metric_statuses()),
            alerts=[stated for _, stated in self.watch.stated_alerts()], sent=self.sent,
            shares=self._windows.shares(now_ns),
        )  # fmt: skip

    @property
    def sent(self) -> list[Mapping[str, object]]:
        """The latest events that receivers have got, in their JSON form."""
        return self._sent[-_MOST_SENT:]

    @property
    def owes(self) -> bool:
        """Whether events were passed on without a saved note that receivers have them."""
        return bool(self._passed)

    def unnoted(self) -> list[AlertEvent]:
        """Events that an earlier leader passed on, once."""
        found, self._restored = self._restored, []
        return found

    def unsent(self) -> list[AlertEvent]:
        """Events that were not passed on here."""
        return [event for id_, event in self._waiting.items() if id_ not in self._passed]

    def passed(self, event: AlertEvent) -> None:
        """This event was passed on."""
        self._passed.add(event.id)

    def all_sent(self) -> None:
        """Receivers have everything that was passed on."""
        for id_ in [id_ for id_ in self._waiting if id_ in self._passed]:
            self._sent.append(self._waiting.pop(id_).bare.to_json())
        self._passed.clear()
        del self._sent[:-_MOST_SENT]

    def state(self) -> bytes:
        """The state for the next leader."""
        kept = {
            "watch": self.watch.to_memory(), "learned": self._learned, "sent": self._sent,
            "waiting": [event.to_json() for event in self._waiting.values()],
        }  # fmt: skip
        return zlib.compress(json.dumps(kept).encode(), 6)

    def restore(self, body: bytes) -> None:
        """Go on from what ``state`` wrote. Raises one of ``_UNREADABLE`` for anything else."""
        kept = json.loads(zlib.decompressobj().decompress(body, MOST_BYTES))
        self.watch.restore(kept["watch"])
        self._learned = {monitor: int(number) for monitor, number in kept["learned"].items()}
        self._sent = list(kept["sent"])
        self._restored = list(map(event_of_json, self._sent))
        self._waiting = {event.id: event for event in map(event_of_json, kept["waiting"])}

    def _take(self, rows: Sequence[WindowRow], now_ns: int) -> None:
        oldest = slice_of(now_ns - self._declared.reach_ns)
        for monitor, name, body, age_s in rows:
            if name in _WAITS:
                try:
                    self._windows.put_waiting(monitor, name, now_ns - int(age_s * 1e9), body)
                except ValueError as error:
                    self._refuse(monitor, name, f"{error}"[:300])
                continue
            number = _number(name)
            place = (monitor, number)
            if number < oldest or self._bodies.get(place) == hash(body):
                continue
            if number > slice_of(now_ns) + MOST_AHEAD:
                self._refuse(monitor, name, "it is of a time that is more than an hour ahead; set clocks by NTP")
                continue
            unread = place not in self._bodies and number > self._learned.get(monitor, -1)
            firsts: Mapping[Key, Counter[First | SliceFirst]] = {}
            try:
                slices, values = divided(body)
                firsts = self._windows.put(monitor, number, slices)
                self._values.put(monitor, number, values, first=unread)
            except ValueError as error:
                self._refuse(monitor, name, f"{error}"[:300])
            if unread:
                self._pending.add(place)
                for key, of in firsts.items():
                    self._firsts.setdefault(number, {}).setdefault(key, Counter()).update(of)
            self._bodies[place] = hash(body)
        for place in [place for place in self._bodies if place[1] < oldest]:
            del self._bodies[place]

    def _refuse(self, monitor: str, name: str, cause: str) -> None:
        """Log an unreadable slice once for each monitor, because it would recur every minute."""
        if monitor not in self._refused:
            self._refused.add(monitor)
            log.warning(
                "a slice of the fleet could not be read, and counts nowhere; is this monitor of another version?",
                extra={"monitor": monitor, "slice": name[:40], "cause": cause},
            )


def _complete(now_ns: int) -> int:
    """The latest slice that all monitors should have published by now."""
    return slice_of(now_ns - _GRACE_NS) - 1


def _number(name: str) -> int:
    """The number of a slice; −1 where this is none."""
    return int(name) if name.isdecimal() and len(name) <= _LONGEST_NAME else -1
