"""Split an export request for spans into chunks of the traces that are kept.

The request is read in place (``layout``), and whether a span is drawn is decided on its bytes (``head_sampler``). Spans
that are not drawn are never decoded. Those that are kept are copied (a reference would hold the whole request in
memory), decoded once to find damage, and their headers are read.

Known limit, of an encoding that is legal and that no known encoder writes: two resources in one ``ResourceSpans`` are
not merged. ``head_sampler`` names two more.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Final

from google.protobuf.message import DecodeError

from . import bounds
from .bounds import WorkBudget
from .chunk import Chunk, ChunkOrigin, SpanHeader
from .head_sampler import HeadSampler, Kept, Part
from .layout import Place, pack, usual
from .receipt import Admit, Split, Undecodable
from .schema import classes

__all__ = ["Admit", "Chunk", "ChunkOrigin", "SpanHeader", "Split", "identify", "keep", "read_headers", "split"]

_Request: Final = classes("complete")["Request"]
_Resource: Final = classes("complete")["Resource"]
_APP_ROOT: Final = b"langfuse.internal.is_app_root"
_MOST: Final = 50_000
"""Attributes, and events, that a span may have. Each becomes an object of Python's, 2 µs and more, all in one go."""
_TRACE_STEPS: Final = 4
"""Work of a trace that is kept, beside its spans: its chunk here, and its place in the assembler."""
_REMOTE: Final = 0x300
"""Flags of a span whose exporter knows whether its parent is remote (0x100), and whose parent is (0x200)."""
_ERROR: Final = 2
_NO_SPAN: Final = bytes(8)
_RANDOM_VALUE: Final = b"rv:"
"""Only explicit randomness overrides the trace id: an upstream threshold changes a weight, never a decision."""
COPIED: Final = 8 << 20
"""Bytes that the chunks of a request may have together beyond its own. Each holds a copy of its resource and scopes."""


def split(body: bytes, admit: Admit, budget: WorkBudget | None = None, *, states: bool = True) -> Split:
    """Split a request.

    Args:
        body: The request.
        admit: What is asked about each resource.
        budget: Of work.
        states: Whether trace states are believed; else they change no draw, and no header has one.

    Raises:
        Undecodable: The request, or the resource of any of its spans, cannot be read.
        OverBudget: It takes more work than ``budget`` allows.
    """
    budget = budget or WorkBudget()
    try:
        bounds.check(body, "envelope")
        try:
            return _split(body, admit, budget, states=states)
        except IndexError:
            budget.spend_parsing(body)
            return _split(usual(body), admit, budget, states=states)
    except DecodeError as error:
        raise Undecodable(
            f"the body is not an ExportTraceServiceRequest ({error}); send OTLP traces as binary protobuf to this path"
        ) from None


def _split(body: bytes, admit: Admit, budget: WorkBudget, *, states: bool) -> Split:
    sampler = HeadSampler(body, budget, states=states)
    sampler.sample(admit)
    if sampler.states and _RANDOM_VALUE in body:  # explicit randomness overrides a decision by the ids
        sampler = HeadSampler(body, budget, explicit=True)
        sampler.sample(admit)
    keep(sampler.kept, sampler.result, len(body) + COPIED, budget)
    return sampler.result


def keep(kept: Kept, result: Split, most: int, budget: WorkBudget) -> None:
    """Copy each trace's spans into a request of their own; damaged spans are left out.

    Args:
        kept: The spans by trace; emptied on the way, so that no span is in memory thrice.
        result: Takes the chunks.
        most: Bytes that all chunks may have together; the spans of further ones are rejected.
        budget: Of work.

    Raises:
        OverBudget: It takes more work than ``budget`` allows.
    """
    for trace_id in list(kept):
        _keep(trace_id, kept.pop(trace_id), result, most, budget)


