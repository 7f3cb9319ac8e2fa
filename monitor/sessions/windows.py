"""Session windows: decides when a conversation is over. A pure state machine; time is an argument.

A trace that carries a session id is a turn. A session closes when no turn came for ``idle`` and is then judged as one
conversation; a turn that comes within ``late`` of that opens it again, and its next closing is the next revision. After
that the same session id begins a new session, with a key and verdicts of its own. A session that grows beyond
``max_turns`` or ``max_bytes`` closes at once (``pressure``) and takes no more: it is judged as cut short. While a turn
of it waits for a judge or for embeddings it is not over: the turn joins it with its verdict.

**Drawing.** Sessions are drawn by their id, not by those of their traces: a conversation of which every tenth turn was
drawn is no conversation. So every trace has to be read to know its session (the first sampling pass keeps all), its
own draw is left as it is, and the two are independent: the verdict on a session carries the probability that the
*session* was drawn, the one on a trace that of the trace. The bits are a hash of the session id alone: all monitors,
and all sessions under one id, draw alike. With ``sampling.randomness_key`` who chooses a session id does not know them.

The turns themselves are in the store, written with the result of their trace; here are only their ids and sizes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from sidejudge.integrations.otlp.wire.request import ChunkOrigin
from sidejudge.integrations.otlp.wire.tracestate import probability, threshold
from sidejudge.monitor.evaluate.result import SessionIdentity
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.sampler import Decision
from sidejudge.scoring.trace.span import Completion
from sidejudge.scoring.trace.time_units import SECOND_NS

_HASH_KEY: Final = b"sidejudge.session"
_READ_AGAIN_NS: Final = 60 * SECOND_NS
_NEVER_NS: Final = 1 << 63
"""Later than any clock: at the first look, too, what the store holds may be dated ahead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """Durations in ns. ``max_bytes`` limits a session's stored turns, ``max_open_bytes`` those of all open sessions."""

    idle_ns: int = 900 * SECOND_NS
    late_ns: int = 900 * SECOND_NS
    max_turns: int = 200
    max_bytes: int = 4 << 20
    max_open_bytes: int = 256 << 20
    max_sessions: int = 20_000


class StoredTurnHead(NamedTuple):
    """A turn found at start; ``revision`` and ``judged_ns`` describe its session's last judging, or are None.

    ``done_ns`` is when its session was judged with it, or went on since; None: it is not judged with it yet.
    """

    trace_id: bytes
    key: bytes
    identity: SessionIdentity
    closed_ns: int
    done_ns: int | None
    size: int
    revision: int | None
    judged_ns: int | None


@dataclass(slots=True)
class _Session:
    key: bytes
    identity: SessionIdentity
    last_ns: int
    turns: dict[bytes, int] = field(default_factory=dict)
    size: int = 0
    revision: int = 0
    closed_ns: int = 0


def draw(identity: SessionIdentity, rate: float, hash_key: bytes = b"") -> Decision:
    """Whether a session is judged, at a rate in (0, 1]. ``hash_key`` is a secret one."""
    limit = threshold(rate)
    name = identity.session_id.encode("utf-8", "surrogatepass")
    bits = int.from_bytes(blake2b(name, digest_size=7, key=hash_key or _HASH_KEY).digest(), "big")
    kept, chance = bits >= limit, probability(limit)
    return Decision(
        kept=kept,
        probability=chance if kept else None,
        base_probability=chance,
        selection="random",
        randomness=bits,
        rule="sessions",
    )


