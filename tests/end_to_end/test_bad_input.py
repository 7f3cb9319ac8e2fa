"""What senders get wrong, posted to a running monitor: the answer the protocol wants, and books that still balance."""

from __future__ import annotations

import gzip
import json
import math
import os

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.otlp_requests import HIGH, S, request, span, trace
from tests.running import Running

ROUTES = [{"rubrics": ["workflow"], "scenario": "any"}]
SCENARIOS = {"any": {"max_seconds": 10**9}}


@pytest.fixture
def monitor(serving):
    return serving(routes=ROUTES, scenarios=SCENARIOS)


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """A monitor for all requests whose answer is all that is looked at."""
    running = Running(tmp_path_factory.mktemp("refusing"), {"routes": ROUTES, "scenarios": SCENARIOS})
    try:
        yield running.start()
    finally:
        running.close()


def one(number: int, **more: object) -> S:
    return S(trace_id=trace(number), span_id=span(number), **more)


def balanced(outcomes) -> bool:
    return outcomes["seen"] == outcomes["open"] + sum(outcomes["ended"].values())


def test_what_cannot_be_decoded_is_refused_for_good_and_counted(monitor):
    answer = monitor.post(b"\xff\xff\xff not protobuf")
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/x-protobuf"
    assert monitor.outcomes()["ended"]["undecodable"] == 1
    assert balanced(monitor.outcomes())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content_type": "text/plain"}, 415),
        ({"content_type": "application/json"}, 400),
        ({"content_encoding": "br"}, 415),
        ({"content_encoding": "gzip"}, 400),
    ],
)
def test_wrong_types_and_encodings_are_told_apart(refusing, headers, status):
    assert refusing.post(request([one(1)]), **headers).status_code == status


def test_another_method_is_told_which_one_to_use(refusing):
    answer = refusing.http.get(refusing.otlp + "/v1/traces")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_a_request_that_is_too_large_is_refused_before_and_while_it_is_inflated(refusing):
    bomb = gzip.compress(bytes(80 << 20))
    assert len(bomb) < 1 << 20
    assert refusing.post(bomb, content_encoding="gzip").status_code == 413
    assert refusing.post(bytes(65 << 20)).status_code == 413
    assert refusing.post(request([one(1)])).status_code == 200, "it goes on"


def test_spans_without_ids_are_rejected_and_the_others_taken(monitor):
    good = one(1)
    body = request([good, S(trace_id=bytes(16), span_id=span(2)), S(trace_id=trace(3), span_id=bytes(8)),
                    S(trace_id=b"short", span_id=span(4)), S(trace_id=b"", span_id=b"")])  # fmt: skip
    answer = monitor.post(body)
    reported = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert (answer.status_code, reported.rejected_spans) == (200, 4)
    assert "id" in reported.error_message
    outcomes = monitor.settled(1)
    assert (outcomes["seen"], balanced(outcomes)) == (1, True)
    metrics = monitor.http.get(monitor.api + "/metrics").text
    assert 'sidejudge_spans_rejected_total{reason="invalid"} 4.0' in metrics


def test_a_trace_without_a_root_ends_as_incomplete(monitor):
    assert monitor.post(request([one(1, parent_id=span(99))])).status_code == 200
    outcomes = monitor.settled(1)
    assert outcomes["ended"]["incomplete"] == 1
    story = monitor.get(f"/v1/traces/{trace(1).hex()}")
    assert (story["reason"], story["completion"], story["complete"]) == ("incomplete", "idle", False)
    assert story["verdicts"][0]["passed"] is None


