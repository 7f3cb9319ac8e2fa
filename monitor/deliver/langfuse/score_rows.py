"""The scores of a result as rows of the outbox."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sidejudge.integrations.langfuse.scores import ScoreSelection, scores_of
from sidejudge.integrations.store.outbox import ScoreRow
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.scoring.verdict.rubric import Rubric


def time_of(result: TraceResult) -> int:
    """The time of a result's scores: the end of the trace's last span, the same wherever and whenever it is judged."""
    return result.ended_ns if result.last_span_ns is None else result.last_span_ns


def outgoing(
    result: TraceResult,
    rubrics: Mapping[str, Rubric],
    which: ScoreSelection,
    *,
    judge_traces: bool = False,
    link_base: str | None = None,
) -> list[ScoreRow]:
    """The selected scores of all its verdicts, changed or not: the store knows what is new, and what is withdrawn."""
    at_ns = time_of(result)
    return [
        ScoreRow(id=body["id"], at_ns=at_ns, body=json.dumps(body, separators=(",", ":"), allow_nan=False))
        for verdict in result.verdicts
        for body in scores_of(verdict, rubrics[verdict.rubric], which, judge_traces=judge_traces, link_base=link_base)
    ]
