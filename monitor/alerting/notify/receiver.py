"""One receiver of notices, as a destination of the dispatcher.

Notifiers of installed packages: ``send`` of their object is called with each notice, as the webhook posts it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol

from sidejudge.integrations.notify.webhook import notice_record
from sidejudge.integrations.plugin_calls import PluginObject
from sidejudge.integrations.store.notification_outbox import PendingNotice
from sidejudge.monitor.config.notify import PluginReceiver
from sidejudge.monitor.config.plugins import NOTIFIERS, factory
from sidejudge.scoring.alerts.condition import Severity
from sidejudge.scoring.notices.notice import Notice, NoticeKind, without_names
from sidejudge.scoring.notices.text import Wording

LOOKED_AT = 50
"""Notices among which the most severe goes first."""
_ORDER = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)


class Sender(Protocol):
    """An adapter that sends notices. Raises ``DestinationUnreachableError`` and ``RefusedError``."""

    async def send(self, notice: Notice, /) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeReceiver:
    """A receiver, and what it gets.

    Alerts of at least the severity ``least`` are sent at once, the others in a digest, at most once in ``digest_ns``
    (``None``: not at all). ``keeps_state``: it is sent every alert that is not over again and again, and reminds people
    itself, as Alertmanager does; it gets neither digests nor reports. Up to ``most`` waiting alerts form one message,
    gathered for ``gather_s``, because one look finds all effects of one cause. More severe alerts overtake the rest of
    the waiting ``batch``. Without ``names`` it gets none of the application's parts.
    """

    name: str
    sender: Sender
    least: Severity = Severity.WARNING
    digest_ns: int | None = None
    keeps_state: bool = False
    most: int = 1
    gather_s: float = 0.0
    batch: int = LOOKED_AT
    names: bool = True

    def at_once(self, severity: Severity) -> bool:
        """Whether an alert of this severity is sent at once."""
        return _ORDER.index(severity) >= _ORDER.index(self.least)

    def takes(self, severity: Severity) -> bool:
        """Whether an alert of this severity is sent, at once or in a digest."""
        return self.at_once(severity) or (self.digest_ns is not None and not self.keeps_state)

    def together(self, entries: Sequence[PendingNotice]) -> Sequence[PendingNotice]:
        """The most severe entries that form one message: consecutive alerts, else a single one."""
        read = {entry.seq: _notice(entry) for entry in entries}
        ordered = sorted(entries, key=lambda entry: _rank(read[entry.seq]))  # stable: one alert's stay in their order
        alerts = list(takewhile(lambda entry: read[entry.seq].kind is NoticeKind.ALERT, ordered))
        return alerts[: self.most] or ordered[:1]

    async def deliver(self, entries: Sequence[PendingNotice]) -> Mapping[int, str]:
        """Send the entries as one message; see ``Destination``."""
        notices = [_notice(entry) for entry in entries]
        notice = notices[0]
        if len(notices) > 1:
            # Of an alert that began and ended meanwhile only the end is news, which names its beginning.
            last = {event.fingerprint: event for each in notices for event in each.events}
            kind = NoticeKind.GROUP if len(last) > 1 else NoticeKind.ALERT
            notice = Notice(id=notices[-1].id, kind=kind, at_ns=notices[-1].at_ns, events=tuple(last.values()))
        await self.sender.send(notice if self.names else without_names(notice))
        return {}


def _rank(notice: Notice) -> int:
    """0 for the most severe; notices without an alert come last."""
    return min((len(_ORDER) - _ORDER.index(event.severity) for event in notice.events), default=len(_ORDER) + 1)


def _notice(entry: PendingNotice) -> Notice:
    return Notice.of_json(json.loads(entry.body))


class PluginNotifier:
    """Sends notices through one object of a plugin. One that cannot be loaded, raises or hangs has its notices wait."""

    def __init__(self, name: str, section: PluginReceiver, wording: Wording) -> None:
        self._wording = wording
        self._object = PluginObject(name, factory(NOTIFIERS, section.use), section.arguments, "send")

    async def send(self, notice: Notice) -> None:
        """Return once the plugin has returned; see ``Sender``."""
        await self._object.call(notice_record(notice, self._wording))
