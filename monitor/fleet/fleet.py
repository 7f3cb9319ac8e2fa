"""Fleet: what this monitor shares with others, in rounds beside everything else.

A round connects, records that this monitor is there, renews its leases, has each part read and write what it shares,
and leaves. Nothing else of the monitor waits for it: others read what the last round found. While the database is away
the monitor goes on alone, and rounds are tried again with growing pauses.

A schema is one fleet's, by a lease that all its monitors hold together while any of them is there. A monitor without
``fleet.identity`` belongs to a fleet that has none, and is refused where another has one.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Final, TypeAlias

from sidejudge.integrations.backoff import Backoff
from sidejudge.integrations.postgres import schema, shared
from sidejudge.integrations.postgres.archive import purge
from sidejudge.integrations.postgres.database import (
    Database,
    DatabaseAway,
    DatabaseError,
    DatabaseRefuses,
    LeaseLost,
    Transaction,
)
from sidejudge.integrations.postgres.leases import Lease, Leases
from sidejudge.integrations.postgres.schema import SchemaVersion
from sidejudge.integrations.postgres.shared import MonitorRow, claim_within
from sidejudge.integrations.store.part import KeyValueRoom
from sidejudge.monitor.config.fleet import FleetSection
from sidejudge.scoring.status.snapshots import FleetSnapshot, FleetState

log = logging.getLogger("sidejudge.fleet")

RoundWork: TypeAlias = Callable[[Transaction], Awaitable[Callable[[], object] | None]]
"""What a part does in a round, in a transaction of its own. What it returns is called once that is committed."""
_NAME: Final = "name"
_JITTER: Final = 0.2
"""Share of a pause that is drawn by chance, either way: 500 monitors must not come at once."""
_LIST_S: Final = 60.0
"""How often the names of all monitors are read, unless their number changes."""
_END_S: Final = 2.0
"""How long the end of the process waits to let others have its leases."""
SKEW_S: Final = 60.0
"""By how much this monitor's clock may differ from the database's: a slice of the fleet's windows."""
FAR_OFF_S: Final = 300.0
"""A monitor whose clock is further off leaves what depends on the time to another."""
_LEFT_ROUNDS: Final = 3
"""For how many rounds after another had it: where nobody takes it, the others' clocks, or the database's alone, are no
better.
"""
_LEFT_AGAIN_S: Final = 6 * 3_600.0
GONE_ROUNDS: Final = 4
"""A monitor that missed so many rounds is gone, unless it left in order."""
UPKEEP: Final = "upkeep"
_UPKEEP_S: Final = 60.0
_WINDOWS_S: Final = 25 * 3_600.0
"""How long windows are kept at least: an hour more than the longest that ships."""
_ANSWERS_S: Final = 7 * 86_400.0
_MOST_ANSWERS: Final = 200_000
_LEASE: Final = "fleet identity"
_CLAIM_S: Final = 2 * 86_400.0
"""For how long it stays known who does a task."""
_PREFIX: Final = "fleet:"
"""No monitor's name has a colon."""
_OWNER: Final = "SELECT holder FROM leases WHERE name = %s AND expires_at > now()"
_OTHERS: Final = "SELECT 1 FROM leases WHERE name = ANY(%s) AND holder <> %s AND expires_at > now()"


def database_of(section: FleetSection) -> Database:
    """The database that a configuration names."""
    url = section.database.get_secret_value()
    return Database(url, schema=section.schema_name, timeout_s=section.timeout.seconds)


