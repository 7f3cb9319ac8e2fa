"""A sink of whole results: the outcome and the verdicts of one are one entry, in order with requests to erase.

A request to erase names the rows that a person wants removed from such a sink. The monitor removes them, because it
alone writes there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sidejudge.integrations.jsonl import line
from sidejudge.integrations.store.notification_outbox import Entry, PendingNotice
from sidejudge.monitor.deliver.dispatcher import DeliveryTerms, StoredQueue
from sidejudge.monitor.deliver.sink import SinkParts, VerdictSink
from sidejudge.monitor.evaluate.result import REPORTED, TraceResult
from sidejudge.scoring.checks.redaction import Redaction, redaction_of
from sidejudge.scoring.result.reason import GAP
from sidejudge.scoring.rubrics.open_verdict import open_verdict

ERASURE: Final = "forget/"
"""How the id of such an entry of the outbox begins; those of results begin with a trace id."""


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
        stated = json.loads(text)
        lists = {name: tuple(stated[name]) for name in ("traces", "users", "sessions")}
        return cls(**lists, before_ns=stated["before_ns"])

    def to_json(self) -> str:
        """The request as the body of an entry."""
        return json.dumps(asdict(self))

    def names(self, record: Mapping[str, object]) -> bool:
        """Whether the record of an outcome or of a verdict is of a trace that is to be erased."""
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
        contents: Whether what people and models wrote is kept.
        redaction: What is replaced in it; None for nothing.
    """
    at_ns = result.ended_ns if result.place_ns is None else result.place_ns
    changed = {verdict.rubric for verdict in result.changed}
    verdicts: list[Mapping[str, object]] = [each for each in result.verdicts_json if each["rubric"] in changed]
    details = dict(result.details)
    if not contents:
        verdicts = [open_verdict(each) for each in verdicts]
        details.pop("input_beginning", None)
        details.pop("output_beginning", None)
        details.pop(REPORTED, None)
        if details.get("error"):
            details["error"] = f"{str(details['error']).partition(':')[0]}: {GAP}"
    elif redaction is not None:
        verdicts = [_redacted(each, redaction) for each in verdicts]
        details = _redacted(details, redaction)
    return {
        "day": datetime.fromtimestamp(at_ns / 1e9, UTC).date().isoformat(),
        "outcome": {
            **details, "trace_id": result.trace_id.hex(), "revision": result.revision, "service": result.service,
            "reason": result.reason.value, "completion": result.completion, "session": result.session,
            "ended_at": at_ns, "withdrawn": list(result.withdrawn),
        },
        "verdicts": verdicts,
    }  # fmt: skip


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
"""Fields by which rows are found again; a number in an id may look like that of a card."""


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
