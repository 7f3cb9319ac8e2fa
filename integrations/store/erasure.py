"""Erasure: removes for good everything that a store holds of some traces, whether or not a monitor runs.

Deleted pages are overwritten (``secure_delete``) and the log is emptied; the file is written anew if no monitor uses
it. Judges' answers and vectors of texts are keyed by the question, not by the trace, so all of them are deleted.
Price: the same question costs again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .archive import opened
from .connection import Lock
from .errors import StoreUnavailable
from .notification_outbox import ERASURE, Entry, put_entries

SAMPLE: Final = "drift\x1fprompt/"
"""Prefix, in the table of notes, of the prompts kept for the drift watch."""
_PATIENCE_S: Final = 30.0
"""How long a running monitor's own write is waited for."""
_TABLES: Final = ("chunks", "verdicts", "traces", "turns", "referred", "belated", "judge_calls", "contents")
"""Tables keyed by trace. Which traces were read out of Langfuse stays known, else they would be read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTrace:
    """A trace as the store holds it: what is known of it, and its spans as far as they are still there.

    ``last_ns`` is when it was closed, else when its last spans came, in ns since the epoch.
    """

    trace_id: bytes
    details: dict[str, object]
    payloads: tuple[bytes, ...]
    last_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """Removed rows. ``rewritten``: whether the file was made anew, which needs that no monitor uses it."""

    traces: int
    rows: dict[str, int]
    rewritten: bool


def held_traces(path: Path) -> Iterator[HeldTrace]:
    """Every trace that the store holds anything of. Raises ``StoreUnavailable``."""
    with opened(path, "rw", _PATIENCE_S) as connection:
        ids = [row[0] for row in connection.execute("SELECT trace_id FROM traces UNION SELECT trace_id FROM chunks")]
        for trace_id in ids:
            row = connection.execute("SELECT story, closed_ns FROM traces WHERE trace_id = ?", (trace_id,)).fetchone()
            chunks = connection.execute(
                "SELECT payload, received_ns FROM chunks WHERE trace_id = ? ORDER BY seq", (trace_id,)
            ).fetchall()
            yield HeldTrace(
                trace_id=trace_id,
                details=json.loads(row[0]) if row is not None else {},
                payloads=tuple(payload for payload, _ in chunks),
                last_ns=max([received for _, received in chunks] + ([row[1]] if row is not None else [])),
            )
        yield from _sampled(connection, frozenset(ids))


def _sampled(connection: sqlite3.Connection, known: frozenset[bytes]) -> Iterator[HeldTrace]:
    """Traces with nothing left but a prompt in the sample for the drift watch."""
    for (text,) in connection.execute("SELECT value FROM kept WHERE name LIKE ?", (f"{SAMPLE}%",)):
        stated = json.loads(text)
        trace_id = bytes.fromhex(stated.get("trace_id", ""))
        if trace_id and trace_id not in known:
            details = {name: stated.get(name) for name in ("user", "session_id")}
            yield HeldTrace(trace_id=trace_id, details=details, payloads=(), last_ns=stated["taken_ns"])


def erase(
    path: Path, traces: Collection[bytes], *, scores: bool | None, now_ns: int, entries: Sequence[Entry] = ()
) -> Erased:
    """Remove everything that the store holds of these traces.

    Args:
        path: The store's file.
        traces: The trace ids, 16 bytes each; sessions' keys likewise.
        scores: Whether their scores in Langfuse are deleted too; the monitor does that as it delivers. None: what was
            decided when they were erased before stands.
        now_ns: The time, in ns since the epoch.
        entries: What is to be delivered of it, such as a request that a sink erases what it has written.

    Raises:
        StoreUnavailable: There is no such store, or it cannot be written.
    """
    rows: dict[str, int] = {}
    with opened(path, "rw", _PATIENCE_S) as connection:
        connection.isolation_level = None  # VACUUM and the pragmas stand outside of transactions
        connection.execute("PRAGMA secure_delete = ON")
        with connection:  # one transaction: all of it, or nothing
            connection.execute("BEGIN IMMEDIATE")
            for trace_id in traces:
                for table in _TABLES:
                    done = connection.execute(f"DELETE FROM {table} WHERE trace_id = ?", (trace_id,))  # noqa: S608  # names of our own
                    name = table.replace("_", " ")
                    rows[name] = rows.get(name, 0) + done.rowcount
                if scores is not None:
                    rows["scores"] = rows.get("scores", 0) + _scores(connection, trace_id, now_ns, delete_there=scores)
                # Notices name their examples, and so do the notes of what the next digest is to show. A request
                # to erase names traces, too: it stays until it is carried out.
                named = connection.execute(
                    "DELETE FROM mail WHERE instr(body, ?) > 0 AND instr(id, ?) <> 1", (trace_id.hex(), ERASURE)
                )
                rows["notices"] = rows.get("notices", 0) + named.rowcount
                connection.execute("DELETE FROM noted WHERE instr(value, ?) > 0", (trace_id.hex(),))
                connection.execute("DELETE FROM kept WHERE instr(value, ?) > 0", (trace_id.hex(),))
            if traces:
                rows["judge answers"] = connection.execute("DELETE FROM judged").rowcount
                rows["vectors"] = connection.execute("DELETE FROM vectors").rowcount
            put_entries(connection, entries, now_ns)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        rewritten = _rewritten(path, connection)
    return Erased(traces=len(traces), rows={name: count for name, count in rows.items() if count}, rewritten=rewritten)


def _scores(connection: sqlite3.Connection, trace_id: bytes, now_ns: int, *, delete_there: bool) -> int:
    if not delete_there:
        return connection.execute("DELETE FROM outbox WHERE trace_id = ?", (trace_id,)).rowcount
    return connection.execute(
        "UPDATE outbox SET body = NULL, state = 'waiting', version = version + 1, attempts = 0, due_ns = ?, "
        "queued_ns = ? WHERE trace_id = ?",
        (now_ns, now_ns, trace_id),
    ).rowcount


def _rewritten(path: Path, connection: sqlite3.Connection) -> bool:
    try:
        lock = Lock(path)
    except StoreUnavailable:
        return False  # a monitor uses it; what was deleted is overwritten all the same
    try:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        lock.release()
    return True
