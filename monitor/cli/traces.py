"""Ended traces as lines for a terminal, for the commands that list or follow them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sidejudge.scoring.verdict.documents import TraceDocument, VerdictDocument

from .table import table, visible

HEAD = ("ended", "trace", "service", "name", "reason", "why")


def traces_table(traces: Sequence[TraceDocument]) -> str:
    """A table, the last trace at the bottom."""
    return table(HEAD, [_cells(trace, clip=60) for trace in reversed(traces)])


def trace_line(trace: TraceDocument) -> str:
    """One trace in one line, aligned as far as names are short."""
    at, trace_id, service, name, reason, why = _cells(trace, clip=200)
    return visible(f"{at}  {trace_id}  {service:20}  {reason:24}  {name}  {why}".rstrip())


def _cells(trace: TraceDocument, clip: int) -> tuple[str, ...]:
    verdicts = ", ".join(f"{each['rubric']} {_outcome(each)}" for each in trace.get("verdicts") or ())
    reason = str(trace["reason"])
    passed = reason == "scored" and all(each.get("passed") for each in trace.get("verdicts") or ())
    why = "" if passed else str(trace.get("why") or "")
    at = datetime.fromtimestamp(trace["closed_ns"] / 1e9, UTC).strftime("%H:%M:%S")
    texts = (at, trace["trace_id"], trace.get("service") or "unknown_service", trace.get("name") or "-")
    return (*map(str, texts), verdicts or reason, why if len(why) <= clip else why[:clip] + "…")


def _outcome(verdict: VerdictDocument) -> str:
    composite = verdict.get("composite")
    value = f" {composite:.2f}" if isinstance(composite, int | float) else ""
    outcomes = {True: "passed", False: "failed", None: str(verdict.get("state"))}
    return outcomes[verdict.get("passed")] + value
