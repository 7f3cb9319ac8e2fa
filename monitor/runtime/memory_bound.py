"""How much memory the monitor takes at most: a function of the configuration, part by part.

The sizes of single things were measured with CPython 3.11 and are rounded up. What is not in it is what is bounded by
numbers of services and rubrics (windows, labels), and models that run in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from sidejudge.integrations.otlp.server.grpc_receiver import MESSAGES
from sidejudge.integrations.otlp.wire.bounds import PARSED_BYTES
from sidejudge.integrations.otlp.wire.request import COPIED
from sidejudge.monitor.config import Config
from sidejudge.monitor.deliver.kept_contents import MEMORY as CONTENTS
from sidejudge.monitor.evaluate.judge_queue import DECODED_BYTES
from sidejudge.monitor.ingest.assembler import LATE_TRACES
from sidejudge.monitor.ingest.intake import MAX_WAITING_BYTES
from sidejudge.scoring.lexical.memory import MOST
from sidejudge.scoring.metrics.run_offered_tools import REMEMBERED

from .builders import max_open_spans

_PROCESS: Final = 100 << 20
"""The interpreter with everything that is imported and started."""
_OPEN_TRACE: Final = 1_000
_CLOSED_TRACE: Final = 830
_CLOSING: Final = 400
_SPAN_ID: Final = 120
_PACKED_SPAN_ID: Final = 8
_REMEMBERED_IDS: Final = 30 << 20
"""Ids of traces that were sampled out, excluded or let go: three memories of 100,000 at most."""
_CHARACTERS: Final = 4 * MOST * 200
"""Four tables of single characters (`CodePoints`): 140 bytes an entry."""
_DEFINITION: Final = 30
"""Bytes for each character of a tool's definition that is remembered, with its schema compiled."""
_BODIES: Final = 2
"""Bodies of the largest size that are in memory at once."""
_COPIES: Final = 5
"""Copies of its bytes that splitting a request makes: as text, as its spans, as their chunks, and parsed."""


class MemoryPart(NamedTuple):
    """One part of the memory: its use, its limit in bytes, and the configuration keys that set it."""

    name: str
    max_bytes: int
    keys: str = ""


def memory_bound(config: Config) -> Iterator[MemoryPart]:
    """The parts of the memory that the monitor takes at most under this configuration."""
    assembly, judge = config.assembly, config.evaluators.judge
    spans = max_open_spans(assembly)
    request = config.sources.otlp.max_request_bytes
    yield MemoryPart("the process itself", _PROCESS)
    yield MemoryPart("remembered trace ids", _REMEMBERED_IDS)
    yield MemoryPart("tables of characters, definitions of tools", _CHARACTERS + REMEMBERED * _DEFINITION)
    yield MemoryPart(
        "open and lately closed traces",
        assembly.max_open_traces * (_OPEN_TRACE + LATE_TRACES * _CLOSED_TRACE)
        + (assembly.max_waiting_traces + assembly.max_open_traces) * _CLOSING,
        "assembly.max_open_traces, assembly.max_waiting_traces",
    )
    yield MemoryPart("their span ids", spans * (_SPAN_ID + LATE_TRACES * _PACKED_SPAN_ID), "assembly.max_open_bytes")
    yield MemoryPart(
        "requests being read", (_BODIES + _COPIES) * request + PARSED_BYTES, "sources.otlp.max_request_bytes"
    )
    if config.sources.otlp.grpc is not None:
        yield MemoryPart("gRPC messages on their way", MESSAGES * request, "sources.otlp.max_request_bytes")
    yield MemoryPart(
        "spans on their way to the store", MAX_WAITING_BYTES + request + COPIED, "sources.otlp.max_request_bytes"
    )
    batch = max(DECODED_BYTES, assembly.max_trace_bytes)
    yield MemoryPart("traces being evaluated", batch, "assembly.max_trace_bytes")
    if config.contents_kept_for is not None:
        yield MemoryPart("contents being kept", CONTENTS, "store.keep_contents")
    if judge is not None:
        yield MemoryPart("traces waiting for the judge's answers", batch, "assembly.max_trace_bytes")
