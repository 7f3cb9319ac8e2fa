"""Decides which receiver gets which notice and when, and puts notices into the outbox with a note in one transaction.

Notices are sent for changes, not for states: an alert fires, becomes unknown, is over; while it fires, a reminder is
sent once in ``remind_ns``. A muted alert is not sent, but the end of a sent one is. A repeated event after a crash is
recognised by its number.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

from sidejudge.integrations.notify.alertmanager import ENDS_AFTER_S, REFRESH_S
from sidejudge.integrations.store.notification_outbox import Entry, NotificationOutbox
from sidejudge.monitor.alerting.watch import PASSING_NS
from sidejudge.scoring.alerts.event import AlertEvent, Example, event_of_json, fingerprint
from sidejudge.scoring.alerts.lifecycle import AlertTransition, Posted, Stage
from sidejudge.scoring.notices.notice import DailyReportText, Notice, NoticeKind
from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS, MINUTE_NS

from .receiver import NoticeReceiver


@dataclass(frozen=True, slots=True, kw_only=True)
class SentNotices:
    """The last event about one alert that was passed on to one receiver, at ``at_ns`` (a reminder counts).

    ``at_once``: by a message of its own, not in a digest; ``in_digest``: it waits for the digest.
    """

    event: AlertEvent
    at_ns: int
    at_once: bool
    reminders: int = 0
    in_digest: bool = False

    @property
    def stands(self) -> bool:
        """Whether the alert is not over, as far as the receiver knows."""
        return self.event.transition in {AlertTransition.FIRING, AlertTransition.UNKNOWN}

    def knows(self, event: AlertEvent) -> bool:
        """Whether this event, or one after it, was passed on already."""
        return (event.since_ns, event.number) <= (self.event.since_ns, self.event.number)

    def gave_up(self, event: AlertEvent) -> bool:
        """Whether the alert was given up before this event: it is watched again, and goes on."""
        return self.event.transition is AlertTransition.EXPIRED and self.event.at_ns < event.at_ns

    def to_json(self) -> str:
        """For the store, with no more of traces than a digest is still to show."""
        event = self.event if self.in_digest else self.event.bare
        return json.dumps(
            {
                "event": {**event.to_json(), "shared": event.shared}, "at_ns": self.at_ns, "at_once": self.at_once,
                "reminders": self.reminders, "in_digest": self.in_digest,
            }
        )  # fmt: skip

    @classmethod
    def of_json(cls, text: str, *, shared: bool = False) -> Self:
        """Read what ``to_json`` wrote; ``shared``: whether an alert is that a version before there were any noted."""
        stated = json.loads(text)
        return cls(**{**stated, "event": event_of_json({"shared": shared, **stated["event"]})})


FORGET_NS = DAY_NS
"""How long the note of an alert that is over is kept."""
UNWATCHED_NS = 10 * MINUTE_NS
"""An alert that is not watched any more (another configuration) is reported as expired after this."""
UNSENT_NS = PASSING_NS + UNWATCHED_NS // 2
"""An alert that fires, and that a receiver was not sent, is sent after this. One that is not muted any more is reported
before.
"""
REFRESH_NS = int(REFRESH_S * 1e9)
ILLUSTRATED_NS = 15 * MINUTE_NS
"""How long illustrations of an alert are repeated to a receiver that keeps state: to find them takes half a second."""
MOST_ILLUSTRATED = 10
"""Alerts that are illustrated anew at one refresh."""
RESENT_NS = int(ENDS_AFTER_S * 1e9)
"""How long the end of an alert is repeated to a receiver that keeps state."""
SUBJECT = len("0123456789abcdef-")
"""So many first characters of a notice's id name its alert: the fingerprint. Digests and reports have ids as short."""
ALERT, DIGEST = "told/", "digest/"
"""How the names of notes begin; a receiver's name follows."""


Illustrate: TypeAlias = Callable[[AlertEvent, int], AlertEvent]
"""Adds illustrations since a moment to an event: failing traces, and what most have in common. It reads the store."""