class SessionWindows:
    """Open and lately judged sessions. Each opening and reopening is returned by ``due`` exactly once."""

    def __init__(self, limits: SessionLimits | None = None) -> None:
        self._limits = limits or SessionLimits()
        self._latest: dict[SessionIdentity, _Session] = {}
        # A plain dict looks for its first through all that were taken out before it.
        self._open: OrderedDict[bytes, _Session] = OrderedDict()  # in order of their last turn
        self._closed: OrderedDict[bytes, _Session] = OrderedDict()  # in order of closing
        self._awaiting: dict[bytes, _Session] = {}  # closed more than ``late`` ago, and a turn that came before waits
        self._full: list[_Session] = []
        self._expected: dict[bytes, SessionIdentity] = {}  # by the trace that will be a turn
        self._expecting: Counter[SessionIdentity] = Counter()
        self._bytes = 0
        self._looked_ns = _NEVER_NS

    @property
    def open_sessions(self) -> int:
        """Sessions that wait until they are over."""
        return len(self._open)

    @property
    def oldest_ns(self) -> int | None:
        """When the last turn came of the session that has waited longest; None when none waits."""
        return next((session.last_ns for session in self._open.values()), None)

    @property
    def due_ns(self) -> int | None:
        """When ``due`` may next have something to close, ns since the epoch: not later. None: nothing is open."""
        if self._full:
            return 0
        oldest_ns = self.oldest_ns
        return None if oldest_ns is None else oldest_ns + self._limits.idle_ns

    def expect(self, identity: SessionIdentity, trace_id: bytes) -> None:
        """A turn waits for its verdict, with which it joins."""
        if trace_id not in self._expected:
            self._expected[trace_id] = identity
            self._expecting[identity] += 1

    def expects(self, identity: SessionIdentity) -> bool:
        """Whether a turn of it waits for its verdict."""
        return identity in self._expecting

    def ended(self, trace_id: bytes) -> None:
        """A trace has ended, whether it has joined or not."""
        if (identity := self._expected.pop(trace_id, None)) is not None:
            self._expecting[identity] -= 1
            if not self._expecting[identity]:
                del self._expecting[identity]
                if (session := self._latest.get(identity)) is not None and session.key in self._awaiting:
                    self._drop(session)

    def join(
        self, identity: SessionIdentity, trace_id: bytes, size: int, now_ns: int, *, former: bytes | None = None
    ) -> bytes | None:
        """Take in a turn; return the key of its session, or None when that takes no more.

        ``former`` is the session that the trace belonged to before late spans changed it: it joins no other. Joining
        again changes nothing but the time.
        """
        self._forget(now_ns)
        session = self._latest.get(identity)
        if former is not None and (session is None or session.key != former):
            return None
        if session is None:
            session = self._latest[identity] = _Session(key_of(identity, trace_id), identity, now_ns)
        elif self._is_full(session) and trace_id not in session.turns:
            # The conversation goes on: what is left of it must not be taken for a new one.
            if self._taken_out(session):
                session.closed_ns = now_ns
                self._closed[session.key] = session
            return None
        self._bytes -= session.size if self._open.pop(session.key, None) is not None else 0
        self._taken_out(session)
        session.size += size - session.turns.get(trace_id, 0)
        session.turns[trace_id] = size
        session.last_ns = max(session.last_ns, now_ns)
        self._open[session.key] = session
        self._bytes += session.size
        if self._is_full(session):
            self._full.append(session)
        return session.key

    def full(self, identity: SessionIdentity) -> bytes | None:
        """The key of the session with this id that takes no more turns; None where there is none."""
        session = self._latest.get(identity)
        return session.key if session is not None and self._is_full(session) else None

    def _is_full(self, session: _Session) -> bool:
        return len(session.turns) >= self._limits.max_turns or session.size > self._limits.max_bytes

    def due(self, now_ns: int) -> list[Closing]:
        """Close what is full or over, then the oldest while there are too many; forget what may not grow any more."""
        if now_ns < self._looked_ns:  # the clock was set back: what it had dated ahead is of now
            for session in (*self._open.values(), *self._closed.values(), *self._awaiting.values()):
                session.last_ns, session.closed_ns = min(session.last_ns, now_ns), min(session.closed_ns, now_ns)
        self._looked_ns = now_ns
        closings = [self._close(session, "pressure", now_ns) for session in self._full if session.key in self._open]
        self._full.clear()
        while self._open:
            session = next(iter(self._open.values()))
            over = session.last_ns + self._limits.idle_ns <= now_ns
            crowded = len(self._open) > self._limits.max_sessions or self._bytes > self._limits.max_open_bytes
            if not over and not crowded:
                break
            waits = session.identity in self._expecting
            if waits and not crowded:  # looked at again in as long as if the turn had come now
                session.last_ns = now_ns
                self._open[session.key] = self._open.pop(session.key)
                continue
            closings.append(self._close(session, "idle" if over and not waits else "pressure", now_ns))
        self._forget(now_ns)
        return closings

    def drain(self, now_ns: int) -> list[Closing]:
        """Close all that are open because the monitor ends."""
        return [self._close(session, "shutdown", now_ns) for session in list(self._open.values())]

    def _close(self, session: _Session, completion: Completion, now_ns: int) -> Closing:
        del self._open[session.key]
        self._bytes -= session.size
        self._closed[session.key] = session
        session.closed_ns = now_ns
        session.revision += 1
        return Closing(
            trace_id=session.key,
            completion=completion,
            revision=session.revision,
            origin=ChunkOrigin(session.identity.service, session.identity.environment, 0),
            session=True,
            size=session.size,
            closed_ns=now_ns,
        )

    def _forget(self, now_ns: int) -> None:
        while self._closed:
            session = next(iter(self._closed.values()))
            fit = len(self._closed) <= self._limits.max_sessions
            if session.closed_ns + self._limits.late_ns > now_ns and fit:
                return
            latest = self._latest.get(session.identity) is session
            if fit and latest and session.identity in self._expecting:  # that turn came in time
                self._awaiting[session.key] = self._closed.pop(session.key)
            else:
                self._drop(session)

    def grown_ns(self, now_ns: int) -> int:
        """Sessions judged before this time, in ns, take no more turns, so their stored turns are not needed."""
        return min([now_ns - self._limits.late_ns, *(session.closed_ns for session in self._awaiting.values())])

    def forget(self, closed_before_ns: int) -> None:
        """Forget sessions that were judged before this: what comes for them begins others."""
        while self._closed and (session := next(iter(self._closed.values()))).closed_ns < closed_before_ns:
            self._drop(session)
        for session in [each for each in self._awaiting.values() if each.closed_ns < closed_before_ns]:
            self._drop(session)

    def _taken_out(self, session: _Session) -> bool:
        return self._closed.pop(session.key, self._awaiting.pop(session.key, None)) is not None

    def _drop(self, session: _Session) -> None:
        self._taken_out(session)
        if self._latest.get(session.identity) is session:
            del self._latest[session.identity]

    def restore(self, turns: Iterable[StoredTurnHead], now_ns: int = 0) -> int:
        """Take up what the store holds after a restart; return how many sessions are open.

        None ends before traces that waited at the end of the last run are read again, which may be turns of it.
        """
        least_ns = now_ns - self._limits.idle_ns + min(self._limits.idle_ns, _READ_AGAIN_NS)
        found: dict[bytes, _Session] = {}
        waiting: set[bytes] = set()
        for turn in turns:
            session = found.setdefault(turn.key, _Session(turn.key, turn.identity, turn.closed_ns))
            session.last_ns = max(session.last_ns, turn.closed_ns)
            session.turns[turn.trace_id] = turn.size
            session.size += turn.size
            session.revision = turn.revision or 0
            session.closed_ns = max(session.closed_ns, turn.judged_ns or 0, turn.done_ns or 0)
            if turn.done_ns is None:
                waiting.add(turn.key)
        for session in sorted(found.values(), key=lambda each: each.last_ns):
            # Of several sessions under one id only the latest may still grow.
            self._latest[session.identity] = session
            if session.key in waiting:
                session.last_ns = max(session.last_ns, least_ns)
                self._open[session.key] = session
                self._bytes += session.size
                if self._is_full(session):
                    self._full.append(session)
        for session in sorted(found.values(), key=lambda each: each.closed_ns):
            if session.key not in waiting:
                self._closed[session.key] = session
        return self.open_sessions


def key_of(identity: SessionIdentity, trace_id: bytes) -> bytes:
    """The key of the session that begins with this trace: 16 bytes, as a trace id has, and never one."""
    name = repr((*identity, trace_id)).encode("utf-8", "backslashreplace")
    return blake2b(name, digest_size=16, key=_HASH_KEY).digest()
