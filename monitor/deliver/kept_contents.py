"""Kept contents: the redacted spans of failed traces, which stay after their chunks are dropped.

The transaction that ends a trace records that its contents are to be kept. They are written later, from its chunks, in
a thread and within a share of the time: neither a request nor a verdict waits for it. Contents that cannot be written
(a store that is nearly full, more failing traces than there is time for) are left out; the verdict stands.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from sidejudge.integrations.otlp.wire.chunk import decoded_size
from sidejudge.integrations.otlp.wire.decode import UndecodableError
from sidejudge.integrations.otlp.wire.kept import (
    PackedPart,
    Part,
    by_span,
    decode_chunk,
    decode_kept,
    joined,
    pack,
    unpack,
)
from sidejudge.integrations.raw import AttributeValue, RawLogRecord, RawSpan
from sidejudge.integrations.store.contents import WaitingContents
from sidejudge.integrations.store.sqlite import Store, StoreError
from sidejudge.monitor.config import Config
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.checks.redaction import Redaction
from sidejudge.scoring.verdict.verdict import State

log = logging.getLogger("sidejudge.store")

EVERY_S: Final = 2.0
"""Time between two rounds of writing."""
_WORK_S: Final = 0.2
"""CPU time of one round after which it ends: a tenth of one processor, whatever share of the traces fails."""
_AT_ONCE: Final = 32
"""Traces that share a commit."""
MOST_DECODED: Final = 2 * 2**20
"""Bytes that one chunk of a trace, or a span of a larger one, may take decoded: 340 KB of plain text, 150 of JSON."""
MOST_PACKED: Final = 2**20
"""Bytes that the contents of one trace may take, compressed: some MB of text."""
MEMORY: Final = 2 * MOST_DECODED + MOST_PACKED
"""Most bytes of memory for the work: a chunk, its redacted form, and the compressed part of the trace."""
_SHORT: Final = 64
"""Longest text, in characters, that is cached with its redaction: names of models, kinds and states recur."""
_REMEMBERED: Final = 4_096
_PRESSURE: Final = 0.8
"""Fullness of the store at which contents are no longer written."""
_FREE: Final = 64 * 2**20
"""Bytes that stay free on the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepingTerms:
    """The terms of keeping: how long (ns), the share of passing traces, the total bytes, and the redaction."""

    keep_ns: int
    passed: float
    most_bytes: int
    redaction: Redaction

    @classmethod
    def of(cls, config: Config) -> KeepingTerms | None:
        """The terms of a configuration; None where nothing is kept."""
        section, keep = config.store.keep_contents, config.contents_kept_for
        if keep is None:
            return None
        return cls(
            keep_ns=keep.ns, passed=section.passed, most_bytes=config.contents_max_bytes,
            redaction=kept_redaction(config),
        )  # fmt: skip

    def wants(self, result: TraceResult) -> bool:
        """Whether the contents of a trace are kept: it failed, or is incomplete, or is drawn from the others."""
        if result.session:
            return False
        if result.reason is EndReason.ERROR:
            return True
        if any(verdict.passed is False or verdict.state is State.INCOMPLETE for verdict in result.verdicts):
            return True
        return bool(result.verdicts) and _draw(result.trace_id) < self.passed


def kept_redaction(config: Config) -> Redaction:
    """The redaction of kept contents: keys always, and the kinds named for a judge or for kept contents."""
    judge, section = config.evaluators.judge, config.store.keep_contents
    kinds, patterns = (judge.redact, judge.redact_patterns) if judge is not None else ((), ())
    return Redaction(tuple(dict.fromkeys(("key", *kinds, *section.redact))), (*patterns, *section.redact_patterns))


