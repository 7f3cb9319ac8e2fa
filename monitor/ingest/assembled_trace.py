"""Assembled trace: which spans of a trace have come, which parents are missing, and when; and how it came to be closed.

It holds no contents.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from sidejudge.integrations.otlp.wire.request import Chunk, ChunkOrigin, SpanHeader
from sidejudge.integrations.otlp.wire.tracestate import hashed_randomness, randomness
from sidejudge.scoring.trace.record import record
from sidejudge.scoring.trace.span import Completion

from .outcomes import EndReason

_NONE: Final[frozenset[bytes]] = frozenset()
"""One for all: an empty set takes 216 bytes, and of most of the tens of thousands of traces nothing is missing."""


@record(frozen=True, slots=True, kw_only=True)
class Closing:
    """A trace to be evaluated now. ``revision`` counts its closings from 1; ``origin`` has its lowest threshold.

    ``whole``: a root has come, and every parent that was named. ``session``: it is a conversation
    (``monitor.sessions.windows``), and ``trace_id`` its key. ``size`` is how many bytes of it are kept, and ``decoded``
    an upper estimate of the memory they take once decoded, where that is known. ``left_out`` is how many spans of it
    were not kept because it is too large. ``give_up`` is why it ends unread; None: it is judged. ``thinned``: under
    load it was drawn at a lower rate than configured, and the threshold of ``origin`` is that. ``opened_ns``,
    ``last_ns`` and ``closed_ns`` are when its first and its last span came and when it was closed, ns since the epoch
    by the own clock; ``last_ns`` 0: it is not known.
    """

    trace_id: bytes
    completion: Completion
    revision: int
    origin: ChunkOrigin
    whole: bool = True
    session: bool = False
    size: int = 0
    decoded: int = 0
    left_out: int = 0
    give_up: EndReason | None = None
    thinned: bool = False
    opened_ns: int = 0
    last_ns: int = 0
    closed_ns: int = 0


@dataclass(slots=True)
class AssembledTrace:
    """A trace that is open, or was closed within the late window.

    ``ids`` are its spans' ids, ``missing`` the ids of parents that have not come.
    """

    origin: ChunkOrigin
    first_ns: int
    last_ns: int
    ids: set[bytes] | bytes = field(default_factory=set)  # in order, 8 bytes an id, while the trace is closed
    missing: set[bytes] | frozenset[bytes] = _NONE
    remote: set[bytes] | None = None  # parents that are spans of other processes
    broken: set[bytes] | None = None  # those missing of which the latest span failed
    rooted: bool = False
    marked: bool = False  # its root only says so itself: it names a parent, which will not come
    size: int = 0
    decoded: int = 0
    left_out: int = 0
    stated: int | None = None  # randomness that its spans state, the smallest
    thinned: bool = False  # drawn at a lower rate under load
    shed: bool = False  # and not drawn
    cut: bool = False  # it is as large as a trace may be
    revision: int = 0  # closings so far
    opened_ns: int = 0  # when its first span came, however often it was opened since
    root_ns: int | None = None  # when its root came
    rootless: bool | None = None  # what was learned of it for its service; None: nothing yet
    closed_ns: int | None = None
    forget_ns: int = 0
    awaited: bool = False  # closed, and its root may still come
    queued_ns: int = 0  # when the heap will look at it next
    pause_ns: int = 0  # the longest that something missing was waited for
    after_mark_ns: int = 0  # the longest pause since such a root came

    @property
    def whole(self) -> bool:
        return self.rooted and not self.missing

    @property
    def spans(self) -> int:
        """How many of its spans are kept."""
        return len(self.ids) if isinstance(self.ids, set) else len(self.ids) // 8

    @property
    def called_by_others(self) -> bool:
        """Whether it has no root, and all that is missing are callers in other processes."""
        return not self.rooted and bool(self.missing) and self.missing <= (self.remote or set())

    @property
    def may_have_raised(self) -> bool:
        """Whether the latest span below a missing parent failed, so that the parent may never come."""
        return bool(self.broken)

    def unpacked(self) -> set[bytes]:
        """The ids of its spans as a set; the same one while it is open."""
        return self.ids if isinstance(self.ids, set) else {self.ids[at : at + 8] for at in range(0, len(self.ids), 8)}

    def pack(self) -> None:
        """Keep the ids in little room, and in order: they are only looked for from now on."""
        self.ids = b"".join(sorted(self.unpacked()))

    def holds(self, span_ids: Collection[bytes]) -> bool:
        """Whether all these spans are among its own."""
        ids = self.ids
        if isinstance(ids, set):
            return ids.issuperset(span_ids)

        def at(place: int) -> bytes:
            return ids[8 * place : 8 * place + 8]

        places = range(len(ids) // 8)
        return all(at(bisect_left(places, span_id, key=at)) == span_id for span_id in span_ids)

    def extend(self, chunk: Chunk, now_ns: int) -> int:
        """Take in a chunk, and return how many spans are new."""
        ids, missing = self.unpacked(), self.missing if isinstance(self.missing, set) else set()
        before = len(ids)
        if ids and not self.whole:
            self.pause_ns = max(self.pause_ns, now_ns - self.last_ns)
        if self.marked:
            self.after_mark_ns = max(self.after_mark_ns, now_ns - self.last_ns)
        for header in chunk.headers:
            span_id, parent_id = header.span_id, header.parent_id
            if header.trace_state:
                bits = randomness(chunk.trace_id, header.trace_state)
                self.stated = bits if self.stated is None else min(bits, self.stated)
            ids.add(span_id)
            missing.discard(span_id)
            if not parent_id:
                self.rooted, self.marked = True, False
            elif header.root_hint:
                self.rooted, self.marked = True, self.marked or not self.rooted
            elif parent_id not in ids:
                missing.add(parent_id)
                if header.remote_parent or header.failed or self.broken:
                    self._note_missing(header)
        self.ids, self.missing = ids, missing or _NONE
        self._note_came(chunk)
        self.last_ns = max(self.last_ns, now_ns)
        self.size += len(chunk.payload)
        # Once it was closed it has been drawn: spans that were on their way to a commit then may not know of it.
        if chunk.origin.threshold < self.origin.threshold and not self.revision:
            self.origin = chunk.origin
        return len(ids) - before

    def _note_missing(self, header: SpanHeader) -> None:
        """What a span shows of its parent, which has not come."""
        if header.remote_parent:
            self.remote = self.remote or set()
            self.remote.add(header.parent_id)
        if header.failed:
            self.broken = self.broken or set()
            self.broken.add(header.parent_id)
        elif self.broken:
            self.broken.discard(header.parent_id)

    def _note_came(self, chunk: Chunk) -> None:
        """Parents that are not missing any more have not raised; looking for them at each closing would take longer."""
        if self.broken:
            self.broken.difference_update([header.span_id for header in chunk.headers])

    def randomness(self, trace_id: bytes) -> int:
        """What decides whether it is drawn at a threshold."""
        if self.origin.hash_key:
            return int.from_bytes(hashed_randomness(trace_id, self.origin.hash_key), "big")
        return randomness(trace_id) if self.stated is None else self.stated

    def closing(self, trace_id: bytes, completion: Completion, now_ns: int) -> Closing:
        """It as a trace that is closed now."""
        return Closing(
            trace_id=trace_id, completion=completion, revision=self.revision, origin=self.origin, whole=self.whole,
            size=self.size, decoded=self.decoded, left_out=self.left_out,
            give_up=EndReason.SHED if self.shed else None, thinned=self.thinned,
            opened_ns=self.opened_ns, last_ns=self.last_ns, closed_ns=now_ns,
        )  # fmt: skip
