"""Requests that are made to do harm, sent to a running monitor over HTTP: they cost little, and honest ones go on."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import time
import zlib
from functools import cache

import pytest

from sidejudge.integrations.otlp.wire.schema import varint
from tests.otlp_requests import LOW, S, request, span, trace

PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
MIB = 1 << 20
IDS = {"traceId": "0a" * 7 + "ff" * 9, "spanId": "0102030405060708"}


def field(number: int, content: bytes) -> bytes:
    return bytes((number << 3 | 2,)) + varint(len(content)) + content


def ids(number: int) -> bytes:
    return field(1, trace(number)) + field(2, span(1))


def of_spans(spans: bytes) -> bytes:
    return field(1, field(2, spans))


BODIES = {
    "half a million empty spans": lambda: of_spans(b"\x12\x00" * 498_000),
    "spans whose ids stand elsewhere": lambda: of_spans(field(2, field(2, span(1)) + field(1, trace(1, LOW))) * 32_000),
    "a trace for each span": lambda: of_spans(b"".join(field(2, ids(number)) for number in range(12_000))),
    "half a million attributes": lambda: of_spans(
        field(2, ids(1) + field(9, field(1, b"langfuse.internal.is_app_root")) + b"\x4a\x00" * 498_000)
    ),
    "half a million scopes": lambda: field(1, b"\x12\x00" * 498_000),
}


async def longest_pause(until: asyncio.Task) -> float:
    """The longest work of the event loop between two turns while a task was under way, in seconds of its processor.

    What other tests have left is collected before, and nothing meanwhile: a monitor says itself when garbage is looked
    for (``monitor.runtime.tuning``), and this process holds more than one does.
    """
    gc.collect()
    gc.disable()
    longest = 0.0
    try:
        while not until.done():
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)
    finally:
        gc.enable()
    return longest


@pytest.mark.parametrize("name", list(BODIES))
async def test_a_small_request_with_very_many_parts_does_not_hold_up_the_event_loop(started, name):
    app = await started(sampling={"rate": 1e-6} if "trace for each" not in name else {"rate": 1.0})
    body = BODIES[name]()
    assert len(body) < MIB
    packed = gzip.compress(body)
    headers = {**PROTOBUF, "content-encoding": "gzip"}
    sent = asyncio.create_task(app.http.post(app.otlp + "/v1/traces", content=packed, headers=headers, timeout=60))
    assert await longest_pause(sent) < 0.4
    assert (await sent).status_code in (200, 400)


@pytest.mark.parametrize(
    ("span", "rejected"),
    [
        ({"startTimeUnixNano": True}, 1),
        ({"endTimeUnixNano": False}, 1),
        ({"kind": True}, 1),
        ({"status": {"code": True}}, 1),
        ({"events": [{"timeUnixNano": True}]}, 1),
        ({"attributes": [{"key": "a", "value": {"bytesValue": "ÿÿÿÿ"}}]}, 1),
        ({"events": [{"attributes": [{"key": "a", "value": {"bytesValue": "é"}}]}]}, 1),
        ({"startTimeUnixNano": [1]}, 0),
        ({"startTimeUnixNano": "9" * 5000}, 0),
        ({"attributes": [{"key": "a", "value": {"intValue": "9" * 5000}}]}, 0),
        ({"attributes": [{"key": "a", "value": {"bytesValue": "not base64"}}]}, 0),
    ],
)  # fmt: skip
async def test_a_span_that_cannot_be_read_is_rejected_by_itself(started, span, rejected):
    app = await started()
    spans = [{**IDS, "name": "bad", **span}, {**IDS, "spanId": "11" * 8, "name": "good"}]
    body = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    answer = await app.http.post(app.otlp + "/v1/traces", content=json.dumps(body).encode(), headers=JSON)
    assert answer.status_code == 200
    found = answer.json().get("partialSuccess", {})
    assert int(found.get("rejectedSpans", 0)) == rejected
    counts = app.monitor.intake.counts
    assert (counts.spans, counts.rejected) == (2, rejected)


@pytest.mark.parametrize("digits", [20, 4299, 4301, 100_000])
async def test_an_integer_of_thousands_of_digits_costs_nobody_else(started, digits):
    app = await started()
    number = "9" * digits
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [
        {**IDS, "attributes": [{"key": "n", "value": {"intValue": "N"}}], "startTimeUnixNano": "N"}
    ]}]}]}).replace('"N"', number)  # fmt: skip
    answer = await app.http.post(app.otlp + "/v1/traces", content=body.encode(), headers=JSON)
    assert (answer.status_code, answer.json()) == (200, {})


async def test_a_log_record_that_cannot_be_read_is_rejected_by_itself(started):
    app = await started()
    records = [{**IDS, "eventName": "e", "timeUnixNano": True}, {**IDS, "eventName": "e"}]
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    answer = await app.http.post(app.otlp + "/v1/logs", content=json.dumps(body).encode(), headers=JSON)
    assert (answer.status_code, answer.json()["partialSuccess"]["rejectedLogRecords"]) == (200, "1")


@pytest.mark.parametrize("deep", ["[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900])
@pytest.mark.parametrize("place", ["name", "traceState", "startTimeUnixNano", "attributes"])
async def test_deep_nesting_is_refused_or_taken_and_never_an_error_of_ours(started, deep, place):
    app = await started()
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{**IDS, place: "DEEP"}]}]}]})
    answer = await app.http.post(app.otlp + "/v1/traces", content=body.replace('"DEEP"', deep), headers=JSON)
    assert answer.status_code in (200, 400)


async def test_many_gzip_members_that_hold_nothing_are_refused_at_once(started):
    app = await started()
    honest = request([S(trace_id=trace(1), span_id=span(1))])
    body = gzip.compress(b"", mtime=0) * 200_000 + gzip.compress(honest)
    headers = {**PROTOBUF, "content-encoding": "gzip"}
    sent = asyncio.create_task(app.http.post(app.otlp + "/v1/traces", content=body, headers=headers))
    assert await longest_pause(sent) < 0.4
    assert (await sent).status_code == 400


@cache
def bomb(encoding: str) -> bytes:
    """A gigabyte of zeros, compressed. Blocks that end in a full flush can be repeated; the checksum is wrong then."""
    if encoding == "zstd":
        zstandard = pytest.importorskip("zstandard", reason="the extra zstd")
        return zstandard.ZstdCompressor(level=1).compress(bytes(1 << 30))
    packing = zlib.compressobj(1, zlib.DEFLATED, 31 if encoding == "gzip" else 15)
    first = packing.compress(bytes(MIB)) + packing.flush(zlib.Z_FULL_FLUSH)
    again = packing.compress(bytes(MIB)) + packing.flush(zlib.Z_FULL_FLUSH)
    return first + again * 1023 + packing.flush()


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs"])
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
async def test_a_gigabyte_of_zeros_is_refused_once_it_is_known_to_be_too_large(started, path, encoding):
    app = await started()
    body = await asyncio.to_thread(bomb, encoding)
    headers = {**PROTOBUF, "content-encoding": encoding}
    sent = asyncio.create_task(app.http.post(app.otlp + path, content=body, headers=headers, timeout=30))
    assert await longest_pause(sent) < 0.2
    assert (await sent).status_code == 413


LOGS = {
    "half a million empty records": lambda: of_spans(b"\x12\x00" * 498_000),
    "a trace for each record": lambda: of_spans(
        b"".join(field(2, field(9, trace(n)) + field(10, span(1)) + field(12, b"e")) for n in range(30_000))
    ),
    "half a million attributes": lambda: of_spans(
        field(2, field(9, trace(1)) + field(10, span(1)) + field(12, b"e") + b"\x32\x00" * 498_000)
    ),
}


@pytest.mark.parametrize("name", list(LOGS))
async def test_a_small_request_for_logs_with_very_many_parts_does_not_hold_up_the_event_loop(started, name):
    app = await started()
    headers = {**PROTOBUF, "content-encoding": "gzip"}
    body = gzip.compress(LOGS[name]())
    sent = asyncio.create_task(app.http.post(app.otlp + "/v1/logs", content=body, headers=headers, timeout=60))
    assert await longest_pause(sent) < 0.2
    assert (await sent).status_code in (200, 400)


@pytest.mark.parametrize(
    "span_values",
    [
        {"startTimeUnixNano": float("nan")},
        {"startTimeUnixNano": "-1", "endTimeUnixNano": str(2**64)},
        {"endTimeUnixNano": 1e300},
        {"name": "\ud800"},
        {"kind": 10**30},
        {"attributes": [{"key": "\ud800", "value": {"doubleValue": float("inf")}}]},
        {"attributes": [{"key": "a", "value": {"intValue": "9" * 30}}] * 3},
        {"events": [{"timeUnixNano": float("-inf"), "name": None}]},
        {"parentSpanId": "0102030405060708"},
        {"status": {"code": -(2**40), "message": ["x"]}},
    ],
)
async def test_values_that_mean_nothing_end_in_a_verdict_or_are_rejected(started, span_values):
    app = await started(routes=[{"rubrics": ["run_health"]}])
    spans = [{**IDS, "name": "chat", "attributes": [], **span_values}]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    answer = await app.http.post(app.otlp + "/v1/traces", content=body, headers=JSON)
    assert answer.status_code == 200
    rejected = int(answer.json().get("partialSuccess", {}).get("rejectedSpans", 0))
    outcomes = await app.settled(1 - rejected)
    assert outcomes["ended"]["error"] == 0


async def test_a_span_id_in_several_traces_and_one_that_is_its_own_parent_harm_nobody(started):
    app = await started(routes=[{"rubrics": ["run_health"]}])
    spans = [S(trace_id=trace(n), span_id=span(1), parent_id=span(1)) for n in range(1, 6)]
    spans += [S(trace_id=trace(7), span_id=span(n), parent_id=span(n % 3 + 1)) for n in (1, 2, 3)]
    assert (await app.post(request(spans))).status_code == 200
    outcomes = await app.settled(6)
    assert (sum(outcomes["ended"].values()), outcomes["ended"]["error"]) == (6, 0)
