"""Read recorded requests: the files of one delivery, in any order, protobuf or JSON, traces and logs recognised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from integrations.contents_in_logs import join
from integrations.raw import RawLogRecord, RawSpan
from scoring.errors import SidejudgeError

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


def read_files(paths: Iterable[Path]) -> Recording:
    """Read all files as one delivery; their order changes nothing. Raises ``RecordingError`` with every bad file."""
    parts: list[Recording] = []
    problems: list[str] = []
    compressed = False
    for path in paths:
        payload = b""
        try:
            payload = path.read_bytes()
            parts.append(read_payload(payload))
        except OSError as error:
            problems.append(f"{path}: {error.strerror or error}")
        except UndecodableError as error:
            packed = payload.startswith(_GZIP)
            compressed = compressed or packed
            problems.append(f"{path}: {_why(path, payload, error) if not packed else 'is compressed with gzip'}")
    if problems:
        raise RecordingError(problems, compressed=compressed)
    logs = tuple(sorted((record for part in parts for record in part.logs), key=lambda r: (r.time_ns, repr(r))))
    return Recording(
        spans=tuple(join(_in_order(span for part in parts for span in part.spans), logs)),
        skipped=sum(part.skipped for part in parts),
        logs=logs,
    )


def _why(path: Path, payload: bytes, error: UndecodableError) -> str:
    """Word what is wrong with a file: one that is named as JSON is not called protobuf."""
    if path.suffix.lower() in (".json", ".jsonl") and payload.lstrip()[:1] != b"{":
        return "is not JSON with an OTLP export request, nor is it protobuf"
    return str(error)


def read_payload(payload: bytes) -> Recording:
    """Read one request, or JSON requests a line each (as a Collector's file exporter writes them)."""
    start = payload.lstrip()[:1]
    if start != b"{":
        return _protobuf(payload)
    try:
        return _json(payload)
    except UndecodableError as whole:
        try:
            parts = [_json(line) for line in payload.splitlines() if line.strip()]
        except UndecodableError:
            raise whole from None
    return Recording(
        spans=tuple(span for part in parts for span in part.spans),
        skipped=sum(part.skipped for part in parts),
        logs=tuple(record for part in parts for record in part.logs),
    )


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
