"""Recorded OTLP requests, read from files: protobuf or JSON, traces or logs, in any order.

``recorded_traces`` reads files of any size: it sorts the spans on disk, and gives one trace at a time.
"""

from __future__ import annotations

import pickle
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from sidejudge.integrations.contents_in_logs import join
from sidejudge.integrations.raw import RawLogRecord, RawSpan
from sidejudge.scoring.errors import SidejudgeError

from .decode import Decoded, UndecodableError, decode, decode_logs
from .decode_json import decode_json, decode_logs_json, load_object

_GZIP = b"\x1f\x8b"


class RecordingError(SidejudgeError, ValueError):
    """Files that cannot be read as recorded requests; ``problems`` has a line for each bad file.

    ``compressed``: some of them only need to be unpacked.
    """

    def __init__(self, problems: list[str], *, compressed: bool = False) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        self.compressed = compressed


@dataclass(frozen=True, slots=True)
class Recording:
    """The contents of the files. ``skipped`` counts spans without valid ids.

    ``logs`` are the records as they were sent; in the recording of all files their contents are on the spans too.
    """

    spans: tuple[RawSpan, ...]
    skipped: int = 0
    logs: tuple[RawLogRecord, ...] = ()

    @property
    def strays(self) -> int:
        """Events among the log records that belong to none of the spans, so that their contents are not seen."""
        known = {(span.trace_id, span.span_id) for span in self.spans}
        return sum(1 for record in self.logs if record.event and (record.trace_id, record.span_id) not in known)


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """A file of one request, or of JSON requests a line each (as a Collector's file exporter writes them)."""

    name: str
    open: Callable[[], BinaryIO]

    @classmethod
    def at(cls, path: Path) -> RecordedFile:
        """The file at a path."""
        return cls(str(path), lambda: path.open("rb"))


def read_files(paths: Iterable[Path]) -> Recording:
    """Read all files as one delivery; their order changes nothing. Raises ``RecordingError`` with every bad file."""
    parts = list(requests_of(RecordedFile.at(path) for path in paths))
    logs = [record for part in parts for record in part.logs]
    return Recording(
        spans=joined((span for part in parts for span in part.spans), logs),
        skipped=sum(part.skipped for part in parts),
        logs=_in_order_of_time(logs),
    )


def requests_of(files: Iterable[RecordedFile]) -> Iterator[Recording]:
    """The requests of all files, one at a time. Raises ``RecordingError`` with every bad file, at the end."""
    problems: list[str] = []
    compressed = False
    for each in files:
        first = b""
        try:
            with each.open() as file:
                first = _first_line(file)
                yield from _requests(first, file)
        except OSError as error:
            problems.append(f"{each.name}: {error.strerror or error}")
        except UndecodableError as error:
            packed = first.startswith(_GZIP)
            compressed = compressed or packed
            problems.append(
                f"{each.name}: {_why(each.name, first, error) if not packed else 'is compressed with gzip'}"
            )
    if problems:
        raise RecordingError(problems, compressed=compressed)


def joined(spans: Iterable[RawSpan], logs: Iterable[RawLogRecord]) -> tuple[RawSpan, ...]:
    """Spans in order of their start, with their contents from log records, for any order of arrival."""
    return tuple(join(_in_order(spans), _in_order_of_time(logs)))


def _first_line(file: BinaryIO) -> bytes:
    """The file up to the end of its first line that is not blank: a request in protobuf begins with a line's end."""
    first = b""
    while not first.strip() and (line := file.readline()):
        first += line
    return first


def _requests(first: bytes, file: BinaryIO) -> Iterator[Recording]:
    """The requests of a file whose first line was read."""
    if not first.lstrip().startswith(b"{"):
        yield _protobuf(first + file.read())
        return
    try:
        yield _json(first)
    except UndecodableError:
        yield _whole(first + file.read())
    for number, line in enumerate(file, first.count(b"\n") + 1):
        if line.strip():
            try:
                yield _json(line)
            except UndecodableError as error:
                raise UndecodableError(f"line {number}: {error}") from None


def _whole(payload: bytes) -> Recording:
    """One request over several lines. In protobuf, a length of 123 looks like the brace that JSON begins with."""
    try:
        return _json(payload)
    except UndecodableError:
        if not payload.startswith(b"\n"):
            raise
        return _protobuf(payload)


def _why(name: str, first: bytes, error: UndecodableError) -> str:
    """The message on a faulty file: one that is named as JSON is not called protobuf."""
    if Path(name).suffix.lower() in (".json", ".jsonl") and first.lstrip()[:1] != b"{":
        return "is not JSON with an OTLP export request, nor is it protobuf"
    return str(error)


def _protobuf(payload: bytes) -> Recording:
    """Read a trace or a log request. They differ only in their records: field 1 of a span is an id, of a log a time."""
    try:
        found = decode(payload)
    except UndecodableError:
        if logs := _logs(payload):
            return Recording((), logs=logs)
        raise
    if not found.spans and found.skipped and (logs := _logs(payload)):
        return Recording((), logs=logs)
    return _recording(found)


def _logs(payload: bytes) -> tuple[RawLogRecord, ...]:
    try:
        return tuple(record for record in decode_logs(payload) if record.time_ns)
    except UndecodableError:
        return ()


def _json(payload: bytes) -> Recording:
    if "resourceLogs" in load_object(payload):
        return Recording((), logs=tuple(decode_logs_json(payload)))
    return _recording(decode_json(payload))


def _recording(found: Decoded) -> Recording:
    return Recording(tuple(found.spans), found.skipped)


def _in_order(spans: Iterable[RawSpan]) -> tuple[RawSpan, ...]:
    """Sort by start; spans with the same id by their contents, so that the last does not depend on the files' order."""
    ordered = sorted(spans, key=lambda span: (span.start_ns, span.trace_id, span.span_id))
    if len({(span.trace_id, span.span_id) for span in ordered}) == len(ordered):
        return tuple(ordered)
    return tuple(sorted(ordered, key=lambda span: (span.start_ns, span.trace_id, span.span_id, repr(span))))


def _in_order_of_time(logs: Iterable[RawLogRecord]) -> tuple[RawLogRecord, ...]:
    return tuple(sorted(logs, key=lambda record: (record.time_ns, repr(record))))


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
    # On disk where it is large, and deleted when it is closed. Who iterates may do so in one thread after another.
    with closing(sqlite3.connect("", check_same_thread=False)) as held:
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
