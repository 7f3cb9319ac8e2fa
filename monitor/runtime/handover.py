"""Handover: traces that are not judged here go to another monitor, as OTLP, each whole."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, TypeAlias

from google.protobuf.message import DecodeError

from sidejudge.integrations.backoff import DestinationUnreachableError, RefusedError
from sidejudge.integrations.otlp.wire.chunk import ChunkOrigin
from sidejudge.integrations.otlp.wire.handover import HEADER, HandoverKeys, logs_of, spans_of
from sidejudge.integrations.post import Poster
from sidejudge.integrations.store.sqlite import StoredChunk, StoreError
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.outcomes import EndReason

log = logging.getLogger("sidejudge")

HeldTrace: TypeAlias = tuple[bytes, Sequence[StoredChunk]]
"""A trace and its chunks."""
_BATCH_BYTES: Final = 1 << 20
_MOST_BYTES: Final = 4 << 20
"""Largest request, except for a single larger chunk: receivers refuse 16 MiB, and a trace may be larger.
"""
_PAUSE_S: Final = 0.5


def by_trace(chunks: Iterable[StoredChunk]) -> Iterator[HeldTrace]:
    """Chunks that stand trace by trace, as traces."""
    for trace_id, held in groupby(chunks, key=lambda chunk: chunk.trace_id):
        yield trace_id, list(held)


def unjudged(chunks: Iterable[StoredChunk]) -> Iterator[HeldTrace]:
    """The unjudged traces. A judged one is not handed over for a late span: its verdict is out."""
    for trace_id, held in by_trace(chunks):
        if all(chunk.revision is None for chunk in held) and not all(chunk.done for chunk in held):
            yield trace_id, held


def handed_over(trace_id: bytes, origin: ChunkOrigin) -> Closing:
    """The end of a trace that another monitor has taken."""
    return Closing(
        trace_id=trace_id, completion="shutdown", revision=1, origin=origin, whole=False, give_up=EndReason.HANDED_OVER
    )


@dataclass(slots=True)
class _Batch:
    """Traces that go together: requests for their spans, and for their log records where there are any."""

    closings: list[Closing] = field(default_factory=list)
    spans: list[bytearray] = field(default_factory=list)
    logs: list[bytearray] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(map(len, (*self.spans, *self.logs)))


class Handover:
    """Sends traces to one address. ``end`` is called with the accepted ones, and commits how they ended."""

    def __init__(
        self, to: str, headers: Mapping[str, str], timeout_s: float,
        end: Callable[[Sequence[Closing]], Awaitable[None]], keys: HandoverKeys, *, hash_key: bytes,
    ) -> None:  # fmt: skip
        self._keys = keys
        self._spans, self._logs = (Poster(f"{to}/v1/{signal}", timeout_s) for signal in ("traces", "logs"))
        self._headers = {**headers, "content-type": "application/x-protobuf", HEADER: keys.header()}
        self._end, self._hash_key = end, hash_key

    async def run(self, traces: Iterator[HeldTrace], until_s: float) -> int:
        """Hand over until this time of the loop, in s; return how many traces were taken."""
        taken, batches = 0, self._batches(traces)
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            try:
                await self._send(batch, until_s)
                await self._end(batch.closings)
            except (DestinationUnreachableError, RefusedError, StoreError) as error:
                log.warning("traces could not be handed over", extra={"cause": str(error)})
                return taken
            taken += len(batch.closings)
        return taken

    async def _send(self, batch: _Batch, until_s: float) -> None:
        # Log records first: they wait for their spans, but a trace that has its root does not wait for them.
        for poster, bodies in ((self._logs, batch.logs), (self._spans, batch.spans)):
            for body in bodies:
                await self._post(poster, bytes(body), until_s)

    async def _post(self, poster: Poster, body: bytes, until_s: float) -> None:
        while True:
            try:
                await poster.post(body, self._headers)
            except DestinationUnreachableError:
                if asyncio.get_running_loop().time() + _PAUSE_S >= until_s:
                    raise
                await asyncio.sleep(_PAUSE_S)
            else:
                return

    def _batches(self, traces: Iterator[HeldTrace]) -> Iterator[_Batch]:
        batch = _Batch()
        for trace_id, chunks in traces:
            self._add(batch, trace_id, chunks)
            if batch.size >= _BATCH_BYTES:
                yield batch
                batch = _Batch()
        if batch.closings:
            yield batch

    def _add(self, batch: _Batch, trace_id: bytes, chunks: Sequence[StoredChunk]) -> None:
        """Add a trace without its damaged chunks; a trace that cannot be read at all stays here."""
        first, readable = chunks[0], False
        threshold = min(chunk.threshold for chunk in [each for each in chunks if not each.done] or chunks)
        for chunk in chunks:
            with suppress(DecodeError):
                _put(batch.spans, spans_of(chunk.payload, trace_id, threshold, self._keys, hash_key=self._hash_key))
                _put(batch.logs, logs_of(chunk.payload))
                readable = True
        if readable:
            origin = ChunkOrigin(first.service, first.environment, threshold, self._hash_key)
            batch.closings.append(handed_over(trace_id, origin))


def _put(bodies: list[bytearray], part: bytes) -> None:
    """Add a request to the last body, or begin another where it has no room."""
    if part:
        if not bodies or len(bodies[-1]) + len(part) > _MOST_BYTES:
            bodies.append(bytearray())
        bodies[-1] += part
