"""Contents that travel as log records, brought back to the spans they belong to.

Several instrumentations record the messages to a model as events, and send those as log records rather than with the
span (OpenTelemetry's GenAI conventions to 1.36, and later ones where so configured). On the span these become span
events; dialects read both alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from sidejudge.scoring.trace.jsontext import decoded

from .raw import EVALUATION, RawEvent, RawLogRecord, RawSpan

_RESPONSE: Final = "gen_ai.response.id"


def join(spans: Iterable[RawSpan], records: Iterable[RawLogRecord]) -> list[RawSpan]:
    """The spans, with each named event that belongs to one of them among its events, in order of time.

    Records of other spans, plain log lines, and records that were delivered twice are left out. An evaluation
    that names no span is that of the model call whose response it names, else of the trace's root.
    """
    spans = list(spans)
    by_span: dict[tuple[str, str], list[RawEvent]] = {}
    apart: list[RawLogRecord] = []
    for record in records:
        if record.event and record.trace_id is not None and record.span_id is not None:
            by_span.setdefault((record.trace_id, record.span_id), []).append(_event(record))
        elif record.event == EVALUATION and record.trace_id is not None:
            apart.append(record)
    if apart:
        roots, responses = _evaluated(spans)
        for record in apart:
            key = (record.trace_id or "", str(record.attributes.get(_RESPONSE)))
            if (place := responses.get(key) or roots.get(key[0])) is not None:
                by_span.setdefault((key[0], place), []).append(_event(record))
    return [
        _with_events(span, added) if (added := by_span.get((span.trace_id, span.span_id))) else span for span in spans
    ]


def _evaluated(spans: Sequence[RawSpan]) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """The root of each trace, and the spans by their trace and the id of the model's response."""
    roots: dict[str, str] = {}
    responses: dict[tuple[str, str], str] = {}
    for span in spans:
        if span.parent_id is None:
            roots.setdefault(span.trace_id, span.span_id)
        if isinstance(response := span.attributes.get(_RESPONSE), str):
            responses.setdefault((span.trace_id, response), span.span_id)
    return roots, responses


def _event(record: RawLogRecord) -> RawEvent:
    """A body that is a map, as one or as JSON text, is what a span event has as attributes."""
    body = record.body
    entries: object = decoded(body) if isinstance(body, str) else body
    if not isinstance(entries, dict):
        entries = {} if body is None else {"body": body}
    return RawEvent(name=record.event, time_ns=record.time_ns, attributes={**record.attributes, **entries})


def _with_events(span: RawSpan, added: list[RawEvent]) -> RawSpan:
    events = list(span.events)
    seen = {(event.name, event.time_ns, repr(event.attributes)) for event in events}
    for event in added:
        identity = (event.name, event.time_ns, repr(event.attributes))
        if identity not in seen:
            seen.add(identity)
            events.append(event)
    return replace(span, events=tuple(sorted(events, key=lambda event: event.time_ns)))
