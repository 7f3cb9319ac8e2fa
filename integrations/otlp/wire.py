"""From the bytes of a request to the chunks of the traces that are kept, touching nothing else.

The decision falls on the bytes themselves: encoders write a span's trace id and span id first, so 28 bytes at known
places tell whose the span is, and the last 7 bytes of the trace id, compared as bytes, whether it is drawn. What is
not drawn is never decoded. What is kept is copied out (a reference would hold the whole request in memory), decoded
once to find damage, and its spans' headers are read.

Known limits, all of encodings that are legal and that nobody is known to write: of a field that stands twice in a
span that is *not* kept the first counts, and two resources in one ``ResourceSpans`` are not merged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from google.protobuf.message import DecodeError

from . import bounds
from .chunk import Chunk, Origin, SpanHeader
from .envelope import Delivery, Envelope, Ids, Resource
from .outcome import Undecodable
from .own import is_own_telemetry, traces_of

__all__ = ["Admit", "Chunk", "Kept", "Origin", "SpanHeader", "Split", "identify", "keep", "read_headers", "split"]

_TRACE_ID: Final = b"\n\x10"
"""Tag and length of a 16-byte field 1."""
_SPAN_ID: Final = b"\x12\x08"
"""Tag and length of an 8-byte field 2."""
_NO_TRACE: Final = bytes(16)
_NO_SPAN: Final = bytes(8)
_APP_ROOT: Final = b"langfuse.internal.is_app_root"
_REMOTE: Final = 0x300
"""Flags of a span whose exporter knows whether its parent is remote (0x100), and whose parent is (0x200)."""
_PARTS: Final = 50_000
"""Resources and scopes that a request may hold: more than a batch has spans, and below a tenth of a second of work."""
_COPIED: Final = 256 << 20
"""Bytes that the chunks of a request may have together; each has its resource, which may be large, and be that of many.

Four times the size that a request may have: no client is known to come near.
"""
_RANDOM_VALUE: Final = re.compile(rb"rv:")
"""Only explicit randomness overrules the trace id: an upstream threshold changes a weight, never a decision."""


@dataclass(slots=True)
class Split:
    """What became of a request's spans: kept in ``chunks``, sampled out in ``dropped``, or ``rejected`` for good.

    ``dropped`` maps an origin to the ids of the traces of which spans were not drawn. ``own`` spans are what a monitor
    tells of itself; they are not looked at, and ``own_traces`` has the ids of their traces likewise.
    """

    chunks: list[Chunk] = field(default_factory=list)
    dropped: dict[Origin, set[bytes]] = field(default_factory=dict)
    spans: int = 0
    kept: int = 0
    own: int = 0
    own_traces: dict[Origin, set[bytes]] = field(default_factory=dict)
    invalid_ids: int = 0
    damaged: int = 0
    crowded: int = 0
    copied: int = 0
    """Bytes of the chunks so far."""
    explicit: bool = False
    """Whether spans may state their randomness themselves, so that it cannot be told from the trace ids."""

    @property
    def rejected(self) -> int:
        return self.invalid_ids + self.damaged + self.crowded

    def pass_over(self, spans: Sequence[bytes], origin: Origin) -> None:
        """Count a monitor's own spans."""
        self.spans += len(spans)
        self.own += len(spans)
        self.own_traces.setdefault(origin, set()).update(traces_of(spans))

    @property
    def message(self) -> str:
        """Why spans were rejected, in one line; empty when none was."""
        parts = []
        if self.invalid_ids:
            wanted = "trace_id must be 16 bytes, span_id 8, and not all zero"
            parts.append(f"{self.invalid_ids} spans without a valid id: {wanted}")
        if self.damaged:
            parts.append(f"{self.damaged} spans could not be decoded: they are damaged, or hold too much")
        if self.crowded:
            parts.append(f"{self.crowded} spans of too many traces under too large a resource; send smaller batches")
        return "; ".join(parts)


Admit: TypeAlias = Callable[[bytes], Origin]
"""Asked once per resource, by its raw bytes: where its spans come from, and what they must reach."""
Place: TypeAlias = tuple[int, int, Any, Any]
"""Position of a resource and a scope in the request, and the two messages."""
Kept: TypeAlias = dict[bytes, list[tuple[Place, bytes, Origin]]]
"""What is kept of each trace of a request: spans as bytes, and where each stands."""


