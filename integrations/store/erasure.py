"""Erasure: removes for good everything that a store holds of some traces, whether or not a monitor runs.

Deleted pages are overwritten (``secure_delete``) and the log is emptied; the file is written anew if no monitor uses
it. Judges' answers and vectors of texts are keyed by the question, not by the trace, so all of them are deleted.
Price: the same question costs again.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from .archive import opened
from .connection import Lock, queries
from .errors import StoreUnavailable
from .notification_outbox import ERASURE, Entry, put_entries
from .outbox import SETTLES_NS

SAMPLE: Final = "drift\x1fprompt/"
"""Prefix, in the table of notes, of the prompts kept for the drift watch."""
_PATIENCE_S: Final = 30.0
"""How long a running monitor's own write is waited for."""
_TABLES: Final = ("chunks", "verdicts", "traces", "turns", "referred", "belated", "judge_calls", "contents", "whose")
"""Tables keyed by trace. Which traces were read out of Langfuse stays known, else they would be read again."""
_AT_ONCE: Final = 100
"""Traces that share a transaction. A running monitor writes between two: it refuses spans after 9 s without."""
_IDS: Final = re.compile("[0-9a-f]{32,}")
_FEW: Final = 20
"""Up to this many traces a text is searched for each of them, a hundred times faster than finding all ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTrace:
    """A trace as the store holds it: its details, and its spans if they are still there.

    ``user_id`` is the user of a turn. ``last_ns`` is when it was closed, else when its last spans came, in ns since the
    epoch.
    """

    trace_id: bytes
    details: dict[str, object]
    payloads: tuple[bytes, ...]
    last_ns: int
    user_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """Removed rows. ``rewritten``: whether the file was made anew, which needs that no monitor uses it."""

    traces: int
    rows: dict[str, int]
    rewritten: bool


def held_traces(path: Path) -> Iterator[HeldTrace]:
    """Every trace with anything left in the store. Raises ``StoreUnavailable``."""
    sql = queries()
    with opened(path, "rw", _PATIENCE_S) as connection:
        connection.execute(sql["whose_table"])
        ids = [row[0] for row in connection.execute(sql["held_ids"])]
        for trace_id in ids:
            details, user_id, last_ns = connection.execute(sql["held_as"], {"trace_id": trace_id}).fetchone()
            yield HeldTrace(
                trace_id=trace_id,
                details=json.loads(details or "{}"),
                payloads=tuple(payload for (payload,) in connection.execute(sql["chunks"], (trace_id,)).fetchall()),
                last_ns=last_ns,
                user_id=user_id,
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
        entries: What is to be delivered because of it, such as requests to sinks to erase what they wrote.

    Raises:
        StoreUnavailable: There is no such store, or it cannot be written.
    """
    rows: Counter[str] = Counter()
    order = list(traces)
    with opened(path, "rw", _PATIENCE_S) as connection:
        connection.isolation_level = None  # VACUUM and the pragmas stand outside of transactions
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(queries()["whose_table"])
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # a byte may have changed
        mail = _Mail(connection, {trace_id.hex() for trace_id in order})
        for begin in range(0, max(1, len(order)), _AT_ONCE):
            some, since_s = order[begin : begin + _AT_ONCE], time.monotonic()
            last = begin + _AT_ONCE >= len(order)
            with connection:  # one transaction: all of these, or nothing
                connection.execute("BEGIN IMMEDIATE")
                for trace_id in some:
                    for table in _TABLES:
                        done = connection.execute(f"DELETE FROM {table} WHERE trace_id = ?", (trace_id,))  # noqa: S608  # names of our own
                        rows[table.replace("_", " ")] += done.rowcount
                    if scores is not None:
                        rows["scores"] += _scores(connection, trace_id, now_ns, delete_there=scores)
                rows["notices"] += mail.erase(some)
                if begin == 0 or last:
                    mail.erase_notes()
                if some:
                    rows["judge answers"] += connection.execute("DELETE FROM judged").rowcount
                    rows["vectors"] += connection.execute("DELETE FROM vectors").rowcount
                # With the first, so that a kill loses no request; with the last, behind what came meanwhile.
                if begin == 0 or last:
                    put_entries(connection, entries, now_ns)
            if not last:
                time.sleep(time.monotonic() - since_s)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        rewritten = _rewritten(path, connection)
    return Erased(traces=len(order), rows={name: count for name, count in rows.items() if count}, rewritten=rewritten)