def strange(depth: int = 30) -> bytes:
    """Attributes of every AnyValue shape, NaN, invalid UTF-8, a 10 MB string, and lists in lists, ``depth`` deep."""
    message = ExportTraceServiceRequest.FromString(request([one(1)]))
    made = message.resource_spans[0].scope_spans[0].spans[0]
    made.attributes.add(key="empty")
    made.attributes.add(key="no value").value.SetInParent()
    made.attributes.add(key="bytes").value.bytes_value = os.urandom(50)
    made.attributes.add(key="nan").value.double_value = math.nan
    made.attributes.add(key="inf").value.double_value = -math.inf
    made.attributes.add(key="int").value.int_value = -(2**63)
    mixed = made.attributes.add(key="mixed").value.array_value
    mixed.values.add().string_value = "a"
    mixed.values.add().int_value = 1
    mixed.values.add()
    mixed.values.add().kvlist_value.values.add(key="").value.array_value.values.add().bool_value = True
    deep = made.attributes.add(key="deep").value
    for _ in range(depth):
        deep = deep.array_value.values.add()
    made.attributes.add(key="gen_ai.input.messages").value.array_value.values.add().double_value = math.nan
    made.attributes.add(key="gen_ai.usage.input_tokens").value.double_value = math.nan
    made.attributes.add(key="langfuse.observation.input").value.string_value = "x" * 10_000_000
    made.attributes.add(key="bad text").value.string_value = "~~~~"
    return message.SerializeToString().replace(b"~~~~", b"\xff\xfe\xfd\xc0")


def test_attributes_of_every_shape_are_taken(monitor):
    assert monitor.post(strange()).status_code == 200
    outcomes = monitor.settled(1)
    assert outcomes["ended"]["scored"] == 1, "its workflow can be checked, whatever its attributes are"
    assert "exception" not in monitor.log()


def test_a_span_that_is_nested_deeper_than_protobuf_allows_is_rejected_alone(monitor):
    body = request([one(2), one(3)]) + too_deep()  # requests in a row are one request: protobuf merges them
    reported = ExportTraceServiceResponse.FromString(monitor.post(body).content).partial_success
    assert (reported.rejected_spans, "decoded" in reported.error_message) == (1, True)
    assert monitor.settled(2)["ended"]["scored"] == 2


def too_deep() -> bytes:
    """A request whose only span holds lists in lists 200 deep: no parser of the usual limits reads it."""
    value = b""
    for _ in range(200):
        value = field(5, field(1, value))
    span_bytes = field(1, trace(4)) + field(2, span(4)) + field(5, b"deep") + field(9, field(1, b"k") + field(2, value))
    return field(1, field(2, field(2, span_bytes)))


