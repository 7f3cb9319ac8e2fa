"""Quota: of what several monitors may put into one place, a number in a time, each thing by one of them."""

from __future__ import annotations

from sidejudge.integrations.postgres.errors import DatabaseError
from sidejudge.integrations.postgres.shared import claim_within

from .fleet import Fleet


class Quota:
    """At most ``most`` things of a kind within ``within_s`` seconds, over all monitors.

    While the database is away there is no room: what is left out then stays out, as beyond the number.
    """

    def __init__(self, fleet: Fleet, kind: str, most: int, within_s: float) -> None:
        self._fleet, self._kind, self._most, self._within_s = fleet, kind, most, within_s

    async def room(self, name: str) -> bool:
        """Whether this monitor may put it in; True again for what it may already."""
        try:
            async with self._fleet.transaction() as transaction:
                return await claim_within(
                    transaction, self._fleet.name, self._kind, name, most=self._most, within_s=self._within_s
                )
        except DatabaseError:
            return False
