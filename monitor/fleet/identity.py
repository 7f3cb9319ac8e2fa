"""Identity: a schema is one fleet's, by a lease that all its monitors hold together while any of them is there.

A monitor without ``fleet.identity`` belongs to a fleet that has none, and is refused where another has one.
"""

from __future__ import annotations

from typing import Final

from sidejudge.integrations.postgres.database import Transaction
from sidejudge.integrations.postgres.errors import DatabaseRefuses
from sidejudge.integrations.postgres.leases import Leases
from sidejudge.monitor.config.fleet import FleetSection

_LEASE: Final = "fleet identity"
_PREFIX: Final = "fleet:"
"""No monitor's name has a colon."""
_OWNER: Final = "SELECT holder FROM leases WHERE name = %s AND expires_at > now()"


async def hold(transaction: Transaction, section: FleetSection) -> None:
    """Hold the schema for this fleet; at the end of a transaction, for all monitors write one row.

    Raises:
        DatabaseRefuses: it is another fleet's.
    """
    if section.identity is None:
        await check(transaction, section)
        return
    shared = Leases(f"{_PREFIX}{section.identity}", ttl_s=section.lease.seconds)
    if not await shared.take(transaction, [_LEASE]):
        await check(transaction, section)


async def check(transaction: Transaction, section: FleetSection) -> None:
    """Raise ``DatabaseRefuses`` where the schema is another fleet's at this moment."""
    found = await transaction.rows(_OWNER, (_LEASE,))
    owner = found[0][0].removeprefix(_PREFIX) if found else section.identity
    if owner != section.identity:
        mine = f"is of {section.identity}" if section.identity is not None else "has no fleet.identity"
        raise DatabaseRefuses(
            f"fleet.database: the schema {section.schema_name} is the fleet {owner}'s, this monitor {mine}\n"
            "give this fleet another fleet.schema_name, or all monitors one fleet.identity"
        )
