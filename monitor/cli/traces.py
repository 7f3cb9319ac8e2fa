"""Traces of a running monitor: one with its case, and ended ones as lines for a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast

from sidejudge.scoring.verdict.documents import TraceDocument, VerdictDocument

from .ask import ask
from .errors import CommandError
from .table import table, visible

if TYPE_CHECKING:
    from sidejudge.scoring.trace.span import Json
    from sidejudge.scoring.verdict.documents import TraceDocument


TRACE_ID: Final = re.compile(r"[0-9a-fA-F]{32}")


def fetched_trace(trace_id: str, url: str) -> tuple[TraceDocument, dict[str, Json]]:
    """The trace and its case, both as JSON. Raises ``CommandError`` where either is not there."""
    found = ask(url, f"/v1/traces/{trace_id.lower()}")
    if found is None:
        raise CommandError(f"nothing is known of trace {trace_id}", "name a trace that was drawn and is kept still")
    if found.get("case") is None:
        raise CommandError(
            f"the contents of trace {trace_id} are not shown here, or no longer held",
            "call where the monitor's store can be read while the spans are held, or see api.contents",
        )
    return cast("TraceDocument", found), found["case"]


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
