from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from sidejudge.integrations.otlp.wire.decode import UndecodableError, decode_logs
from sidejudge.integrations.otlp.wire.decode_json import decode_logs_json


def _request(depth: int = 1) -> bytes:
    request = ExportLogsServiceRequest()
    record = (
        request.resource_logs.add()
        .scope_logs.add()
        .log_records.add(
            observed_time_unix_nano=7, trace_id=b"\x01" * 16, span_id=b"\x02" * 8, event_name="gen_ai.choice"
        )
    )
    value = record.body
    for _ in range(depth):
        value = value.kvlist_value.values.add(key="content").value
    value.string_value = "text"
    record.attributes.add(key="index").value.int_value = 3
    return request.SerializeToString()


def test_a_record_is_read_with_its_event_body_and_attributes() -> None:
    (record,) = decode_logs(_request())
    assert (record.trace_id, record.span_id, record.time_ns) == ("01" * 16, "02" * 8, 7)
    assert (record.event, record.body, record.attributes) == ("gen_ai.choice", {"content": "text"}, {"index": 3})


def test_a_body_nested_beyond_what_protobuf_takes_costs_only_what_lies_deeper() -> None:
    (record,) = decode_logs(_request(depth=200))
    assert record.event == "gen_ai.choice"
    assert isinstance(record.body, dict)


def test_the_event_s_name_may_be_an_attribute() -> None:
    (record,) = decode_logs_json(
        b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "5", "attributes":'
        b' [{"key": "event.name", "value": {"stringValue": "gen_ai.user.message"}}]}]}]}]}'
    )
    assert (record.event, record.time_ns, record.trace_id, record.span_id) == ("gen_ai.user.message", 5, None, None)


@pytest.mark.parametrize("payload", [b"\x0a\xff", _request()[:-3]])
def test_damaged_bytes_are_refused(payload: bytes) -> None:
    with pytest.raises(UndecodableError, match="not an OTLP logs request"):
        decode_logs(payload)


@pytest.mark.parametrize("payload", [b"{", b"[]", b'{"resourceSpans": []}'])
def test_json_that_is_no_logs_request_is_refused(payload: bytes) -> None:
    with pytest.raises(UndecodableError):
        decode_logs_json(payload)


def test_the_json_and_the_protobuf_form_of_a_logs_request_decode_alike(shared: Path) -> None:
    paths = sorted((shared / "corpus" / "otlp").rglob("*.logs.pb"))
    assert paths
    for path in paths:
        assert decode_logs(path.read_bytes()) == decode_logs_json(path.with_suffix(".json").read_bytes()), path
