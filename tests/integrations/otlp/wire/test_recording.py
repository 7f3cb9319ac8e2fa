from __future__ import annotations

import random
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from integrations.otlp.wire.decode import UndecodableError
from integrations.otlp.wire.recording import RecordingError, read_files, read_payload

KEPT = Path(__file__).parents[3] / "data" / "otlp"
SPLIT = sorted((KEPT / "langfuse-v5-split" / "s4_error").glob("*.pb"))


def _logs() -> bytes:
    request = ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    scope.scope.name = "lib"
    for number in range(3):
        record = scope.log_records.add(time_unix_nano=number + 1, trace_id=b"\x01" * 16, span_id=b"\x02" * 8)
        record.body.string_value = "text"
        record.attributes.add(key="a").value.string_value = "b"
    return request.SerializeToString()


def test_files_of_one_delivery_are_read_together_whatever_their_order() -> None:
    whole = read_files(SPLIT)
    assert (len(SPLIT), len(whole.spans)) == (3, 5)
    for seed in range(5):
        shuffled = random.Random(seed).sample(SPLIT, len(SPLIT))
        assert read_files(shuffled) == whole


def test_a_file_given_twice_holds_its_spans_twice_in_a_fixed_order() -> None:
    assert read_files([*SPLIT, SPLIT[1]]) == read_files([SPLIT[1], *SPLIT])


def test_log_requests_are_told_from_trace_requests() -> None:
    found = read_payload(_logs())
    assert (found.spans, found.skipped, len(found.logs)) == ((), 0, 3)


def test_json_log_requests_are_told_from_trace_requests() -> None:
    found = read_payload(b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [{}, {}]}]}]}')
    assert (found.spans, len(found.logs)) == ((), 2)


def test_every_log_request_in_the_corpus_is_recognised(shared: Path) -> None:
    paths = [*(shared / "corpus" / "otlp").rglob("*.logs.pb"), *(shared / "corpus" / "otlp").rglob("*.logs.json")]
    assert paths
    for path in paths:
        found = read_payload(path.read_bytes())
        assert found.logs, path
        assert found.spans == (), path


def test_no_trace_request_in_the_corpus_is_taken_for_logs(shared: Path) -> None:
    for path in (shared / "corpus" / "otlp").rglob("*.pb"):
        if not path.name.endswith(".logs.pb"):
            found = read_payload(path.read_bytes())
            assert found.spans, path
            assert (found.skipped, found.logs) == (0, ()), path


def test_json_requests_may_stand_a_line_each() -> None:
    line = (
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "0102030405060708090a0b0c0d0e0f10",'
        b' "spanId": "0102030405060708", "name": "%s"}]}]}]}'
    )
    found = read_payload(line % b"one" + b"\n\n" + line % b"two" + b"\n")
    assert [span.name for span in found.spans] == ["one", "two"]


def test_all_unreadable_files_are_named_at_once(tmp_path: Path) -> None:
    damaged, absent, other = tmp_path / "damaged.pb", tmp_path / "absent.pb", tmp_path / "other.json"
    damaged.write_bytes(SPLIT[0].read_bytes()[:-5])
    other.write_text('{"hello": "world"}', encoding="utf-8")
    with pytest.raises(RecordingError) as caught:
        read_files([damaged, SPLIT[0], absent, other])
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [str(damaged), str(absent), str(other)]
    assert "resourceSpans" in caught.value.problems[2]


def test_damaged_bytes_are_neither_traces_nor_logs() -> None:
    with pytest.raises(UndecodableError):
        read_payload(_logs()[:-3])
