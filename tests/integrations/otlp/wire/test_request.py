"""Splitting requests: what is kept is whole, what is not is counted, and damage is told from both."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sidejudge.integrations.otlp.wire.receipt import Undecodable
from sidejudge.integrations.otlp.wire.request import ChunkOrigin, Split, identify, read_headers, split
from sidejudge.integrations.otlp.wire.tracestate import PUBLIC_HASH_KEY, hashed_randomness, randomness
from tests.otlp_requests import LOW, S, request, span, trace

HALF = 1 << 55
NEVER = 1 << 56


def sift(body: bytes, threshold: int = HALF) -> Split:
    return split(body, lambda resource: ChunkOrigin(*identify(resource), threshold))


def field(number: int, payload: bytes) -> bytes:
    assert len(payload) < 0x4000
    size = len(payload)
    return bytes([number << 3 | 2]) + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + payload


def enveloped(*spans: bytes) -> bytes:
    return field(1, field(2, b"".join(field(2, s) for s in spans)))


def spans_of(message: ExportTraceServiceRequest) -> list:
    return [s for rs in message.resource_spans for ss in rs.scope_spans for s in ss.spans]


def test_a_chunk_holds_one_traces_spans_with_their_resource_and_scope():
    body = request([S(trace_id=trace(1), span_id=span(1)), S(trace_id=trace(2), span_id=span(2)),
                    S(trace_id=trace(1), span_id=span(3), parent_id=span(1), service="desk")])  # fmt: skip
    found = sift(body)
    assert [c.trace_id for c in found.chunks] == [trace(1), trace(2)]
    message = ExportTraceServiceRequest.FromString(found.chunks[0].payload)
    assert [rs.resource.attributes[0].value.string_value for rs in message.resource_spans] == ["shop", "desk"]
    assert [rs.schema_url for rs in message.resource_spans] == ["urn:resource"] * 2
    assert [ss.scope.name for rs in message.resource_spans for ss in rs.scope_spans] == ["tests"] * 2
    assert [h.parent_id for h in found.chunks[0].headers] == [b"", span(1)]


def test_what_is_below_the_threshold_is_dropped_and_its_trace_counted_once():
    found = sift(request([S(trace_id=trace(1, LOW), span_id=span(n)) for n in (1, 2)]))
    assert not found.chunks
    assert list(found.dropped.values()) == [{trace(1, LOW)}]
    assert (found.spans, found.kept, found.rejected) == (2, 0, 0)


@given(
    ids=st.lists(st.binary(min_size=16, max_size=16).filter(any), min_size=1, max_size=5),
    threshold=st.integers(0, NEVER),
)
def test_hashed_the_whole_trace_id_decides_and_nothing_that_a_trace_state_says(ids, threshold):
    spans = [
        S(trace_id=each, span_id=span(n + 1), trace_state="ot=rv:00000000000000" if n % 2 else "")
        for n, each in enumerate(ids)
    ]
    body = request(spans)
    found = split(body, lambda resource: ChunkOrigin(*identify(resource), threshold, hash_key=PUBLIC_HASH_KEY))
    drawn = {each for each in ids if int.from_bytes(hashed_randomness(each), "big") >= threshold}
    assert {chunk.trace_id for chunk in found.chunks} == drawn
    assert set().union(*found.dropped.values()) == set(ids) - drawn
    assert (found.spans, found.rejected, found.explicit) == (len(ids), 0, b"rv:" in body)


def test_hashed_spans_in_an_unusual_layout_and_invalid_ids_are_told_apart_too():
    shuffled = field(2, span(1)) + field(1, trace(1))
    body = enveloped(
        shuffled, field(1, bytes(16)) + field(2, span(1)), field(1, trace(2)) + field(2, bytes(8)), b"\x0a"
    )
    for threshold in (0, NEVER):
        found = split(body, lambda resource, at=threshold: ChunkOrigin(*identify(resource), at, PUBLIC_HASH_KEY))
        assert (found.spans, found.invalid_ids, found.damaged) == (4, 2, 1)
        assert [chunk.trace_id for chunk in found.chunks] == ([trace(1)] if threshold == 0 else [])


@pytest.mark.parametrize(
    ("flags", "remote"), [(0, False), (0x100, False), (0x101, False), (0x300, True), (0x200, False)]
)
def test_a_parent_in_another_process_is_known_by_the_flags(flags, remote):
    message = ExportTraceServiceRequest.FromString(request([S(trace_id=trace(1), span_id=span(2), parent_id=span(1))]))
    spans_of(message)[0].flags = flags
    assert sift(message.SerializeToString()).chunks[0].headers[0].remote_parent is remote


@pytest.mark.parametrize(("code", "failed"), [(None, False), (0, False), (1, False), (2, True)])
def test_a_span_failed_by_its_status(code, failed):
    message = ExportTraceServiceRequest.FromString(request([S(trace_id=trace(1), span_id=span(2))]))
    if code is not None:
        spans_of(message)[0].status.code = code
    assert sift(message.SerializeToString()).chunks[0].headers[0].failed is failed


@given(tail=st.binary(min_size=7, max_size=7), threshold=st.integers(0, NEVER))
def test_bytes_and_numbers_compare_alike(tail, threshold):
    trace_id = b"\x07" * 9 + tail
    found = sift(request([S(trace_id=trace_id, span_id=span(1))]), threshold)
    assert bool(found.chunks) == (int.from_bytes(tail, "big") >= threshold)


@given(tail=st.binary(min_size=7, max_size=7), rv=st.integers(0, NEVER - 1), threshold=st.integers(1, NEVER))
def test_explicit_randomness_overrules_the_trace_id(tail, rv, threshold):
    state = f"vendor=x,ot=th:8;rv:{rv:014x}"
    trace_id = b"\x07" * 9 + tail
    found = sift(request([S(trace_id=trace_id, span_id=span(1), trace_state=state)]), threshold)
    assert bool(found.chunks) == (randomness(trace_id, state) >= threshold) == (rv >= threshold)


def test_the_letters_rv_in_a_text_change_nothing():
    spans = [
        S(trace_id=trace(1, LOW), span_id=span(1), attributes={"input": "rv:00"}),
        S(trace_id=trace(2), span_id=span(2)),
    ]
    assert [c.trace_id for c in sift(request(spans)).chunks] == [trace(2)]


@pytest.mark.parametrize("threshold", [0, HALF, NEVER])
@pytest.mark.parametrize(
    ("trace_id", "span_id"),
    [(b"", span(1)), (trace(1)[:8], span(1)), (trace(1) + b"x", span(1)), (bytes(16), span(1)),
     (trace(1), b""), (trace(1), b"1234"), (trace(1), bytes(8)), (b"", b"")],
)  # fmt: skip
def test_a_span_without_valid_ids_is_rejected_at_any_rate_and_the_others_are_not(trace_id, span_id, threshold):
    good = S(trace_id=trace(5), span_id=span(5))
    found = sift(request([S(trace_id=trace_id, span_id=span_id), good]), threshold)
    assert (found.invalid_ids, found.damaged, found.spans) == (1, 0, 2)
    assert "trace_id must be 16 bytes" in found.message
    assert [c.trace_id for c in found.chunks] == ([] if threshold == NEVER else [trace(5)])
    assert not any(trace_id in ids for ids in found.dropped.values())


def test_many_zero_trace_ids_are_each_rejected():
    found = sift(request([S(trace_id=bytes(16), span_id=span(n)) for n in range(1, 8)]))
    assert (found.invalid_ids, found.spans, found.dropped) == (7, 7, {})


@pytest.mark.parametrize(
    "encoded",
    [
        field(2, span(1)) + field(1, trace(1)),  # the other order
        field(5, b"name") + field(1, trace(1)) + field(2, span(1)),  # a name before the ids
        b"\x0a\x90\x00" + trace(1) + field(2, span(1)),  # a length with padding
        field(3, b"") + field(1, trace(1)) + field(2, span(1)),
    ],
)
def test_unusual_but_legal_layouts_are_understood(encoded):
    found = sift(enveloped(encoded))
    assert [(c.trace_id, c.headers[0].span_id) for c in found.chunks] == [(trace(1), span(1))]
    assert not sift(enveloped(encoded), NEVER).chunks


def test_a_span_whose_ids_contradict_each_other_is_rejected():
    found = sift(enveloped(field(1, trace(1)) + field(2, span(1)) + field(1, trace(2))))
    assert (found.damaged, found.chunks) == (1, [])


@pytest.mark.parametrize(
    "damage",
    [
        field(9, b"\x0a\xff"),  # a key longer than the attribute
        field(9, field(2, field(5, b"\x0a\x05x"))),  # deep in a list
        b"\x4a\x7f",  # an attribute longer than the span
        b"\x07",  # a wire type that does not exist
        field(11, b"\x1a\x09x"),  # an event
        field(13, b"\x0a\x20"),  # a link
    ],
)
def test_a_damaged_span_costs_itself_and_nobody_else(damage):
    ids = field(1, trace(1))
    good, bad = ids + field(2, span(1)) + field(5, b"good"), ids + field(2, span(2)) + damage
    found = sift(enveloped(good, bad, field(1, trace(2)) + field(2, span(3))))
    assert (found.damaged, found.invalid_ids, found.kept, found.spans) == (1, 0, 2, 3)
    assert [[s.span_id for s in spans_of(ExportTraceServiceRequest.FromString(c.payload))] for c in found.chunks] == [
        [span(1)],
        [span(3)],
    ]
    assert "damaged" in found.message


def test_invalid_utf8_in_a_span_is_kept_for_the_reader_to_mend():
    body = enveloped(field(1, trace(1)) + field(2, span(1)) + field(5, b"\xff\xfe"))
    assert sift(body).kept == 1


def test_nesting_beyond_what_protobuf_allows_is_damage():
    value = b""
    for _ in range(120):
        value = field(5, field(1, value)) if len(value) < 0x3000 else value
    found = sift(enveloped(field(1, trace(1)) + field(2, span(1)) + field(9, field(1, b"k") + field(2, value))))
    assert (found.damaged, found.chunks) == (1, [])


@pytest.mark.parametrize("body", [b"\x0a", b"\x0a\x05abc", b"\xff" * 20, b"not protobuf at all", b"{}"])
def test_a_broken_envelope_is_undecodable(body):
    with pytest.raises(Undecodable):
        sift(body)


def test_a_damaged_resource_is_undecodable():
    with pytest.raises(Undecodable, match="resource"):
        sift(field(1, field(1, b"\x0a\xff") + field(2, b"")))


def test_empty_requests_and_empty_envelopes_are_fine():
    for body in (b"", field(1, b""), field(1, field(2, b""))):
        assert sift(body) == Split()


def test_service_and_environment_are_read_from_the_resource():
    def of(attributes):
        message = ExportTraceServiceRequest.FromString(request([S(trace_id=trace(1), span_id=span(1))], attributes))
        return identify(message.resource_spans[0].resource.SerializeToString())

    assert of({}) == ("shop", None)
    assert of({"deployment.environment": "old"}) == ("shop", "old")
    assert of({"deployment.environment": "old", "deployment.environment.name": "new"}) == ("shop", "new")
    assert of({"deployment.environment.name": "new", "langfuse.environment": "lf"}) == ("shop", "lf")
    assert identify(b"") == (None, None)


def test_a_marked_topmost_span_is_told_by_its_attribute_being_true():
    def hint(value):
        body = request([S(trace_id=trace(1), span_id=span(1), attributes={"langfuse.internal.is_app_root": value})])
        return sift(body).chunks[0].headers[0].root_hint

    assert hint(True) is True
    assert hint(False) is False
    assert hint("the words langfuse.internal.is_app_root") is False


def test_a_zero_parent_is_no_parent():
    body = request([S(trace_id=trace(1), span_id=span(1), parent_id=bytes(8))])
    assert sift(body).chunks[0].headers[0].parent_id == b""


def test_headers_are_read_again_from_a_stored_payload():
    chunk = sift(request([S(trace_id=trace(1), span_id=span(1), parent_id=span(2), trace_state="ot=th:8")])).chunks[0]
    assert read_headers(chunk.payload, chunk.trace_id) == chunk.headers
    with pytest.raises(Undecodable, match=trace(1).hex()):
        read_headers(b"\x0a\x09", chunk.trace_id)


def test_a_trace_of_several_services_takes_the_lowest_threshold():
    body = request(
        [S(trace_id=trace(1), span_id=span(1), service="a"), S(trace_id=trace(1), span_id=span(2), service="b")]
    )
    found = split(body, lambda r: ChunkOrigin(identify(r)[0], None, {"a": HALF, "b": 5}[identify(r)[0]]))
    assert (found.chunks[0].origin.service, found.chunks[0].origin.threshold) == ("b", 5)


def test_a_resource_is_asked_about_once_and_kept_bytes_are_copies():
    requested = []
    body = bytearray(request([S(trace_id=trace(n), span_id=span(n)) for n in range(1, 50)]))
    found = split(bytes(body), lambda r: requested.append(r) or ChunkOrigin(None, None, 0))
    assert len(requested) == 1
    assert all(type(c.payload) is bytes and len(c.payload) < 200 for c in found.chunks)


def test_a_large_resource_of_many_traces_is_not_copied_without_end():
    spans = [S(trace_id=trace(n), span_id=span(n + 1)) for n in range(400)]
    found = sift(request(spans, resource={"everything": "x" * (1 << 20)}))
    assert sum(len(chunk.payload) for chunk in found.chunks) < 300 << 20
    assert 0 < found.kept < len(spans)
    assert found.kept + found.rejected == len(spans)
    assert (
        found.message == f"{found.rejected} spans of too many traces under too large a resource; send smaller batches"
    )


def test_the_whole_corpus_is_split_without_loss(shared):
    files = [f for f in sorted((shared / "corpus" / "otlp").glob("*/*/*.pb")) if not f.name.endswith(".logs.pb")]
    assert len(files) > 200
    for file in files:
        body = file.read_bytes()
        message = ExportTraceServiceRequest.FromString(body)
        expected = {}
        for s in spans_of(message):
            expected.setdefault(s.trace_id, []).append(s)
        found = sift(body, 0)
        assert (found.rejected, found.dropped) == (0, {}), file
        assert {c.trace_id: spans_of(ExportTraceServiceRequest.FromString(c.payload)) for c in found.chunks} == expected