def split(body: bytes, admit: Admit) -> Split:
    """Split a request.

    Raises :class:`Undecodable` when the request, or the resource of any of its spans, cannot be read.
    """
    try:
        envelope = _open(body)
    except DecodeError as error:
        raise Undecodable(
            f"the body is not an ExportTraceServiceRequest ({error}); send OTLP traces as binary protobuf to this path"
        ) from None
    result = Split()
    kept: Kept = {}
    result.explicit = _RANDOM_VALUE.search(body) is not None
    for r, resource_spans in enumerate(envelope.resource_spans):
        origin = admit(resource_spans.resource)
        for s, scope_spans in enumerate(resource_spans.scope_spans):
            place = (r, s, resource_spans, scope_spans)
            if is_own_telemetry(origin, scope_spans.scope):
                result.pass_over(scope_spans.spans, origin)
            elif origin.hashed:
                _sift_hashed(scope_spans.spans, place, origin, kept, result)
            elif result.explicit and origin.threshold:
                _sift_slowly(scope_spans.spans, place, origin, kept, result)
            else:
                _sift(scope_spans.spans, place, origin, kept, result)
    for trace_id, spans in kept.items():
        keep(trace_id, spans, result)
    return result


def _open(body: bytes) -> Any:
    bounds.check(body, "Envelope")
    envelope = Envelope.FromString(body)
    parts = len(envelope.resource_spans)
    if parts <= _PARTS:
        parts += sum(len(resource_spans.scope_spans) for resource_spans in envelope.resource_spans)
    if parts > _PARTS:
        raise DecodeError(f"more than {_PARTS} resources and scopes")
    return envelope


def _sift(spans: Iterable[bytes], place: Place, origin: Origin, kept: Kept, result: Split) -> None:
    """Decide on the trace id as it stands in the bytes. This loop is what every span of every request costs."""
    floor = origin.floor
    dropped: set[bytes] = set()
    drop = dropped.add
    odd: list[bytes] = []
    for span in spans:
        if span[:2] != _TRACE_ID or span[18:20] != _SPAN_ID or span[20:28] == _NO_SPAN or len(span) < 28:
            odd.append(span)
        elif span[11:18] < floor:
            drop(span[2:18])
        else:
            kept.setdefault(span[2:18], []).append((place, span, origin))
    result.spans += len(place[3].spans)
    if _NO_TRACE in dropped:
        # Too rare to test each span for: count them now, and take the id out of the traces that were seen.
        dropped.discard(_NO_TRACE)
        head = _TRACE_ID + _NO_TRACE + _SPAN_ID
        result.invalid_ids += sum(
            span[:20] == head and len(span) >= 28 and span[20:28] != _NO_SPAN for span in place[3].spans
        )
    if dropped:
        result.dropped.setdefault(origin, set()).update(dropped)
    if odd:
        result.spans -= len(odd)
        _sift_slowly(odd, place, origin, kept, result)


def _sift_hashed(spans: Iterable[bytes], place: Place, origin: Origin, kept: Kept, result: Split) -> None:
    """Decide on the hash of the trace id, taken once a trace."""
    drawn: dict[bytes, bool] = {}
    odd: list[bytes] = []
    for span in spans:
        trace_id = span[2:18]
        usual = span[:2] == _TRACE_ID and span[18:20] == _SPAN_ID and len(span) >= 28
        if not usual or trace_id == _NO_TRACE or span[20:28] == _NO_SPAN:
            odd.append(span)
            continue
        wanted = drawn.get(trace_id)
        if wanted is None:
            wanted = drawn[trace_id] = origin.draws(trace_id)
        if wanted:
            kept.setdefault(trace_id, []).append((place, span, origin))
    result.spans += len(place[3].spans) - len(odd)
    dropped = {trace_id for trace_id, wanted in drawn.items() if not wanted}
    if dropped:
        result.dropped.setdefault(origin, set()).update(dropped)
    if odd:
        _sift_slowly(odd, place, origin, kept, result)


def _sift_slowly(spans: Iterable[bytes], place: Place, origin: Origin, kept: Kept, result: Split) -> None:
    """Decide with the ids parsed: for spans in an unusual layout, and for requests that carry explicit randomness."""
    for span in spans:
        result.spans += 1
        try:
            ids = Ids.FromString(span)
        except DecodeError:
            result.damaged += 1
            continue
        trace_id, span_id = ids.trace_id, ids.span_id
        if len(trace_id) != 16 or len(span_id) != 8 or trace_id == _NO_TRACE or span_id == _NO_SPAN:
            result.invalid_ids += 1
        elif not origin.draws(trace_id, ids.trace_state.decode("ascii", "replace")):
            result.dropped.setdefault(origin, set()).add(trace_id)
        else:
            kept.setdefault(trace_id, []).append((place, span, origin))


