"""Whatever is sent, however much of it at once: the process takes no more memory than ``check`` prints."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest

from sidejudge.monitor.config.load import load
from sidejudge.monitor.runtime.memory_bound import memory_bound
from tests.faults.test_poison_trace import minimal, peak
from tests.integrations.otlp.wire.test_bounds import IDS, enveloped, field
from tests.otlp_requests import S, request, span, trace
from tests.running import free_port

MOST = 16 << 20
TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
ANY = {"routes": [{"rubrics": ["workflow"], "scenario": "any"}]}
SCENARIOS = {"any": {"max_seconds": 10**9}}
AT_ONCE = 12


def json_of(item: bytes) -> bytes:
    head = b'{"resourceSpans":[],"more":['
    return head + b",".join([item] * ((MOST - 100) // (len(item) + 1))) + b"]}"


def one_text(size: int, character: str = "x") -> bytes:
    text = character * (size // len(character.encode()))
    return request([S(trace_id=trace(2), span_id=span(1), attributes={"input.value": text})])


def json_text() -> bytes:
    ids = f'"traceId":"{trace(3).hex()}","spanId":"{span(1).hex()}"'
    text = "x" * (MOST - 500) + "\U0001f600"
    attribute = f'{{"key":"input.value","value":{{"stringValue":"{text}"}}}}'
    return (f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{{ids},"attributes":[{attribute}]}}]}}]}}]}}').encode()


def own_resource() -> bytes:
    """Many traces under one large resource: each keeps a copy of it."""
    resource = field(1, field(1, b"\n\x01k" + field(2, field(1, b"x" * (4 << 20)))))
    spans = b"".join(
        field(2, b"\n\x10" + (n << 32 | 1 << 120).to_bytes(16, "big") + b"\x12\x08" + span(1)) for n in range(1, 1000)
    )
    return field(1, resource + field(2, spans))


SHAPES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "spans": ("application/x-protobuf", lambda: minimal(1, 55_000)),
    "attributes": ("application/x-protobuf", lambda: enveloped(IDS + b"\x4a\x00" * 49_000)),
    "values": ("application/x-protobuf", lambda: enveloped(IDS + field(9, field(2, field(5, b"\n\x00" * 490_000))))),
    "text": ("application/x-protobuf", lambda: one_text(MOST - 1000)),
    "wide text": ("application/x-protobuf", lambda: one_text(MOST - 1000, "\U0001f600")),
    "one resource": ("application/x-protobuf", own_resource),
    "objects": ("application/json", lambda: json_of(b'{"a":{}}')),
    "lists": ("application/json", lambda: json_of(b"[]")),
    "numbers": ("application/json", lambda: json_of(b"1.5")),
    "a JSON text": ("application/json", json_text),
    "not quite JSON": ("application/json", lambda: json_of(b'"\\ud800"')),
}


def test_no_shape_of_requests_takes_more_memory_than_is_printed(serving):
    monitor = serving(anew=True, **ANY, scenarios=SCENARIOS)
    bound = sum(part.max_bytes for part in memory_bound(load(monitor.config, {})))
    highest: dict[str, int] = {}
    for name, (kind, make) in SHAPES.items():
        body = gzip.compress(make(), 1)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(lambda _: send(monitor.otlp, body, kind), range(AT_ONCE)))  # noqa: B023  # used at once
        assert set(answers) <= {200, 400, 413, 503}, name
        highest[name] = peak(monitor.process.pid)
    monitor.until(lambda: monitor.outcomes()["open"] == 0, "traces stayed open")
    assert peak(monitor.process.pid) < bound, highest


def send(url: str, body: bytes, kind: str) -> int:
    with suppress(httpx.TransportError):
        headers = {"content-type": kind, "content-encoding": "gzip"}
        return httpx.post(url + "/v1/traces", content=body, headers=headers, timeout=60).status_code
    return 503


def test_large_messages_over_grpc_are_read_a_few_at_a_time(serving):
    grpc = pytest.importorskip("grpc", reason="the extra grpc")
    port = free_port()
    otlp = {"http": f"127.0.0.1:{free_port()}", "grpc": f"127.0.0.1:{port}"}
    monitor = serving(anew=True, **ANY, scenarios=SCENARIOS, sources={"otlp": otlp})
    before, body = peak(monitor.process.pid), one_text(MOST - 1000)
    options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]

    def call(number: int) -> str:
        with grpc.insecure_channel(f"127.0.0.1:{port}", options) as channel:
            for _ in range(2):
                with suppress(grpc.RpcError):
                    channel.unary_unary(TRACES)(body, timeout=60)
        return str(number)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(call, range(16)))
    assert peak(monitor.process.pid) - before < 250 << 20
