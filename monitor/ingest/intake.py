"""Intake: a request's way from its bytes to committed chunks and an assembler that knows of them.

The order makes the acknowledgement reliable: split, decide, commit, and only then assemble and answer. After a crash
before the commit the client has no answer and sends again; after a later crash a restart finds the chunk in the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias, TypeVar

from sidejudge.integrations.otlp.wire.bounds import OverBudget, WorkBudget
from sidejudge.integrations.otlp.wire.chunk import decoded_size
from sidejudge.integrations.otlp.wire.handover import HandoverKeys, drawn_at
from sidejudge.integrations.otlp.wire.receipt import Encoding, Overloaded, Passage, Receipt, Undecodable
from sidejudge.integrations.otlp.wire.request import Admit, Chunk, ChunkOrigin, Split, identify, read_headers, split
from sidejudge.integrations.otlp.wire.request_json import split_json
from sidejudge.integrations.otlp.wire.request_logs import LogSplit, split_logs, split_logs_json
from sidejudge.integrations.otlp.wire.tracestate import incoming_threshold, random_bits
from sidejudge.integrations.store.sqlite import Store, StoreError

from .assembler import PASSED_OVER, Arrival, Assembler
from .load_shedding import AdaptiveRate, LoadShedding
from .outcomes import EndReason, TraceOutcomes
from .sampler import Sampler
from .sampling_skew import SamplingSkew
from .trace_limits import Fitted, TraceLimits

_log = logging.getLogger("sidejudge.intake")

MAX_WAITING_BYTES: Final = 16 << 20
"""Bytes of chunks that may be on their way to a commit before requests are refused."""
MAX_TRACE_SPANS: Final = 10_000
"""Spans that are kept of one trace, unless configured."""
MAX_TRACE_DECODED_BYTES: Final = 64 << 20
"""Memory that one trace may take once decoded, unless configured."""
_COMPLETIONS: Final = 5_000
"""Number of ended traces from which a restart learns which services send roots."""
_INLINE_BYTES: Final[dict[Encoding, int]] = {"protobuf": 1 << 20, "json": 1 << 16}
"""A body up to this size is split on the event loop, a larger one in a thread."""
_INLINE_STEPS: Final = 4_000
"""Most work on the event loop for one request, about 15 ms; a larger request begins again in a thread."""
_TURN_STEPS: Final = 2_000
"""Work on chunks between two turns of the event loop, about 4 ms: as much as so many spans of one trace."""
_CHUNK_STEPS: Final = 20
"""Work of a chunk beside its spans."""
_RESOURCE_BYTES: Final = 4 << 20
"""Bytes of the distinct resources whose origin is remembered: thousands of them. Beyond it the memory starts anew."""
_ENTRY_BYTES: Final = 200
"""The cost of remembering one in addition to its own bytes."""


_Found = TypeVar("_Found", Split, LogSplit)
_Splitter: TypeAlias = Callable[[bytes, Admit, WorkBudget | None], _Found]
_LOGS: Final[dict[Encoding, _Splitter[LogSplit]]] = {"protobuf": split_logs, "json": split_logs_json}


@dataclass(slots=True)
class IntakeCounts:
    """Spans, log records and requests since start.

    ``late`` ones came after the late window, ``duplicate`` ones were known, ``too_large`` ones are beyond what is kept
    of one trace, ``shed`` ones are of traces that were not taken under load. ``untraced_logs`` belong to no span,
    ``plain_logs`` neither name an event nor show contents; neither are looked at. Nor are ``own`` ones, which a monitor
    sends about itself.
    ``handed_over`` ones came from a monitor that ended; they are kept, and not among ``spans``.
    """

    requests: int = 0
    spans: int = 0
    rejected: int = 0
    duplicate: int = 0
    late: int = 0
    too_large: int = 0
    shed: int = 0
    own: int = 0
    handed_over: int = 0
    logs: int = 0
    late_logs: int = 0
    too_large_logs: int = 0
    own_logs: int = 0
    untraced_logs: int = 0
    plain_logs: int = 0
    rejected_logs: int = 0


class Intake:
    """Takes requests. ``wake`` is called after each one that made the assembler's next closing come into question."""

    def __init__(
        self,
        *,
        sampler: Sampler,
        store: Store,
        assembler: Assembler,
        outcomes: TraceOutcomes,
        limits: TraceLimits | None = None,
        shedding: LoadShedding | None = None,
        adaptive: AdaptiveRate | None = None,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
        clock_ns: Callable[[], int] = time.time_ns,
        wake: Callable[[], None] | None = None,
        keys: HandoverKeys | None = None,
    ) -> None:
        self._sampler = sampler
        self.trust = sampler.trust
        """Which of the traces' own sampling statements are believed."""
        self._states = sampler.trust.trusted is not None
        self._of_spans: dict[Encoding, _Splitter[Split]] = {
            "protobuf": partial(split, states=self._states),
            "json": partial(split_json, states=self._states),
        }
        self._keys = keys or HandoverKeys()
        self._hash_key = sampler.hash_key
        self.skew = None if self._hash_key else SamplingSkew(sampler.base)
        """Whether trace ids are as random as sampling presumes; None where it does not go by them."""
        self._store = store
        self._assembler = assembler
        self._outcomes = outcomes
        self._limits = limits if limits is not None else TraceLimits(MAX_TRACE_SPANS, MAX_TRACE_DECODED_BYTES)
        self._shedding = shedding
        self._adaptive = adaptive
        self._max_waiting = max_waiting_bytes
        self._clock = clock_ns
        self._wake = wake
        self._origins: dict[bytes, ChunkOrigin] = {}
        self._remembered = 0
        self._shared: dict[ChunkOrigin, ChunkOrigin] = {}
        self._waiting = 0
        self._in_thread = asyncio.Lock()  # one large request is split at a time, for each takes several times its size
        self._left_out: dict[bytes, int] = {}  # of traces whose first spans are still on their way to a commit
        self._following: set[asyncio.Future[None]] = set()
        self.counts = IntakeCounts()

    async def consume(self, body: bytes, encoding: Encoding = "protobuf", passage: Passage | None = None) -> Receipt:
        """Take a decompressed request for spans; its kept part is committed when this returns.

        Traces of a request that goes on (``passage``) count as untaken until upstream has taken something of them.

        Raises :class:`Undecodable` for what is no trace request, and :class:`Overloaded` when the store cannot keep up
        or cannot write; then nothing of the request was kept.
        """
        try:
            found = await self._split(body, encoding, self._of_spans[encoding])
        except Undecodable:
            self._outcomes.seen()
            self._outcomes.ended(None, EndReason.UNDECODABLE)
            raise
        take = self._take(found, passage)
        # A client that goes away cancels its call over gRPC: what is committed is taken in all the same.
        await (asyncio.shield(take) if found.chunks else take)
        return Receipt(rejected=found.rejected, message=found.message)

    async def _take(self, found: Split, passage: Passage | None) -> None:
        if found.chunks:
            found.chunks = [self._signed(chunk) for chunk in found.chunks]
            await self._keep(found.chunks, explicit=found.explicit, untaken=passage is not None and not passage.taken)
            if passage is not None:
                await self._follow(passage, {chunk.trace_id for chunk in found.chunks})
        self._account(found)

    async def _follow(self, passage: Passage, trace_ids: Collection[bytes]) -> None:
        """Let the traces of a request count as taken once it is."""
        if passage.taken:
            with contextlib.suppress(StoreError):  # their scores wait until Langfuse is asked for them
                await self._store.untaken.took(trace_ids)
        elif passage.taken is None:
            passage.when_taken(lambda: self._soon(trace_ids))

    def _soon(self, trace_ids: Collection[bytes]) -> None:
        task = asyncio.ensure_future(self._store.untaken.took(trace_ids))
        self._following.add(task)
        task.add_done_callback(self._followed)

    def _followed(self, task: asyncio.Future[None]) -> None:
        self._following.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("scores stay held back until Langfuse is asked for their traces", extra={"cause": str(error)})

    async def sent_on(self, body: bytes, encoding: Encoding = "protobuf", _: Passage | None = None) -> Receipt:
        """Upstream has taken a request that was kept for it: its traces are there. Raises likewise."""
        async with self._in_thread:
            found = await asyncio.to_thread(self._of_spans[encoding], body, self._admit, None)
        await self._store.untaken.took({chunk.trace_id for chunk in found.chunks})
        return Receipt()

    async def consume_logs(self, body: bytes, encoding: Encoding = "protobuf", _: Passage | None = None) -> Receipt:
        """Take a decompressed request for log records and keep the events of drawn traces; raises likewise."""
        found = await self._split(body, encoding, _LOGS[encoding])
        take = self._take_logs(found)
        await (asyncio.shield(take) if found.chunks else take)
        return Receipt(rejected=found.rejected, message=found.message)

    async def _take_logs(self, found: LogSplit) -> None:
        if found.chunks:
            await self._keep(found.chunks)
        counts = self.counts
        counts.logs += found.records
        counts.own_logs += found.own
        counts.untraced_logs += found.untraced
        counts.plain_logs += found.plain
        counts.rejected_logs += found.rejected

    async def _split(self, body: bytes, encoding: Encoding, split: _Splitter[_Found]) -> _Found:
        self.counts.requests += 1
        self._check_load()
        if len(body) <= _INLINE_BYTES[encoding]:
            with contextlib.suppress(OverBudget):
                return split(body, self._admit, WorkBudget(_INLINE_STEPS))
        async with self._in_thread:
            self._check_load()
            return await asyncio.to_thread(split, body, self._admit, None)

    def _check_load(self) -> None:
        """Raise ``Overloaded`` where the store or judging cannot keep up."""
        if self._waiting > self._max_waiting:
            raise Overloaded(1.0)
        if self._shedding is not None and self._shedding.full:
            raise Overloaded(5.0, "more traces wait to be judged than assembly.max_waiting_traces; sample less")

    def _admit(self, resource: bytes) -> ChunkOrigin:
        origin = self._origins.get(resource)
        if origin is None:
            service, environment = identify(resource)
            mark = drawn_at(resource, self._keys, hash_key=self._hash_key)
            believed = mark is not None and bool(mark.trace_id)
            limit = max(self._sampler.admission, mark.threshold if mark is not None else 0)
            origin = ChunkOrigin(
                service, environment, limit, self._hash_key, believed, mark.trace_id if mark is not None else b""
            )
            if mark is not None and not believed:
                self.trust.unsigned(service)
                return origin  # once its key is known, it is believed
            # Resources that differ only in what nobody asks about (a pod's name) share one origin.
            origin = self._shared.setdefault(origin, origin)
            self._remembered += len(resource) + _ENTRY_BYTES
            if self._remembered > _RESOURCE_BYTES:
                self._origins.clear()
                self._shared.clear()
                self._remembered = 0
            else:
                self._origins[resource] = origin
        return origin

    def _signed(self, chunk: Chunk) -> Chunk:
        """The chunk without a mark that was signed for another trace."""
        origin = chunk.origin
        if not origin.handed_over or origin.of == chunk.trace_id:
            return chunk
        self.trust.unsigned(origin.service)
        limit = self._sampler.admission
        return replace(chunk, origin=replace(origin, threshold=limit, handed_over=False, of=b""))

    async def _keep(self, chunks: list[Chunk], *, explicit: bool = False, untaken: bool = False) -> None:
        fresh: list[tuple[Chunk, Fitted]] = []
        held: list[Fitted] = []
        turns = _Turns()
        for chunk in chunks:
            if turns.over(chunk):
                await asyncio.sleep(0)
            self._fit(chunk, fresh, held)
        if not fresh and not held:
            return
        now_ns = await self._commit([fitted for _, fitted in fresh], held, untaken=untaken)
        for chunk, fitted in fresh:
            if turns.over(chunk):
                await asyncio.sleep(0)
            self._take_in(chunk, fitted, now_ns, explicit=explicit)
        if fresh and self._wake is not None:
            self._wake()

    def _fit(self, chunk: Chunk, fresh: list[tuple[Chunk, Fitted]], held: list[Fitted]) -> None:
        """Put the part of a chunk that is drawn and that fits into one of the lists."""
        arrival = self._assembler.classify(chunk)
        if arrival in PASSED_OVER:
            self._pass_over(chunk, arrival)
            return
        drawn = self._drawn(chunk, arrival)
        if drawn is None:
            return
        fitted = self._limits.fit(drawn, self._assembler.size(chunk.trace_id))
        if arrival is Arrival.HELD:
            held.append(fitted)
            self.counts.too_large_logs += chunk.records if fitted.cut else 0
        else:
            fresh.append((chunk, fitted))

    def _take_in(self, chunk: Chunk, fitted: Fitted, now_ns: int, *, explicit: bool) -> None:
        """Pass committed chunks on; from now on the assembler knows the size of their traces."""
        self._limits.release(fitted)
        if fitted.chunk is not None:
            self._assemble(fitted.chunk, fitted.size.decoded, now_ns, explicit=explicit)
        if fitted.cut:
            self._leave_out(chunk, fitted.left_out)

    def _drawn(self, chunk: Chunk, arrival: Arrival) -> Chunk | None:
        """The chunk with the threshold that its trace is drawn at; None when it is not drawn or shed."""
        origin = chunk.origin
        if arrival is not Arrival.OPENS:
            limit = self._assembler.drawn_at(chunk.trace_id)
            return chunk if limit <= origin.threshold else replace(chunk, origin=replace(origin, threshold=limit))
        drawn = 0
        if self._adaptive is not None:
            if self._outcomes.has_sampled_out(chunk.trace_id):  # its first spans are lost, whatever the rate is now
                self._sample_out(chunk)
                return None
            drawn = self._adaptive.threshold(chunk.trace_id, self._clock())
        limit = max(drawn, self._shedding.opening_threshold if self._shedding is not None else 0)
        if limit <= origin.threshold:
            return chunk
        bits = random_bits(chunk.trace_id, self._hash_key, [header.trace_state for header in chunk.headers])
        if bits < drawn:
            self._sample_out(chunk)
            return None
        if bits < limit and not self._limits.under_way(chunk.trace_id):  # else its first spans are about to open it
            self.counts.shed += len(chunk.headers)
            self._outcomes.seen()
            self._outcomes.ended(origin.service, EndReason.SHED)
            self._assembler.refuse(chunk.trace_id)
            return None
        return replace(chunk, origin=replace(origin, threshold=limit))

    def _sample_out(self, chunk: Chunk) -> None:
        """Count a chunk that the adaptive rate does not draw; nothing of it is kept."""
        fresh = self._outcomes.sampled_out(chunk.origin.service, {chunk.trace_id})
        if fresh and self.skew is not None:
            self.skew.observe(chunk.origin.service, fresh)

    def _pass_over(self, chunk: Chunk, arrival: Arrival) -> None:
        if arrival is Arrival.DUPLICATE:
            self.counts.duplicate += len(chunk.headers)
        elif arrival is Arrival.TOO_LATE:
            self.counts.late += len(chunk.headers)
            self.counts.late_logs += chunk.records
        else:
            self._leave_out(chunk, len(chunk.headers))

    async def _commit(self, fresh: list[Fitted], held: list[Fitted], *, untaken: bool) -> int:
        new = [fitted.chunk for fitted in fresh if fitted.chunk is not None]
        waiting = [fitted.chunk for fitted in held if fitted.chunk is not None]
        size = sum(len(chunk.payload) for chunk in new) + sum(len(chunk.payload) for chunk in waiting)
        now_ns = self._clock()
        self._waiting += size
        committed = False
        try:
            if waiting:
                await self._store.hold(waiting, now_ns)
            if new:
                await self._store.append(new, now_ns, untaken=untaken)
            committed = True
        except StoreError as error:
            for chunk in new:
                self._left_out.pop(chunk.trace_id, None)
            raise Overloaded(5.0, str(error)) from error
        finally:
            self._waiting -= size
            for fitted in () if committed else fresh:
                self._limits.release(fitted)
            for fitted in held:
                self._limits.release(fitted, held=committed)
        return now_ns

    def _assemble(self, chunk: Chunk, decoded: int, now_ns: int, *, explicit: bool) -> None:
        decoded += self._limits.opened(chunk.trace_id).decoded
        thinned = chunk.origin.threshold > self._sampler.admission
        if self._assembler.add(chunk, now_ns, decoded=decoded, thinned=thinned) is Arrival.OPENS:
            self._outcomes.seen()
            if self.skew is not None and not explicit:
                stated = any(h.trace_state and incoming_threshold(h.trace_state) for h in chunk.headers)
                self.skew.observe(chunk.origin.service, (chunk.trace_id,), stated=stated)
        left_out = self._left_out.pop(chunk.trace_id, None) if self._left_out else None
        if left_out is not None:
            self._assembler.cut(chunk.trace_id, left_out)

    def _leave_out(self, chunk: Chunk, spans: int) -> None:
        """Count what is not kept of a trace that is too large, and have it judged as cut short."""
        self.counts.too_large += spans
        if not chunk.headers:
            self.counts.too_large_logs += chunk.records
        if self._assembler.knows(chunk.trace_id):
            self._assembler.cut(chunk.trace_id, spans)
        elif self._limits.under_way(chunk.trace_id):
            self._left_out[chunk.trace_id] = self._left_out.get(chunk.trace_id, 0) + spans
        else:  # nothing of it fits: there is nothing to be judged
            self._outcomes.seen()
            self._outcomes.ended(chunk.origin.service, EndReason.SHED)
            self._assembler.refuse(chunk.trace_id)

    def _account(self, found: Split) -> None:
        counts = self.counts
        taken_over = sum(len(chunk.headers) for chunk in found.chunks if chunk.origin.handed_over)
        counts.handed_over += taken_over
        counts.spans += found.spans - taken_over  # the monitor that was sent them has counted them
        counts.rejected += found.rejected
        counts.own += found.own
        self._outcomes.kept({chunk.origin.service for chunk in found.chunks})
        for origin, trace_ids in found.own_traces.items():
            self._outcomes.excluded(origin.service, trace_ids)
        for origin, trace_ids in found.dropped.items():
            # Explicit randomness on some spans of a trace only may draw these and not the others: then it is drawn.
            fresh = self._outcomes.sampled_out(origin.service, self._assembler.unknown(trace_ids))
            if fresh and self.skew is not None and not found.explicit:
                self.skew.observe(origin.service, fresh)

    def restore(self) -> int:
        """Restore the store's open traces after a restart; return their number."""
        before = self._outcomes.open
        for service, completion in reversed(self._store.completions(_COMPLETIONS)):
            self._assembler.learn_root(service, rooted=completion == "root_ended")
        closed: tuple[bytes, int, int] | None = None
        for stored in self._store.recover():
            if closed is not None and (stored.trace_id != closed[0] or not stored.done):
                self._assembler.restore(*closed)
                closed = None
            try:
                chunk = Chunk(
                    trace_id=stored.trace_id,
                    payload=stored.payload,
                    headers=read_headers(stored.payload, stored.trace_id, states=self._states),
                    origin=ChunkOrigin(stored.service, stored.environment, stored.threshold, self._hash_key),
                )
            except Undecodable as error:
                _log.error("%s", error)
                continue
            if not chunk.headers and not self._assembler.knows(chunk.trace_id):
                continue  # log records that came before their spans
            arrival = self._assembler.add(
                chunk, stored.received_ns, decoded=decoded_size(chunk.payload),
                thinned=stored.threshold > self._sampler.admission,
            )  # fmt: skip
            if stored.done and stored.revision is not None and stored.closed_ns is not None:
                closed = (stored.trace_id, stored.revision, stored.closed_ns)
            elif arrival is Arrival.OPENS:
                self._outcomes.seen()
        if closed is not None:
            self._assembler.restore(*closed)
        for trace_id in reversed(self._store.ended_and_purged(self._assembler.remembered)):
            self._assembler.refuse(trace_id)
        return self._outcomes.open - before


class _Turns:
    """Counts work on the event loop, so that others have their turn after a while."""

    def __init__(self) -> None:
        self._done = 0

    def over(self, chunk: Chunk) -> bool:
        """Whether somebody else is to have a turn before this chunk."""
        self._done += _CHUNK_STEPS + len(chunk.headers)
        if self._done < _TURN_STEPS:
            return False
        self._done = 0
        return True
