"""Shards: traces of a job come in; this process's share goes out, shard by shard, alongside other processes.

Several processes of one job share a PostgreSQL (``fleet.database``). Traces are divided by a hash of their session, or
of their id without one, into ``SHARDS``, each under a lease. A shard is marked as done once its scores stand in
Langfuse; what a killed process had not marked is taken over when its leases end. Judging a trace again writes its
scores under the same ids, so none is doubled: a lost lease only costs the judge's work.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import socket
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from sidejudge.integrations.postgres import schema, shared
from sidejudge.integrations.postgres.database import DatabaseError, DatabaseRefuses, LeaseLost, Transaction
from sidejudge.integrations.postgres.leases import Leases
from sidejudge.monitor.config.fleet import FleetSection
from sidejudge.monitor.fleet.fleet import database_of
from sidejudge.monitor.ingest.langfuse.listed_trace import ListedTrace

log = logging.getLogger("sidejudge.backfill")

SHARDS: Final = 32
_DONE: Final = "SELECT id FROM claims WHERE kind = %s AND id = ANY(%s) AND done_at IS NOT NULL"


def shard_of(trace: ListedTrace) -> int:
    """Where a trace belongs: all turns of a session together."""
    name = trace.session_id or trace.trace_id
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=4).digest()) % SHARDS


class Shards:
    """One process's part of a job.

    Args:
        section: the database that the processes share.
        job: what the processes have in common.
        drawn: the traces of the whole job.
        is_delivered: whether all scores so far stand in Langfuse.
        note: shows a line to who called the command.
    """

    def __init__(
        self, section: FleetSection, job: str, drawn: Sequence[ListedTrace], *,
        is_delivered: Callable[[], Awaitable[bool]], note: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.elsewhere = 0
        """Traces that other processes judged."""
        self._section, self._kind = section, f"backfill/{job}"
        self._is_delivered, self._note = is_delivered, note
        self._database = database_of(section)
        self._leases = Leases(
            f"backfill/{socket.gethostname()[:90]}/{secrets.token_hex(4)}", ttl_s=section.lease.seconds
        )
        self._poll_s = min(5.0, section.every.seconds)
        parts = defaultdict[int, list[ListedTrace]](list)
        for each in drawn:
            parts[shard_of(each)].append(each)
        # A shard is done with these traces: a job over more of them does it again.
        self._left = {_id(number, of): of for number, of in sorted(parts.items())}
        self._judged: list[str] = []
        self._alone = self._is_migrated = False
        self._away_since_s: float | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def parts(self) -> AsyncIterator[Sequence[ListedTrace]]:
        """The shards that are this process's, until all are done; a shard that is asked for next ends the last one."""
        self._renewing = asyncio.create_task(self._renew())
        while self._left:
            taken = await self._next()
            if taken is not None:
                yield self._left.pop(taken)
                self._judged.append(taken)
            elif self._left:
                await asyncio.sleep(self._poll_s)
            await self.settle()

    async def settle(self) -> None:
        """Mark the judged shard as done, if its scores are in Langfuse."""
        if not self._judged or self._alone or not await self._is_delivered():
            return
        marked = [*self._judged]
        try:
            async with self._database.transaction() as transaction:
                for each in marked:
                    lease = self._leases.held(self._lease(each))
                    with suppress(LeaseLost):  # another judges it by now, and marks it
                        if lease is not None:
                            await shared.claim(transaction, lease, self._kind, [each], again_s=0.0)
                            await shared.done(transaction, self._kind, [each])
                await self._leases.release(transaction, [self._lease(each) for each in marked])
        except DatabaseError as error:
            self._failed(error)
        else:
            self._away_since_s = None
            del self._judged[: len(marked)]

    async def close(self) -> None:
        """Release the unfinished shards to others."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        if not self._alone:
            with suppress(DatabaseError):
                async with self._database.transaction() as transaction:
                    await self._leases.release(transaction, self._leases.names())
        self._database.close()

    async def _next(self) -> str | None:
        """A free shard; None while others have all the remaining ones."""
        if self._alone:
            return next(iter(self._left))
        try:
            if self._section.migrate and not self._is_migrated:
                await schema.migrate(self._database)
                self._is_migrated = True
            async with self._database.transaction() as transaction:
                await self._drop_done(transaction, list(self._left))
                for each in list(self._left):
                    name = self._lease(each)
                    taken = await self._leases.take(transaction, [name])
                    if taken:  # it may have been marked and let go of since it was looked at
                        await self._drop_done(transaction, [each])
                        if each in self._left:
                            break
                        await self._leases.release(transaction, [name])
                else:
                    self._away_since_s = None
                    return None
        except DatabaseError as error:
            self._failed(error)
            return next(iter(self._left), None) if self._alone else None
        self._away_since_s = None
        self._leases.keep([name], taken)
        return each

    async def _drop_done(self, transaction: Transaction, ids: Sequence[str]) -> None:
        for (each,) in await transaction.rows(_DONE, (self._kind, [*ids])):
            self.elsewhere += len(self._left.pop(each))

    async def _renew(self) -> None:
        while not self._alone:
            await asyncio.sleep(self._section.lease.seconds / 4)
            try:
                async with self._database.transaction() as transaction:
                    names = self._leases.names()
                    taken = await self._leases.take(transaction, names)
            except DatabaseError as error:
                self._failed(error)
            except Exception:  # the job would go on without leases, and others would judge its shards
                log.exception("leases of the job were not renewed for an unforeseen reason; it is tried again")
            else:
                self._away_since_s = None
                self._leases.keep(names, taken)

    def _failed(self, error: DatabaseError) -> None:
        """Go on alone where only a person can help, or once the database was away for as long as a lease lasts."""
        now_s = time.monotonic()
        if self._away_since_s is None:
            self._away_since_s = now_s
        lasting = now_s - self._away_since_s >= self._section.lease.seconds
        if not self._alone and (lasting or isinstance(error, DatabaseRefuses)):
            self._alone = True
            self._note(f"{error}\ngoes on alone: other processes may judge the same traces; no score is doubled")

    def _lease(self, id_: str) -> str:
        return f"{self._kind}/{id_.partition('/')[0]}"


def _id(number: int, traces: Sequence[ListedTrace]) -> str:
    ids = hashlib.blake2b("".join(sorted(each.trace_id for each in traces)).encode(), digest_size=16)
    return f"{number}/{ids.hexdigest()}"
