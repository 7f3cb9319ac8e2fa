"""Log records: those that are events of drawn traces are kept, in either encoding, and read back on their spans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from sidejudge.integrations.otlp.wire.chunk import ChunkOrigin
from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.integrations.otlp.wire.kept import decode_kept
from sidejudge.integrations.otlp.wire.receipt import Undecodable
from sidejudge.integrations.otlp.wire.recording import read_files
from sidejudge.integrations.otlp.wire.request import identify, read_headers, split
from sidejudge.integrations.otlp.wire.request_logs import split_logs, split_logs_json
from tests.otlp_requests import LOW, S, request, span, trace

HALF = 1 << 55


def admit(threshold=0):
    return lambda resource: ChunkOrigin(*identify(resource), threshold)


def logs(*records, service="shop") -> bytes:
    """A request of records as (trace id, span id, event name, body, attributes)."""
    message = ExportLogsServiceRequest()
    resource_logs = message.resource_logs.add()
    resource_logs.resource.attributes.add(key="service.name").value.string_value = service
    for trace_id, span_id, event, body, attributes in records:
        made = resource_logs.scope_logs.add().log_records.add(
            trace_id=trace_id, span_id=span_id, event_name=event, time_unix_nano=1_500
        )
        made.body.string_value = body
        for key, value in attributes.items():
            made.attributes.add(key=key).value.string_value = value
    return message.SerializeToString()


def in_json(*records) -> bytes:
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [
        {"traceId": trace_id.hex(), "spanId": span_id.hex(), "eventName": event, "timeUnixNano": "1500",
         "body": {"stringValue": body},
         "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]}
        for trace_id, span_id, event, body, attributes in records]}]}]}).encode()  # fmt: skip


MIXED = (
    (trace(1), span(1), "gen_ai.user.message", "hello", {}),
    (trace(1), span(2), "", "older", {"event.name": "gen_ai.choice"}),
    (trace(2, LOW), span(1), "gen_ai.user.message", "not drawn", {}),
    (trace(3), span(1), "", "a plain line", {"logger": "shop"}),
    (b"", b"", "", "no trace", {}),
    (trace(3), b"", "gen_ai.user.message", "no span", {}),
    (bytes(16), span(1), "gen_ai.user.message", "zero", {}),
)
BOTH = pytest.mark.parametrize(("write", "read"), [(logs, split_logs), (in_json, split_logs_json)])


@BOTH
def test_events_of_drawn_traces_are_kept_and_the_rest_is_counted(write, read):
    found = read(write(*MIXED), admit(HALF))
    assert (found.records, found.kept, found.dropped, found.plain, found.untraced) == (7, 2, 1, 1, 3)
    (chunk,) = found.chunks
    assert (chunk.trace_id, chunk.headers, chunk.records) == (trace(1), (), 2)


@BOTH
def test_what_is_kept_reads_back_on_the_spans_of_the_trace(write, read):
    (reported,) = read(write(*MIXED), admit(HALF)).chunks
    (spans,) = split(request([S(trace_id=trace(1), span_id=span(n)) for n in (1, 2, 3)]), admit()).chunks
    for payloads in ([reported.payload, spans.payload], [spans.payload, reported.payload]):
        kept = decode_kept(payloads)
        assert [[(e.name, e.attributes.get("body")) for e in s.events] for s in kept.spans] == [
            [("gen_ai.user.message", "hello")], [("gen_ai.choice", "older")], []
        ]  # fmt: skip
        assert kept.damaged == 0


@BOTH
def test_a_record_without_a_name_is_kept_where_it_shows_contents(write, read):
    bodies = ('{"role": "user", "content": "hello"}', "a plain line", '[{"role": "assistant", "content": "hi"}]', "")
    unnamed = [(trace(1), span(1), "", body, {}) for body in bodies]
    in_attributes = (trace(1), span(1), "", "llm", {"role": "user", "content": "hello"})
    found = read(write(*unnamed, in_attributes), admit())
    assert (found.kept, found.plain) == (3, 2)


def test_a_chunk_of_log_records_holds_no_spans_for_whoever_looks_for_them():
    (chunk,) = split_logs(logs(*MIXED), admit(HALF)).chunks
    assert decode_spans(chunk.payload) == []
    assert read_headers(chunk.payload, trace(1)) == ()


def test_a_chunk_that_is_damaged_is_counted_and_costs_no_other():
    (reported,) = split_logs(logs(*MIXED), admit(HALF)).chunks
    (spans,) = split(request([S(trace_id=trace(1), span_id=span(1))]), admit()).chunks
    kept = decode_kept([reported.payload[:-3], b"\xff\xff", spans.payload])
    assert ([s.span_id for s in kept.spans], kept.damaged) == ([span(1).hex()], 2)


def test_a_record_that_is_damaged_is_rejected_and_costs_no_other():
    body = logs(*MIXED[:2])
    broken = body.replace(b"\x52\x08" + span(2), b"\x57\x08" + span(2))  # its field now says that it is a group
    found = split_logs(broken, admit())
    assert (found.kept, found.rejected) == (1, 1)
    assert "1 log records could not be decoded" in found.message


@pytest.mark.parametrize(
    ("read", "body"),
    [(split_logs, b"\xff"), (split_logs, b"\x0a\x05ab"), (split_logs_json, b"[]"), (split_logs_json, b"{"),
     (split_logs_json, b'{"resourceSpans": []}')],
)  # fmt: skip
def test_what_is_no_log_request_is_refused(read, body):
    with pytest.raises(Undecodable):
        read(body, admit())


def test_recorded_conversations_in_log_records_come_out_as_a_recording_of_them_does(shared: Path):
    compared = 0
    for folder in sorted({path.parent for path in (shared / "corpus" / "otlp").rglob("*.logs.pb")}):
        whole = read_files(sorted(folder.glob("*.pb")))
        chunks = []
        for path in sorted(folder.glob("*.pb")):
            body = path.read_bytes()
            if ".logs." in path.name:
                binary = split_logs(body, admit()).chunks
                reported = split_logs_json(path.with_suffix(".json").read_bytes(), admit()).chunks
                assert [decode_kept([c.payload]) for c in binary] == [decode_kept([c.payload]) for c in reported]
                chunks += binary
            elif read_files([path]).spans:
                chunks += split(body, admit()).chunks
        trace_ids = {chunk.trace_id for chunk in chunks}
        spans = [s for t in trace_ids for s in decode_kept(c.payload for c in chunks if c.trace_id == t).spans]
        assert sorted(spans, key=repr) == sorted(whole.spans, key=repr), folder
        compared += sum(len(s.events) for s in spans)
    assert compared > 20


@BOTH
def test_a_verdict_of_others_on_a_whole_trace_is_kept_though_it_names_no_span(write, read):
    evaluated = {"gen_ai.evaluation.name": "helpful", "gen_ai.evaluation.score.label": "yes"}
    named = {**evaluated, "event.name": "gen_ai.evaluation.result"}
    found = read(
        write(
            (trace(1), b"", "gen_ai.evaluation.result", "", evaluated), (trace(2), b"", "", "", named),
            (trace(3), b"", "gen_ai.user.message", "hello", {}),
        ), admit(),
    )  # fmt: skip
    assert (found.kept, found.untraced) == (2, 1)
    assert {chunk.trace_id for chunk in found.chunks} == {trace(1), trace(2)}
