"""Sinks: their interface to the commit and to the process, their parts, and the sink of whole results.

There the outcome and the verdicts of one trace are one entry, in order with requests to erase. Such a request names the
rows that a person wants removed; the monitor removes them, because it alone writes there.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import convert

from sidejudge.integrations.jsonl import line
from sidejudge.integrations.langfuse.client import Connections
from sidejudge.integrations.store.notification_outbox import ERASURE, Entry, PendingNotice
from sidejudge.integrations.store.outbox import ScoreRow
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.deliver.dispatcher import DeliveryCounters, DeliveryTask, DeliveryTerms, Dispatcher, StoredQueue
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.fleet.fleet import Fleet
from sidejudge.scoring.checks.redaction import Redaction, redaction_of
from sidejudge.scoring.rubrics.open_verdict import open_details, open_verdict
from sidejudge.scoring.status.snapshots import ExportSnapshot
from sidejudge.scoring.verdict.rubric import Rubric

NOT_WRITTEN: Final = "not_written"
"""Why a result is not in a file or folder: for a day it could not be written, or it never takes it."""
FILE_TERMS: Final = DeliveryTerms(refused=NOT_WRITTEN, expired=NOT_WRITTEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkParts:
    """The services that every sink may use."""

    config: Config
    store: Store
    connections: Connections
    counters: DeliveryCounters
    rubrics: Mapping[str, Rubric]
    clock_ns: Callable[[], int]
    fleet: Fleet | None = None


class Sink:
    """Where results go. ``scores`` and ``entries`` are committed in the transaction that ends the trace.

    ``deliveries`` are the tasks that deliver committed results.
    """

    deliveries: Sequence[DeliveryTask] = ()

    def scores(self, _result: TraceResult) -> Sequence[ScoreRow] | None:
        """Every score that the result is to have; None for a sink that keeps no scores."""
        return None

    def entries(self, _result: TraceResult) -> Sequence[Entry]:
        """The entries of the result to be delivered."""
        return ()

    def committed(self, result: TraceResult) -> None:
        """Receive a result that is on disk, in the event loop."""

    def look(self) -> None:
        """Deliver what a command has left in the store, such as a request to erase."""

    def undelivered(self) -> int:
        """How many deliveries wait at this moment; ``snapshots`` may be some seconds old."""
        return sum(snapshot.waiting for snapshot in self.snapshots())

    @property
    def working(self) -> bool:
        """Whether it still delivers; where it does not, the process is not live."""
        return all(task.working for task in self.deliveries)

    async def start(self) -> None:
        """Begin to deliver; raise ``SinkError`` where it never can."""
        for task in self.deliveries:
            await task.start()

    async def stop(self) -> None:
        """Deliver for a moment, and end."""
        await asyncio.gather(*(task.close() for task in self.deliveries))

    def snapshots(self) -> Sequence[ExportSnapshot]:
        """How far deliveries have come."""
        return [task.snapshot() for task in self.deliveries]


class VerdictSink(Sink, ABC):
    """A sink that is the destination of its own dispatcher. ``name`` is its name in the outbox, metrics and logs."""

    batch = 256
    """Verdicts delivered in one go, and settled in one transaction."""
    gather_s = 0.0

    def __init__(self, name: str, parts: SinkParts, terms: DeliveryTerms, queue: StoredQueue | None = None) -> None:
        self.name = name
        queue = StoredQueue(parts.store.notifications, name) if queue is None else queue
        self._dispatcher = Dispatcher(self, queue, clock_ns=parts.clock_ns, counters=parts.counters, terms=terms)
        self.deliveries = (self._dispatcher,)

    @abstractmethod
    async def deliver(self, entries: Sequence[PendingNotice], /) -> Mapping[int, str]:
        """Deliver verdicts, each a line of JSON; see ``Destination``."""

    def entries(self, result: TraceResult) -> Sequence[Entry]:
        """The verdicts that are new or changed."""
        changed = {verdict.rubric for verdict in result.changed}
        return [
            Entry(
                destination=self.name,
                id=f"{result.trace_id.hex()}/{verdict.rubric}/{verdict.revision}",
                body=line(record).decode(),
            )
            for verdict, record in zip(result.verdicts, result.verdicts_json, strict=True)
            if verdict.rubric in changed
        ]

    def committed(self, result: TraceResult) -> None:
        """Wake the dispatcher."""
        if result.changed:
            self._dispatcher.wake()

    def look(self) -> None:
        """Wake the dispatcher."""
        self._dispatcher.wake()

    def together(self, entries: Sequence[PendingNotice]) -> Sequence[PendingNotice]:
        """All of them."""
        return entries


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRequest:
    """Traces by id, by the digest of their user, by session, or that ended before a moment (ns since the epoch)."""

    traces: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    before_ns: int | None = None

    @classmethod
    def from_json(cls, text: str) -> ErasureRequest:
        """A request as ``to_json`` writes it."""
        return convert(json.loads(text), cls)

    def to_json(self) -> str:
        """The request as the body of an entry."""
        return json.dumps(asdict(self))

    def names(self, record: Mapping[str, object]) -> bool:
        """Whether a record (an outcome or a verdict) belongs to a trace that is to be erased."""
        if record.get("trace_id") in self.traces:
            return True
        if record.get("user") in self.users or record.get("session_id") in self.sessions:
            return True
        at_ns = _at_ns(record)
        return self.before_ns is not None and at_ns is not None and at_ns < self.before_ns


def _at_ns(record: Mapping[str, object]) -> int | None:
    ended, created = record.get("ended_at"), record.get("created_at")
    if isinstance(ended, int):
        return ended
    return int(datetime.fromisoformat(created).timestamp() * 1e9) if isinstance(created, str) else None


def up_to_erasure(entries: Sequence[PendingNotice]) -> Sequence[PendingNotice]:
    """The results before the first request to erase, or that request alone, so that both happen in order."""
    if entries[0].id.startswith(ERASURE):
        return entries[:1]
    end = next((at for at, entry in enumerate(entries) if entry.id.startswith(ERASURE)), len(entries))
    return entries[:end]


def history_record(result: TraceResult, *, contents: bool, redaction: Redaction | None) -> dict[str, object]:
    """The outcome and the verdicts that are new or changed, as JSON.

    Args:
        result: How a trace or a session ended.
        contents: Whether contents by people and models are kept.
        redaction: Their redaction; None for none.
    """
    at_ns = result.ended_ns if result.place_ns is None else result.place_ns
    changed = {verdict.rubric for verdict in result.changed}
    verdicts: list[Mapping[str, object]] = [each for each in result.verdicts_json if each["rubric"] in changed]
    details = result.details
    if not contents:
        verdicts, details = [open_verdict(each) for each in verdicts], open_details(details)
    elif redaction is not None:
        verdicts = [_redacted(each, redaction) for each in verdicts]
        details = _redacted(details, redaction)
    return {
        "day": day_of(at_ns),
        "outcome": {
            **details, "trace_id": result.trace_id.hex(), "revision": result.revision, "service": result.service,
            "reason": result.reason.value, "completion": result.completion, "session": result.session,
            "ended_at": at_ns, "withdrawn": list(result.withdrawn),
        },
        "verdicts": verdicts,
    }  # fmt: skip


def day_of(at_ns: int) -> str:
    """The day of a time in UTC: ``2026-01-31``."""
    return datetime.fromtimestamp(at_ns / 1e9, UTC).date().isoformat()


def _redacted(value: object, redaction: Redaction) -> Any:
    if isinstance(value, str):
        return redaction.apply(value)[0]
    if isinstance(value, Mapping):
        return {key: each if key in _IDS else _redacted(each, redaction) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(each, redaction) for each in value]
    return value


_IDS = frozenset({
    "trace_id", "case_id", "session_id", "user", "created_at", "rubric", "rubric_version", "metric", "state", "status",
})  # fmt: skip
"""Fields that identify rows, left as they are: a number in an id may look like a card's."""


class ResultSink(VerdictSink):
    """``contents``: whether contents by people and models are kept there, redacted as for a judge."""

    def __init__(
        self, name: str, parts: SinkParts, terms: DeliveryTerms, *, contents: bool, queue: StoredQueue | None = None
    ) -> None:
        super().__init__(name, parts, terms, queue)
        judge = parts.config.evaluators.judge
        self._redaction = redaction_of(judge.redact, judge.redact_patterns) if judge is not None else None
        self._contents = contents

    def entries(self, result: TraceResult) -> Sequence[Entry]:
        """The outcome and its new or changed verdicts, as one entry."""
        record = history_record(result, contents=self._contents, redaction=self._redaction)
        identity = f"{result.trace_id.hex()}/{result.revision}"
        return [Entry(destination=self.name, id=identity, body=line(record).decode())]

    def together(self, entries: Sequence[PendingNotice]) -> Sequence[PendingNotice]:
        """See ``up_to_erasure``."""
        return up_to_erasure(entries)