class Fleet:
    """One monitor's part in the fleet."""

    def __init__(self, section: FleetSection, room: KeyValueRoom) -> None:
        self.section, self.every_s = section, section.every.seconds
        self._room, self._clock_s, self._jitter, self._time_s = room, time.monotonic, random.random, time.time
        self._skew_s: float | None = None
        self.database = database_of(section)
        self.name = section.name or self._kept_name()
        # Another process of the same name, such as one that hangs, is another holder.
        self.leases = Leases(f"{self.name}/{secrets.token_hex(4)}", ttl_s=section.lease.seconds)
        self.monitors: tuple[MonitorRow, ...] = ()
        self._parts: list[tuple[str, RoundWork, Callable[[], bool]]] = []
        self._last: list[Callable[[Transaction], Awaitable[None]]] = []
        self._count, self._listed_s = 1, float("-inf")
        self._wanted: set[str] = set()
        self._timed: set[str] = set()
        self._left_s = float("-inf")
        self._backoff = Backoff(random.random, first_s=1.0, longest_s=max(60.0, self.every_s))
        self._state: FleetState = "starting"
        self._away: str | None = "the database was not reached yet"
        self._away_since_s = time.monotonic()
        self._read_s: float | None = None
        self._rounds: Counter[str] = Counter()
        self._failing: dict[str, str | None] = {}
        self._schema: SchemaVersion | None = None
        self._started_s = time.time()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # What others read; none of it waits.

    @property
    def away(self) -> str | None:
        """Why the database cannot be used; None while it can."""
        return self._away

    @property
    def away_for_s(self) -> float:
        """For how many seconds it has been away; 0 while it is there."""
        return 0.0 if self._away is None else self._clock_s() - self._away_since_s

    @property
    def wrong_clock(self) -> str | None:
        """What to do about this monitor's clock, where it is more than ``SKEW_S`` from the database's."""
        if self._skew_s is None or abs(self._skew_s) <= SKEW_S:
            return None
        way = "ahead of" if self._skew_s > 0 else "behind"
        return f"this monitor's clock is {abs(self._skew_s):,.0f} s {way} the database's; set both by NTP"

    def held(self, name: str) -> Lease | None:
        """The lease of this name while it is surely this monitor's."""
        return self.leases.held(name)

    @property
    def present(self) -> list[str]:
        """The monitors that were there in the latest rounds, this one included, in the order of their names."""
        others = {row.monitor for row in self.monitors if not row.left and row.age_s < self._gone_s}
        return sorted(others | {self.name})

    @property
    def count(self) -> int:
        """How many monitors were there in the latest round, this one included."""
        return max(1, self._count)

    @property
    def _gone_s(self) -> float:
        return GONE_ROUNDS * (self.every_s * (1 + _JITTER) + self.section.timeout.seconds)

    def snapshot(self) -> FleetSnapshot:
        """How the fleet looks from here, at this moment."""
        wrong_clock = self.wrong_clock or ""
        return FleetSnapshot(
            name=self.name, database=self.database.shown,
            state="wrong_clock" if wrong_clock and self._state == "ok" else self._state,
            reason=self._away or wrong_clock,
            away_s=self.away_for_s, monitors=self.count, leases=tuple(self.leases.names()),
            schema_version=self._schema.version if self._schema else None, read_s=self._read_s,
            rounds=tuple(sorted(self._rounds.items())), clock_offset_s=self._skew_s, wrong_clock=wrong_clock,
        )  # fmt: skip

    # What others add.

    def each_round(self, part: str, work: RoundWork, *, when: Callable[[], bool] = lambda: True) -> None:
        """Have this done in each round, after leases were renewed and after the parts that were added before.

        ``when`` returns whether there is anything to do: a transaction less in most rounds is what 500 monitors need.
        """
        self._parts.append((part, work, when))

    def at_end(self, work: Callable[[Transaction], Awaitable[None]]) -> None:
        """Have this done as this monitor ends in order, in a transaction of its own."""
        self._last.append(work)

    def want(self, *names: str, by_time: bool = False) -> None:
        """Take these leases from the next round on, as far as they are free.

        ``by_time``: what is done under them depends on the time, so a monitor whose clock is far off leaves them to
        another, if there is one.
        """
        self._wanted |= {*names}
        if by_time:
            self._timed |= {*names}

    def waive(self, *names: str) -> None:
        """Let others have these leases from the next round on."""
        self._wanted -= {*names}

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """A transaction between rounds. Raises ``DatabaseError``, at once while the database is known to be away."""
        if self._away is not None:
            raise DatabaseAway(self._away)
        async with self.database.transaction() as transaction:
            yield transaction

    async def claim(self, task: str, *, take: bool) -> bool | None:
        """Whether this monitor does a task that is done once in a fleet; None if nobody does it yet.

        Args:
            task: The name of the task.
            take: Whether this monitor is to do it where nobody does.

        Raises:
            DatabaseError: It is not known.
        """
        async with self.transaction() as transaction:
            if take:
                await Leases(self.name, ttl_s=_CLAIM_S).take(transaction, [task])
            held = await transaction.rows(_OWNER, (task,))
        return held[0][0] == self.name if held else None

    def wake(self) -> None:
        """Begin the next round now, unless the database is away."""
        self._wake.set()

    # The rounds.

    async def start(self) -> None:
        """Begin with rounds. It returns at once: the database may be away."""
        if self.section.name is None:
            await self._room.change({_NAME: self.name})
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End rounds, and let others have the leases as far as that is quickly done."""
        if self._task is not None:
            self.database.close()  # before: a statement that is cancelled waits for the database
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._away is None:
            with suppress(DatabaseError, TimeoutError):
                async with asyncio.timeout(_END_S):
                    for work in (self._leave, *self._last):
                        async with self.database.transaction(timeout_s=_END_S) as transaction:
                            await work(transaction)
        self.database.close()

    async def _leave(self, transaction: Transaction) -> None:
        await self.leases.release(transaction, self.leases.names())
        await shared.leave(transaction, self.name)

    async def round(self) -> float:
        """One round; seconds until the next."""
        try:
            await self._reach()
            for part, work, when in self._parts:
                if when():
                    await self._take_part(part, work)
        except DatabaseError as error:
            self._rounds["away" if self._away is not None else "cut"] += 1
            self._is_away(error)
            return self._backoff.after_failure(None)
        finally:
            self.database.leave()  # 500 monitors have more connections than the server, if they keep them
        self._rounds["ok"] += 1
        self._backoff.succeeded()
        self._read_s = time.time()
        return self.every_s * (1 + _JITTER * (2 * self._jitter() - 1))

    async def _take_part(self, part: str, work: RoundWork) -> None:
        """A part that is refused does not keep the others from theirs."""
        why = None
        try:
            async with self.database.transaction() as transaction:
                committed = await work(transaction)
            if committed is not None:
                committed()
        except (DatabaseRefuses, LeaseLost) as error:
            why = str(error)
            if self._failing.get(part) != why:
                log.warning("a part of the fleet's round fails; it is tried again", extra={"part": part, "cause": why})
        self._failing[part] = why

    async def _run(self) -> None:
        while True:
            try:
                pause_s = await self.round()
            except Exception:
                log.exception("a round of the fleet failed in an unforeseen way; it is tried again")
                self._rounds["failed"] += 1
                pause_s = self._backoff.after_failure(None)
            self._wake.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait() if self._away is None else asyncio.sleep(pause_s), pause_s)

    async def _reach(self) -> None:
        if self._schema is None:
            if self.section.migrate:
                await schema.migrate(self.database)
            async with self.database.transaction() as transaction:
                found = await schema.version_of(transaction)
            found.check()
            self._schema = found
        async with self.database.transaction() as transaction:
            wanted = sorted(self._wanted - await self._left_to_others(transaction))
            given_up = [name for name in self.leases.names() if name not in wanted]
            await shared.heartbeat(
                transaction, self.name, version=version("sidejudge"), host=socket.gethostname(),
                started_s=self._started_s, gone_s=self._gone_s,
            )  # fmt: skip
            await self.leases.release(transaction, given_up)
            taken = await self.leases.take(transaction, wanted)
            count, database_s = await shared.monitors_present(transaction, self._gone_s)
            self._compare_clocks(self._time_s() - database_s)
            monitors = self.monitors
            if count != self._count or self._clock_s() - self._listed_s >= _LIST_S:
                self._listed_s = self._clock_s() - _LIST_S * _JITTER * self._jitter()
                monitors = tuple(await shared.monitors(transaction))
            await hold_identity(transaction, self.section)  # last: all monitors write that row
        if count > self._count:  # the one that came may have a better clock
            self._left_s = float("-inf")
        before = set(self.leases.names())
        self.leases.keep(wanted, taken)
        self.monitors, self._count = monitors, count
        self._is_back()
        if news := sorted(taken.keys() - before):
            log.info("this monitor does what only one may do", extra={"leases": ", ".join(news)})

    async def _left_to_others(self, transaction: Transaction) -> set[str]:
        now_s = self._clock_s()
        if self._skew_s is None or abs(self._skew_s) <= FAR_OFF_S:
            return set()
        others_hold = await transaction.rows(_OTHERS, (sorted(self._timed), self.leases.holder))
        if others_hold or now_s - self._left_s > _LEFT_AGAIN_S:
            self._left_s = now_s
        return self._timed if now_s - self._left_s < _LEFT_ROUNDS * self._gone_s / GONE_ROUNDS else set()

    def _compare_clocks(self, skew_s: float) -> None:
        before, self._skew_s = self.wrong_clock, skew_s
        if before is None and self.wrong_clock is not None:
            log.warning(
                "verdicts stand in other minutes than those of other monitors", extra={"cause": self.wrong_clock}
            )

    def _is_away(self, error: DatabaseError) -> None:
        state: FleetState = "stopped" if isinstance(error, DatabaseRefuses) else "retrying"
        if self._away is None:
            self._away_since_s = self._clock_s()
        if state != self._state:
            level = logging.ERROR if state == "stopped" else logging.WARNING
            log.log(level, "the fleet's database is away; this monitor goes on alone", extra={"cause": str(error)})
        self._away, self._state = str(error), state
        self._schema = None  # it may be another when it is back

    def _is_back(self) -> None:
        if self._state in ("retrying", "stopped"):
            log.info("the fleet's database is back", extra={"away_s": round(self.away_for_s, 1)})
        self._away, self._state = None, "ok"

    def _kept_name(self) -> str:
        return self._room.all().get(_NAME) or f"{socket.gethostname()[:90]}-{secrets.token_hex(2)}"


class Upkeep:
    """One monitor of the fleet, which holds the lease, deletes what is too old: once a minute, some thousand rows."""

    def __init__(self, fleet: Fleet, *, results_s: float, windows_s: float = 0.0) -> None:
        self._fleet, self._results_s = fleet, results_s
        self._windows_s = max(_WINDOWS_S, windows_s)
        self._due_s = 0.0
        fleet.want(UPKEEP)
        fleet.each_round(UPKEEP, self.round, when=self._is_due)

    def _is_due(self) -> bool:
        return self._fleet.held(UPKEEP) is not None and time.monotonic() >= self._due_s

    async def round(self, transaction: Transaction) -> None:
        """Delete what is too old."""
        self._due_s = time.monotonic() + _UPKEEP_S
        await purge(
            transaction, results_s=self._results_s, windows_s=self._windows_s, answers_s=_ANSWERS_S,
            answers=_MOST_ANSWERS,
        )  # fmt: skip


class Quota:
    """Bounds what the monitors put into one place: ``most`` things of a kind within ``within_s`` seconds, each by one.

    While the database is away there is no room: what is left out then stays out, as beyond the number.
    """

    def __init__(self, fleet: Fleet, kind: str, most: int, within_s: float) -> None:
        self._fleet, self._kind, self._most, self._within_s = fleet, kind, most, within_s

    async def room(self, name: str) -> bool:
        """Whether this monitor may add it; always True for what it was granted before."""
        try:
            async with self._fleet.transaction() as transaction:
                return await claim_within(
                    transaction, self._fleet.name, self._kind, name, most=self._most, within_s=self._within_s
                )
        except DatabaseError:
            return False


async def hold_identity(transaction: Transaction, section: FleetSection) -> None:
    """Hold the lease of the schema for this fleet; last in a transaction, because all monitors write one row.

    Raises:
        DatabaseRefuses: it is another fleet's.
    """
    if section.identity is None:
        await check_identity(transaction, section)
        return
    leases = Leases(f"{_PREFIX}{section.identity}", ttl_s=section.lease.seconds)
    if not await leases.take(transaction, [_LEASE]):
        await check_identity(transaction, section)


async def check_identity(transaction: Transaction, section: FleetSection) -> None:
    """Raise ``DatabaseRefuses`` where the schema is another fleet's at this moment."""
    found = await transaction.rows(_OWNER, (_LEASE,))
    owner = found[0][0].removeprefix(_PREFIX) if found else section.identity
    if owner != section.identity:
        mine = f"is of {section.identity}" if section.identity is not None else "has no fleet.identity"
        raise DatabaseRefuses(
            f"fleet.database: the schema {section.schema_name} is the fleet {owner}'s, this monitor {mine}\n"
            "give this fleet another fleet.schema_name, or all monitors one fleet.identity"
        )
