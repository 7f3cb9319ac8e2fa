"""Judged: what a call or a score is about, as own traces and events name it; and where it stands in another trace."""

from __future__ import annotations

from dataclasses import dataclass

from opentelemetry.trace import INVALID_SPAN_CONTEXT, SpanContext, TraceFlags

from sidejudge.scoring.lexical.label import label
from sidejudge.scoring.trace.loop_guard import own_trace_id

_TRACE_HEX, _SPAN_HEX = 32, 16
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSubject:
    """A trace, or a session, which has no trace id. ``root_span_id`` stands for the trace as a whole."""

    case_id: str
    trace_id: str | None = None
    root_span_id: str | None = None
    session_id: str | None = None
    service: str | None = None
    environment: str | None = None

    @property
    def context(self) -> SpanContext:
        """Where it stands, as OpenTelemetry refers to it; invalid where its ids are none of OpenTelemetry's."""
        trace_id, span_id = _id(self.trace_id, _TRACE_HEX), _id(self.root_span_id, _SPAN_HEX)
        if not trace_id or not span_id:
            return INVALID_SPAN_CONTEXT
        return SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    @property
    def own_trace_id(self) -> str:
        """The id of the own trace about it, in hex."""
        return own_trace_id(self.trace_id or self.case_id)

    @property
    def subject(self) -> dict[str, str]:
        """What was judged: a trace or a session."""
        stated = {"judged_trace_id": self.trace_id, "judged_session_id": self.session_id}
        return {key: label(value, 200) for key, value in stated.items() if value}

    @property
    def attributes(self) -> dict[str, str]:
        """The same as attributes, for whoever does not follow links."""
        stated = {
            "sidejudge.judged.trace_id": self.trace_id,
            "sidejudge.judged.case_id": None if self.case_id == self.trace_id else self.case_id,
            "sidejudge.judged.session_id": self.session_id,
            "sidejudge.judged.service": self.service,
            "sidejudge.judged.environment": self.environment,
        }
        return {key: label(value, 200) for key, value in stated.items() if value}


def _id(stated: str | None, length: int) -> int:
    """An id as a number; 0 where it is none."""
    return int(stated, 16) if stated is not None and len(stated) == length and _HEX.issuperset(stated) else 0
