"""Decoding: the published classes write, ours read; and what the published ones refuse, ours must still read."""

from __future__ import annotations

import math

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from sidejudge.integrations.otlp.wire.decode import UndecodableError, decode, decode_spans
from sidejudge.integrations.otlp.wire.decode_json import decode_json
from sidejudge.integrations.otlp.wire.values import MAX_DEPTH

TRACE, SPAN = bytes(range(1, 17)), bytes(range(1, 9))


def _request(**attributes: AnyValue) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "shop"
    scope = resource.scope_spans.add()
    scope.scope.name, scope.scope.version = "lib", "1.2"
    span = scope.spans.add(
        trace_id=TRACE, span_id=SPAN, parent_span_id=b"\x09" * 8, name="step", trace_state="ot=th:8", kind=3,
        start_time_unix_nano=2**63 + 5, end_time_unix_nano=2**64 - 1,
    )  # fmt: skip
    span.status.code, span.status.message = 2, "no"
    span.events.add(name="exception", time_unix_nano=7).attributes.add(key="a").value.int_value = 1
    for key, value in attributes.items():
        span.attributes.add(key=key).value.CopyFrom(value)
    return request


def _value(**kind: object) -> AnyValue:
    return AnyValue(**kind)


def _nested(depth: int) -> AnyValue:
    value = AnyValue(string_value="deep")
    for _ in range(depth):
        outer = AnyValue()
        outer.array_value.values.add().CopyFrom(value)
        value = outer
    return value


def test_every_field_of_a_span_is_read() -> None:
    (span,) = decode_spans(_request(x=_value(string_value="é")).SerializeToString())
    assert (span.trace_id, span.span_id, span.parent_id) == (TRACE.hex(), SPAN.hex(), "09" * 8)
    assert (span.name, span.kind, span.trace_state) == ("step", 3, "ot=th:8")
    assert (span.start_ns, span.end_ns) == (2**63 + 5, 2**64 - 1)
    assert (span.status_code, span.status_message) == (2, "no")
    assert (span.scope_name, span.scope_version, span.resource) == ("lib", "1.2", {"service.name": "shop"})
    assert [(event.name, event.time_ns, event.attributes) for event in span.events] == [("exception", 7, {"a": 1})]
    assert span.attributes == {"x": "é"}


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (AnyValue(), None),
        (_value(bool_value=False), False),
        (_value(int_value=-(2**63)), -(2**63)),
        (_value(double_value=0.5), 0.5),
        (_value(double_value=math.nan), "NaN"),
        (_value(double_value=math.inf), "Infinity"),
        (_value(double_value=-math.inf), "-Infinity"),
        (_value(bytes_value=b"\xff\x00"), b"\xff\x00"),
        (_nested(2), [["deep"]]),
    ],
)
def test_every_shape_of_a_value_is_read(value: AnyValue, wanted: object) -> None:
    assert decode_spans(_request(x=value).SerializeToString())[0].attributes == {"x": wanted}


def test_lists_and_maps_may_be_mixed_and_nested() -> None:
    value = AnyValue()
    value.array_value.values.add().int_value = 1
    value.array_value.values.add()
    inner = value.array_value.values.add().kvlist_value
    inner.values.add(key="k").value.array_value.values.add().bool_value = True
    assert decode_spans(_request(x=value).SerializeToString())[0].attributes == {"x": [1, None, {"k": [True]}]}


def test_invalid_utf8_becomes_the_replacement_character_wherever_it_stands() -> None:
    payload = _request(x=_value(string_value="abcd")).SerializeToString()
    for good, bad in ((b"abcd", b"a\xff\xfed"), (b"step", b"s\xc3ep"), (b"shop", b"sh\x80p")):
        payload = payload.replace(good, bad)
    (span,) = decode_spans(payload)
    assert span.attributes == {"x": "a\ufffd\ufffdd"}
    assert span.name == "s\ufffdep"
    assert span.resource == {"service.name": "sh\ufffdp"}


@pytest.mark.parametrize("depth", [60, 500, 5000])
def test_a_value_nested_beyond_any_limit_costs_nothing_but_its_depths(depth: int) -> None:
    deep = b"\x0a\x04deep"
    for _ in range(depth):
        for tag in (b"\x0a", b"\x2a"):
            deep = tag + _varint(len(deep)) + deep
    payload = _request(x=_value(string_value="here"), y=_value(string_value="also")).SerializeToString()
    # Grow the value, and with it the length of everything that holds it: done by building the request around it.
    attribute = b"\x0a\x01z\x12" + _varint(len(deep)) + deep
    span = b"\x0a\x10" + TRACE + b"\x12\x08" + SPAN + b"\x4a" + _varint(len(attribute)) + attribute
    scope = b"\x12" + _varint(len(span)) + span
    resource = b"\x12" + _varint(len(scope)) + scope
    whole = payload + b"\x0a" + _varint(len(resource)) + resource
    first, second = decode_spans(whole)
    assert first.attributes == {"x": "here", "y": "also"}
    value, levels = second.attributes["z"], 0
    while isinstance(value, list):
        value, levels = value[0], levels + 1
    assert (value, levels) == (None, MAX_DEPTH)


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


