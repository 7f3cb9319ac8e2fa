"""Share: which traces of a Langfuse this monitor reads, where several monitors of a fleet read it.

Traces are divided by id into shards, each with a lease. A trace is claimed in the fleet's database before it is read:
one that another monitor took is left alone, and one that another began and did not finish is read after a while. While
the database is away nobody reads; what came meanwhile is listed again afterwards, as after any outage.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final

from sidejudge.integrations.postgres import shared
from sidejudge.integrations.postgres.database import DatabaseError, Transaction

from .fleet import Fleet

log = logging.getLogger("sidejudge.langfuse")

SHARDS: Final = 8
AGAIN_S: Final = 120.0
"""After how long a trace that another monitor began is read here, where it holds the trace's lease no longer."""


class FleetShare:
    """This monitor's share of one Langfuse. ``place`` names the project among others."""

    def __init__(self, fleet: Fleet, place: str) -> None:
        self._fleet = fleet
        self._at = f"langfuse/{hashlib.sha256(place.encode()).hexdigest()[:8]}"
        self._known: frozenset[int] = frozenset()
        self._cursors: dict[int, int] = {}
        self._saved: dict[int, int] = {}
        self._unrecorded: set[str] = set()
        self.from_ns = 0
        """Up to where this monitor need not list again, ns since the epoch; it is handed to who comes after."""
        fleet.want(self._reader(fleet.name))
        fleet.each_round("traces from Langfuse", self.round)

    @property
    def shards(self) -> frozenset[int]:
        """Those that are surely held."""
        return frozenset(n for n in self._known if self._fleet.held(self._lease(n)) is not None)

    def mine(self, trace_id: str) -> bool:
        """Whether this monitor holds the trace's shard."""
        return shard_of(trace_id) in self.shards

    def cursor(self, shards: Collection[int], before_ns: int) -> int:
        """From where to list these shards: where a last holder stopped (given once), at the latest ``before_ns``."""
        return min(before_ns, *(self._cursors.pop(n, before_ns) for n in shards))

    async def round(self, transaction: Transaction) -> Callable[[], object]:
        """Divide the shards among the reading monitors; hand over each shard's position and what was read."""
        unrecorded = frozenset(self._unrecorded)
        if unrecorded:
            await shared.done(transaction, self._at, sorted(unrecorded))
        readers = await transaction.rows(
            "SELECT name FROM leases WHERE starts_with(name, %s) AND expires_at > now()", (self._reader(""),)
        )
        names = sorted({name for (name,) in readers} | {self._reader(self._fleet.name)})
        own = names.index(self._reader(self._fleet.name))
        for n in range(SHARDS):
            (self._fleet.want if n % len(names) == own else self._fleet.waive)(self._lease(n))
        held = {n: lease for n in range(SHARDS) if (lease := self._fleet.held(self._lease(n))) is not None}
        gained = held.keys() - self._known
        cursors = await shared.load(transaction, [self._lease(n) for n in gained]) if gained else {}
        for n, lease in held.items():
            from_ns = min(self.from_ns, self._cursors.get(n, self.from_ns))  # what is still to be listed is handed on
            if n not in gained and from_ns and self._saved.get(n) != from_ns:
                await shared.save(transaction, lease, {self._lease(n): str(from_ns).encode()})
                self._saved[n] = from_ns
        for n in gained:
            self._saved.pop(n, None)
            if (cursor := cursors.get(self._lease(n))) is not None:
                self._cursors[n] = int(cursor.body)
        self._known = frozenset(held)
        return lambda: self._unrecorded.difference_update(unrecorded)

    async def claim(self, trace_ids: Sequence[str]) -> tuple[set[str], set[str]]:
        """Claim traces before they are read.

        Returns:
            Those that are this monitor's to read, and those that another took. Of the rest it is open.
        """
        by_shard: dict[int, list[str]] = {}
        for trace_id in trace_ids:
            by_shard.setdefault(shard_of(trace_id), []).append(trace_id)
        mine: set[str] = set()
        taken: set[str] = set()
        try:
            async with self._fleet.transaction() as transaction:
                for n, ids in sorted(by_shard.items()):
                    lease = self._fleet.held(self._lease(n))
                    if lease is not None:
                        mine |= await shared.claim(transaction, lease, self._at, ids, again_s=AGAIN_S)
                open_ids = [each for each in trace_ids if each not in mine]
                if open_ids:
                    sql = "SELECT id FROM claims WHERE kind = %s AND id = ANY(%s) AND done_at IS NOT NULL"
                    taken |= {each for (each,) in await transaction.rows(sql, (self._at, open_ids))}
        except DatabaseError:
            return set(), set()  # read later, when it is known whose they are
        return mine, taken

    async def done(self, trace_ids: Collection[str]) -> None:
        """Record that these are in this monitor's store, or that there is nothing to read of them.

        What cannot be recorded now is in the next round: another monitor would read it after ``AGAIN_S``.
        """
        if not trace_ids:
            return
        try:
            async with self._fleet.transaction() as transaction:
                await shared.done(transaction, self._at, sorted(trace_ids))
        except DatabaseError as error:
            self._unrecorded.update(trace_ids)
            log.warning("it is not recorded yet which traces were read", extra={"cause": str(error)})

    def _lease(self, n: int) -> str:
        return f"{self._at}/{n}"

    def _reader(self, name: str) -> str:
        return f"{self._at}/reads/{name}"


def shard_of(trace_id: str) -> int:
    """The shard of a trace, by a hash of its id: ids of some SDKs are not random."""
    return hashlib.blake2b(trace_id.encode(), digest_size=2).digest()[0] % SHARDS
