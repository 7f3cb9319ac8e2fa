"""Assembler: when is a trace whole? A pure state machine; time is an argument.

OTLP has no end-of-trace marker, so a trace closes for a stated reason, whichever comes first:

* ``root_ended`` — a root has arrived (a span that names no parent, or is marked as the topmost exported), every parent
  that was named has arrived, and nothing came for ``grace``, or after a mark for as long as its service may still send;
* ``pseudo_root`` — nothing came for ``idle``, and all that is missing are callers in other processes, as the flags of
  the spans below them show: this side's spans are all here, and the caller's will not come;
* ``idle`` — nothing came for ``idle``, which is as long as the service's traces usually pause (``service_habits.py``);
* ``deadline`` — ``deadline`` has passed since its first span;
* ``pressure`` — more traces, spans or bytes are open than may be, or the trace is larger than one may be;
* ``shutdown`` — the monitor ends, and something of the trace is missing.

A trace without a root, of a service whose traces have roots (``service_habits.py``), is still running: it stays open
for ``root_wait`` instead of ``idle`` and ``deadline``. Under pressure the longest idle go first. Where the latest span
below a missing parent failed, the run may have ended with it, for some clients never end the spans of what raises: such
a trace stays open until its root is overdue. If more of it comes then, it had not ended, and is waited for as others.

A closed trace is remembered for the late window, or for ``root_wait`` when it was closed without the root that its
service sends. A span that arrives then, and that was not there before, opens the trace again, and its next closing is
the next revision. After that its id is remembered a while longer, only to refuse very late spans: half a trace must not
count as a new one. The store still knows ids that this memory has lost when the trace is judged.

Payloads stay in the store. The assembler keeps only span ids, and the ids of missing parents.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from sidejudge.integrations.otlp.wire.request import Chunk
from sidejudge.scoring.trace.span import Completion
from sidejudge.scoring.trace.time_units import SECOND_NS

from .assembled_trace import AssembledTrace, Closing
from .load_shedding import LoadShedding
from .outcomes import RecentIds
from .service_habits import AdaptiveIdle, ExpectedRoots
from .trace_limits import TraceSize

_NEVER_NS: Final = 1 << 63
"""Later than any clock: at the first look, too, what the store holds may be dated ahead."""
LATE_TRACES: Final = 4
"""How many closed traces, and spans of them, are remembered, as a multiple of those that may be open."""


class Arrival(StrEnum):
    """The relation of a chunk to its trace."""

    OPENS = "opens"
    """The first of its trace."""
    EXTENDS = "extends"
    """It adds spans to an open trace."""
    REOPENS = "reopens"
    """It adds spans to a closed trace within the late window."""
    DUPLICATE = "duplicate"
    """All its spans are known: a client that got no answer sends again."""
    HELD = "held"
    """Log records of a trace without a span so far: they wait in the store, and are no trace by themselves."""
    TOO_LATE = "too_late"
    """Its trace was closed longer ago than the late window."""
    TOO_LARGE = "too_large"
    """Its trace has been cut short: it is as large as one may be."""


PASSED_OVER: Final = frozenset({Arrival.DUPLICATE, Arrival.TOO_LATE, Arrival.TOO_LARGE})
"""What is not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyLimits:
    """The configuration's ``assembly`` limits: durations in ns, sizes in bytes of payload.

    ``idle_max_ns`` bounds what idle may grow to for a service that pauses longer; None: it does not grow.
    ``root_wait_ns`` is how long a trace without its root yet stays open; 0: no longer than any other.
    """

    grace_ns: int = 2 * SECOND_NS
    idle_ns: int = 30 * SECOND_NS
    idle_max_ns: int | None = None
    deadline_ns: int = 600 * SECOND_NS
    late_ns: int = 600 * SECOND_NS
    root_wait_ns: int = 0
    max_open_traces: int = 10_000
    max_open_bytes: int = 128 << 20
    max_open_spans: int = 1 << 17
    """Ids of spans are what is in memory of an open trace: about 120 bytes each."""
    remembered: int = 50_000
    """How many ids of traces past their late window are remembered at least (at most twice as many)."""


