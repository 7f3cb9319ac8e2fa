"""Trace log: one debug line a trace, and a warning where something keeps traces of a service from their verdicts."""

from __future__ import annotations

import logging
from typing import Final

from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, own
from sidejudge.scoring.result.result import Failed
from sidejudge.scoring.status.service_status import UNKNOWN_SERVICE
from sidejudge.scoring.trace.time_units import MINUTE_NS

log = logging.getLogger("sidejudge.traces")

EVERY_NS: Final = 10 * MINUTE_NS
"""At most one warning in this time for each service and cause: a judge that fails fails for every trace."""
_SERVICES: Final = 200
"""Services that are warned of separately; names come from outside."""
_NAME: Final = 200

_UNNAMED: Final = "; set OTEL_SERVICE_NAME in the application, so that its traces carry its name"


class TraceLog:
    """``committed`` is a listener of the commit. Contents of traces are never logged."""

    def __init__(self) -> None:
        self._warned: dict[tuple[str, EndReason], int] = {}

    def committed(self, result: TraceResult) -> None:
        """Log how a trace ended."""
        service = label(result.service, _NAME) if result.service else UNKNOWN_SERVICE
        trace = {"trace_id": result.trace_id.hex(), "service": service}
        if log.isEnabledFor(logging.DEBUG):
            outcome = {verdict.rubric: verdict.passed for verdict in result.verdicts}
            log.debug(
                "trace ended",
                extra={
                    **trace, "reason": result.reason.value, "completion": result.completion,
                    "revision": result.revision, "spans": result.details.get("spans"), "passed": outcome,
                },
            )  # fmt: skip
        unnamed = _UNNAMED if service.startswith(UNKNOWN_SERVICE) else ""
        if result.reason is EndReason.NO_RUBRIC and self._due(service, result):
            remedy = f"add a route for this service; 'sidejudge explain {trace['trace_id']}' shows why none matched"
            log.warning("no route selects traces of this service", extra={**trace, "remedy": remedy + unnamed})
        elif (cause := _judge_failure(result)) and self._due(service, result):
            remedy = "see evaluators.judge and 'sidejudge doctor'; these verdicts are incomplete"
            log.warning("a judge failed", extra={**trace, "cause": cause, "remedy": remedy})

    def _due(self, service: str, result: TraceResult) -> bool:
        key = (service, EndReason.NO_RUBRIC if result.reason is EndReason.NO_RUBRIC else EndReason.JUDGE_FAILED)
        before = self._warned.get(key)
        if before is not None and 0 <= result.ended_ns - before < EVERY_NS:
            return False
        if before is None and len(self._warned) >= _SERVICES:
            return False
        self._warned[key] = result.ended_ns
        return True


def _judge_failure(result: TraceResult) -> str | None:
    """The first metric that a judge failed to answer for, and why, without quoted contents."""
    for verdict in result.changed:
        for score in verdict.scores:
            if isinstance(score.result, Failed):
                where = own(f"{verdict.rubric}.{score.metric}")
                return Reason("{where}: {why}", where=where, why=score.result.reason).shown()
    return None