class KeptContents:
    """Writes the contents that are wanted. ``give_way`` is called wherever the work may pause for a request."""

    def __init__(self, store: Store, terms: KeepingTerms, *, give_way: Callable[[], None] = lambda: None) -> None:
        self._store, self.terms, self._give_way = store, terms, give_way
        self._text = redacting(terms.redaction, give_way)
        self._full = False

    async def write(self) -> None:
        """One round. Unwritten contents wait for the next, or are left out where there is no room."""
        spent_s = 0.0
        try:
            while spent_s < _WORK_S and (waiting := await asyncio.to_thread(self._store.contents.waiting, _AT_ONCE)):
                was_full, self._full = self._full, not has_room(self._store)
                if self._full and not was_full:
                    log.warning("there is no room for contents of traces; they are left out until there is")
                if was_full and not self._full:
                    log.info("there is room for contents of traces again")
                if not self._full:
                    bodies, took_s = await asyncio.to_thread(self._bodies, waiting)
                else:
                    bodies, took_s = [(each, None) for each in waiting], 0.0
                await self._store.contents.put(bodies, self.terms.most_bytes)
                spent_s += took_s
        except StoreError as error:
            log.warning("contents of traces could not be kept", extra={"cause": str(error)})

    def _bodies(self, waiting: Sequence[WaitingContents]) -> tuple[list[tuple[WaitingContents, bytes | None]], float]:
        began_s = time.thread_time()
        found: list[tuple[WaitingContents, bytes | None]] = []
        for each in waiting:
            try:
                found.append((each, self._body(each.trace_id)))
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001  # one trace that cannot be packed must not keep the others back
                log.warning(
                    "contents of a trace could not be kept",
                    extra={"trace_id": each.trace_id.hex(), "cause": type(error).__name__},
                )
                found.append((each, None))
        return found, time.thread_time() - began_s

    def _body(self, trace_id: bytes) -> bytes | None:
        chunks = self._store.chunks(trace_id)
        if not chunks:
            return None
        try:
            body = pack(filter(any, chain.from_iterable(map(self._parts, chunks))), MOST_PACKED)
        except _TooLargeError:
            body = None
        if body is None:
            log.warning("contents of a trace are too large to be kept", extra={"trace_id": trace_id.hex()})
        return body

    def _parts(self, chunk: bytes) -> Iterable[Part]:
        """A chunk, redacted where there may be something to replace, span by span if it is too much at once.

        As it came it takes a quarter of the time: it is neither measured nor decoded nor written anew.
        """
        self._give_way()
        if not self.terms.redaction.may_apply(chunk):
            return (chunk,)
        if decoded_size(chunk) <= MOST_DECODED:
            return (self._redacted(chunk),)
        return map(self._part, by_span(chunk))

    def _part(self, piece: bytes) -> Part:
        self._give_way()
        if not self.terms.redaction.may_apply(piece):
            return piece
        if decoded_size(piece) > MOST_DECODED:
            raise _TooLargeError
        return self._redacted(piece)

    def _redacted(self, chunk: bytes) -> PackedPart:
        """The chunk, redacted; one without anything that can be read is empty."""
        try:
            return redacted(PackedPart(*decode_chunk(chunk)), self._text)
        except UndecodableError:
            return PackedPart([], [])


class _TooLargeError(Exception):
    """A part takes more memory, decoded, than there is for one."""


def has_room(store: Store) -> bool:
    """Whether contents may be written: they never take the room that spans and verdicts need."""
    return store.fullness < _PRESSURE and shutil.disk_usage(store.path.parent).free > _FREE


Holding: TypeAlias = Literal["held", "kept"]
"""How the spans of a trace are held: as they came, or redacted."""


class HeldSpans(NamedTuple):
    """A trace's spans in the store and how they are held; None where nothing is left of it."""

    spans: list[RawSpan]
    how: Holding | None


def held_spans(store: Store, trace_id: bytes) -> HeldSpans:
    """The spans of a trace, as far as the store still has them.

    Raises:
        StoreError: The store cannot be read.
        PackedSpansError: The kept spans of the trace are damaged.
    """
    if chunks := store.chunks(trace_id):
        return HeldSpans(decode_kept(chunks).spans, "held")  # the details count what is damaged
    body = store.contents.of(trace_id)
    if body is None:
        return HeldSpans([], None)
    spans: list[RawSpan] = []
    records: list[RawLogRecord] = []
    for part in unpack(body):
        with contextlib.suppress(UndecodableError):  # a chunk that came damaged
            more_spans, more_records = decode_chunk(part) if isinstance(part, bytes) else part
            spans += more_spans
            records += more_records
    return HeldSpans(joined(spans, records), "kept")


def redacting(redaction: Redaction, give_way: Callable[[], None] = lambda: None) -> Callable[[str], str]:
    """The function that redacts one text; it caches the latest few thousand short ones."""

    def fresh(found: str) -> str:
        give_way()
        return redaction.apply(found)[0]

    short = lru_cache(_REMEMBERED)(fresh)
    return lambda found: short(found) if len(found) <= _SHORT else fresh(found)


def redacted(part: PackedPart, redact: Callable[[str], str]) -> PackedPart:
    """The part with every text in it redacted but the names of attributes. A text that stands twice is read once."""
    text = cache(redact)

    def value(found: AttributeValue) -> AttributeValue:
        if isinstance(found, str):
            return text(found)
        if isinstance(found, bytes):
            return text(found.decode(errors="replace"))
        if isinstance(found, list | tuple):
            return [value(each) for each in found]
        if isinstance(found, Mapping):
            return {text(key): value(each) for key, each in found.items()}
        return found

    def named(attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
        return {name: value(each) for name, each in attributes.items()}

    spans = [
        replace(
            span, name=text(span.name), status_message=text(span.status_message),
            attributes=named(span.attributes), resource=named(span.resource),
            events=tuple(
                replace(event, name=text(event.name), attributes=named(event.attributes)) for event in span.events
            ),
        )
        for span in part.spans
    ]  # fmt: skip
    return PackedPart(
        spans, [replace(each, body=value(each.body), attributes=named(each.attributes)) for each in part.records]
    )


def _draw(trace_id: bytes) -> float:
    """A number in [0, 1) that no sampler looks at: the same for each revision of a trace."""
    return int.from_bytes(blake2b(trace_id, digest_size=7, person=b"contents").digest()) / 2**56
