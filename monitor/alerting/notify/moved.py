"""Receivers without a name of their own keep their notes and what waits for them where their order changes.

Their names come from their places in the configuration (``webhook``, ``webhook-2``). A digest of each address is noted,
by which a receiver is known again under another name.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import SecretStr

from sidejudge.integrations.store.notification_outbox import NotificationOutbox
from sidejudge.monitor.config.notify import NotifySection, names

from .notifier import ALERT, DIGEST

_ADDRESS: Final = "address/"
_FIELDS: Final = ("url", "routing_key", "key", "host", "to", "use", "arguments")
"""What determines where a notice goes."""


async def move(entries: Sequence[NotifySection], outbox: NotificationOutbox) -> None:
    """Move what is noted, and what waits, to the names that these receivers have now. Raises ``StoreError``.

    What is noted of a receiver that is gone is deleted where another one takes its name.
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
