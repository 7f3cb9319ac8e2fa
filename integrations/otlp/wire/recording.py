"""Read recorded requests: the files of one delivery, in any order, protobuf or JSON, traces and logs recognised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sidejudge.integrations.contents_in_logs import join
from sidejudge.integrations.raw import RawLogRecord, RawSpan
from sidejudge.scoring.errors import SidejudgeError

from .decode import Decoded, UndecodableError, decode
from .decode_json import decode_json, load_object
from .decode_logs import decode_logs, decode_logs_json

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
    """Spans in order of their start, with their contents from log records, whatever order both came in."""
    return tuple(join(_in_order(spans), _in_order_of_time(logs)))


def _first_line(file: BinaryIO) -> bytes:
    """The file up to the end of its first line that is not blank: a request in protobuf begins with a line's end."""
    first = b""
    while not first.strip() and (line := file.readline()):
        first += line
    return first


def _requests(first: bytes, file: BinaryIO) -> Iterator[Recording]:
    """The requests of a file of which this was read."""
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
    """Word what is wrong with a file: one that is named as JSON is not called protobuf."""
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