def keep(trace_id: bytes, spans: list[tuple[Place, bytes, Origin]], result: Split) -> None:
    """Copy a trace's spans into a request of their own, without those that turn out to be damaged."""
    if trace_id == _NO_TRACE:
        result.invalid_ids += len(spans)
        return
    if result.copied > _COPIED:
        result.crowded += len(spans)
        return
    payload = _pack(spans)
    try:
        headers = tuple(_headers(payload, trace_id))
    except DecodeError:
        sound = [span for span in spans if _is_sound(span, trace_id)]
        result.damaged += len(spans) - len(sound)
        if not sound:
            return
        spans, payload = sound, _pack(sound)
        try:
            headers = tuple(_headers(payload, trace_id))
        except DecodeError:  # each for itself is sound, but together they hold too much
            result.damaged += len(sound)
            return
    origin = min((origin for _, _, origin in spans), key=lambda o: o.threshold)
    result.chunks.append(Chunk(trace_id=trace_id, payload=payload, headers=headers, origin=origin))
    result.kept += len(headers)
    result.copied += len(payload)


def _pack(spans: list[tuple[Place, bytes, Origin]]) -> bytes:
    packed = Envelope()
    resource_at = scope_at = -1
    resource_spans = scope_spans = None
    for (r, s, resource, scope), span, _ in spans:
        if r != resource_at:
            resource_spans = packed.resource_spans.add(resource=resource.resource, schema_url=resource.schema_url)
            resource_at, scope_at = r, -1
        if s != scope_at:
            assert resource_spans is not None  # noqa: S101  # the first span always opens a resource
            scope_spans = resource_spans.scope_spans.add(scope=scope.scope, schema_url=scope.schema_url)
            scope_at = s
        assert scope_spans is not None  # noqa: S101  # likewise
        scope_spans.spans.append(span)
    return bytes(packed.SerializeToString())


def _headers(payload: bytes, trace_id: bytes) -> Iterator[SpanHeader]:
    """Read every span of ``payload`` to its end. Raises ``DecodeError`` on damage and on ids that are contradictory."""
    bounds.check(payload, "Delivery")
    hinted = _APP_ROOT in payload
    for resource_spans in Delivery.FromString(payload).resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                if span.trace_id != trace_id or len(span.span_id) != 8 or span.span_id == _NO_SPAN:
                    raise DecodeError("an id stands twice in this span, with different values")
                yield SpanHeader(
                    span_id=span.span_id,
                    parent_id=span.parent_span_id if span.parent_span_id.strip(b"\0") else b"",
                    trace_state=span.trace_state.decode("ascii", "replace"),
                    start_ns=span.start_time_unix_nano,
                    end_ns=span.end_time_unix_nano,
                    remote_parent=span.flags & _REMOTE == _REMOTE,
                    root_hint=hinted and any(a.key == _APP_ROOT and a.value.bool_value for a in span.attributes),
                )


def _is_sound(span: tuple[Place, bytes, Origin], trace_id: bytes) -> bool:
    try:
        return len(tuple(_headers(_pack([span]), trace_id))) == 1
    except DecodeError:
        return False


def read_headers(payload: bytes, trace_id: bytes) -> tuple[SpanHeader, ...]:
    """The headers of a chunk's payload, as they were when it was made (a restart reads them again)."""
    try:
        return tuple(_headers(payload, trace_id))
    except DecodeError as error:
        raise Undecodable(f"a stored chunk of trace {trace_id.hex()} cannot be read: {error}") from None


_ENVIRONMENT: Final = (b"langfuse.environment", b"deployment.environment.name", b"deployment.environment")


def identify(resource: bytes) -> tuple[str | None, str | None]:
    """Service name and environment of a resource; ``None`` where it names none (or not as text).

    ``langfuse.environment`` goes before ``deployment.environment.name``, and this before its older spelling
    ``deployment.environment``. Raises :class:`Undecodable` when the bytes are not a resource.
    """
    try:
        attributes = Resource.FromString(resource).attributes
    except DecodeError:
        raise Undecodable("a resource in the request is damaged; the request is refused as a whole") from None
    wanted = {b"service.name", *_ENVIRONMENT}
    found = {a.key: a.value.string_value.decode("utf-8", "replace") for a in attributes if a.key in wanted}
    environment = next((found[key] for key in _ENVIRONMENT if found.get(key)), None)
    return found.get(b"service.name") or None, environment
