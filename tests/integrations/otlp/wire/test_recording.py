from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sidejudge.integrations.otlp.wire.recording import (
    RecordedFile,
    Recording,
    RecordingError,
    read_files,
    recorded_traces,
    requests_of,
)
from sidejudge.integrations.raw import RawSpan

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


def read(body: bytes) -> Recording:
    """The one request that a file holds."""
    (found,) = requests_of([RecordedFile("request", lambda: BytesIO(body))])
    return found


def test_files_of_one_delivery_are_read_together_whatever_their_order() -> None:
    whole = read_files(SPLIT)
    assert (len(SPLIT), len(whole.spans)) == (3, 5)
    for seed in range(5):
        shuffled = random.Random(seed).sample(SPLIT, len(SPLIT))
        assert read_files(shuffled) == whole


def test_a_file_given_twice_holds_its_spans_twice_in_a_fixed_order() -> None:
    assert read_files([*SPLIT, SPLIT[1]]) == read_files([SPLIT[1], *SPLIT])


def test_log_requests_are_told_from_trace_requests() -> None:
    found = read(_logs())
    assert (found.spans, found.skipped, len(found.logs)) == ((), 0, 3)


def test_json_log_requests_are_told_from_trace_requests() -> None:
    found = read(b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [{}, {}]}]}]}')
    assert (found.spans, len(found.logs)) == ((), 2)


def test_every_log_request_in_the_corpus_is_recognised(shared: Path) -> None:
    paths = [*(shared / "corpus" / "otlp").rglob("*.logs.pb"), *(shared / "corpus" / "otlp").rglob("*.logs.json")]
    assert paths
    for path in paths:
        found = read_files([path])
        assert found.logs, path
        assert found.spans == (), path


def test_no_trace_request_in_the_corpus_is_taken_for_logs(shared: Path) -> None:
    for path in (shared / "corpus" / "otlp").rglob("*.pb"):
        if not path.name.endswith(".logs.pb"):
            found = read_files([path])
            assert found.spans, path
            assert (found.skipped, found.logs) == (0, ()), path


def test_json_requests_may_stand_a_line_each() -> None:
    line = (
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "0102030405060708090a0b0c0d0e0f10",'
        b' "spanId": "0102030405060708", "name": "%s"}]}]}]}'
    )
    body = b"\n" + line % b"one" + b"\n\n" + line % b"two" + b"\n"
    found = requests_of([RecordedFile("lines", lambda: BytesIO(body))])
    assert [span.name for part in found for span in part.spans] == ["one", "two"]
    with pytest.raises(RecordingError, match="lines: line 4: not JSON"):
        list(requests_of([RecordedFile("lines", lambda: BytesIO(body.replace(b'"two"', b"two")))]))


def test_one_request_may_stand_on_several_lines() -> None:
    found = read(
        json.dumps(
            {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "01" * 16, "spanId": "02" * 8}]}]}]}, indent=2
        ).encode()
    )
    assert len(found.spans) == 1


@pytest.mark.parametrize("size", range(100, 128))
def test_protobuf_of_any_length_is_told_from_json(size: int) -> None:
    """Its second byte is the length of the first message: 123 is a brace."""
    request = ExportTraceServiceRequest()
    made = request.resource_spans.add().scope_spans.add().spans.add(trace_id=b"\x01" * 16, span_id=b"\x02" * 8)
    made.name = "n"
    made.name += "n" * (size - request.resource_spans[0].ByteSize())
    body = request.SerializeToString()
    assert body[:2] == bytes([10, size])
    assert len(read(body).spans) == 1


def test_traces_are_those_of_all_files_read_at_once(shared: Path) -> None:
    """Each is in several files, in any order, some in log records, one delivered twice."""
    compared = 0
    folders = {path.parent for path in (shared / "corpus" / "otlp").rglob("*.pb")}
    for seed, folder in enumerate(sorted(folders)):
        paths = sorted(folder.glob("*.pb"))
        paths = random.Random(seed).sample([*paths, paths[0]], len(paths) + 1)
        whole: dict[str, list[RawSpan]] = {}
        for span in read_files(paths).spans:
            whole.setdefault(span.trace_id, []).append(span)
        found = list(recorded_traces(RecordedFile.at(path) for path in paths))
        assert [(spans[0].trace_id, list(spans)) for spans in found] == list(whole.items())
        compared += len(found)
    assert compared > 100


def test_each_trace_may_be_taken_in_another_thread(tmp_path: Path) -> None:
    """As ``score`` takes them where a judge is asked: threads of a pool take turns."""
    request = ExportTraceServiceRequest()
    for number in range(1, 5):
        span = request.resource_spans.add().scope_spans.add().spans.add(name="n", start_time_unix_nano=number)
        span.trace_id, span.span_id = number.to_bytes(16), number.to_bytes(8)
    path = tmp_path / "four.pb"
    path.write_bytes(request.SerializeToString())
    traces, found = recorded_traces([RecordedFile.at(path)]), []
    for _ in range(5):
        with ThreadPoolExecutor(max_workers=1) as other:
            found.append(other.submit(next, traces, None).result())
    assert [spans and spans[0].start_ns for spans in found] == [1, 2, 3, 4, None]


def test_all_unreadable_files_are_named_at_once(tmp_path: Path) -> None:
    damaged, absent, other = tmp_path / "damaged.pb", tmp_path / "absent.pb", tmp_path / "other.json"
    damaged.write_bytes(SPLIT[0].read_bytes()[:-5])
    other.write_text('{"hello": "world"}', encoding="utf-8")
    with pytest.raises(RecordingError) as caught:
        read_files([damaged, SPLIT[0], absent, other])
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [str(damaged), str(absent), str(other)]
    assert "resourceSpans" in caught.value.problems[2]


def test_damaged_bytes_are_neither_traces_nor_logs() -> None:
    with pytest.raises(RecordingError, match="request: "):
        read(_logs()[:-3])
