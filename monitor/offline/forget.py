"""Forget: which traces of a store are to be forgotten: by id, user, session or age."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.otlp.wire.kept import decode_kept
from sidejudge.integrations.store.erasure import HeldTrace
from sidejudge.integrations.store.notification_outbox import ERASURE, Entry
from sidejudge.monitor.config import Config
from sidejudge.monitor.deliver.fleet import FLEET
from sidejudge.monitor.deliver.parquet import PARQUET
from sidejudge.monitor.deliver.sink import ErasureRequest
from sidejudge.monitor.evaluate.stages import user_digest


def histories(config: Config) -> dict[str, str]:
    """The sinks that keep results for long and erase on request, each with its place for people."""
    parquet, fleet = config.sinks.parquet, config.fleet
    found = {} if parquet is None else {PARQUET: parquet.path.partition("?")[0]}
    return found if fleet is None or fleet.archive is None else {**found, FLEET: "the fleet's database"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The traces to forget: every trace that any one of these names. ``before_ns`` is in ns since the epoch."""

    traces: frozenset[bytes] = frozenset()
    users: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()
    before_ns: int | None = None

    def selected(self, held: Iterable[HeldTrace]) -> Iterator[bytes]:
        """The keys of conversations with a trace that it names as a turn, and then the ids of the traces that it names.

        They are erased in this order: if that is interrupted, the traces still lead to the conversations.
        """
        named: dict[str, bytes] = {}
        conversations: dict[bytes, object] = {}
        for trace in held:
            if self._names(trace):
                named[trace.trace_id.hex()] = trace.trace_id
            elif turns := trace.details.get("traces"):
                conversations[trace.trace_id] = turns
        wanted = {*named, *(trace_id.hex() for trace_id in self.traces)}  # a conversation may outlive its turns
        for key, turns in conversations.items():
            if isinstance(turns, list) and not wanted.isdisjoint(turns):
                yield key
        yield from named.values()

    def request(self, found: Iterable[bytes], destination: str) -> Entry:
        """The request that a history, of Parquet or of the fleet, erases the same, older traces than ``found`` too."""
        request = ErasureRequest(
            traces=tuple(sorted({trace.hex() for trace in (*self.traces, *found)})),
            users=tuple(sorted(map(user_digest, self.users))),
            sessions=tuple(sorted(self.sessions)),
            before_ns=self.before_ns,
        )
        body = request.to_json()
        return Entry(
            destination=destination, id=f"{ERASURE}{hashlib.sha256(body.encode()).hexdigest()[:16]}", body=body
        )

    def _names(self, trace: HeldTrace) -> bool:
        if trace.trace_id in self.traces or (self.before_ns is not None and trace.last_ns < self.before_ns):
            return True
        if not self.users and not self.sessions:
            return False
        users, sessions = {trace.details.get("user")}, {trace.details.get("session_id")}
        if trace.user_id is not None:
            users.add(user_digest(trace.user_id))
        if trace.payloads:  # only the spans of an open trace show whose it is
            for raw in decode_kept(trace.payloads).spans:
                span = normalise(raw)
                users.add(None if span.user_id is None else user_digest(span.user_id))
                sessions.add(span.session_id)
        return not users.isdisjoint(map(user_digest, self.users)) or not self.sessions.isdisjoint(sessions)
