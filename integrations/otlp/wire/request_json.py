"""A request in OTLP/JSON → the chunks of the traces that are kept, as ``wire`` makes them of protobuf.

All of it has to be parsed to find the ids, but only spans that are drawn are encoded. Spans that cannot be read as
such (no valid ids) are counted; what clients write loosely is forgiven (see ``json_values``).
"""

from __future__ import annotations

from typing import Any, Final

from .decode import UndecodableError
from .decode_json import load_object
from .encode_json import encode_resource, encode_scope, encode_span
from .envelope import Ids
from .head_sampler import Kept
from .json_values import identifier, mapping, objects, text
from .layout import Place
from .own_telemetry import is_own_telemetry
from .receipt import Undecodable
from .request import keep
from .split import Admit, Split

_LARGE: Final = 1 << 20
"""Bytes from which on it is looked at how much a body holds. What is smaller cannot take much memory."""
_MOST_PARTS: Final = 2_000_000
_MOST_ITEMS: Final = 4_000_000
"""Objects and lists, and commas, that a body may have: a list of two bytes becomes seventy when it is parsed."""


def split_json(body: bytes, admit: Admit) -> Split:
    """Split a request. Raises :class:`Undecodable` for what is none."""
    request = load(body, "resourceSpans")
    result = Split()
    kept: Kept = {}
    for r, resource_spans in enumerate(objects(request.get("resourceSpans"))):
        resource, url = encode_resource(mapping(resource_spans.get("resource"))), schema_url(resource_spans)
        origin = admit(resource)
        for s, scope_spans in enumerate(objects(resource_spans.get("scopeSpans"))):
            scope = encode_scope(mapping(scope_spans.get("scope")))
            place: Place = (r, s, resource, url, scope, schema_url(scope_spans))
            sent = objects(scope_spans.get("spans"))
            if is_own_telemetry(origin, scope):
                result.pass_over([_ids_alone(span) for span in sent], origin)
                continue
            held: dict[bytes, list[bytes]] = {}
            for span in sent:
                result.spans += 1
                ids = identifier(span.get("traceId"), 16), identifier(span.get("spanId"), 8)
                if ids[0] is None or ids[1] is None:
                    result.invalid_ids += 1
                    continue
                trace_id = bytes.fromhex(ids[0])
                trace_state = text(span.get("traceState"))
                result.explicit |= "rv:" in trace_state
                if not origin.draws(trace_id, trace_state):
                    result.dropped.setdefault(origin, set()).add(trace_id)
                else:
                    held.setdefault(trace_id, []).append(encode_span(span, trace_id, bytes.fromhex(ids[1])))
            for trace_id, spans in held.items():
                kept.setdefault(trace_id, []).append((place, origin, spans))
    for trace_id, parts in kept.items():
        keep(trace_id, parts, result)
    return result


def _ids_alone(span: dict[str, Any]) -> bytes:
    return bytes(Ids(trace_id=bytes.fromhex(identifier(span.get("traceId"), 16) or "")).SerializeToString())


def load(body: bytes, wanted: str) -> dict[str, Any]:
    """The request as parsed JSON; ``wanted`` is the key that tells one for spans from one for log records."""
    if len(body) > _LARGE and (body.count(b"{") + body.count(b"[") > _MOST_PARTS or body.count(b",") > _MOST_ITEMS):
        raise Undecodable("the request holds more objects or values than one may; send smaller batches")
    try:
        request = load_object(body)
    except UndecodableError as error:
        raise Undecodable(str(error)) from None
    if wanted not in request and request:
        raise Undecodable(f"not an OTLP/JSON request for this path: there is no {wanted}")
    return request


def schema_url(of: dict[str, Any]) -> bytes:
    """The schema URL of a resource or a scope."""
    return text(of.get("schemaUrl")).encode("utf-8", "replace")
