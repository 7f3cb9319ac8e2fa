"""The estimate is never below what judging a trace takes, whatever shape the trace has."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sidejudge.integrations.otlp.wire.chunk import decoded_size

ROOT = Path(__file__).parents[4]
MEASURE = """
import os, sys
from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.otlp.wire.kept import decode_kept
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.trace import Trace
def peak():  # of this process alone: ru_maxrss begins with that of the process that started it
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
normalise(decode_kept([open(sys.argv[1], "rb").read()]).spans[0])
for line in sys.stdin:  # each in a fork: it begins with what is imported, and with no memory that another has freed
    if not os.fork():
        payload = open(line.strip(), "rb").read()
        before = peak()
        spans = [normalise(raw) for raw in decode_kept([payload]).spans]
        extract(Trace.of("01" * 16, spans, "idle"), reference_keys=())
        print((peak() - before) * 1024, flush=True)
        os._exit(0)
    os.wait()
"""
MESSAGE = {"role": "user", "parts": [{"type": "text", "content": "a"}]}


def with_text(key: str, text: str) -> ExportTraceServiceRequest:
    request = one_span()
    spans = request.resource_spans[0].scope_spans[0].spans
    spans[0].attributes.add(key="gen_ai.operation.name").value.string_value = "chat"
    spans[0].attributes.add(key=key).value.string_value = text
    return request


def one_span() -> ExportTraceServiceRequest:
    return many_spans(1)


def many_spans(count: int) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for n in range(count):
        scope.spans.add(trace_id=b"\1" * 16, span_id=(n + 1).to_bytes(8, "big"))
    return request


def empty_attributes(count: int) -> ExportTraceServiceRequest:
    request = one_span()
    for _ in range(count):
        request.resource_spans[0].scope_spans[0].spans[0].attributes.add()
    return request


def empty_events(count: int) -> ExportTraceServiceRequest:
    request = one_span()
    for _ in range(count):
        request.resource_spans[0].scope_spans[0].spans[0].events.add()
    return request


def empty_values(count: int) -> ExportTraceServiceRequest:
    request = one_span()
    value = request.resource_spans[0].scope_spans[0].spans[0].attributes.add(key="input.value").value
    for _ in range(count):
        value.array_value.values.add().kvlist_value.SetInParent()
    return request


def mixture(count: int) -> ExportTraceServiceRequest:
    """Anything in anything, by a fixed seed."""
    draw, request = random.Random(7), many_spans(count // 40)
    for span in request.resource_spans[0].scope_spans[0].spans:
        for _ in range(draw.randrange(40)):
            value = draw.choice([span, span.events.add()]).attributes.add(key=draw.choice("abc") * 3).value
            for _ in range(draw.randrange(3)):
                inner = value.array_value.values.add()
                inner.string_value = json.dumps([{}] * draw.randrange(9))
    return request


SHAPES = {
    "spans without anything": lambda: many_spans(40_000),
    "empty attributes": lambda: empty_attributes(80_000),
    "empty events": lambda: empty_events(80_000),
    "empty values": lambda: empty_values(200_000),
    "JSON of empty lists": lambda: with_text("gen_ai.input.messages", json.dumps([[]] * 200_000)),
    "JSON of empty maps": lambda: with_text("gen_ai.input.messages", json.dumps([{}] * 200_000)),
    "JSON of messages": lambda: with_text("gen_ai.input.messages", json.dumps([MESSAGE] * 30_000)),
    "JSON of messages that the fast reader refuses": lambda: with_text(
        "gen_ai.input.messages", json.dumps([MESSAGE] * 15_000 + [float("nan")])
    ),
    "JSON of messages by shape": lambda: with_text("app.request", json.dumps([MESSAGE] * 30_000)),
    "JSON of keys": lambda: with_text("gen_ai.input.messages", json.dumps({str(n): {} for n in range(100_000)})),
    "JSON of numbers": lambda: with_text("gen_ai.input.messages", json.dumps(list(range(300_000)))),
    "plain text": lambda: with_text("gen_ai.prompt", "word " * 2_000_000),
    "a mixture": lambda: mixture(60_000),
}


@pytest.fixture(scope="module")
def measure(tmp_path_factory):
    """The memory that judging a payload takes, the first span of a process aside."""
    folder = tmp_path_factory.mktemp("payloads")
    (folder / "small").write_bytes(with_text("gen_ai.input.messages", json.dumps([MESSAGE])).SerializeToString())
    command = [sys.executable, "-c", MEASURE, str(folder / "small")]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def measured(payload: bytes) -> int:
            (folder / "payload").write_bytes(payload)
            process.stdin.write(f"{folder / 'payload'}\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield measured


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("shape", SHAPES)
def test_judging_takes_no_more_memory_than_is_estimated(shape, measure):
    payload = SHAPES[shape]().SerializeToString()
    reported = measure(payload)
    assert reported <= decoded_size(payload) + (4 << 20)
    assert reported > 4 << 20, "the trace is too small to tell anything"


def test_a_small_payload_is_estimated_in_one_pass_and_no_lower():
    small = many_spans(20).SerializeToString()
    large = many_spans(20_000).SerializeToString()
    assert decoded_size(small) / 20 >= decoded_size(large) / 20_000
    assert decoded_size(b"x" * 1000) == 6000
