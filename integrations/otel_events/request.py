"""Request: spans or events as the body of an OTLP request, and the result in its answer."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import DecodeError, Message
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from sidejudge.scoring.lexical.shown_text import label

HEADERS: Final[Mapping[str, str]] = {"content-type": "application/x-protobuf", "content-encoding": "gzip"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Traces or logs: the path below an endpoint, how items are written and how many of them an answer refuses."""

    name: str
    path: str
    _encode: Callable[[Sequence[Any]], Message]  # spans or log records, as the signal has it
    _answer: Callable[[], ExportTraceServiceResponse | ExportLogsServiceResponse]
    _rejected: str

    def body(self, items: Sequence[object]) -> bytes:
        """The items as one request, compressed."""
        return gzip.compress(self._encode(items).SerializeToString(), compresslevel=5)

    def rejected(self, answer: bytes) -> tuple[int, str]:
        """How many of the items a 2xx refuses for good, and why; an answer that cannot be read refuses none."""
        read = self._answer()
        try:
            read.ParseFromString(answer)
        except DecodeError:  # some servers answer in words
            return 0, ""
        stated = read.partial_success
        return max(0, getattr(stated, self._rejected)), label(stated.error_message, 200)


TRACES: Final = Signal(
    name="traces", path="/v1/traces", _encode=encode_spans, _answer=ExportTraceServiceResponse,
    _rejected="rejected_spans",
)  # fmt: skip
LOGS: Final = Signal(
    name="logs", path="/v1/logs", _encode=encode_logs, _answer=ExportLogsServiceResponse,
    _rejected="rejected_log_records",
)  # fmt: skip