class Notifier:
    """Notifies receivers of alerts. ``take`` listens to events; ``tick`` reminds, refreshes and sends digests.

    ``is_shared``: whether the alerts of a condition that fire now are those of all monitors together. ``is_quiet``:
    whether another monitor sends the notices about shared ones. They are noted as if they had been sent from here, so
    that this monitor can go on from there. Its own alerts it ends itself. ``is_named``: receivers know these by its
    name, so that they stay its own. ``holds``: whether a trace is still known; one that was forgotten is named no more.
    """

    def __init__(
        self,
        receivers: Sequence[NoticeReceiver],
        outbox: NotificationOutbox,
        *,
        remind_ns: int,
        clock_ns: Callable[[], int],
        illustrate: Illustrate = lambda event, _since_ns: event,
        holds: Callable[[str], bool] = lambda _: True,
        wake: Callable[[], None] = lambda: None,
        is_shared: Callable[[str], bool] = lambda _: False,
        is_quiet: Callable[[str], bool] = lambda _: False,
        is_named: bool = False,
    ) -> None:
        self._is_shared, self._is_quiet, self._is_named = is_shared, is_quiet, is_named
        self._receivers, self._outbox, self._remind_ns = receivers, outbox, remind_ns
        self._clock_ns, self._illustrate, self._holds, self._wake = clock_ns, illustrate, holds, wake
        self._sent: dict[str, SentNotices] = {}
        self._digested_ns: dict[str, int] = {}
        self._refreshed_ns: dict[str, int] = {}
        self._unwatched_ns: dict[str, int] = {}
        self._unsent_ns: dict[str, int] = {}
        self._shown: dict[str, tuple[int, AlertEvent]] = {}  # illustrations, and since when
        self._one = asyncio.Lock()

    def restore(self) -> None:
        """Take up the notes of the last run. Those of receivers that are no longer configured are deleted in time."""
        for name, note in self._outbox.notes().items():
            if name.startswith(ALERT):
                self._sent[name] = SentNotices.of_json(note, shared=not self._is_named)
            elif name.startswith(DIGEST):
                self._digested_ns[name.removeprefix(DIGEST)] = int(note)

    async def take(self, event: AlertEvent, *, noted: bool = False) -> None:
        """Pass an event on. Returns once that is committed; taken again, it changes nothing.

        ``noted``: receivers have it from another monitor.
        """
        async with self._one:
            await self._pass_on(self._receivers, event, noted=noted)

    async def tick(self, posted: Iterable[Posted]) -> None:
        """Send the notices that are due by time alone, given the alerts of this moment."""
        now_ns = self._clock_ns()
        active = {fingerprint(each.alert.condition, each.alert.labels): each for each in posted}
        async with self._one:
            self._no_later(now_ns)
            unsent = self._unsent_ns.items()
            self._unsent_ns = {name: at_ns for name, at_ns in unsent if name.rpartition("/")[2] in active}
            self._shown = {mark: known for mark, known in self._shown.items() if mark in active}
            for receiver in self._receivers:
                if receiver.keeps_state:
                    await self._refresh(receiver, active, now_ns)
                else:
                    await self._remind(receiver, active, now_ns)
                    await self._digest(receiver, now_ns)
                await self._catch_up(receiver, active, now_ns)
                await self._give_up(receiver, active, now_ns)
            await self._forget(now_ns)

    async def end(self) -> None:
        """Report open alerts as expired that carry this monitor's name: it ends for good."""
        now_ns = self._clock_ns()
        async with self._one:
            for receiver in self._receivers:
                if not receiver.keeps_state:  # there they end by themselves
                    for name, sent in self._of(receiver):
                        if sent.stands and not sent.event.shared:
                            await self._expire(receiver, name, sent, now_ns, "the monitor that reported it has ended")

    async def report(self, report: DailyReportText, note: tuple[str, str]) -> None:
        """Send a report to everybody who takes one, and note in the same transaction that it was sent."""
        takers = [receiver for receiver in self._receivers if not receiver.keeps_state]
        notice = Notice(
            id=f"report-{report.end_ns // 10**9}", kind=NoticeKind.REPORT, at_ns=report.end_ns, report=report
        )
        await self._outbox.put([_entry(receiver, notice) for receiver in takers], self._clock_ns(), dict([note]))
        self._wake()

    def _no_later(self, now_ns: int) -> None:
        """After the clock was set back, count from now what was noted as later."""
        for known in (self._digested_ns, self._refreshed_ns, self._unwatched_ns, self._unsent_ns):
            known |= {name: now_ns for name, at_ns in known.items() if at_ns > now_ns}
        for name, sent in self._sent.items():
            if sent.stands and sent.at_ns > now_ns:
                self._sent[name] = replace(sent, at_ns=now_ns)

    async def _pass_on(self, receivers: Iterable[NoticeReceiver], event: AlertEvent, *, noted: bool = False) -> None:
        entries, changed = [], {}
        for receiver in receivers:
            name = _name(receiver, event.fingerprint)
            before = self._sent.get(name)
            if not _is_news(before, event, self._clock_ns()):
                continue
            # A receiver that got the firing at once gets what follows at once, and under the same identity, whatever
            # is configured and whoever sends by now.
            goes_on = before if before is not None and before.stands else None
            at_once = (goes_on is not None and goes_on.at_once) or receiver.at_once(event.severity)
            if not at_once and not receiver.takes(event.severity):
                continue
            own = goes_on if self._is_named else None
            shared = noted or self._is_shared(event.condition) if own is None else own.event.shared
            sent = replace(event, shared=shared)
            changed[name] = SentNotices(event=sent, at_ns=event.at_ns, at_once=at_once, in_digest=not at_once)
            if at_once and not (sent.shared and (noted or self._is_quiet(event.condition))):
                back = f"-back-{event.at_ns // 10**9}" if before is not None and before.gave_up(event) else ""
                entries.append(_entry(receiver, _notice(NoticeKind.ALERT, sent, back)))
        await self._put(entries, changed)
        if event.transition is AlertTransition.FIRING:
            self._shown[event.fingerprint] = self._clock_ns(), event

    def _leaves(self, event: AlertEvent) -> bool:
        """Whether notices about this alert are another monitor's to send."""
        return event.shared and self._is_quiet(event.condition)

    async def _catch_up(self, receiver: NoticeReceiver, active: dict[str, Posted], now_ns: int) -> None:
        """Send alerts that fire and that the receiver was not sent: it is new, or took more severe ones alone."""
        for mark, here in active.items():
            name = _name(receiver, mark)
            before = self._sent.get(name)
            is_sent = (before is not None and before.stands) or not receiver.takes(here.condition.severity)
            # Another monitor that sends it says when receivers have it.
            is_due = here.alert.stage is Stage.FIRING and not here.muted and not self._is_quiet(here.condition.id)
            if is_sent or not is_due:
                self._unsent_ns.pop(name, None)
                continue
            event = AlertEvent.of(here.condition, here.alert, AlertTransition.FIRING, now_ns)
            if now_ns - self._unsent_ns.setdefault(name, now_ns) >= UNSENT_NS and _is_news(before, event, now_ns):
                await self._pass_on([receiver], await self._illustrated(event, here))

    async def _remind(self, receiver: NoticeReceiver, active: dict[str, Posted], now_ns: int) -> None:
        for name, sent in self._of(receiver):
            mark = name.rpartition("/")[2]
            due = sent.event.transition is AlertTransition.FIRING and now_ns - sent.at_ns >= self._remind_ns
            if not due or not sent.at_once:
                continue
            here = active.get(mark)
            if here is None or here.muted or here.alert.stage is not Stage.FIRING:
                continue
            event = await self._illustrated(_of_now(here, sent.event, now_ns), here)
            again = replace(sent, at_ns=now_ns, reminders=sent.reminders + 1)
            notice = _notice(NoticeKind.REMINDER, event, f"-again-{again.reminders}")
            await self._put([] if self._leaves(event) else [_entry(receiver, notice)], {name: again})

    async def _digest(self, receiver: NoticeReceiver, now_ns: int) -> None:
        waiting = {name: sent for name, sent in self._of(receiver) if sent.in_digest}
        if receiver.digest_ns is None or not waiting:
            return
        # Counted from the first event where there was no digest yet, so that it gathers something.
        last_ns = self._digested_ns.get(receiver.name, min(sent.at_ns for sent in waiting.values()))
        if now_ns - last_ns < receiver.digest_ns:
            return
        kept = self._outbox.notes()  # a note that is gone named a trace that is to be forgotten
        events = tuple(
            sent.event if name in kept else sent.event.bare
            for name, sent in waiting.items() if not self._leaves(sent.event)
        )  # fmt: skip
        notice = Notice(id=f"digest-{now_ns // 10**9}", kind=NoticeKind.DIGEST, at_ns=now_ns, events=events)
        changed = {name: replace(sent, in_digest=False) for name, sent in waiting.items()}
        await self._put([_entry(receiver, notice)] if events else [], changed, {DIGEST + receiver.name: str(now_ns)})
        self._digested_ns[receiver.name] = now_ns

    async def _refresh(self, receiver: NoticeReceiver, active: dict[str, Posted], now_ns: int) -> None:
        if now_ns - self._refreshed_ns.get(receiver.name, 0) < REFRESH_NS:
            return
        events, left = [], MOST_ILLUSTRATED
        for name, sent in self._of(receiver):
            if self._leaves(sent.event):
                continue
            here = active.get(name.rpartition("/")[2])
            if sent.stands and here is not None:
                event = _of_now(here, sent.event, now_ns)
                if here.condition.examples and event.transition is AlertTransition.FIRING:
                    at_ns, shown = self._shown.get(event.fingerprint, (0, event))
                    if not await asyncio.to_thread(self._holds_all, shown.examples):
                        at_ns, shown = 0, event
                    if left and not 0 <= now_ns - at_ns < ILLUSTRATED_NS:
                        left -= 1
                        shown = await self._illustrated(event, here)
                        self._shown[event.fingerprint] = now_ns, shown
                    event = replace(event, examples=shown.examples, failure=shown.failure, explained=shown.explained)
                events.append(event)
            elif not sent.stands and now_ns - sent.event.at_ns < RESENT_NS:
                events.append(sent.event)
        self._refreshed_ns[receiver.name] = now_ns
        if events:
            notice = Notice(id="refresh", kind=NoticeKind.REFRESH, at_ns=now_ns, events=tuple(events))
            await self._put([_entry(receiver, notice)], {})

    async def _give_up(self, receiver: NoticeReceiver, active: dict[str, Posted], now_ns: int) -> None:
        """Report alerts as expired that were sent as firing and are not watched any more."""
        for name, sent in self._of(receiver):
            if not sent.stands or name.rpartition("/")[2] in active:
                self._unwatched_ns.pop(name, None)
                continue
            if now_ns - self._unwatched_ns.setdefault(name, now_ns) < UNWATCHED_NS:
                continue
            why = "it is not watched any more under the configuration in force"
            await self._expire(receiver, name, sent, now_ns, why)

    async def _expire(self, receiver: NoticeReceiver, name: str, sent: SentNotices, now_ns: int, why: str) -> None:
        event = replace(
            sent.event.bare, transition=AlertTransition.EXPIRED, at_ns=now_ns, number=sent.event.number + 1, stated=why
        )
        over = SentNotices(event=event, at_ns=now_ns, at_once=sent.at_once, in_digest=not sent.at_once)
        notice = _notice(NoticeKind.ALERT, event, f"-given-up-{now_ns // 10**9}")  # its end, if it is seen, is another
        silent = over.in_digest or self._leaves(event)
        await self._put([] if silent else [_entry(receiver, notice)], {name: over})

    async def _forget(self, now_ns: int) -> None:
        gone = [name for name, sent in self._sent.items() if not sent.stands and not sent.in_digest
                and now_ns - sent.at_ns >= FORGET_NS]  # fmt: skip
        await self._outbox.put((), now_ns, dict.fromkeys(gone))
        for name in gone:
            del self._sent[name]

    def _of(self, receiver: NoticeReceiver) -> list[tuple[str, SentNotices]]:
        mine = f"{ALERT}{receiver.name}/"
        return [(name, sent) for name, sent in self._sent.items() if name.startswith(mine)]

    def _holds_all(self, examples: Iterable[Example]) -> bool:
        return all(self._holds(each.trace_id) for each in examples)

    async def _illustrated(self, event: AlertEvent, here: Posted) -> AlertEvent:
        if here.condition.examples and here.alert.stage is Stage.FIRING:
            return await asyncio.to_thread(self._illustrate, event, here.alert.since_ns - HOUR_NS)
        return event

    async def _put(
        self, entries: Sequence[Entry], changed: dict[str, SentNotices], more: dict[str, str | None] | None = None
    ) -> None:
        if not entries and not changed:
            return
        notes: dict[str, str | None] = {name: sent.to_json() for name, sent in changed.items()}
        await self._outbox.put(entries, self._clock_ns(), {**notes, **(more or {})})
        self._sent |= changed
        if entries:
            self._wake()


