"""Archive: reads the store of another process, a monitor that runs or one that has ended.

Only ``replay_dead`` writes: one statement, for which a running monitor waits a moment.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sidejudge.integrations.store.contents import JudgeCallDocument
from sidejudge.scoring.trace.span import JsonRecord
from sidejudge.scoring.verdict.documents import TraceDocument, VerdictDocument

from .connection import add_functions, queries
from .contents import unpacked
from .errors import StoreUnavailable, changed
from .outbox import Dead, dead_rows, replay, unarrived_rows
from .part import as_written


def read_details(path: Path, trace_id: str) -> TraceDocument | None:
    """A trace (32 hex digits) in the store at ``path``: its details and its verdicts, or that it is open.

    ``None`` when it does not know the trace. Raises ``StoreUnavailable`` when there is no readable store.
    """
    wanted, sql = (bytes.fromhex(trace_id),), queries()
    with opened(path, "ro", 2.0) as connection:
        connection.execute(sql["begin"])  # all of one moment
        row = connection.execute(sql["story"], wanted).fetchone()
        verdicts = connection.execute(sql["verdicts_of_trace"], wanted).fetchall()
        link = _fact(connection, "trace_link")
        waiting = len(connection.execute(sql["chunks"], wanted).fetchall()) if row is None else 0
    if row is None:
        return {"trace_id": trace_id, "reason": None, "waiting_chunks": waiting, "verdicts": []} if waiting else None
    found = trace_document(trace_id, row, verdicts)
    if link:
        found["trace_url"] = link["prefix"] + trace_id
    return found


def trace_document(trace_id: str, row: Sequence[Any], verdicts: Iterable[tuple[str]]) -> TraceDocument:
    """The row of a trace and the rows of its verdicts as one object."""
    details, reason, completion, revision, service, closed_ns = row
    known: TraceDocument = json.loads(_of_object(details))
    return {
        **known, "trace_id": trace_id, "service": service, "reason": reason, "completion": completion,
        "revision": revision, "closed_ns": closed_ns,
        "verdicts": [json.loads(_of_object(text)) for (text,) in verdicts],
    }  # fmt: skip


def read_fact(path: Path, name: str) -> JsonRecord | None:
    """A finding that a monitor left in the store at ``path``; None for none. Raises ``StoreUnavailable``."""
    with opened(path, "ro", 2.0) as connection:
        return _fact(connection, name)


def _fact(connection: sqlite3.Connection, name: str) -> JsonRecord | None:
    """The finding of this name in a store of any version."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'facts'").fetchone():
        return None
    rows = connection.execute("SELECT * FROM facts WHERE name = ?", (name,))
    known = as_written((name, value, next(iter(checksum), None)) for name, value, *checksum in rows).get(name)
    return None if known is None else json.loads(_of_object(known))


def finished(row: Sequence[Any]) -> TraceDocument:
    """A row of ``recent_traces`` as one object."""
    trace_id, closed_ns, revision, service, reason, completion, details, verdicts = row
    found = trace_document(trace_id.hex(), (details, reason, completion, revision, service, closed_ns), ())
    return {**found, "verdicts": json.loads(verdicts)}


def _of_object(text: str) -> str:
    """The text, if it is a JSON object. Otherwise bytes of the file have changed: raises ``ValueError``."""
    if text[:1] != "{":
        raise ValueError("no object")
    return text


def stored_verdict(text: str, closed_ns: int) -> VerdictDocument:
    """A verdict as it was written, with when its trace was closed."""
    verdict: VerdictDocument = json.loads(_of_object(text))
    return {**verdict, "closed_ns": closed_ns}


def read_traces(path: Path, *, reason: str | None, service: str | None, limit: int) -> list[TraceDocument]:
    """The traces that ended last, newest first, as ``Store.traces`` has them. Raises ``StoreUnavailable``."""
    wanted = {"reason": reason, "service": service, "since": None, "limit": limit, "after_ns": None, "after_id": None}
    with opened(path, "ro") as connection:
        return [finished(row) for row in connection.execute(queries()["recent_traces"], wanted)]


def read_chunks(path: Path, limit: int) -> Iterator[tuple[bytes, list[bytes]]]:
    """The spans that the store at ``path`` holds of the latest ``limit`` traces. Raises ``StoreUnavailable``."""
    with opened(path, "ro") as connection:
        sql = queries()
        for (trace_id,) in connection.execute(sql["latest_held"], (limit,)).fetchall():
            yield trace_id, [payload for (payload,) in connection.execute(sql["chunks"], (trace_id,))]


def read_verdicts(path: Path, since_ns: int) -> Iterator[VerdictDocument]:
    """The verdicts closed from then on, the oldest first, as they come. Raises ``StoreUnavailable``."""
    with opened(path, "ro") as connection:
        for text, _closed_ns, _cluster, _slices in connection.execute(queries()["verdicts_since"], (since_ns,)):
            yield json.loads(_of_object(text))


def latest_verdict_ns(path: Path) -> int | None:
    """When the latest verdict was closed, ``None`` when there is none. Raises ``StoreUnavailable``."""
    with opened(path, "ro") as connection:
        (latest,) = connection.execute(queries()["latest_verdict"]).fetchone()
    return latest if latest is None else int(latest)


def read_dead(path: Path) -> list[Dead]:
    """The scores that the store at ``path`` has given up, the oldest first. Raises ``StoreUnavailable``."""
    with opened(path, "ro") as connection:
        return dead_rows(connection)


def read_unarrived(path: Path, limit: int = 100) -> list[Dead]:
    """Scores that were taken and are not shown where they were sent, the oldest first. Raises ``StoreUnavailable``."""
    with opened(path, "ro") as connection:
        return unarrived_rows(connection, limit)


def read_held(path: Path) -> tuple[int, int]:
    """How many scores wait for a trace that upstream has not taken, and for how many. Raises ``StoreUnavailable``."""
    with opened(path, "ro") as connection:
        scores, traces = connection.execute(queries()["outbox_held"]).fetchone()
    return int(scores), int(traces)


def replay_dead(path: Path, ids: Sequence[str] | None) -> int:
    """Let scores wait again that were given up (None: all); how many. Raises ``StoreUnavailable``."""
    with opened(path, "rw") as connection, connection:
        return replay(connection, ids)


def read_judge_calls(path: Path, trace_id: str) -> list[JudgeCallDocument]:
    """The calls to judges about a trace (32 hex digits), as far as they are kept. Raises ``StoreUnavailable``."""
    with opened(path, "ro") as connection:
        rows = connection.execute(queries()["judge_calls_of"], (bytes.fromhex(trace_id),)).fetchall()
    return [unpacked(body) for (body,) in rows]


@contextmanager
def opened(path: Path, mode: str, timeout_s: float = 10.0) -> Iterator[sqlite3.Connection]:
    """A connection to a store, closed in the end. Raises ``StoreUnavailable`` where there is none, or it fails."""
    if not path.is_file():
        raise StoreUnavailable(f"store {path}: there is no such file; name the file of store.path")
    try:
        with closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode={mode}", uri=True, timeout=timeout_s)
        ) as connection:
            add_functions(connection)
            yield connection
    except ValueError as error:
        raise changed(path) from error
    except sqlite3.Error as error:
        raise StoreUnavailable(f"store {path}: it cannot be used as a store of sidejudge ({error})") from error