class Assembler:
    """Open and lately closed traces. Each opening and reopening is returned by ``due`` exactly once."""

    def __init__(self, limits: AssemblyLimits | None = None, *, shedding: LoadShedding | None = None) -> None:
        """``shedding`` draws traces once more as they close for the first time, under load."""
        self._limits = limits or AssemblyLimits()
        self._shedding = shedding
        self._open: dict[bytes, AssembledTrace] = {}  # in order of opening: the first is the oldest
        self._closed: dict[bytes, AssembledTrace] = {}
        self._heap: list[tuple[int, bytes]] = []
        self._forget: list[tuple[int, bytes]] = []
        self._gone = RecentIds(self._limits.remembered)
        self.redrawn: dict[bytes, int] = {}
        """The thresholds of traces that were drawn once more, until the store has them."""
        self._bytes = self._spans = self._closed_spans = 0
        self._rootless: OrderedDict[bytes, None] = OrderedDict()  # open ones; of the first nothing came for longest
        self._looked_ns = _NEVER_NS
        self._idle = AdaptiveIdle(self._limits.idle_ns, self._limits.idle_max_ns or 0)
        self._after_mark = AdaptiveIdle(
            self._limits.grace_ns, max(self._limits.idle_ns, self._limits.idle_max_ns or 0), self._limits.idle_ns
        )
        self._roots = ExpectedRoots()

    @property
    def open_traces(self) -> int:
        return len(self._open)

    @property
    def remembered(self) -> int:
        """How many traces past their late window are remembered."""
        return self._limits.remembered

    @property
    def open_limit_reached(self) -> bool:
        limits = self._limits
        return (
            len(self._open) > limits.max_open_traces
            or self._bytes > limits.max_open_bytes
            or self._spans > limits.max_open_spans
        )

    @property
    def due_ns(self) -> int | None:
        """When ``due`` may next have something to close, ns since the epoch: not later. None: nothing is open."""
        if self.open_limit_reached:
            return 0
        return self._heap[0][0] if self._heap else None

    @property
    def oldest_ns(self) -> int | None:
        """When the trace that has been open longest was opened, ns since the epoch; None when none is open."""
        return next((entry.first_ns for entry in self._open.values()), None)

    def knows(self, trace_id: bytes) -> bool:
        """Whether the trace is open or was closed within the late window."""
        return trace_id in self._open or trace_id in self._closed

    def unknown(self, trace_ids: AbstractSet[bytes]) -> AbstractSet[bytes]:
        """Those of these traces that are not known."""
        if self._open.keys().isdisjoint(trace_ids) and self._closed.keys().isdisjoint(trace_ids):
            return trace_ids
        return {trace_id for trace_id in trace_ids if not self.knows(trace_id)}

    def size(self, trace_id: bytes) -> TraceSize:
        """The size of a trace that is open or was closed within the late window; zeros for any other."""
        entry = self._open.get(trace_id) or self._closed.get(trace_id)
        return TraceSize(entry.spans, entry.decoded) if entry is not None else TraceSize()

    def drawn_at(self, trace_id: bytes) -> int:
        """The sampling threshold at which a trace was drawn that is known; 0 for any other."""
        entry = self._open.get(trace_id) or self._closed.get(trace_id)
        return entry.origin.threshold if entry is not None else 0

    def classify(self, chunk: Chunk) -> Arrival:
        """The relation of a chunk to its trace; changes nothing. An ignored chunk need not be stored."""
        arrival = self._classify(chunk)
        if arrival is Arrival.EXTENDS or arrival is Arrival.REOPENS:
            entry = self._open.get(chunk.trace_id) or self._closed[chunk.trace_id]
            return Arrival.TOO_LARGE if entry.cut else arrival
        return arrival

    def _classify(self, chunk: Chunk) -> Arrival:
        entry = self._open.get(chunk.trace_id) or self._closed.get(chunk.trace_id)
        if entry is None:
            if chunk.trace_id in self._gone:
                return Arrival.TOO_LATE
            return Arrival.OPENS if chunk.headers else Arrival.HELD
        if chunk.headers and entry.holds([header.span_id for header in chunk.headers]):
            return Arrival.DUPLICATE
        return Arrival.EXTENDS if entry.closed_ns is None else Arrival.REOPENS

    def add(self, chunk: Chunk, now_ns: int, *, decoded: int = 0, thinned: bool = False) -> Arrival:
        """Take in a chunk that is committed, even if its trace has been cut meanwhile.

        Duplicates, what is too late and what is held change nothing.

        Args:
            chunk: The chunk.
            now_ns: When it came.
            decoded: Upper estimate of the memory it takes once decoded, in bytes.
            thinned: Whether its trace was drawn at a lower rate than configured, under load.
        """
        arrival = self._classify(chunk)
        if arrival in PASSED_OVER or arrival is Arrival.HELD:
            return arrival
        if arrival is Arrival.OPENS:
            entry = self._open[chunk.trace_id] = AssembledTrace(chunk.origin, now_ns, now_ns, opened_ns=now_ns)
        elif arrival is Arrival.REOPENS:
            entry = self._opened_again(chunk.trace_id, now_ns)
        else:
            entry = self._open[chunk.trace_id]
        self._extend(entry, chunk, now_ns)
        entry.decoded += decoded
        entry.thinned = entry.thinned or thinned
        if entry.rooted:
            self._rootless.pop(chunk.trace_id, None)
        else:
            self._rootless[chunk.trace_id] = None
            self._rootless.move_to_end(chunk.trace_id)
        self._enqueue(chunk.trace_id, entry)
        return arrival

    def cut(self, trace_id: bytes, left_out: int) -> None:
        """The trace is as large as one may be: it closes now, and takes no more.

        Args:
            trace_id: The trace; nothing happens when it is not known.
            left_out: How many spans have come of it that are not kept.
        """
        entry = self._open.get(trace_id) or self._closed.get(trace_id)
        if entry is None:
            return
        entry.left_out += left_out
        entry.cut = True
        if entry.closed_ns is None:
            self._enqueue(trace_id, entry)

    def learn_root(self, service: str | None, *, rooted: bool) -> None:
        """Whether a trace of this service had a root, of before a restart."""
        self._roots.learn(service, 0 if rooted else None)

    def _opened_again(self, trace_id: bytes, now_ns: int) -> AssembledTrace:
        entry = self._open[trace_id] = self._closed.pop(trace_id)
        self._no_longer_closed(entry)
        entry.ids = entry.unpacked()
        entry.first_ns, entry.closed_ns, entry.queued_ns = now_ns, None, 0
        self._bytes += entry.size
        self._spans += len(entry.ids)
        if not entry.rooted:
            self._rootless[trace_id] = None
        return entry

    def _extend(self, entry: AssembledTrace, chunk: Chunk, now_ns: int) -> None:
        rooted = entry.rooted
        self._spans += entry.extend(chunk, now_ns)
        self._bytes += len(chunk.payload)
        if entry.rooted and not rooted:
            entry.root_ns = now_ns
            if self._waits_for_root(entry):
                entry.first_ns = now_ns  # it was waited for; what is still missing has as long as in any other trace

    def _when(self, entry: AssembledTrace) -> tuple[int, Completion]:
        """When an open trace closes if no more spans come, and why; of ``pseudo_root`` it says ``idle``."""
        quiet: tuple[int, Completion]
        if entry.cut:
            return entry.last_ns, "pressure"
        if not entry.rooted and self._waits_for_root(entry):
            overdue_ns = entry.opened_ns + max(self._limits.deadline_ns, self._roots.overdue_ns(entry.origin.service))
            end_ns = entry.first_ns + self._limits.root_wait_ns
            if entry.may_have_raised and not entry.revision:
                quiet_ns = entry.last_ns + self._idle.idle_ns(entry.origin.service)
                return min(max(overdue_ns, quiet_ns), end_ns), "deadline"
            return (end_ns if entry.rootless else min(overdue_ns, end_ns)), "deadline"
        if entry.whole:
            grace_ns = self._after_mark.idle_ns(entry.origin.service) if entry.marked else self._limits.grace_ns
            quiet = (entry.last_ns + grace_ns, "root_ended")
        else:
            quiet = (entry.last_ns + self._idle.idle_ns(entry.origin.service), "idle")
        deadline = entry.first_ns + self._limits.deadline_ns
        return quiet if quiet[0] <= deadline else (deadline, "deadline")

    def _waits_for_root(self, entry: AssembledTrace) -> bool:
        return self._limits.root_wait_ns > 0 and self._roots.expected(entry.origin.service)

    def _learn_root(self, entry: AssembledTrace) -> None:
        """Record the trace's evidence on its service once; a root that comes later amends it."""
        if entry.rootless is False or (entry.rootless and not entry.rooted):
            return
        took_ns = max(0, entry.root_ns - entry.opened_ns) if entry.root_ns is not None else None
        service = entry.origin.service
        torn = entry.rooted and not entry.whole
        ceased = self._roots.learn(service, took_ns, amends=entry.rootless is True, torn=torn)
        entry.rootless = took_ns is None
        if ceased:
            for trace_id in self._rootless:
                self._enqueue(trace_id, self._open[trace_id])

    def _enqueue(self, trace_id: bytes, entry: AssembledTrace) -> None:
        # A closing that moved away leaves its place in the heap as it is and is put right when that comes up:
        # so a span costs nothing here unless it brings the closing forward.
        due_ns, _ = self._when(entry)
        if not entry.queued_ns or due_ns < entry.queued_ns:
            entry.queued_ns = due_ns
            heapq.heappush(self._heap, (due_ns, trace_id))

    def _settle(self, now_ns: int) -> Completion | None:
        """Put the top of the heap right; return why it closes, if it does by ``now_ns``."""
        while self._heap:
            queued_ns, trace_id = self._heap[0]
            entry = self._open.get(trace_id)
            if entry is None or entry.queued_ns != queued_ns:
                heapq.heappop(self._heap)
                continue
            due_ns, completion = self._when(entry)
            if due_ns <= now_ns and self._only_overdue(entry, due_ns):
                self._learn_root(entry)
                continue
            if due_ns != queued_ns:
                entry.queued_ns = due_ns
                heapq.heapreplace(self._heap, (due_ns, trace_id))
                continue
            if due_ns > now_ns:
                return None
            # Above a rootless trace stands a caller; in a rooted one, or beside other gaps, spans of it are lost. It is
            # looked for here alone: with each span it would take the square of their number.
            return "pseudo_root" if completion == "idle" and entry.called_by_others else completion
        return None

    def _only_overdue(self, entry: AssembledTrace, due_ns: int) -> bool:
        """Whether what is due is not the closing, but the root: it is not waited for any less."""
        return (
            not entry.rooted
            and not entry.cut
            and entry.rootless is None
            and self._waits_for_root(entry)
            and due_ns < entry.first_ns + self._limits.root_wait_ns
        )

    def due(self, now_ns: int, most: int | None = None) -> list[Closing]:
        """Close the due traces, then the oldest while too much is open; drop those past their late window.

        Under pressure that is the trace without a root of which nothing came for longest, if it is idle, else the one
        that was opened first.

        Args:
            now_ns: The present.
            most: How many are closed at most; the rest is due again at once. None: all.
        """
        if now_ns < self._looked_ns:
            self._date_back(now_ns)
        self._looked_ns = now_ns
        closings: list[Closing] = []
        while len(closings) != most and (completion := self._settle(now_ns)) is not None:
            _, trace_id = heapq.heappop(self._heap)
            closings.append(self._close(trace_id, completion, now_ns))
        while len(closings) != most and self.open_limit_reached:
            closings.append(self._close(self._oldest(now_ns), "pressure", now_ns))
        self._prune(now_ns)
        return closings

    def _date_back(self, now_ns: int) -> None:
        """After the clock was set back: date what lies ahead to now, also in the store."""
        for trace_id, entry in (*self._open.items(), *self._closed.items()):
            if entry.last_ns > now_ns:
                entry.opened_ns, entry.first_ns = min(entry.opened_ns, now_ns), min(entry.first_ns, now_ns)
                entry.root_ns = min(entry.root_ns, now_ns) if entry.root_ns is not None else None
                entry.last_ns = now_ns
                if entry.closed_ns is None:
                    self._enqueue(trace_id, entry)

    def _oldest(self, now_ns: int) -> bytes:
        fragment = next(iter(self._rootless), None)
        if fragment is not None:
            entry = self._open[fragment]
            if entry.last_ns + self._idle.idle_ns(entry.origin.service) <= now_ns:
                return fragment
        return next(iter(self._open))

    def drain(self, now_ns: int, quiet_ns: int = 0, *, whole: bool = False) -> list[Closing]:
        """Close open traces because the monitor ends, oldest first: whole ones as such, the others as ``shutdown``.

        Args:
            now_ns: The present.
            quiet_ns: How long nothing may have come of a trace; 0 closes all.
            whole: Only whole traces; another monitor takes the others, with what still comes of them.
        """
        over = [
            (trace_id, entry) for trace_id, entry in self._open.items()
            if entry.last_ns + quiet_ns <= now_ns and (entry.whole or entry.cut or not whole)
        ]  # fmt: skip
        return [
            self._close(trace_id, "pressure" if entry.cut else "root_ended" if entry.whole else "shutdown", now_ns)
            for trace_id, entry in over
        ]

    @property
    def torn_traces(self) -> int:
        """Open traces that are not whole."""
        return sum(not (entry.whole or entry.cut) for entry in self._open.values())

    def reopen(self, trace_id: bytes, now_ns: int) -> bool:
        """Have a trace closed once more without new spans, because something else has changed.

        False when it is past that: only of a trace that was closed within the late window the spans are still held.
        """
        if trace_id not in self._closed:
            return False
        entry = self._opened_again(trace_id, now_ns)
        entry.last_ns = now_ns
        self._enqueue(trace_id, entry)
        return True

    def hold_back(self, trace_id: bytes) -> None:
        """Do not count the latest closing of a trace: it is not judged until it is released."""
        if (entry := self._closed.get(trace_id)) is not None:
            entry.revision -= 1

    def release(self, trace_id: bytes) -> bool:
        """Count the closing of a trace that was held back. False where spans have opened it again meanwhile."""
        if (entry := self._closed.get(trace_id)) is not None:
            entry.revision += 1
        return trace_id not in self._open

    def has_root(self, trace_id: bytes) -> bool | None:
        """Whether the root of a trace has come; None for a trace that is not known."""
        entry = self._open.get(trace_id) or self._closed.get(trace_id)
        return None if entry is None else entry.rooted

    def is_judged(self, trace_id: bytes) -> bool:
        """Whether a trace that is known was closed before, and not held back."""
        entry = self._open.get(trace_id) or self._closed.get(trace_id)
        return entry is not None and entry.revision > 0

    def give_away(self, trace_id: bytes) -> bool:
        """Forget a trace that another monitor has taken over; False for one that was judged, which stays."""
        if self.is_judged(trace_id):
            return False
        if (entry := self._open.pop(trace_id, None)) is not None:
            self._rootless.pop(trace_id, None)
            self._bytes -= entry.size
            self._spans -= entry.spans
        elif (entry := self._closed.pop(trace_id, None)) is not None:
            self._no_longer_closed(entry)
        return entry is not None

    def restore(self, trace_id: bytes, revision: int, closed_ns: int) -> None:
        """After a restart: this open trace had in truth been closed ``revision`` times, lastly at ``closed_ns``."""
        entry = self._open[trace_id]
        entry.revision = revision - 1
        self._close(trace_id, "idle", closed_ns)

    def _close(self, trace_id: bytes, completion: Completion, now_ns: int) -> Closing:
        entry = self._closed[trace_id] = self._open.pop(trace_id)
        self._rootless.pop(trace_id, None)
        entry.revision += 1
        entry.closed_ns = now_ns
        entry.pack()
        self._bytes -= entry.size
        self._spans -= entry.spans
        self._idle.learn(entry.origin.service, entry.pause_ns)
        if entry.marked or entry.after_mark_ns:
            self._after_mark.learn(entry.origin.service, entry.after_mark_ns)
        if self._shedding is not None:
            self._shed(trace_id, entry, self._shedding)
        if entry.rooted:
            self._learn_root(entry)
        elif self._limits.root_wait_ns > self._limits.late_ns and not entry.cut:
            entry.awaited = self._roots.remember(entry.origin.service)
        entry.forget_ns = now_ns + (self._limits.root_wait_ns if entry.awaited else self._limits.late_ns)
        heapq.heappush(self._forget, (entry.forget_ns, trace_id))
        self._closed_spans += entry.spans
        while (
            len(self._closed) > LATE_TRACES * self._limits.max_open_traces
            or self._closed_spans > LATE_TRACES * self._limits.max_open_spans
        ) and len(self._closed) > 1:
            self.refuse(next(iter(self._closed)))
        return entry.closing(trace_id, completion, now_ns)

    def _shed(self, trace_id: bytes, entry: AssembledTrace, shedding: LoadShedding) -> None:
        """Draw a trace once more, at the rate that judging can keep up with; a revision is drawn no further time."""
        limit, origin = shedding.closing_threshold, entry.origin
        if entry.revision == 1 and limit > origin.threshold:
            entry.origin = replace(origin, threshold=limit)
            entry.thinned, entry.shed = True, entry.randomness(trace_id) < limit
            if not entry.shed:
                self.redrawn[trace_id] = limit
        if not entry.shed:
            shedding.added()

    def _no_longer_closed(self, entry: AssembledTrace) -> None:
        self._closed_spans -= entry.spans
        if entry.awaited:
            entry.awaited = False
            self._roots.forget(entry.origin.service)

    def forget(self, closed_before_ns: int) -> None:
        """Count the late window of traces closed up to then as over: later spans of them are too late."""
        for trace_id, entry in list(self._closed.items()):
            if entry.closed_ns is not None and entry.closed_ns <= closed_before_ns:
                self.refuse(trace_id)

    def awaited(self, closed_before_ns: int) -> list[bytes]:
        """Traces that were closed up to then and are remembered beyond the late window, for their root may come."""
        return [
            trace_id
            for trace_id, entry in self._closed.items()
            if entry.awaited and entry.closed_ns is not None and entry.closed_ns <= closed_before_ns
        ]

    def _prune(self, now_ns: int) -> None:
        while self._forget and self._forget[0][0] <= now_ns:
            forget_ns, trace_id = heapq.heappop(self._forget)
            entry = self._closed.get(trace_id)
            if entry is None or entry.closed_ns is None or entry.forget_ns != forget_ns:
                continue  # it was opened again, and will be forgotten later if at all
            if entry.awaited:
                self._learn_root(entry)
            self.refuse(trace_id)

    def refuse(self, trace_id: bytes) -> None:
        """Refuse further spans of this trace: it ended, and its spans are gone.

        A trace that has been opened again meanwhile stays open.
        """
        entry = self._closed.pop(trace_id, None)
        if entry is not None:
            self._no_longer_closed(entry)
        self._gone.learn({trace_id})
