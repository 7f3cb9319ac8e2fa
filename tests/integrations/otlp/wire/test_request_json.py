"""Requests in JSON are split as those in protobuf are, and what is kept of them reads the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sidejudge.integrations.otlp.wire.chunk import ChunkOrigin
from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.integrations.otlp.wire.decode_json import decode_json
from sidejudge.integrations.otlp.wire.receipt import Undecodable
from sidejudge.integrations.otlp.wire.request import identify, split
from sidejudge.integrations.otlp.wire.request_json import split_json
from tests.otlp_requests import HIGH, LOW, S, request, span, trace

HALF = 1 << 55


def admit(threshold=0):
    return lambda resource: ChunkOrigin(*identify(resource), threshold)


def as_json(body: bytes) -> bytes:
    """The same request as a client that speaks OTLP/JSON sends it: ids in hex, 64 bits as text."""
    reported = MessageToDict(ExportTraceServiceRequest.FromString(body), use_integers_for_enums=True)
    message = ExportTraceServiceRequest.FromString(body)
    for r, resource_spans in enumerate(message.resource_spans):
        for s, scope_spans in enumerate(resource_spans.scope_spans):
            for n, made in enumerate(scope_spans.spans):
                stated = reported["resourceSpans"][r]["scopeSpans"][s]["spans"][n]
                ids = {"traceId": made.trace_id, "spanId": made.span_id, "parentSpanId": made.parent_span_id}
                stated |= {key: value.hex() for key, value in ids.items()}
    return json.dumps(reported).encode()


MIXED = request([
    S(trace_id=trace(1), span_id=span(1), attributes={"langfuse.internal.is_app_root": True}),
    S(trace_id=trace(2, LOW), span_id=span(2)), S(trace_id=trace(1), span_id=span(3), parent_id=span(1)),
    S(trace_id=trace(3), span_id=span(4), service="other", trace_state="ot=rv:00000000000001"),
    S(trace_id=b"short", span_id=span(5)), S(trace_id=trace(4), span_id=bytes(8)),
])  # fmt: skip


def test_the_same_spans_are_kept_dropped_and_rejected_as_of_protobuf():
    binary, reported = split(MIXED, admit(HALF)), split_json(as_json(MIXED), admit(HALF))
    assert (reported.spans, reported.kept, reported.invalid_ids, reported.dropped) == (6, 2, 2, binary.dropped)
    assert (binary.spans, binary.kept, binary.invalid_ids) == (6, 2, 2)
    for ours, theirs in zip(reported.chunks, binary.chunks, strict=True):
        assert (ours.trace_id, ours.headers, ours.origin) == (theirs.trace_id, theirs.headers, theirs.origin)
        assert decode_spans(ours.payload) == decode_spans(theirs.payload)


def kept_spans(body: bytes):
    return sorted(
        (found for chunk in split_json(body, admit()).chunks for found in decode_spans(chunk.payload)),
        key=lambda found: (found.trace_id, found.span_id, repr(found)),
    )


def test_every_recorded_request_in_json_is_kept_as_it_would_be_decoded(shared: Path):
    seen = 0
    for path in sorted((shared / "corpus" / "otlp").rglob("*.json")):
        body = path.read_bytes()
        if path.name == "manifest.json" or b'"resourceSpans"' not in body:
            continue
        decoded = decode_json(body)
        assert kept_spans(body) == sorted(decoded.spans, key=lambda s: (s.trace_id, s.span_id, repr(s))), path
        seen += len(decoded.spans)
    assert seen > 900


IDS = {"traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "eee19b7ec3c1b174"}


def one(**more) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{**IDS, **more}]}]}]}).encode()


@pytest.mark.parametrize(
    ("written", "attribute", "value"),
    [
        ({"startTimeUnixNano": 7, "endTimeUnixNano": "8"}, "start_ns", 7),
        ({"startTimeUnixNano": "7", "endTimeUnixNano": 8.0}, "end_ns", 8),
        ({"parentSpanId": ""}, "parent_id", None),
        ({"parentSpanId": None}, "parent_id", None),
        ({"kind": "SPAN_KIND_CLIENT"}, "kind", 3),
        ({"kind": "3"}, "kind", 3),
        ({"status": {"code": "STATUS_CODE_ERROR", "message": None}}, "status_code", 2),
        ({"attributes": None, "events": None, "somethingNew": {"a": 1}}, "attributes", {}),
        ({"attributes": [{"key": "n", "value": {"intValue": 5}}]}, "attributes", {"n": 5}),
        ({"attributes": [{"key": "n", "value": {"intValue": "5"}}]}, "attributes", {"n": 5}),
        ({"attributes": [{"key": "n", "value": {"intValue": str(1 << 80)}}]}, "attributes", {"n": str(1 << 80)}),
        ({"attributes": [{"key": "n", "value": {"doubleValue": 5}}]}, "attributes", {"n": 5.0}),
        ({"attributes": [{"key": "n", "value": {"doubleValue": "NaN"}}]}, "attributes", {"n": "NaN"}),
        ({"attributes": [{"key": "n", "value": {"bytesValue": "AAE="}}]}, "attributes", {"n": b"\0\1"}),
        ({"attributes": [{"key": "n", "value": {}}]}, "attributes", {"n": None}),
        ({"attributes": [{"key": "n", "value": {"stringValue": ""}}]}, "attributes", {"n": ""}),
        ({"attributes": [{"key": "n", "value": {"stringValue": None, "intValue": "5"}}]}, "attributes", {"n": 5}),
        ({"attributes": [{"key": "n", "value": {"stringValue": None}}]}, "attributes", {"n": None}),
        ({"attributes": [{"key": "n", "value": {"arrayValue": {}}}]}, "attributes", {"n": []}),
        ({"attributes": [{"key": "n", "value": {"kvlistValue": {}}}]}, "attributes", {"n": {}}),
        ({"name": "half \ud83d of a pair"}, "name", "half \ufffd of a pair"),
    ],
)
def test_what_untidy_clients_write_is_understood(written, attribute, value):
    (found,) = kept_spans(one(**written))
    assert getattr(found, attribute) == value
    assert (found.trace_id, found.span_id) == (IDS["traceId"].lower(), IDS["spanId"])


def test_a_value_nested_beyond_what_protobuf_reads_costs_only_its_depths():
    value: dict = {"stringValue": "bottom"}
    for _ in range(60):
        value = {"kvlistValue": {"values": [{"key": "k", "value": value}]}}
    (found,) = kept_spans(one(attributes=[{"key": "deep", "value": value}, {"key": "plain", "value": {"intValue": 1}}]))
    assert found.attributes["plain"] == 1
    depth, at = 0, found.attributes["deep"]
    while at is not None:
        depth, at = depth + 1, at["k"]
    assert depth == 30


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"resourceLogs": []}', b"\x0a\x01", b'"text"'])
def test_what_is_no_trace_request_is_refused(body):
    with pytest.raises(Undecodable):
        split_json(body, admit())


def test_an_empty_request_holds_nothing():
    assert split_json(b"{}", admit()).chunks == split_json(b'{"resourceSpans": []}', admit()).chunks == []


@pytest.mark.parametrize("many", [b"[]", b"{}", b"1"])
def test_a_body_of_nothing_but_structure_is_refused_before_it_takes_memory(many):
    body = b'{"resourceSpans": [' + b",".join([many] * 5_000_000) + b"]}"
    with pytest.raises(Undecodable, match="more objects or values than one may"):
        split_json(body, admit())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["resourceSpans", "scopeSpans", "spans", "resource", "scope", "attributes", "key", "value",
                         "traceId", "spanId", "status", "events", "stringValue", "arrayValue", "values", "intValue"]),
        inner | st.just(IDS["traceId"]) | st.just(IDS["spanId"]), max_size=5),
    max_leaves=30,
)  # fmt: skip


@given(JSON)
def test_any_json_is_split_or_refused(value):
    body = json.dumps(value).encode()
    try:
        found = split_json(body, admit())
    except Undecodable:
        return
    assert found.kept + found.invalid_ids + found.damaged == found.spans == len(kept_spans(body)) + found.rejected


@given(JSON)
def test_any_span_is_kept_as_it_would_be_decoded(value):
    given_span = {**value, **IDS} if isinstance(value, dict) else {"attributes": value, **IDS}
    body = one(**given_span)
    assert kept_spans(body) == decode_json(body).spans


def test_an_id_of_high_randomness_is_kept_at_any_rate():
    body = as_json(request([S(trace_id=trace(1, HIGH), span_id=span(1))]))
    assert split_json(body, admit((1 << 56) - 1)).kept == 1


@pytest.mark.parametrize("body", ['{"resourceSpans":[%s]}', '{"resourceSpans":[{"scopeSpans":[%s]}]}'])
def test_more_resources_or_scopes_than_anybody_sends_are_refused(body):
    with pytest.raises(Undecodable, match="more than 50000 resources and scopes"):
        split_json((body % ",".join(["{}"] * 50_001)).encode(), admit())
    assert split_json((body % ",".join(["{}"] * 40_000)).encode(), admit()).spans == 0
