"""Builds receivers, their dispatchers and the notifier from the configuration.

Sends a test notice to every receiver, only when ``doctor --notify`` asks for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from pydantic import SecretStr

from sidejudge.integrations.backoff import DestinationUnreachableError, RefusedError
from sidejudge.integrations.notify.alertmanager import Alertmanager
from sidejudge.integrations.notify.chats import Chat, google_chat_body, slack_body, teams_body
from sidejudge.integrations.notify.email import Email, MailServer
from sidejudge.integrations.notify.pagers import Opsgenie, PagerDuty
from sidejudge.integrations.notify.webhook import Webhook
from sidejudge.integrations.post import Poster
from sidejudge.integrations.store.notification_outbox import NotificationOutbox
from sidejudge.integrations.store.sqlite import Store, StoreError
from sidejudge.monitor.alerting.details import WatchedWindow
from sidejudge.monitor.alerting.observation import Key
from sidejudge.monitor.alerting.watch import StatusSource
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.notify import (
    AlertmanagerReceiver,
    EmailReceiver,
    GoogleChatReceiver,
    NotifySection,
    OpsgenieReceiver,
    PagerDutyReceiver,
    PluginReceiver,
    Receiver,
    SlackReceiver,
    TeamsReceiver,
    WebhookReceiver,
    names,
)
from sidejudge.monitor.deliver.dispatcher import KEEP_PARKED_NS, DeliveryCounters, Dispatcher, StoredQueue
from sidejudge.scoring.alerts.condition import Agreement, Severity
from sidejudge.scoring.alerts.event import AlertEvent
from sidejudge.scoring.notices.notice import Notice, NoticeKind
from sidejudge.scoring.notices.text import Wording
from sidejudge.scoring.status.snapshots import ExportSnapshot

from .daily_report import Daily, DailyReport, FailuresOver, alone
from .notifier import ALERT, DIGEST, SUBJECT, Illustrate, Notifier
from .receiver import NoticeReceiver, PluginNotifier, Sender

log = logging.getLogger("sidejudge.notify")

ALERTMANAGER_PATH = "/api/v2/alerts"
MOST_IN_A_MESSAGE = 15
"""Alerts in one message of Slack: three blocks each at most, of 50."""
GATHER_S = 1.0
"""How long a message waits for others: the events of one look come within milliseconds."""


def receivers(config: Config, clock_ns: Callable[[], int]) -> list[NoticeReceiver]:
    """The receivers of this configuration."""
    entries = config.alerts.notify
    return [_receiver(name, entry, config, clock_ns) for name, entry in zip(names(entries), entries, strict=True)]


def _receiver(name: str, entry: NotifySection, config: Config, clock_ns: Callable[[], int]) -> NoticeReceiver:
    links, given = config.alerts.links, entry.receiver
    wording = Wording(
        trace_url=links.trace,
        runbooks=links.runbooks,
        dashboard_url=links.dashboard,
        instance=config.alerts.instance,
        host=socket.gethostname(),
        reasons=given.reasons is not False,
        quoted=given.reasons == "quoted",
    )
    least = Severity(given.severity)
    if isinstance(given, AlertmanagerReceiver):
        manager = Alertmanager(
            Poster(given.url.rstrip("/").removesuffix(ALERTMANAGER_PATH) + ALERTMANAGER_PATH),
            wording,
            clock_ns,
            labels=given.labels,
            token=given.token.get_secret_value() if given.token is not None else None,
        )
        return NoticeReceiver(name=name, sender=manager, least=least, keeps_state=True, names=given.names)
    digest_ns = given.digest.ns if given.digest is not None else None
    together = isinstance(given, SlackReceiver | TeamsReceiver | GoogleChatReceiver | EmailReceiver)
    return NoticeReceiver(
        name=name, sender=_sender(name, given, wording, clock_ns), least=least, digest_ns=digest_ns, names=given.names,
        most=MOST_IN_A_MESSAGE if together else 1, gather_s=GATHER_S if together else 0.0,
    )  # fmt: skip


def _sender(name: str, given: Receiver, wording: Wording, clock_ns: Callable[[], int]) -> Sender:
    """The sender for a receiver other than an Alertmanager."""
    match given:
        case SlackReceiver():
            return Chat(Poster(given.url.get_secret_value()), wording, slack_body)
        case TeamsReceiver():
            return Chat(Poster(given.url.get_secret_value()), wording, teams_body)
        case GoogleChatReceiver():
            return Chat(Poster(given.url.get_secret_value()), wording, google_chat_body)
        case PagerDutyReceiver():
            return PagerDuty(Poster(given.url), given.routing_key.get_secret_value(), wording)
        case OpsgenieReceiver():
            return Opsgenie(given.url, given.key.get_secret_value(), wording)
        case EmailReceiver():
            server = MailServer(
                host=given.host, port=given.port, encryption=given.encryption, user=given.user,
                password=given.password.get_secret_value() if given.password is not None else None,
            )  # fmt: skip
            return Email(server, given.sender, given.to, wording)
        case WebhookReceiver():
            return Webhook(
                Poster(given.url.get_secret_value(), pages=True),
                given.secret.get_secret_value() if given.secret is not None else None,
                wording, clock_ns, template=given.template,
                headers={key.lower(): value.get_secret_value() for key, value in given.headers.items()},
            )  # fmt: skip
        case PluginReceiver():
            return PluginNotifier(name, given, wording)
        case _:
            raise TypeError(f"no sender for {type(given).__name__}")


class Notifications:
    """Notices to people and to Alertmanager, as one part of a monitor. ``take`` is a listener of alert events."""

    def __init__(
        self,
        config: Config,
        store: Store,
        *,
        clock_ns: Callable[[], int],
        illustrate: Illustrate,
        holds: Callable[[str], bool] = lambda _: True,
        counters: DeliveryCounters,
        watch: StatusSource,
        watched: Mapping[str, WatchedWindow],
        agreements: Callable[[], Sequence[Agreement]] = tuple,
        failures: FailuresOver | None = None,
        is_shared: Callable[[str], bool] = lambda _: False,
        is_quiet: Callable[[str], bool] = lambda _: False,
        share_of: Callable[[], str | None] = lambda: None,
        unpriced: Callable[[], Iterable[str]] = tuple,
        reports: Callable[[int], Awaitable[bool | None]] = alone,
        waiting: Callable[[int], Mapping[Key, int]] = lambda _now_ns: {},
    ) -> None:
        outbox = self._outbox = store.notifications
        self._clock_ns, self._watch = clock_ns, watch
        self._known_by_name, self._entries = config.alerts.instance is not None, config.alerts.notify
        targets = receivers(config, clock_ns)
        self.dispatchers = [
            Dispatcher(each, StoredQueue(outbox, each.name, subject=SUBJECT), clock_ns=clock_ns, counters=counters)
            for each in targets
        ]
        self.notifier = Notifier(
            targets,
            outbox,
            remind_ns=config.alerts.remind.ns,
            clock_ns=clock_ns,
            illustrate=illustrate,
            holds=holds,
            wake=self._wake,
            is_shared=is_shared,
            is_quiet=is_quiet,
            is_named=self._known_by_name,
        )
        section = config.alerts.report
        self.daily = None if section is None else DailyReport(
            daily=Daily(section.time, section.zone), notifier=self.notifier, store=store.path, outbox=outbox,
            watched=watched, kept_since=partial(store.kept_since_ns, config.kept_for.ns), share_of=share_of,
            sends=reports, waiting=waiting,
            statuses=watch.service_statuses, posted=watch.posted, agreements=agreements, failures=failures,
            judged=store.judged if config.evaluators.judge is not None else None, unpriced=unpriced,
        )  # fmt: skip

    async def start(self) -> None:
        """Restore the last run's state."""
        await move(self._entries, self._outbox)
        self.notifier.restore()
        if self.daily is not None:
            await self.daily.restore(self._clock_ns())
        for dispatcher in self.dispatchers:
            await dispatcher.start()

    async def take(self, event: AlertEvent) -> None:
        """Pass an event on; raises ``StoreError`` when that could not be committed."""
        await self.notifier.take(event)

    async def note(self, event: AlertEvent) -> None:
        """Note that receivers have an event from another monitor."""
        await self.notifier.take(event, noted=True)

    async def tick(self) -> None:
        """Reminders, refreshes, digests and the report, where they are due."""
        now_ns = self._clock_ns()
        try:
            await self.notifier.tick(self._watch.posted())
            if self.daily is not None:
                await self.daily.tick(now_ns)
            await self._outbox.forget(now_ns - KEEP_PARKED_NS)
        except StoreError as error:
            log.warning("the store could not be used; it is tried again", extra={"cause": str(error)})

    async def end(self) -> None:
        """The monitor and its store end: receivers that know it by name are sent the end of its alerts."""
        if self._known_by_name:
            await self.notifier.end()

    async def close(self) -> None:
        """End. What was not delivered is in the store."""
        await asyncio.gather(*(dispatcher.close() for dispatcher in self.dispatchers))

    def exports(self) -> list[ExportSnapshot]:
        """How far deliveries have come, receiver by receiver."""
        return [dispatcher.snapshot() for dispatcher in self.dispatchers]

    def _wake(self) -> None:
        for dispatcher in self.dispatchers:
            dispatcher.wake()