def _keep(trace_id: bytes, parts: list[Part], result: Split, most: int, budget: WorkBudget) -> None:
    spans = sum(len(held) for _, _, held in parts)
    budget.spend(_TRACE_STEPS + spans // 4)
    if result.copied + _size(parts) > most:
        result.crowded += spans
        return
    try:
        payload, headers = _packed(trace_id, parts, budget, states=result.states)
    except DecodeError:
        parts = [(place, origin, [s for s in held if _is_sound(place, s, trace_id)]) for place, origin, held in parts]
        parts = [part for part in parts if part[2]]
        sound = sum(len(held) for _, _, held in parts)
        result.damaged += spans - sound
        if not sound:
            return
        try:
            payload, headers = _packed(trace_id, parts, budget, states=result.states)
        except DecodeError:  # each alone is sound, but together they hold too much
            result.damaged += sound
            return
    origin = min((origin for _, origin, _ in parts), key=lambda o: o.threshold) if len(parts) > 1 else parts[0][1]
    result.chunks.append(Chunk(trace_id=trace_id, payload=payload, headers=headers, origin=origin))
    result.kept += len(headers)
    result.copied += len(payload)


def _size(parts: list[Part]) -> int:
    """Bytes of the chunk that these become, but for tags and lengths."""
    return sum(
        len(resource) + len(scope) + len(url) + len(scope_url) + sum(map(len, held))
        for (_, _, resource, url, scope, scope_url), _, held in parts
    )


def _packed(
    trace_id: bytes, parts: list[Part], budget: WorkBudget, *, states: bool
) -> tuple[bytes, tuple[SpanHeader, ...]]:
    payload = pack([(place, held) for place, _, held in parts])
    budget.spend_parsing(payload)
    marked: Iterator[bool] = repeat(False)
    if _APP_ROOT in payload:
        marked = (_APP_ROOT in span for _, _, held in parts for span in held)
    return payload, tuple(_headers(payload, trace_id, marked, states=states))


def _headers(payload: bytes, trace_id: bytes, marked: Iterator[bool], *, states: bool = True) -> Iterator[SpanHeader]:
    """Read every span of ``payload`` to its end. Raises ``DecodeError`` on damage and on ids that are contradictory.

    ``marked`` has for each span whether it may be the topmost one that was exported.
    """
    bounds.check(payload, "complete")
    may_crowd = len(payload) > 2 * _MOST
    # [:] makes lists: iterating over protobuf's own containers ends with an exception that is built each time.
    for resource_spans in _Request.FromString(payload).resource_spans[:]:
        for scope_spans in resource_spans.scope_spans[:]:
            for span in scope_spans.spans[:]:
                span_id, parent_id, state = span.span_id, span.parent_span_id, span.trace_state
                if span.trace_id != trace_id or len(span_id) != 8 or span_id == _NO_SPAN:
                    raise DecodeError("an id stands twice in this span, with different values")
                if may_crowd and (len(span.attributes) > _MOST or len(span.events) > _MOST):
                    raise DecodeError(f"a span with more than {_MOST} attributes or events")
                yield SpanHeader(  # named, its fields would take twice as long
                    span_id,
                    parent_id if parent_id.strip(b"\0") else b"",
                    state.decode("ascii", "replace") if state and states else "",
                    next(marked) and any(a.key == _APP_ROOT and a.value.bool_value for a in span.attributes[:]),
                    span.flags & _REMOTE == _REMOTE,
                    span.status.code == _ERROR,
                )


def _is_sound(place: Place, span: bytes, trace_id: bytes) -> bool:
    try:
        return len(tuple(_headers(pack([(place, [span])]), trace_id, repeat(False)))) == 1
    except DecodeError:
        return False


def read_headers(payload: bytes, trace_id: bytes, *, states: bool = True) -> tuple[SpanHeader, ...]:
    """Read the headers of a chunk's payload again, as they were when the chunk was made (after a restart).

    Without ``states`` trace states are left out. Raises ``Undecodable`` when the payload is damaged.
    """
    try:
        return tuple(_headers(payload, trace_id, repeat(_APP_ROOT in payload), states=states))
    except DecodeError as error:
        raise Undecodable(f"a stored chunk of trace {trace_id.hex()} cannot be read: {error}") from None


_ENVIRONMENT: Final = (b"langfuse.environment", b"deployment.environment.name", b"deployment.environment")


def identify(resource: bytes) -> tuple[str | None, str | None]:
    """Read service name and environment of a resource; ``None`` where it has none, or not as text.

    ``langfuse.environment`` precedes ``deployment.environment.name``, and this its older spelling
    ``deployment.environment``. Raises ``Undecodable`` when the bytes are not a resource.
    """
    try:
        attributes = _Resource.FromString(resource).attributes
    except DecodeError:
        raise Undecodable("a resource in the request is damaged; the request is refused as a whole") from None
    wanted = {b"service.name", *_ENVIRONMENT}
    found = {a.key: a.value.string_value.decode("utf-8", "replace") for a in attributes if a.key in wanted}
    environment = next((found[key] for key in _ENVIRONMENT if found.get(key)), None)
    return found.get(b"service.name") or None, environment
