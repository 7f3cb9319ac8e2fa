"""Tables that monitors share: who is there, windows, states and claims under a lease."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from .database import DatabaseRefuses, Transaction, queries
from .leases import Lease


class MonitorRow(NamedTuple):
    """A monitor that the database knows. ``age_s``: since it was last there, by the database's clock."""

    monitor: str
    version: str
    host: str
    started_at: datetime
    age_s: float
    left: bool


class WindowRow(NamedTuple):
    """The sums of one monitor's window. ``age_s``: since they were written."""

    monitor: str
    name: str
    body: bytes
    age_s: float


class HandedState(NamedTuple):
    """State that the holder of a lease left. ``token`` is the writer's."""

    body: bytes
    token: int
    age_s: float


async def heartbeat(
    transaction: Transaction, monitor: str, *, version: str, host: str, started_s: float, gone_s: float
) -> None:
    """Record that this monitor is there.

    Raises:
        DatabaseRefuses: one of the same name has started since, and was there within ``gone_s``.
    """
    if await transaction.execute(queries()["heartbeat"], (monitor, version, host, started_s, gone_s)):
        return
    [(other, at)] = await transaction.rows("SELECT host, started_at FROM monitors WHERE monitor = %s", (monitor,))
    raise DatabaseRefuses(
        f"fleet.name: a monitor that started later, at {at:%Y-%m-%d %H:%M:%S %Z} on {other}, is {monitor} as well\n"
        "give each monitor a fleet.name of its own, or none, and a store of its own that is no copy of another's"
    )


async def leave(transaction: Transaction, monitor: str) -> None:
    """Record that this monitor ended in order."""
    await transaction.execute("UPDATE monitors SET left_at = now() WHERE monitor = %s", (monitor,))


async def monitors_present(transaction: Transaction, within_s: float) -> tuple[int, float]:
    """How many monitors were there within so many seconds, and have not left; and the database's clock, in s."""
    [(count, now_s)] = await transaction.rows(queries()["present"], (within_s,))
    return int(count), float(now_s)


async def monitors(transaction: Transaction) -> list[MonitorRow]:
    """Every monitor that is known, in the order of names."""
    return [MonitorRow(*row) for row in await transaction.rows(queries()["monitors"])]


async def put_windows(transaction: Transaction, monitor: str, windows: Mapping[str, bytes]) -> None:
    """Write windows of this monitor, by name; its other windows are not changed."""
    await transaction.each(queries()["windows"], [(monitor, name, body) for name, body in sorted(windows.items())])


async def windows(transaction: Transaction, *, younger_s: float | None = None) -> list[WindowRow]:
    """Windows of all monitors, or only the windows that registered monitors wrote within ``younger_s`` seconds."""
    sql = "SELECT monitor, name, body, extract(epoch FROM now() - written_at)::float8 FROM windows"
    if younger_s is None:
        found = await transaction.rows(sql + " ORDER BY name, monitor")
    else:
        since = (
            " WHERE written_at >= now() - make_interval(secs => %s) AND monitor IN (SELECT monitor FROM monitors)"
            " ORDER BY name, monitor"
        )
        found = await transaction.rows(sql + since, (younger_s,))
    return [WindowRow(monitor, name, bytes(body), age_s) for monitor, name, body, age_s in found]


async def save(transaction: Transaction, lease: Lease, states: Mapping[str, bytes]) -> None:
    """Write states under a lease. Raises ``LeaseLost``, and writes nothing, where another monitor holds it."""
    await lease.fence(transaction)
    await transaction.each(
        queries()["save"], [(name, lease.name, lease.token, body) for name, body in sorted(states.items())]
    )


async def touch(transaction: Transaction, name: str) -> None:
    """A state is needed as it stands: ``purge`` counts from now. What it holds is not written again."""
    await transaction.execute("UPDATE states SET written_at = now() WHERE name = %s", (name,))


async def load(transaction: Transaction, names: Sequence[str]) -> dict[str, HandedState]:
    """The states that exist under these names."""
    sql = """
    SELECT name, body, token, extract(epoch FROM now() - written_at)::float8 FROM states WHERE name = ANY(%s)
    """
    found = await transaction.rows(sql, (list(names),))
    return {name: HandedState(bytes(body), token, age_s) for name, body, token, age_s in found}


async def claim(transaction: Transaction, lease: Lease, kind: str, ids: Sequence[str], *, again_s: float) -> set[str]:
    """Claim effects outside this database before they begin; return the ``ids`` that this monitor may carry out.

    What another began and did not report as done is handed over after ``again_s``: better twice than never. Raises
    ``LeaseLost`` where another monitor holds the lease.
    """
    await lease.fence(transaction)
    values = {"kind": kind, "monitor": lease.holder, "token": lease.token, "again": again_s}
    return {each for each in ids if await transaction.rows(queries()["claim"], {**values, "id": each})}


async def claim_within(
    transaction: Transaction, monitor: str, kind: str, name: str, *, most: int, within_s: float
) -> bool:
    """Claim one of ``most`` things of a kind in so many seconds; False where all are claimed, or this by another."""
    await transaction.execute("SELECT pg_advisory_xact_lock(hashtext('sidejudge claims'), hashtext(%s))", (kind,))
    held = await transaction.rows("SELECT monitor FROM claims WHERE kind = %s AND id = %s", (kind, name))
    if held:
        return bool(held[0][0] == monitor)
    [(count,)] = await transaction.rows(
        "SELECT count(*) FROM claims WHERE kind = %s AND claimed_at > now() - make_interval(secs => %s)",
        (kind, within_s),
    )
    if count >= most:
        return False
    return bool(
        await transaction.execute(
            "INSERT INTO claims (kind, id, monitor, token, done_at) VALUES (%s, %s, %s, 0, now())",
            (kind, name, monitor),
        )
    )


async def done(transaction: Transaction, kind: str, ids: Sequence[str]) -> None:
    """Record that these effects took place: nobody has them again."""
    await transaction.execute(
        "UPDATE claims SET done_at = now() WHERE kind = %s AND id = ANY(%s) AND done_at IS NULL", (kind, list(ids))
    )
