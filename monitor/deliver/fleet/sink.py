"""The sink that keeps results of all monitors in the fleet's database: through the outbox, so that none is lost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from integrations.delivery_errors import DestinationUnreachableError
from integrations.jsonl import line
from integrations.postgres.archive import ArchivedResult, erase_results, put_results
from integrations.postgres.errors import DatabaseError, DatabaseRefuses
from integrations.store.notification_outbox import Entry, PendingNotice
from monitor.deliver.dispatcher import DeliveryTerms
from monitor.deliver.parquet.record import history_record
from monitor.deliver.parquet.wish import WISH, Wish, up_to_wish
from monitor.deliver.sink import SinkParts
from monitor.deliver.verdict_sink import VerdictSink
from monitor.evaluate.result import TraceResult
from monitor.fleet.fleet import Fleet
from scoring.checks.redaction import redaction_of
from scoring.trace.span import JsonRecord

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


class FleetArchive(VerdictSink):
    """Each result is one entry: its outcome and its new or changed verdicts."""

    batch = 256

    def __init__(self, fleet: Fleet, parts: SinkParts) -> None:
        super().__init__(FLEET, parts, _TERMS)
        self._fleet = fleet
        self.gather_s = fleet.every_s / 3
        judge = parts.config.evaluators.judge
        self._redaction = redaction_of(judge.redact, judge.redact_patterns) if judge is not None else None
        self._contents = parts.config.api.contents == "always"

    def entries(self, result: TraceResult) -> Sequence[Entry]:
        """The outcome and what is new or changed of its verdicts, as one entry."""
        record = history_record(result, contents=self._contents, redaction=self._redaction)
        identity = f"{result.trace_id.hex()}/{result.revision}"
        return [Entry(destination=self.name, id=identity, body=line(record).decode())]

    def committed(self, _result: TraceResult) -> None:
        self._dispatcher.wake()

    def together(self, entries: Sequence[PendingNotice]) -> Sequence[PendingNotice]:
        """See ``up_to_wish``."""
        return up_to_wish(entries)

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
        if entries[0].id.startswith(WISH):
            wish = Wish.from_json(entries[0].body)
            async with self._fleet.transaction() as transaction:
                await erase_results(
                    transaction, traces=wish.traces, users=wish.users, sessions=wish.sessions,
                    before_s=None if wish.before_ns is None else wish.before_ns / 1e9,
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
