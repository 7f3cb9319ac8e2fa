"""Records that the store takes and returns, and the statements that write a trace's end."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from sidejudge.scoring.trace.record import record

from .errors import SpansErased
from .notification_outbox import Entry, put_entries
from .outbox import ScoreRow, replace_scores


class _Origin(Protocol):
    @property
    def service(self) -> str | None: ...
    @property
    def environment(self) -> str | None: ...
    @property
    def threshold(self) -> int: ...


class Storable(Protocol):
    """A trace's part of a request: what the store needs to know of a chunk."""

    @property
    def trace_id(self) -> bytes: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def origin(self) -> _Origin: ...


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk found at start. ``done``: it was evaluated. ``revision`` and ``closed_ns``: its trace's last, or None."""

    trace_id: bytes
    received_ns: int
    done: bool
    service: str | None
    environment: str | None
    threshold: int
    revision: int | None
    closed_ns: int | None
    payload: bytes


@record(frozen=True, slots=True, kw_only=True)
class FinishedTrace:
    """The end of a trace. ``trace_id`` is 16 bytes or their hex; ``closed_ns`` ns since the epoch, when it was closed.

    ``verdicts`` are verdicts as JSON objects. ``chunks`` is how many chunks were evaluated (as many as ``Store.chunks``
    returned): one that was committed since stays open. None: all there are. Of a session ``trace_id`` is the key, and
    ``chunks`` the number of the last turn that was judged. ``goes_on`` is the key of the trace's session where that
    takes no more turns. ``scores`` are all that are to be written back of it; None where scores are not. ``entries``
    are what else is to be delivered of it. ``referred`` is
    what it was held against: 16 bytes for each key that a reference was
    looked for under, and 16 for what was found there, or None. ``written_ns`` is when a revision was reached that keeps
    the place in time of what it revises (``closed_ns``); None: they are the same. ``keep_contents``: its spans are
    to be kept longer than its chunks (``Store.contents``).
    """

    trace_id: bytes | str
    service: str | None
    reason: str
    completion: str
    revision: int
    details: Mapping[str, object]
    verdicts: Sequence[Mapping[str, object]] = field(default_factory=tuple)
    closed_ns: int
    chunks: int | None = None
    scores: Sequence[ScoreRow] | None = None
    turn: StoredTurn | None = None
    goes_on: bytes | None = None
    entries: Sequence[Entry] = ()
    referred: Sequence[tuple[bytes, bytes | None]] = ()
    written_ns: int | None = None
    keep_contents: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """A trace as a turn of a session, written when the trace ends. ``turn`` is JSON; ``key`` names the session."""

    key: bytes
    service: str | None
    environment: str | None
    session_id: str
    turn: str


def id_bytes(trace_id: bytes | str) -> bytes:
    """The 16 bytes of an id that may come as hex digits."""
    return bytes.fromhex(trace_id) if isinstance(trace_id, str) else trace_id


def writable(text: str | None) -> str | None:
    """A text that SQLite takes: half a surrogate pair, which JSON may have carried, has no UTF-8."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()


def json_text(value: Mapping[str, object]) -> str:
    """An object as compact JSON."""
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:
        # ASCII: a lone surrogate, which JSON may hold and UTF-8 may not, stays an escape sequence.
        return json.dumps(value, separators=(",", ":"), default=str)


def finish(sql: Mapping[str, str], finished: FinishedTrace, connection: sqlite3.Connection) -> None:
    """Write a trace's end: its details, verdicts, turn, scores and deliveries, in one transaction.

    Runs in the writing thread, where nobody waits for the JSON either. Raises ``SpansErased`` for a trace that was
    forgotten meanwhile.
    """
    trace_id = id_bytes(finished.trace_id)
    whole = {"trace_id": trace_id, "chunks": -1 if finished.chunks is None else finished.chunks}
    held, last_chunk, before = connection.execute(sql["held_status"], whole).fetchone()
    # A session has turns instead. Where an earlier end stands, the spans were kept long enough, and are not forgotten.
    if last_chunk is None and before is None:
        if finished.chunks and not _holds_turns(sql, trace_id, finished.details.get("traces"), connection):
            raise SpansErased(f"the spans of {trace_id.hex()} were erased while it was judged")
        connection.execute(sql["mark_turns_done"], {**whole, "closed_ns": finished.closed_ns})
    _write_turn(sql, finished, connection)
    if held is not None and held > finished.revision:
        connection.execute(sql["mark_done"], {"trace_id": trace_id, "last_chunk": last_chunk})
        return
    row = (trace_id, finished.closed_ns, finished.revision, finished.service, str(finished.reason),
           finished.completion, json_text(finished.details), last_chunk)  # fmt: skip
    connection.execute(sql["finish_trace"], row)
    if held is not None:
        connection.execute(sql["forget_verdicts"], (trace_id,))
        connection.execute(sql["referred_drop"], (trace_id,))
    if finished.keep_contents:
        connection.execute(sql["contents_wanted"], (trace_id, finished.closed_ns, finished.revision))
    elif held is not None:
        connection.execute(sql["contents_unwanted"], (trace_id,))
    if finished.referred:
        referred = [(key, trace_id, finished.closed_ns, digest) for key, digest in finished.referred]
        connection.executemany(sql["referred_put"], referred)
    verdicts = [
        {"trace_id": trace_id, "rubric": v["rubric"], "closed_ns": finished.closed_ns, "service": v.get("service"),
         "environment": v.get("environment"), "passed": v.get("passed"), "verdict": json_text(v),
         "probability": v.get("sampling_probability"), "version": v.get("rubric_version")}
        for v in finished.verdicts
    ]  # fmt: skip
    connection.executemany(sql["add_verdict"], verdicts)
    if finished.scores is not None:
        written_ns = finished.closed_ns if finished.written_ns is None else finished.written_ns
        replace_scores(connection, trace_id, finished.scores, written_ns)
    if held is None or held < finished.revision:  # written again, it was delivered or still waits
        put_entries(connection, finished.entries, finished.closed_ns)


def _holds_turns(sql: Mapping[str, str], key: bytes, traces: object, connection: sqlite3.Connection) -> bool:
    """Whether all turns that a session was judged with are there, changed or not; what is no session has none."""
    ids = [id_bytes(each) for each in traces if each] if isinstance(traces, list) else []
    return all(connection.execute(sql["holds_turn"], {"of": each}).fetchone() for each in ids or [key])


def _write_turn(sql: Mapping[str, str], finished: FinishedTrace, connection: sqlite3.Connection) -> None:
    if (turn := finished.turn) is not None:
        named = map(writable, (turn.service, turn.environment, turn.session_id))
        row = (id_bytes(finished.trace_id), turn.key, *named, finished.closed_ns, turn.turn)
        connection.execute(sql["put_turn"], row)
    elif finished.goes_on is not None:
        connection.execute(sql["go_on_with_turns"], {"session_key": finished.goes_on, "now": finished.closed_ns})