async def try_receivers(config: Config) -> list[tuple[str, str | None]]:
    """(name, why it did not take a test notice, ``None`` when it did) of each receiver; all at a time."""
    now_ns = time.time_ns()
    notice = Notice(id=f"test-{now_ns // 10**9}", kind=NoticeKind.TEST, at_ns=now_ns)
    return list(await asyncio.gather(*(_try(each, notice) for each in receivers(config, time.time_ns))))


async def _try(receiver: NoticeReceiver, notice: Notice) -> tuple[str, str | None]:
    try:
        await receiver.sender.send(notice)
    except (DestinationUnreachableError, RefusedError) as error:
        return receiver.name, error.reason
    return receiver.name, None


_ADDRESS: Final = "address/"
_FIELDS: Final = ("url", "routing_key", "key", "host", "to", "use", "arguments")
"""What determines where a notice goes."""


async def move(entries: Sequence[NotifySection], outbox: NotificationOutbox) -> None:
    """Move what is noted, and what waits, to the names that these receivers have now. Raises ``StoreError``.

    A receiver without a name is named by its place in the configuration (``webhook``, ``webhook-2``). A digest of
    each address is noted, so that a receiver is recognised under another name. If a new receiver takes the name of
    one that is gone, the notes of that one are deleted.
    """
    notes = outbox.notes()
    before = {name.removeprefix(_ADDRESS): text for name, text in notes.items() if name.startswith(_ADDRESS)}
    named = dict(zip(names(tuple(entries)), entries, strict=True))
    here = {name: _digest(entry) for name, entry in named.items() if entry.name is None}
    moved = _moved(before, here, {name for name, entry in named.items() if entry.name is not None})
    changed: dict[str, str | None] = {}
    for name in notes:
        kind, _, rest = name.partition("/")
        whose, *of = rest.split("/", 1)
        if f"{kind}/" in (ALERT, DIGEST) and whose in {*moved, *moved.values()}:
            changed.setdefault(name, None)
            if whose in moved:
                changed["/".join((kind, moved[whose], *of))] = notes[name]
    changed |= {_ADDRESS + name: here.get(name) for name in before.keys() | here if before.get(name) != here.get(name)}
    await outbox.move(moved, changed)


def _moved(before: Mapping[str, str], here: Mapping[str, str], kept: set[str]) -> dict[str, str]:
    """The new name by the earlier one. Addresses that stand twice cannot be distinguished, and stay where they are."""
    known, many = {digest: name for name, digest in before.items()}, Counter([*before.values()])
    twice = {digest for digest, n in (many | Counter([*here.values()])).items() if n > 1}
    return {
        known[digest]: name
        for name, digest in here.items()
        if digest in known and digest not in twice and known[digest] not in {name, *kept}
    }


def _digest(entry: NotifySection) -> str:
    found = [getattr(entry.receiver, field, None) for field in _FIELDS]
    stated = [each.get_secret_value() if isinstance(each, SecretStr) else each for each in found]
    return hashlib.sha256(json.dumps([entry.kind, *stated], default=str).encode()).hexdigest()
