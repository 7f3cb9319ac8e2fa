"""Receiver: one of those who are told, as a destination of the mail."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from integrations.store.mail import Waiting
from scoring.alerts.condition import Severity
from scoring.notices.notice import Notice

_ORDER = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)


class Sender(Protocol):
    """An adapter that sends notices. Raises ``UnreachableError`` and ``RefusedError``."""

    async def send(self, notice: Notice, /) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """Who is told, and of what.

    Alerts of at least the severity ``least`` are told at once, the others in a digest, at most once in ``digest_ns``
    (``None``: not at all). ``keeps_state``: it wants to be told of all alerts that stand again and again, and reminds
    people itself, as Alertmanager does; it gets neither digests nor reports.
    """

    name: str
    sender: Sender
    least: Severity = Severity.WARNING
    digest_ns: int | None = None
    keeps_state: bool = False
    batch: int = 1

    def at_once(self, severity: Severity) -> bool:
        """Whether an alert of this severity is told at once."""
        return _ORDER.index(severity) >= _ORDER.index(self.least)

    async def deliver(self, entries: Sequence[Waiting]) -> Mapping[int, str]:
        """Send the entries; see ``Destination``."""
        for entry in entries:
            await self.sender.send(Notice.of_json(json.loads(entry.body)))
        return {}