def _is_news(before: SentNotices | None, event: AlertEvent, now_ns: int) -> bool:
    if before is not None and not before.stands and event.since_ns < before.event.since_ns:
        # The clock was set back where what is noted is of a time that has not come yet, or began after it was over.
        set_back = before.at_ns > now_ns or before.at_ns <= event.since_ns
        before = None if set_back else before
    fires = event.transition is AlertTransition.FIRING
    is_seen = fires or event.transition is AlertTransition.RESOLVED
    again = before is not None and is_seen and before.gave_up(event)
    if before is not None and before.knows(event) and not again:
        return False
    if fires:
        return not event.muted
    return again or (before is not None and before.stands)


def _of_now(here: Posted, last: AlertEvent, now_ns: int) -> AlertEvent:
    """The event with the findings of this moment."""
    found = here.alert.finding
    return replace(
        last.bare,
        transition=AlertTransition.UNKNOWN if here.alert.stage is Stage.UNKNOWN else AlertTransition.FIRING,
        stated=found.stated,
        value=found.value, lower=found.lower, upper=found.upper, n=found.n, limit=found.limit,
        changed_ns=found.changed_ns, measured_ns=found.measured_ns, at_ns=now_ns,
        held=here.alert.held,
    )  # fmt: skip


def _name(receiver: NoticeReceiver, mark: str) -> str:
    return f"{ALERT}{receiver.name}/{mark}"


def _notice(kind: NoticeKind, event: AlertEvent, suffix: str = "") -> Notice:
    return Notice(id=event.id + suffix, kind=kind, at_ns=event.at_ns, events=(event,))


def _entry(receiver: NoticeReceiver, notice: Notice) -> Entry:
    return Entry(destination=receiver.name, id=notice.id, body=json.dumps(notice.to_json()))
