"""Past sessions: the turns that were read, joined by their times as a live monitor would.

A session id that was quiet for longer than ``idle`` and ``late`` begins another session, whose scores have the same
ids: of several under one id only the last is judged, because its scores would replace the others. A conversation of
which turns lie outside the stretch of time, or could not be read, is not complete and is judged so; its verdict
replaces none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sidejudge.integrations.langfuse.observations import Window
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.evaluate.result import SessionIdentity
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.sessions.windows import SessionLimits, SessionWindows, key_of
from sidejudge.scoring.trace.span import JsonRecord


class HeldTurn(NamedTuple):
    """A turn as it is stored: ``text`` is its JSON read, ``size`` its bytes, times in ns since the epoch."""

    trace_id: bytes
    text: JsonRecord
    size: int

    @property
    def started_ns(self) -> int:
        return int(self.text["started_ns"])

    @property
    def ended_ns(self) -> int:
        return int(self.text["ended_ns"])


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSession:
    """The last session under an id, for judging. ``torn``: turns of it are missing here."""

    identity: SessionIdentity
    turns: tuple[HeldTurn, ...]
    closing: Closing
    torn: bool = False

    @property
    def ended_ns(self) -> int:
        """When the last span of its turns ended."""
        return max(turn.ended_ns for turn in self.turns)

    @property
    def traces(self) -> frozenset[str]:
        """Ids of its traces."""
        return frozenset(turn.trace_id.hex() for turn in self.turns)

    def cut(self) -> PastSession:
        """The same session, marked as missing turns."""
        return replace(self, closing=replace(self.closing, completion="pressure"), torn=True)

    def beyond(self, window: Window, limits: SessionLimits, around_ns: int) -> list[Window]:
        """Times outside a window at which spans of further turns may have begun; a trace may take ``around_ns``."""
        quiet_ns = limits.idle_ns + limits.late_ns
        first_ns = min(turn.started_ns for turn in self.turns)
        found = []
        if first_ns - quiet_ns < window.from_ns:
            found.append(Window(from_ns=max(0, first_ns - quiet_ns - around_ns), to_ns=window.from_ns))
        if self.ended_ns + quiet_ns > window.to_ns:
            found.append(Window(from_ns=window.to_ns, to_ns=self.ended_ns + quiet_ns))
        return found


def bucket_of(identity: SessionIdentity) -> bytes:
    """The key under which turns with one session id are kept until they are divided into sessions."""
    return key_of(identity, b"")


def last_session(identity: SessionIdentity, turns: Iterable[HeldTurn], limits: SessionLimits) -> PastSession:
    """The last session of these turns (at least one)."""
    machine = SessionWindows(limits)
    joined: dict[bytes, list[HeldTurn]] = {}
    closings: dict[bytes, Closing] = {}
    at_ns = 0
    for turn in sorted(turns, key=lambda each: (each.ended_ns, each.trace_id)):
        # Look at the end of the pause, not at the next turn: the time in which a turn is late begins there.
        closings |= _by_key(machine.due(min(at_ns + limits.idle_ns, turn.ended_ns)))
        at_ns = turn.ended_ns
        key = machine.join(identity, turn.trace_id, turn.size, at_ns)
        if key is not None:
            joined.setdefault(key, []).append(turn)
        closings |= _by_key(machine.due(at_ns))
    closings |= _by_key(machine.due(at_ns + limits.idle_ns))
    key = next(reversed(joined))
    return PastSession(identity=identity, turns=tuple(joined[key]), closing=closings[key])


def past_sessions(store: Store, limits: SessionLimits, window: Window) -> list[PastSession]:
    """The last session under each id among the held turns, where a turn of it lies in a window; by age."""
    buckets: dict[bytes, SessionIdentity] = {}
    sizes: dict[bytes, int] = {}
    for trace_id, key, service, environment, session_id, _, _, size, _, _ in store.recover_turns():
        buckets[key], sizes[trace_id] = SessionIdentity(service, environment, session_id), size
    found = []
    for key, identity in buckets.items():
        texts = [(bytes.fromhex(text["case"]["trace_id"]), text) for _, text in store.turns(key)]
        turns = [HeldTurn(trace_id, text, sizes.get(trace_id, 0)) for trace_id, text in texts]
        session = last_session(identity, turns, limits)
        if any(window.from_ns <= turn.started_ns < window.to_ns for turn in session.turns):
            found.append(session)
    return sorted(found, key=lambda each: each.ended_ns)


def _by_key(closings: Sequence[Closing]) -> dict[bytes, Closing]:
    return {closing.trace_id: closing for closing in closings}
