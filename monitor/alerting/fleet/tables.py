"""The fleet's database as the status of the fleet uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from sidejudge.integrations.postgres import shared
from sidejudge.integrations.postgres.database import Transaction
from sidejudge.integrations.postgres.errors import LeaseLost
from sidejudge.integrations.postgres.leases import Lease
from sidejudge.monitor.fleet.fleet import Fleet

from .status import LEASE, FleetStatus, OpenTables, SliceRow

_OWN: Final = "SELECT name FROM windows WHERE monitor = %s"


async def share_status(fleet: Fleet, status: FleetStatus) -> None:
    """One round of the status. Raises ``DatabaseError``; the next round goes on."""
    await status.round(_opener(fleet), leading=fleet.held(LEASE) is not None)


def _opener(fleet: Fleet) -> OpenTables:
    lease = fleet.held(LEASE)

    @asynccontextmanager
    async def opened() -> AsyncIterator[FleetTables]:
        async with fleet.transaction() as transaction:
            yield FleetTables(transaction, fleet.name, lease)

    return opened


async def end_sharing(fleet: Fleet, status: FleetStatus) -> None:
    """Leave the status to another. Raises ``DatabaseError``."""
    await status.end(_opener(fleet))


class FleetTables:
    """Slices and states in one transaction."""

    def __init__(self, transaction: Transaction, monitor: str, lease: Lease | None) -> None:
        self._transaction, self._monitor, self._lease = transaction, monitor, lease

    async def publish(self, slices: Mapping[str, bytes]) -> None:
        """Write slices of this monitor."""
        await shared.put_windows(self._transaction, self._monitor, slices)

    async def published(self, younger_s: float) -> Sequence[SliceRow]:
        """Slices of all monitors that were written within so many seconds."""
        rows = await shared.windows(self._transaction, younger_s=younger_s)
        return [SliceRow(row.monitor, row.name, row.body) for row in rows]

    async def held(self) -> Sequence[str]:
        """The names of the slices of this monitor that there are."""
        return [name for (name,) in await self._transaction.rows(_OWN, (self._monitor,))]

    async def save(self, states: Mapping[str, bytes]) -> None:
        """Write states under the lease. Raises ``LeaseLost`` where another monitor holds it."""
        if self._lease is None:
            raise LeaseLost(f"the lease {LEASE} is not held")
        await shared.save(self._transaction, self._lease, states)

    async def load(self, names: Sequence[str]) -> Mapping[str, bytes]:
        """The states of these names that there are."""
        return {name: state.body for name, state in (await shared.load(self._transaction, names)).items()}