class _Mail:
    """Texts that name traces: notices, their examples, waiting results, and notes.

    What waits is read once, before anything is locked. A request to erase names traces too: it stays until it is
    carried out.
    """

    def __init__(self, connection: sqlite3.Connection, wanted: set[str]) -> None:
        self._connection, self._wanted = connection, wanted
        self._read, self._of = 0, defaultdict[str, list[int]](list)
        self._read_on()

    def erase(self, traces: Collection[bytes]) -> int:
        """Delete what names one of these, in the caller's transaction; how many were notices or results.

        Of a notice only what illustrates it goes: its alert, or its report, is of others too.
        """
        self._read_on()
        ids = {trace_id.hex() for trace_id in traces}
        about = {seq for each in ids for seq in self._of[each]}
        for seq in about:
            row = self._connection.execute("SELECT body FROM mail WHERE seq = ?", (seq,)).fetchone()
            left = None if row is None else _without(row[0], ids)
            if left is None:
                self._connection.execute("DELETE FROM mail WHERE seq = ?", (seq,))
            else:
                self._connection.execute("UPDATE mail SET body = ? WHERE seq = ?", (left, seq))
        return len(about)

    def erase_notes(self) -> None:
        """Delete the notes that name any of the traces, in the caller's transaction.

        They are some MB where there are many services, so not again for each hundred traces: with the first, and with
        the last, for a running monitor writes on.
        """
        for table in ("noted", "kept"):
            rows = self._connection.execute(f"SELECT name, value FROM {table}")  # noqa: S608  # names of our own
            named = [(name,) for name, value in rows if self._named(value)]
            self._connection.executemany(f"DELETE FROM {table} WHERE name = ?", named)  # noqa: S608  # names of our own

    def _read_on(self) -> None:
        """What has come since the last look."""
        later = "SELECT seq, body FROM mail WHERE seq > ? AND instr(id, ?) <> 1 ORDER BY seq"
        for seq, body in self._connection.execute(later, (self._read, ERASURE)):
            self._read = seq
            for trace_id in self._named(body):
                self._of[trace_id].append(seq)

    def _named(self, text: str) -> set[str]:
        if len(self._wanted) <= _FEW:
            return {each for each in self._wanted if each in text}
        return self._wanted.intersection(run[at : at + 32] for run in _IDS.findall(text) for at in range(len(run) - 31))


def _without(body: str, ids: Collection[str]) -> str | None:
    """A notice without these traces as examples and without their failures; None if the body is not a notice."""
    try:
        stated = json.loads(body)
        for event in stated["events"]:
            if any(each in json.dumps(event) for each in ids):
                event |= {"examples": [], "failure": None, "explained": None}
        for line in (stated["report"] or {}).get("failures", ()):
            line["examples"] = [each for each in line["examples"] if each not in ids]
        left = json.dumps(stated)
    except (ValueError, LookupError, TypeError, AttributeError):  # a result; or a byte may have changed
        return None
    return None if any(each in left for each in ids) else left  # of a part of the traffic that is named after a trace


def _scores(connection: sqlite3.Connection, trace_id: bytes, now_ns: int, *, delete_there: bool) -> int:
    """Forget scores, waiting or written, and return how many. A deletion already ordered there still happens."""
    row, count = {"trace_id": trace_id, "now": now_ns, "settled": now_ns + SETTLES_NS}, 0
    for name in ("outbox_forget", "outbox_delete")[delete_there:]:
        count += connection.execute(queries()[name], row).rowcount
    return count


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
