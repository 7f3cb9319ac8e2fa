"""Rows of a real Langfuse, as recorded, read as the spans that they were; what is peculiar of rows, one test each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sidejudge.integrations.langfuse import legacy
from sidejudge.integrations.langfuse.normalise import is_trace_id, nested, raw_span, raw_spans, span_id
from sidejudge.integrations.langfuse.observations import instant, instant_ns, newest
from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.integrations.otlp.wire.encode import encode_spans
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.span import SpanKind
from tests.rows import trace_of

ROW: dict[str, Any] = {
    "id": "a" * 16, "traceId": "1" * 32, "startTime": "2026-11-21T00:56:39.001Z", "endTime": "2026-11-21T00:56:39.002Z",
    "type": "SPAN", "name": "step", "parentObservationId": None, "environment": "default", "level": "DEFAULT",
}  # fmt: skip


def recorded(shared: Path, name: str) -> Any:
    return json.loads((shared / "contracts" / "langfuse-recordings" / f"{name}.json").read_text())["response"]["body"]


@pytest.mark.parametrize("mode", ["dual", "events_only"])
def test_a_recorded_trace_is_read_with_its_agents_tools_labels_and_tokens(shared, mode):
    trace = trace_of(recorded(shared, f"observations-v2-all-fields-trace.{mode}")["data"])
    assert trace is not None
    assert trace.complete, "its root names a caller that Langfuse never saw, and is marked as root"
    case = extract(trace)
    assert (case.name, case.environment, case.session_id, case.user_id) == ("trace-3", "production", "sess-1", "user-1")
    assert case.tags == ("alpha", "t3")
    assert case.agents_called == ("support-agent",)
    assert [tool.name for tool in case.tools_used or ()] == ["lookup_order"]
    assert "order not found" in str(case.error)
    assert (case.input, case.model_output) == ("Where is order 3?", '{"answer": "Order 3 shipped"}')
    assert {key: case.metadata[key] for key in ("tm", "k", "n", "nested")} == {
        "tm": "x", "k": "v", "n": 3, "nested": {"a": [1, 2]},
    }  # fmt: skip
    assert not any(key.startswith(("resourceAttributes", "scope")) for key in case.metadata)
    assert (case.model, case.output_tokens) == ("gpt-4o", 20)
    assert case.service == "unknown_service:python"


def test_the_legacy_read_of_a_trace_says_what_the_new_one_says(shared):
    new = trace_of(recorded(shared, "observations-v2-all-fields-trace.dual")["data"])
    reported = recorded(shared, "trace-get.dual")
    old = trace_of([legacy._row(reported, each) for each in reported["observations"]])
    assert new is not None
    assert old is not None
    for field in (
        "model_output",
        "agents_called",
        "tools_used",
        "input",
        "tags",
        "session_id",
        "name",
        "output_tokens",
    ):
        assert getattr(extract(old), field) == getattr(extract(new), field), field


def test_spans_of_rows_survive_the_store_as_they_are(shared):
    spans = raw_spans(recorded(shared, "observations-v2-all-fields-trace.dual")["data"])
    assert decode_spans(encode_spans(spans)) == spans


def test_empty_texts_are_no_values():
    span = raw_span(
        {**ROW, "input": "", "output": None, "statusMessage": "", "userId": "", "sessionId": "", "model": ""}
    )
    assert span is not None
    assert set(span.attributes) == {"langfuse.observation.type", "langfuse.observation.level"}


def test_the_environment_default_means_that_none_was_named():
    span = raw_span(ROW)
    assert span is not None
    assert "langfuse.environment" not in span.attributes


def test_both_names_of_the_model_are_read():
    for column in ("model", "providedModelName"):
        span = raw_span({**ROW, "type": "GENERATION", column: "gpt-x"})
        assert span is not None
        assert span.attributes["langfuse.observation.model.name"] == "gpt-x"


def test_flat_metadata_becomes_the_objects_that_it_was():
    flat = {"expected_outcome.questions.0": "a", "expected_outcome.questions.1": "b", "a.b": 1, "a": "whole"}
    assert nested(flat) == {"a": "whole", "expected_outcome": {"questions": ["a", "b"]}}
    deep = ".".join(str(n) for n in range(5000))
    assert nested({deep: 1, f"{deep}.more": 2})


def test_attributes_that_langfuse_kept_of_other_clients_are_attributes_again():
    metadata = {
        "attributes.gen_ai.agent.name": "research",
        "attributes.langfuse.trace.tags": "no",
        "own": "x",
        "scope": "eu",
    }
    trace = trace_of([{**ROW, "type": "AGENT", "name": "invoke_agent research", "metadata": metadata}])
    assert trace is not None
    (span,) = trace.spans
    assert (span.kind, span.agent, span.trace_metadata) == (SpanKind.AGENT, "research", {"own": "x", "scope": "eu"})
    assert span.tags == ()


def test_a_root_with_a_caller_elsewhere_is_marked_and_several_roots_are_kept():
    rows = [
        {**ROW, "isRootObservation": True, "parentObservationId": "f" * 16},
        {**ROW, "id": "b" * 16, "isRootObservation": True, "startTime": "2026-11-21T00:56:40.000Z"},
    ]
    trace = trace_of(rows)
    assert trace is not None
    assert (len(trace.spans), trace.complete) == (2, True)


def test_of_rows_that_come_twice_the_one_that_was_updated_last_stays():
    times = {"old": "2026-01-09T08:00:00Z", "new": "2026-03-01T08:00:00.5+02:00", "x": ""}
    rows = [{**ROW, "name": name, "updatedAt": at} for name, at in times.items()]
    assert [row["name"] for row in newest(rows)] == ["new"]


@pytest.mark.parametrize("row", [{**ROW, "traceId": "a-b"}, {**ROW, "traceId": "0" * 32}, {**ROW, "startTime": "soon"},
                                 {**ROW, "id": ""}, {**ROW, "startTime": "9999-01-01T00:00:00Z"}, {}])  # fmt: skip
def test_what_cannot_be_a_span_is_none(row):
    assert raw_span(row) is None


def test_ids_of_older_sdks_are_replaced_by_derived_ones():
    assert span_id("a" * 16) == "a" * 16
    made = span_id("0a3c1c2e-7a36-4d0e-9a55-3d3a4a0c1f5e")
    assert len(made) == 16
    assert made != span_id("another")
    assert not is_trace_id("0a3c1c2e-7a36-4d0e-9a55-3d3a4a0c1f5e")


def test_times_are_read_and_written_to_the_millisecond():
    assert instant_ns("2026-11-21T00:56:39.001Z") == instant_ns("2026-11-21T01:56:39.001+01:00")
    assert instant(instant_ns("2026-11-21T00:56:39.001Z") or 0) == "2026-11-21T00:56:39.001Z"
    assert instant_ns("yesterday") is None
    assert instant_ns(17) is None


def case_of(*rows: dict[str, Any]) -> Any:
    trace = trace_of([{**ROW, **row} for row in rows])
    assert trace is not None
    return extract(trace)


@pytest.mark.parametrize(
    ("stated", "kind"),
    [("SPAN", SpanKind.CHAIN), ("GENERATION", SpanKind.LLM), ("EVENT", SpanKind.OTHER),
     ("AGENT", SpanKind.AGENT), ("TOOL", SpanKind.TOOL),
     ("CHAIN", SpanKind.CHAIN), ("RETRIEVER", SpanKind.RETRIEVER), ("EVALUATOR", SpanKind.EVALUATOR),
     ("EMBEDDING", SpanKind.EMBEDDING), ("GUARDRAIL", SpanKind.GUARDRAIL), ("NEW_KIND", SpanKind.OTHER)],
)  # fmt: skip
def test_every_type_of_row_is_the_kind_of_span_that_it_was(stated, kind):
    trace = trace_of([{**ROW, "type": stated}])
    assert trace is not None
    (span,) = trace.spans
    assert span.kind is kind


def test_a_latency_that_a_row_names_is_not_believed_for_its_unit_depends_on_the_endpoint():
    reported = {"startTime": "2026-11-21T00:00:00.000Z", "endTime": "2026-11-21T00:00:01.234Z"}
    assert {case_of({**reported, "latency": latency}).latency_e2e_ms for latency in (1.234, 1234, None)} == {1234.0}


def test_prices_are_texts_and_the_cost_is_that_of_the_details():
    row = {"type": "GENERATION", "model": "gpt-x", "inputPrice": "0.000000150000", "totalPrice": "0.01",
           "totalCost": 0.01, "costDetails": {"input": 0.004, "output": 0.006, "total": 0.01}}  # fmt: skip
    assert case_of(row).cost_usd == pytest.approx(0.01)
    assert case_of({**row, "costDetails": {}, "totalCost": None}).cost_usd is None


def test_tokens_stand_in_buckets_of_which_input_leaves_out_what_was_cached():
    details = {"input": 3, "input_cached_tokens": 5, "output": 4, "output_reasoning_tokens": 2, "total": 14}
    case = case_of({"type": "GENERATION", "model": "gpt-x", "usageDetails": details})
    assert (case.input_tokens, case.output_tokens) == (8, 6)


@pytest.mark.parametrize("text", ["bare words", '{"answer": 1', "@@@langfuseMedia:type=image/png|id=x|source=bytes@@@"])
def test_contents_are_texts_whether_they_are_json_or_not_and_media_are_named_and_not_fetched(text):
    assert case_of({"output": text}).model_output == text


def test_a_trace_is_called_as_its_root_where_no_row_names_it():
    child = {"id": "b" * 16, "parentObservationId": "a" * 16, "name": "step 2"}
    assert case_of({"name": "checkout"}, child).name == "checkout"
    assert case_of({"name": "checkout", "traceName": "shop"}, child).name == "shop"


def test_labels_that_stand_on_the_root_alone_are_the_traces():
    root = {"tags": ["vip"], "userId": "u", "sessionId": "s", "environment": "production", "isRootObservation": True}
    child = {
        "id": "b" * 16,
        "parentObservationId": "a" * 16,
        "tags": [],
        "userId": "",
        "sessionId": "",
        "traceName": "",
    }
    case = case_of(child, root)
    assert (case.tags, case.user_id, case.session_id, case.environment) == (("vip",), "u", "s", "production")


@pytest.mark.parametrize(
    ("stated", "read"),
    [('"ann"', "ann"), ('""', ""), ('"', '"'), ('""x', '""x'), ('"ab', '"ab'), ('ab"', 'ab"'), ('!a"', '!a"'),
     ("!a!", "!a!"), ("aba", "aba"), ("ann", "ann"), (json.dumps('CORP\\ann "the 1st"'), 'CORP\\ann "the 1st"')],
)  # fmt: skip
def test_users_and_sessions_that_came_as_json_are_without_its_quotes(stated, read):
    span = raw_span({**ROW, "userId": stated, "sessionId": stated, "traceName": stated})
    assert span is not None
    shown = [span.attributes[key] for key in ("user.id", "session.id", "langfuse.trace.name")]
    assert shown == [read, read, stated]


@pytest.mark.parametrize(
    ("scope", "version", "as_sent"),
    [
        ("langfuse-sdk", "5.0.4", '"v"'),
        ("langfuse-sdk", "10.1", '"v"'),
        ("langfuse-sdk", "4.9", "v"),
        ("x", "5.0", "v"),
    ],
)
def test_metadata_of_the_newer_sdks_is_json_again(scope, version, as_sent):
    span = raw_span({**ROW, "metadata": {"k": "v", "scope": {"name": scope, "version": version}}})
    assert span is not None
    assert span.attributes["langfuse.observation.metadata.k"] == as_sent


@pytest.mark.parametrize(
    ("flat", "whole"),
    [
        ({"a": 1, "b.c": 2}, {"a": 1, "b": {"c": 2}}),
        ({"a.b.c.d": 1, "a.b.c.e": 2}, {"a": {"b": {"c": {"d": 1, "e": 2}}}}),
        ({"a.b": 1, "a.b.c": 2}, {"a": {"b": 1}}),
        ({"a": 1, "a.b": 2}, {"a": 1}),
        ({"a.0": "x", "a.1": "y"}, {"a": ["x", "y"]}),
        ({"a.1": "y"}, {"a": {"1": "y"}}),
        ({"a.b.c.d.e.f.g.h.i.j": 1}, {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i.j": 1}}}}}}}}}),
    ],
)
def test_dotted_keys_are_the_objects_that_they_were_to_eight_levels(flat, whole):
    assert nested(flat) == whole


@pytest.mark.parametrize(
    ("tags", "level", "read"),
    [(["a", 3], "ERROR", (["a", "3"], 2)), ([], "DEFAULT", (None, 0)), ("ab", "WARNING", (None, 0))],
)
def test_tags_are_a_list_and_only_an_error_fails(tags, level, read):
    span = raw_span({**ROW, "tags": tags, "level": level})
    assert span is not None
    assert (span.attributes.get("langfuse.trace.tags"), span.status_code) == read
