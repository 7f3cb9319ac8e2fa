"""A place of references that one monitor of the fleet reads and all of them have; where that fails each reads it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from sidejudge.integrations.postgres import shared
from sidejudge.integrations.postgres.database import Transaction
from sidejudge.monitor.evaluate.references.places import MOST_CHARACTERS, Entries, ReferencePlace, Unreadable
from sidejudge.scoring.trace.span import Json

from .fleet import Fleet

log = logging.getLogger("sidejudge.references")

Committed: TypeAlias = Callable[[], object]
MOST_BYTES: Final = 8 * 2**20
"""Compressed bytes of a place that is shared; each monitor reads a larger one itself."""
STALE_S: Final = 300.0
"""How old what another monitor read may be before this one reads the place itself."""
TAKE_S: Final = 30.0
"""How often the other monitors look for the reader's result."""
_MOST_TEXT: Final = 2 * MOST_CHARACTERS


class SharedPlace:
    """One monitor's view of a place that one of the fleet reads.

    Whoever holds the lease of the place reads it, and shares it when it has changed. The others take it from the
    database, up to a minute later. One that cannot read it lets another have the lease. While the database is away, or
    nothing young is there, a monitor reads the place itself; so does each when it starts.

    Args:
        place: what is read.
        identity: all that decides what is found there; monitors with the same one share.
        fleet: where it is shared.
        clock_s: seconds that only grow.
    """

    def __init__(
        self, place: ReferencePlace, identity: str, fleet: Fleet, *, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.entries, self.key = place.entries, place.key
        self._place, self._fleet, self._clock_s = place, fleet, clock_s
        named = hashlib.blake2b(identity.encode("utf-8", "replace"), digest_size=16).hexdigest()
        self.lease: Final = f"references/{named}"
        self._read: _Reading | None = None
        self._saved: tuple[int, _Reading] | None = None
        """Under which token, and what."""
        self._taken_s = self._looked_s = float("-inf")
        """When what another monitor shares was read, and when it was last looked for."""
        self._refused: str | None = None
        fleet.want(self.lease)
        fleet.each_round(f"references of {place.entries.place}", self._round, when=self._is_due)

    async def refresh(self) -> None:
        """Read the place, unless another monitor does. Raises ``Unreadable``."""
        if self._is_read_elsewhere():
            return
        try:
            await self._place.refresh()
        except Unreadable:
            self._fleet.waive(self.lease)  # another monitor may reach it
            raise
        self._fleet.want(self.lease)
        before, now_s = self._read, self._clock_s()
        if before is not None and before.version == self.entries.version:
            self._read = replace(before, at_s=now_s)
        else:
            self._read = await asyncio.to_thread(_reading, self.entries, now_s)
            if self._read.body is None:
                log.warning(
                    "references of a place are too large to be shared; each monitor reads them",
                    extra={"place": self.entries.place},
                )

    def _is_read_elsewhere(self) -> bool:
        young = self._clock_s() - self._taken_s < STALE_S
        return young and self._fleet.away is None and self._fleet.held(self.lease) is None

    def _is_due(self) -> bool:
        lease = self._fleet.held(self.lease)
        if lease is None:
            return self._clock_s() - self._looked_s >= TAKE_S
        return self._read is not None and self._read.body is not None and self._saved != (lease.token, self._read)

    async def _round(self, transaction: Transaction) -> Committed | None:
        lease, read = self._fleet.held(self.lease), self._read
        if lease is None:
            return await self._take(transaction)
        if read is None or read.body is None:
            return None
        head = {"digest": read.digest, "whole": self.entries.whole, "age_s": self._clock_s() - read.at_s}
        states = {self.lease: json.dumps(head).encode()}
        if self._saved is None or (self._saved[0], self._saved[1].digest) != (lease.token, read.digest):
            states[self._body] = read.body
        await shared.save(transaction, lease, states)
        await shared.touch(transaction, self._body)

        def saved() -> None:
            self._saved = lease.token, read

        return saved

    @property
    def _body(self) -> str:
        return f"{self.lease}/body"

    async def _take(self, transaction: Transaction) -> Committed | None:
        """Hold what the reader has shared, where it was read after what is held here."""
        self._looked_s = self._clock_s()
        head = (await shared.load(transaction, [self.lease])).get(self.lease)
        if head is None:
            return None
        try:
            stated = json.loads(head.body)
            digest, whole = str(stated["digest"]), bool(stated["whole"])
            read_s = self._clock_s() - head.age_s - max(0.0, float(stated["age_s"]))
            if self._read is None or (digest != self._read.digest and read_s > self._read.at_s):
                body = (await shared.load(transaction, [self._body])).get(self._body)
                if body is None:
                    return None
                self._read = await asyncio.to_thread(self._hold, body.body, digest, read_s, whole)
        except (ValueError, TypeError, KeyError, RecursionError, zlib.error) as error:
            if self._refused != str(error):
                log.warning("references of the fleet cannot be taken", extra={"cause": str(error)})
            self._refused = str(error)
            return None
        self._refused, self._taken_s = None, read_s
        return None

    def _hold(self, body: bytes, digest: str, read_s: float, whole: bool) -> _Reading:  # noqa: FBT001  # as it was shared
        text = zlib.decompressobj().decompress(body, _MOST_TEXT)
        if _digest(text, whole=whole) != digest:
            raise ValueError("the shared references are not those that were announced")
        held: Json = json.loads(text)
        if not isinstance(held, dict):
            raise TypeError("the shared references are no JSON object")
        self.entries.replace(held, whole=whole)
        return _Reading(self.entries.version, digest, body, read_s)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A place's contents when it was read, with its entries' ``version``; ``body`` is missing if it is too large."""

    version: int
    digest: str
    body: bytes | None
    at_s: float


def _reading(entries: Entries, at_s: float) -> _Reading:
    version, whole = entries.version, entries.whole
    text = json.dumps(entries.held, sort_keys=True).encode()
    body = zlib.compress(text, 1)
    fits = len(text) <= _MOST_TEXT and len(body) <= MOST_BYTES
    return _Reading(version, _digest(text, whole=whole), body if fits else None, at_s)


def _digest(text: bytes, *, whole: bool) -> str:
    return hashlib.blake2b(text, digest_size=16, person=b"whole" if whole else b"part").hexdigest()
