"""Record: what the history keeps of a result, with the contents that may be kept there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.scoring.checks.redaction import Redaction
from sidejudge.scoring.result.reason import GAP
from sidejudge.scoring.rubrics.open_verdict import open_verdict


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
