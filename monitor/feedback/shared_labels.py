"""Shared labels: one monitor's sums over people's labels come in; every monitor of the fleet gets them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Final

from msgspec import convert

from sidejudge.integrations.postgres import shared
from sidejudge.integrations.postgres.database import Transaction
from sidejudge.monitor.fleet.fleet import Fleet
from sidejudge.scoring.statistics.ppi import LabelSums
from sidejudge.scoring.trace.span import JsonRecord

log = logging.getLogger("sidejudge.fleet")

LABELS: Final = "langfuse/labels"
"""The lease of reading labels."""
STATE: Final = f"{LABELS}/sums"
_ROUNDS: Final = 4
"""The number of rounds between readings of the sums, which change with people's labels, a few times an hour."""


class SharedLabels:
    """One monitor's view of the labels that one of the fleet reads.

    Labels concern verdicts by any monitor, so the sums hold for the whole fleet wherever they were made. They hold for
    the version of the rubric that the labels are about; a monitor with another version goes without them. While the
    database is away the last ones stay.

    Args:
        fleet: where they are shared.
        own: the sums by rubric that this monitor has read under the lease; None while it has read none.
        version: the version of a rubric that is in force here; None for an unknown one.
    """

    def __init__(
        self, fleet: Fleet, own: Callable[[], Mapping[str, LabelSums] | None], version: Callable[[str], str | None]
    ) -> None:
        self._fleet, self._own, self._version = fleet, own, version
        self._known: dict[str, tuple[str | None, LabelSums]] = {}
        self._saved: tuple[int, bytes] | None = None
        self._rounds = 0
        fleet.want(LABELS)
        fleet.each_round("labels", self._round, when=self._is_due)

    @property
    def reads(self) -> bool:
        """Whether labels are this monitor's to read."""
        return self._fleet.held(LABELS) is not None

    def sums(self) -> Mapping[str, LabelSums]:
        """The sums by rubric that another monitor read."""
        return {rubric: sums for rubric, (version, sums) in self._known.items() if version == self._version(rubric)}

    def _is_due(self) -> bool:
        self._rounds += 1
        return self._rounds % _ROUNDS == 1 or self._unsaved() is not None

    def _unsaved(self) -> tuple[int, bytes] | None:
        """What is to be saved, with the lease's token; None if another monitor holds the lease or nothing changed."""
        lease, own = self._fleet.held(LABELS), self._own()
        if lease is None or own is None:
            return None
        stated = {rubric: {"version": self._version(rubric), **asdict(sums)} for rubric, sums in sorted(own.items())}
        found = lease.token, json.dumps(stated).encode()
        return found if found != self._saved else None

    async def _round(self, transaction: Transaction) -> Callable[[], object] | None:
        lease, unsaved = self._fleet.held(LABELS), self._unsaved()
        if lease is not None and unsaved is not None:
            await shared.save(transaction, lease, {STATE: unsaved[1]})
            return lambda: self._take(unsaved)
        kept = (await shared.load(transaction, [STATE])).get(STATE)
        if kept is not None:
            try:
                self._known = _read(kept.body)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                log.warning("labels of the fleet could not be read", extra={"cause": str(error)})
        return None

    def _take(self, saved: tuple[int, bytes]) -> None:
        self._saved, self._known = saved, _read(saved[1])


def _read(body: bytes) -> dict[str, tuple[str | None, LabelSums]]:
    """What another monitor saved; names that this version does not know are passed over."""
    stated: Mapping[str, JsonRecord] = json.loads(body)
    return {rubric: (each["version"], convert(each, LabelSums)) for rubric, each in stated.items()}
