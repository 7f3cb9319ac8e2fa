"""Limits of one trace: a number of spans, and bytes of memory once they are decoded.

A sender must not decide by one trace how much memory judging takes. A chunk that does not fit is cut at the first span
beyond the limit; the rest is counted, and the trace is judged as cut short.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from sidejudge.integrations.otlp.wire.chunk import decoded_size
from sidejudge.integrations.otlp.wire.layout import Place, last, pack, row, scopes
from sidejudge.integrations.otlp.wire.request import Chunk

_HELD: Final = 50_000
"""Limit of traces with log records alone whose size is remembered."""


class TraceSize(NamedTuple):
    """The size of a held trace: its spans, and an upper estimate of their memory once decoded, in bytes."""

    spans: int = 0
    decoded: int = 0

    def plus(self, other: TraceSize) -> TraceSize:
        return TraceSize(self.spans + other.spans, self.decoded + other.decoded)


class Fitted(NamedTuple):
    """As much of a chunk as fits. ``chunk`` is None when nothing does; ``left_out`` spans do not."""

    chunk: Chunk | None
    size: TraceSize = TraceSize()
    left_out: int = 0
    cut: bool = False


class TraceLimits:
    """Fits chunks. Uncommitted chunks count as kept, because others of their trace may be on their way too."""

    def __init__(self, max_spans: int, max_decoded: int) -> None:
        self._max = TraceSize(max_spans, max_decoded)
        self._under_way: dict[bytes, TraceSize] = {}
        self._held: OrderedDict[bytes, TraceSize] = OrderedDict()

    def fit(self, chunk: Chunk, kept: TraceSize) -> Fitted:
        """As much of the chunk as fits beside what is ``kept`` of its trace; it is on its way until ``release``."""
        trace_id = chunk.trace_id
        for more in (self._under_way.get(trace_id), self._held.get(trace_id)):
            kept = kept.plus(more) if more is not None else kept
        free = TraceSize(self._max.spans - kept.spans, self._max.decoded - kept.decoded)
        fitted = _fit(chunk, free)
        if fitted.chunk is not None:
            self._under_way[trace_id] = self._under_way.get(trace_id, TraceSize()).plus(fitted.size)
        return fitted

    def release(self, fitted: Fitted, *, held: bool = False) -> None:
        """The chunk is kept now, or is not. ``held``: it waits in the store for a span of its trace."""
        if fitted.chunk is None:
            return
        trace_id, size = fitted.chunk.trace_id, fitted.size
        spans, decoded = self._under_way.pop(trace_id)
        if spans > size.spans or decoded > size.decoded:
            self._under_way[trace_id] = TraceSize(spans - size.spans, decoded - size.decoded)
        if held:
            self._held[trace_id] = self._held.pop(trace_id, TraceSize()).plus(size)
            if len(self._held) > _HELD:
                self._held.popitem(last=False)

    def under_way(self, trace_id: bytes) -> bool:
        """Whether spans of this trace are on their way to a commit."""
        return trace_id in self._under_way

    def opened(self, trace_id: bytes) -> TraceSize:
        """What was held of a trace that has just been opened, and belongs to it from now on."""
        return self._held.pop(trace_id, TraceSize()) if self._held else TraceSize()


def _fit(chunk: Chunk, free: TraceSize) -> Fitted:
    size = TraceSize(len(chunk.headers), decoded_size(chunk.payload))
    if size.spans <= free.spans and size.decoded <= free.decoded:
        return Fitted(chunk, size)
    count = min(size.spans, max(0, free.spans))
    while count:
        shorter = _first_spans(chunk, count)
        decoded = decoded_size(shorter.payload)
        if decoded <= free.decoded:
            return Fitted(shorter, TraceSize(count, decoded), size.spans - count, cut=True)
        # What is left out of a half is at most as much again: the price of few looks at a large chunk.
        count //= 2
    return Fitted(None, left_out=size.spans, cut=True)


def _first_spans(chunk: Chunk, count: int) -> Chunk:
    if count >= len(chunk.headers):
        return chunk
    left = count
    parts: list[tuple[Place, Sequence[bytes]]] = []
    payload = chunk.payload  # packed by us, so its layout is the usual one
    for number, index, resource, url, scope, begin, end in scopes(payload):
        spans, at = row(payload, begin, end)
        kept = [payload[start:stop] for start, stop in spans[:left]]
        left -= len(kept)
        if kept:
            parts.append(((number, index, resource, url, scope, last(payload, at, end)), kept))
    return replace(chunk, payload=pack(parts), headers=chunk.headers[:count])
