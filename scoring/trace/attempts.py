"""Attempts of a model call: plain steps below it, of which the last one decides what came of the call."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from .span import Span, SpanKind


def with_failed_attempts(spans: Mapping[str, Span]) -> Mapping[str, Span]:
    """The spans by id; a model call that shows nothing of an answer has the error of its last attempt.

    LiveKit ends such a call as successful, with a reason why the model stopped.
    """
    silent = {span.span_id for span in spans.values() if _is_silent(span)}
    if not silent:
        return spans
    last: dict[str, Span] = {}
    for span in spans.values():
        if span.parent_id in silent and span.parent_id is not None:
            held = last.get(span.parent_id)
            if held is None or (span.end_ns, span.span_id) > (held.end_ns, held.span_id):
                last[span.parent_id] = span
    failed = {call: step.error for call, step in last.items() if step.kind is SpanKind.OTHER and step.error is not None}
    return {
        span_id: span if span_id not in failed else _failed(span, failed[span_id]) for span_id, span in spans.items()
    }


def _is_silent(span: Span) -> bool:
    shown = (span.error, span.output, span.usage, span.response_id)
    return span.kind is SpanKind.LLM and not span.output_messages and all(each is None for each in shown)


def _failed(span: Span, error: str) -> Span:
    return replace(span, error=error, provenance={**span.provenance, "error": "the last step below"})
