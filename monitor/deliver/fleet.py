"""The sink that keeps results of all monitors in the fleet's database: through the outbox, so that none is lost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from sidejudge.integrations.backoff import DestinationUnreachableError
from sidejudge.integrations.postgres.archive import ArchivedResult, erase_results, put_results
from sidejudge.integrations.postgres.database import DatabaseError, DatabaseRefuses
from sidejudge.integrations.store.notification_outbox import ERASURE, PendingNotice
from sidejudge.monitor.deliver.dispatcher import DeliveryTerms
from sidejudge.monitor.deliver.sink import ErasureRequest, ResultSink, SinkParts
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.fleet.fleet import Fleet
from sidejudge.scoring.trace.span import JsonRecord

FLEET: Final = "fleet"
NOT_ARCHIVED: Final = "not_archived"
"""Why a result is not in the archive: the database was away for a day, or does not take it."""
_TERMS: Final = DeliveryTerms(refused=NOT_ARCHIVED, expired=NOT_ARCHIVED)


def fleet_sink(parts: SinkParts) -> FleetArchive | None:
    """The archive; None without a fleet, or where it keeps none."""
    section = parts.config.fleet
    if section is None or section.archive is None or parts.fleet is None:
        return None
    return FleetArchive(parts.fleet, parts)


class FleetArchive(ResultSink):
    """Each result is one entry: its outcome and its new or changed verdicts."""

    batch = 256

    def __init__(self, fleet: Fleet, parts: SinkParts) -> None:
        super().__init__(FLEET, parts, _TERMS, contents=parts.config.api.contents == "always")
        self._fleet = fleet
        self.gather_s = fleet.every_s / 3

    def committed(self, _result: TraceResult) -> None:
        self._dispatcher.wake()

    async def deliver(self, entries: Sequence[PendingNotice]) -> Mapping[int, str]:
        """Write the rows; one that the database has no form for is refused alone. See ``Destination``."""
        try:
            await self._write(entries)
        except DatabaseRefuses as error:
            if not error.data:
                raise DestinationUnreachableError(str(error)) from None
            if len(entries) == 1:
                return {entries[0].seq: "the database has no form for it"}
            refused: dict[int, str] = {}
            for each in entries:
                refused |= await self.deliver([each])
            return refused
        except DatabaseError as error:
            raise DestinationUnreachableError(str(error)) from None
        return {}

    async def _write(self, entries: Sequence[PendingNotice]) -> None:
        if entries[0].id.startswith(ERASURE):
            request = ErasureRequest.from_json(entries[0].body)
            async with self._fleet.transaction() as transaction:
                await erase_results(
                    transaction, traces=request.traces, users=request.users, sessions=request.sessions,
                    before_s=None if request.before_ns is None else request.before_ns / 1e9,
                )  # fmt: skip
            return
        results = [_archived(json.loads(entry.body)) for entry in entries]
        async with self._fleet.transaction() as transaction:
            await put_results(transaction, self._fleet.name, results)


def _archived(record: JsonRecord) -> ArchivedResult:
    outcome = record["outcome"]
    return ArchivedResult(
        trace_id=outcome["trace_id"], revision=outcome["revision"], service=outcome["service"],
        ended_s=outcome["ended_at"] / 1e9, outcome=outcome, verdicts=record["verdicts"],
    )  # fmt: skip
