"""Recorded traces: files of requests of any size, a trace at a time. What was read is sorted on disk, not in memory."""

from __future__ import annotations

import pickle
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, Final, Literal

from sidejudge.integrations.raw import RawLogRecord, RawSpan

from .recording import RecordedFile, Recording, RecordingError, joined, requests_of

_TABLES: Final = """
CREATE TABLE spans (trace TEXT NOT NULL, start TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE records (trace TEXT NOT NULL, body BLOB NOT NULL);
"""
_INDEXES: Final = "CREATE INDEX spans_of ON spans (trace, start); CREATE INDEX records_of ON records (trace)"
_TRACES: Final = "SELECT trace FROM spans GROUP BY trace ORDER BY min(start), trace"


def recorded_traces(files: Iterable[RecordedFile]) -> Iterator[tuple[RawSpan, ...]]:
    """The spans of each trace that the files hold, with contents from log records, in order of the first spans.

    They are those of ``read_files``; one request and one trace are in memory at a time.

    Raises:
        RecordingError: Files cannot be read: with every one of them, before the first trace. Or the disk is full.
    """
    with closing(sqlite3.connect("")) as held:  # on disk where it is large, and deleted when it is closed
        try:
            held.executescript(_TABLES)
            for request in requests_of(files):
                _keep(held, request)
            held.executescript(_INDEXES)
            for (trace,) in held.execute(_TRACES):
                yield joined(_kept(held, "spans", trace), _kept(held, "records", trace))
        except sqlite3.OperationalError as error:
            raise RecordingError([f"spans cannot be sorted on disk: {error}; name a larger folder in TMPDIR"]) from None


def _keep(held: sqlite3.Connection, request: Recording) -> None:
    spans: defaultdict[str, list[RawSpan]] = defaultdict(list)
    for span in request.spans:
        spans[span.trace_id].append(span)
    records: defaultdict[str, list[RawLogRecord]] = defaultdict(list)
    for record in request.logs:
        if record.trace_id is not None:
            records[record.trace_id].append(record)
    held.executemany(
        "INSERT INTO spans VALUES (?, ?, ?)",
        # Times are integers of any size in JSON, larger than the database's.
        ((trace, f"{min(span.start_ns for span in of):025}", pickle.dumps(of)) for trace, of in spans.items()),
    )
    held.executemany("INSERT INTO records VALUES (?, ?)", ((trace, pickle.dumps(of)) for trace, of in records.items()))


def _kept(held: sqlite3.Connection, table: Literal["spans", "records"], trace: str) -> Iterator[Any]:
    for (body,) in held.execute(f"SELECT body FROM {table} WHERE trace = ? ORDER BY rowid", (trace,)):  # noqa: S608  # one of two names
        yield from pickle.loads(body)  # noqa: S301  # this process wrote it
