"""Leases: what only one monitor may do, by rows that expire, with a token that fences off who was late.

Advisory locks belong to a connection. PgBouncer in transaction mode gives each transaction another one, and a
connection is what a fleet of sidecars has too few of. A row with an expiry needs neither. Its price: after the holder
was killed nobody holds the lease until it expires.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from .database import LeaseLost, Transaction, queries

SAFETY: Final = 0.8
"""Share of a lease's time for which its holder trusts it without a word from the database."""


def running_s() -> float:
    """Seconds of a clock that goes on while the process or the machine sleeps, and is never set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that was held when the database was last reached. ``until_s`` is in the clock ``running_s``."""

    name: str
    holder: str
    token: int
    until_s: float

    def valid(self, now_s: float) -> bool:
        """Whether it is surely held still."""
        return now_s < self.until_s

    async def fence(self, transaction: Transaction) -> None:
        """Hold the lease's row until the transaction is committed. Raises ``LeaseLost`` where another has it."""
        if not await transaction.rows(queries()["fence"], (self.name, self.holder, self.token)):
            raise LeaseLost(f"the lease {self.name} is another monitor's by now")


class Leases:
    """The leases of one monitor.

    Args:
        holder: the monitor's name.
        ttl_s: how long a lease lasts without renewal, in seconds.
        clock_s: a clock that goes on while the process is stopped.
    """

    def __init__(self, holder: str, *, ttl_s: float, clock_s: Callable[[], float] = running_s) -> None:
        self.holder, self.ttl_s, self.clock_s = holder, ttl_s, clock_s
        self._held: dict[str, Lease] = {}

    def held(self, name: str) -> Lease | None:
        """The lease, while it is surely held; no word to the database."""
        lease = self._held.get(name)
        return lease if lease is not None and lease.valid(self.clock_s()) else None

    def names(self) -> list[str]:
        """Those that are held."""
        return [name for name in sorted(self._held) if self.held(name) is not None]

    async def take(self, transaction: Transaction, names: Sequence[str]) -> dict[str, Lease]:
        """Renew or take these leases as far as they are free; call ``keep`` with them once that is committed."""
        asked_s = self.clock_s()  # before the statement: the database counts from later
        if not names:
            return {}
        # In the order of names, so that monitors do not wait for each other in a circle. One that another surely
        # holds is read and not written: it is every monitor but one that does this, in each round.
        found = await transaction.rows(
            queries()["take"], {"names": sorted(names), "me": self.holder, "ttl": self.ttl_s}
        )
        until_s = asked_s + SAFETY * self.ttl_s
        return {name: Lease(name, self.holder, token, until_s) for name, token in found}

    def keep(self, names: Sequence[str], taken: dict[str, Lease]) -> None:
        """Hold the leases in ``taken``; drop the other ones of these names."""
        for name in names:
            self._held.pop(name, None)
        self._held |= taken

    async def release(self, transaction: Transaction, names: Sequence[str]) -> None:
        """Let others have these leases now."""
        for name in names:  # first here: between the two nobody holds it
            self._held.pop(name, None)
        if names:
            await transaction.execute(queries()["release"], (self.holder, list(names)))
