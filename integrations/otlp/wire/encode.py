"""Encode spans that were not received as OTLP into an export request in protobuf."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sidejudge.integrations.raw import RawSpan

from .encode_json import put_attributes, utf8
from .schema import classes


def encode_spans(spans: Iterable[RawSpan]) -> bytes:
    """Build a request that decodes to these spans.

    Values that OTLP has no type for become text; those nested deeper than 30 levels are left out. Consecutive spans of
    the same resource and scope share them in the request.
    """
    request: Any = classes("whole")["Request"]()
    before: RawSpan | None = None
    group: Any = None
    scope: Any = None
    for span in spans:
        same = before is not None and before.resource == span.resource
        if not same:
            group = request.resource_spans.add()
            put_attributes(group.resource.attributes, span.resource)
        scoped = (span.scope_name, span.scope_version)
        if not same or before is None or (before.scope_name, before.scope_version) != scoped:
            scope = group.scope_spans.add()
            scope.scope.name, scope.scope.version = utf8(span.scope_name), utf8(span.scope_version)
        _put(scope.spans.add(), span)
        before = span
    return bytes(request.SerializeToString())


def _put(made: Any, span: RawSpan) -> None:
    made.trace_id, made.span_id = bytes.fromhex(span.trace_id), bytes.fromhex(span.span_id)
    made.parent_span_id = bytes.fromhex(span.parent_id or "")
    made.trace_state, made.name = utf8(span.trace_state), utf8(span.name)
    made.kind, made.start, made.end = span.kind, span.start_ns, span.end_ns
    put_attributes(made.attributes, span.attributes)
    made.dropped_attributes = span.dropped_attributes
    for event in span.events:
        added = made.events.add(name=utf8(event.name), time=event.time_ns)
        put_attributes(added.attributes, event.attributes)
    made.status.code, made.status.message = span.status_code, utf8(span.status_message)