@pytest.mark.parametrize(
    ("trace_id", "span_id"),
    [(b"", SPAN), (TRACE, b""), (bytes(16), SPAN), (TRACE, bytes(8)), (TRACE[:8], SPAN), (TRACE, TRACE)],
)
def test_spans_without_a_valid_id_are_left_out_and_counted(trace_id: bytes, span_id: bytes) -> None:
    request = _request()
    request.resource_spans[0].scope_spans[0].spans.add(trace_id=trace_id, span_id=span_id, name="nowhere")
    found = decode(request.SerializeToString())
    assert ([span.name for span in found.spans], found.skipped) == (["step"], 1)


def test_a_parent_of_zeros_is_no_parent() -> None:
    request = _request()
    request.resource_spans[0].scope_spans[0].spans[0].parent_span_id = bytes(8)
    assert decode_spans(request.SerializeToString())[0].parent_id is None


def test_no_bytes_are_a_request_without_spans() -> None:
    assert decode_spans(b"") == []


def test_ten_thousand_spans_and_ten_megabytes_are_read() -> None:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for number in range(10_000):
        scope.spans.add(trace_id=TRACE, span_id=number.to_bytes(8, "big"), name="s")
    scope.spans[5].attributes.add(key="long").value.string_value = "é" * 5_000_000
    found = decode(request.SerializeToString())
    assert (len(found.spans), found.skipped) == (9_999, 1)  # span id 0 is none
    assert found.spans[4].attributes == {"long": "é" * 5_000_000}


@pytest.mark.parametrize("cut", [10, 60, -1])
def test_a_request_cut_short_is_refused_by_name(cut: int) -> None:
    payload = _request(x=_value(string_value="value")).SerializeToString()
    with pytest.raises(UndecodableError, match=f"{len(payload[:cut])} bytes"):
        decode_spans(payload[:cut])


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_spans_or_refused_but_nothing_else(payload: bytes) -> None:
    for read in (decode, decode_json):
        try:
            read(payload)
        except UndecodableError:
            continue


@settings(max_examples=200)
@given(st.data())
def test_a_damaged_request_is_spans_or_refused_but_nothing_else(data: st.DataObject) -> None:
    payload = bytearray(_request(x=_nested(3), y=_value(double_value=1.5)).SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode(bytes(payload))
    except UndecodableError:
        return


def _json(**span: object) -> bytes:
    body = {"traceId": TRACE.hex().upper(), "spanId": SPAN.hex(), "name": "step", **span}
    return orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [body]}]}], "unknown": 1})


def test_json_ids_are_hex_in_either_case_and_integers_are_texts_or_numbers() -> None:
    (span,) = decode_json(
        _json(startTimeUnixNano="1700000000000000001", endTimeUnixNano=5, kind=2, parentSpanId="", status={"code": 2})
    ).spans
    assert (span.trace_id, span.start_ns, span.end_ns) == (TRACE.hex(), 1700000000000000001, 5)
    assert (span.kind, span.parent_id, span.status_code) == (2, None, 2)


def test_json_of_untidy_clients_is_read() -> None:
    (span,) = decode_json(
        _json(
            kind="SPAN_KIND_CLIENT",
            status={"code": "STATUS_CODE_ERROR", "message": None},
            parentSpanId=None,
            events=None,
        )
    ).spans
    assert (span.kind, span.status_code, span.status_message, span.events) == (3, 2, "", ())


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({}, None), (None, None), ({"newShape": 1}, None),
        ({"stringValue": 7}, "7"), ({"boolValue": True}, True), ({"boolValue": "false"}, False),
        ({"intValue": "-9223372036854775808"}, -(2**63)), ({"intValue": 4711}, 4711), ({"intValue": 3.0}, 3),
        ({"doubleValue": 1}, 1.0), ({"doubleValue": "NaN"}, "NaN"), ({"doubleValue": "-Infinity"}, "-Infinity"),
        ({"bytesValue": "/wA="}, b"\xff\x00"), ({"bytesValue": "no base64!"}, "no base64!"),
        ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, [1, None]), ({"arrayValue": {}}, []),
        ({"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}}, {"k": "v"}),
    ],
)  # fmt: skip
def test_every_shape_of_a_json_value_is_read(value: object, wanted: object) -> None:
    assert decode_json(_json(attributes=[{"key": "x", "value": value}])).spans[0].attributes == {"x": wanted}


def test_json_with_bare_nan_half_an_emoji_and_stray_bytes_is_read() -> None:
    payload = _json(attributes=[{"key": "x", "value": {"stringValue": "@"}}, {"key": "n", "value": {"doubleValue": 0}}])
    payload = payload.replace(b'"@"', b'"\\ud83d\xff"').replace(b":0}", b":NaN}")
    assert decode_json(payload).spans[0].attributes == {"x": "\ufffd\ufffd", "n": "NaN"}


@pytest.mark.parametrize("payload", [b"", b"[]", b"{", b'{"spans": []}', b"null", b"[" * 100_000])
def test_what_is_no_json_request_is_refused_by_name(payload: bytes) -> None:
    with pytest.raises(UndecodableError):
        decode_json(payload)


def test_json_spans_without_a_valid_id_are_left_out_and_counted() -> None:
    for broken in ({"traceId": "zz" * 16}, {"spanId": "12"}, {"traceId": "0" * 32}, {"spanId": 5}):
        found = decode_json(_json(**broken))
        assert (found.spans, found.skipped) == ([], 1)
