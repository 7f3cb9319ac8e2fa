"""Erasure request: what a person wants erased from the history; the monitor does it, for it alone writes there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from sidejudge.integrations.store.notification_outbox import PendingNotice

ERASURE: Final = "forget/"
"""How the id of such an entry of the outbox begins; those of results begin with a trace id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRequest:
    """Traces by id, by the digest of their user, by session, or that ended before a moment (ns since the epoch)."""

    traces: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    before_ns: int | None = None

    @classmethod
    def from_json(cls, text: str) -> ErasureRequest:
        """A request as ``to_json`` writes it."""
        stated = json.loads(text)
        lists = {name: tuple(stated[name]) for name in ("traces", "users", "sessions")}
        return cls(**lists, before_ns=stated["before_ns"])

    def to_json(self) -> str:
        """The request as the body of an entry."""
        return json.dumps(asdict(self))

    def names(self, record: Mapping[str, object]) -> bool:
        """Whether the record of an outcome or of a verdict is of a trace that is to be erased."""
        if record.get("trace_id") in self.traces:
            return True
        if record.get("user") in self.users or record.get("session_id") in self.sessions:
            return True
        at_ns = _at_ns(record)
        return self.before_ns is not None and at_ns is not None and at_ns < self.before_ns


def _at_ns(record: Mapping[str, object]) -> int | None:
    ended, created = record.get("ended_at"), record.get("created_at")
    if isinstance(ended, int):
        return ended
    return int(datetime.fromisoformat(created).timestamp() * 1e9) if isinstance(created, str) else None


def up_to_erasure(entries: Sequence[PendingNotice]) -> Sequence[PendingNotice]:
    """The results before the first request to erase, or that request alone, so that both happen in order."""
    if entries[0].id.startswith(ERASURE):
        return entries[:1]
    end = next((at for at, entry in enumerate(entries) if entry.id.startswith(ERASURE)), len(entries))
    return entries[:end]
