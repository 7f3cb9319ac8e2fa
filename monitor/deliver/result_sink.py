"""A sink of whole results: the outcome and the verdicts of one are one entry, in order with requests to erase."""

from __future__ import annotations

from collections.abc import Sequence

from sidejudge.integrations.jsonl import line
from sidejudge.integrations.store.notification_outbox import Entry, PendingNotice
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.scoring.checks.redaction import redaction_of

from .dispatcher import DeliveryTerms
from .parquet.erasure_request import up_to_erasure
from .parquet.record import history_record
from .queue import StoredQueue
from .sink import SinkParts
from .verdict_sink import VerdictSink


class ResultSink(VerdictSink):
    """``contents``: whether what people and models wrote is kept there, redacted as it is for a judge."""

    def __init__(
        self, name: str, parts: SinkParts, terms: DeliveryTerms, *, contents: bool, queue: StoredQueue | None = None
    ) -> None:
        super().__init__(name, parts, terms, queue)
        judge = parts.config.evaluators.judge
        self._redaction = redaction_of(judge.redact, judge.redact_patterns) if judge is not None else None
        self._contents = contents

    def entries(self, result: TraceResult) -> Sequence[Entry]:
        """The outcome and what is new or changed of its verdicts, as one entry."""
        record = history_record(result, contents=self._contents, redaction=self._redaction)
        identity = f"{result.trace_id.hex()}/{result.revision}"
        return [Entry(destination=self.name, id=identity, body=line(record).decode())]

    def together(self, entries: Sequence[PendingNotice]) -> Sequence[PendingNotice]:
        """See ``up_to_erasure``."""
        return up_to_erasure(entries)