def field(number: int, content: bytes) -> bytes:
    """A length-delimited protobuf field."""
    length, size = b"", len(content)
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def test_ten_thousand_spans_in_one_trace_are_one_trace(monitor):
    spans = [S(trace_id=trace(1), span_id=span(1), name="root")]
    spans += [S(trace_id=trace(1), span_id=span(n), parent_id=span(n // 2), name="step") for n in range(2, 10_001)]
    assert monitor.post(request(spans)).status_code == 200
    outcomes = monitor.settled(1)
    assert outcomes["ended"]["scored"] == 1
    assert monitor.get(f"/v1/traces/{trace(1).hex()}")["spans"] == 10_000


def test_a_chain_of_five_thousand_parents_and_a_circle_of_parents_end_too(monitor):
    chain = [S(trace_id=trace(1), span_id=span(n), parent_id=span(n - 1) if n > 1 else b"") for n in range(1, 5001)]
    circle = [S(trace_id=trace(2), span_id=span(n), parent_id=span(n % 3 + 1)) for n in range(1, 4)]
    assert monitor.post(request(chain + circle)).status_code == 200
    outcomes = monitor.settled(2)
    assert (outcomes["ended"]["scored"], outcomes["ended"]["incomplete"], balanced(outcomes)) == (1, 1, True)


def test_batches_that_are_sent_again_change_nothing(monitor):
    body = request([one(1), one(2), S(trace_id=trace(1), span_id=span(11), parent_id=span(1))])
    for _ in range(3):
        assert monitor.post(body).status_code == 200
    monitor.settled(2)
    assert monitor.post(body).status_code == 200
    outcomes = monitor.settled(2)
    assert (outcomes["seen"], outcomes["ended"]["scored"], outcomes["revisions"]) == (2, 2, 0)


def test_late_spans_that_change_the_verdict_make_a_revision_of_it(serving):
    monitor = serving(routes=ROUTES, scenarios={"any": {"tools_should_exclude": ["rm"]}})
    ran = {"openinference.span.kind": "AGENT", "output.value": "Done."}
    assert monitor.post(request([one(1, attributes=ran)])).status_code == 200
    monitor.settled(1)
    assert monitor.verdicts()[0]["passed"] is True
    forbidden = {"openinference.span.kind": "TOOL", "tool.name": "rm"}
    late = S(trace_id=trace(1), span_id=span(2), parent_id=span(1), attributes=forbidden)
    assert monitor.post(request([late])).status_code == 200
    monitor.until(lambda: monitor.outcomes()["revisions"] == 1, "no revision came")
    verdict, *others = monitor.verdicts()
    assert (verdict["passed"], verdict["revision"], others) == (False, 2, [])
    status = monitor.get("/v1/status")
    assert status["standings"][0]["failures"] == status["standings"][0]["n"] == 1
    assert (status["outcomes"]["seen"], balanced(status["outcomes"])) == (1, True)


def test_evaluators_own_traffic_is_never_judged(monitor):
    assert monitor.post(request([one(1)], {"langfuse.environment": "langfuse-llm-as-a-judge"})).status_code == 200
    assert monitor.settled(1)["ended"]["excluded"] == 1
    assert monitor.verdicts() == []


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_what_a_monitor_tells_of_itself_is_in_the_books_and_nowhere_else(monitor, encoding):
    own = S(trace_id=trace(7), span_id=span(1), service="sidejudge")
    if encoding == "protobuf":
        answer = monitor.post(request([own]))
    else:
        stated = {"traceId": trace(7).hex(), "spanId": span(1).hex(), "name": "evaluate"}
        body = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "sidejudge.judge"}, "spans": [stated]}]}]}
        answer = monitor.post(json.dumps(body).encode(), content_type="application/json")
    assert answer.status_code == 200
    outcomes = monitor.outcomes()
    assert (outcomes["seen"], outcomes["open"], outcomes["ended"]["excluded"], balanced(outcomes)) == (1, 0, 1, True)
    story = monitor.get(f"/v1/traces/{trace(7).hex()}")
    assert (story["reason"], story["verdicts"]) == ("excluded", [])
    assert story["excluded"] == "it is a trace of a monitor itself"


def test_at_one_percent_every_trace_is_in_the_books_and_the_draw_is_the_specification_s(serving):
    monitor = serving(routes=ROUTES, scenarios=SCENARIOS, sampling={"rate": 0.01})
    spans = [S(trace_id=os.urandom(16), span_id=span(n + 1)) for n in range(3000)]
    drawn = {
        s.trace_id.hex() for s in spans if int.from_bytes(s.trace_id[-7:], "big") >= (1 << 56) - round(2**56 * 0.01)
    }
    for start in range(0, 3000, 100):
        assert monitor.post(request(spans[start : start + 100])).status_code == 200
    outcomes = monitor.settled(3000)
    assert outcomes["seen"] == 3000
    assert outcomes["ended"]["scored"] == len(drawn)
    assert outcomes["ended"]["sampled_out"] == 3000 - len(drawn)
    assert {verdict["trace_id"] for verdict in monitor.verdicts()} == drawn
    out = next(s.trace_id.hex() for s in spans if s.trace_id.hex() not in drawn)
    assert monitor.get(f"/v1/traces/{out}")["reason"] == "sampled_out"


@pytest.mark.parametrize(("trusted", "chance"), [({"trust_upstream": {"floor": 0.1}}, 0.25), ({}, 1.0)])
def test_upstream_probability_multiplies_into_the_weight_where_it_is_trusted(serving, trusted, chance):
    monitor = serving(routes=ROUTES, scenarios=SCENARIOS, sampling={"rate": 1.0, **trusted})
    sent = one(1, trace_state="vendor=1,ot=th:c")  # upstream kept 25 %; the id's randomness is above that
    assert sent.trace_id.endswith(HIGH)
    assert monitor.post(request([sent])).status_code == 200
    monitor.settled(1)
    assert monitor.verdicts()[0]["sampling_probability"] == chance
    assert monitor.get("/v1/status")["standings"][0]["traffic"] == 1 / chance
