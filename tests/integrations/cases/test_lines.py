"""The reader of cases: strict types, one clear error a line, nothing lost beside it."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidejudge.integrations.cases.fields import case_schema
from sidejudge.integrations.cases.lines import CaseError, read_case, read_case_with_remarks
from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.trace.span import ToolCall

FULL = {
    "case_id": "call-0017", "task": "qa", "input": [{"role": "user", "content": "hi"}],
    "transcript": [{"speaker": "agent", "text": "hello", "at": "01:23"}, {"text": "x"}],
    "model_output": {"questions": []}, "expected_outcome": {"questions": []},
    "config": {"keywords": []}, "scenario": "qa_call", "agents_called": ["orchestrator"],
    "tools_used": ["web", {"name": "pdf", "arguments": {}, "result": "r", "error": None}],
    "repeats": [{"questions": []}, "text", None],
    "context": ["passage"], "system_prompt": "s", "latency_e2e_ms": 1840, "latency_model_ms": 1500.5,
    "timed_out": False, "input_tokens": 1200, "output_tokens": 300, "cost_usd": 0.0042,
    "model": "provider/model@version", "tags": ["a"], "metadata": {"k": 1}, "evaluation_criteria_override": None,
    "session_id": None, "user_id": "u", "service": "s", "environment": "e",
    "sampling_probability": 0.5, "trace_id": None,
}  # fmt: skip


def read(**fields):
    return read_case(json.dumps({"case_id": "c", "model_output": "x", **fields}), 7)


def test_every_field_of_the_format_is_read():
    case = read_case(json.dumps(FULL), 1)
    assert case.transcript == (Utterance("hello", "agent", "01:23"), Utterance("x"))
    assert case.tools_used == (ToolCall(name="web"), ToolCall(name="pdf", arguments={}, result="r"))
    assert (case.latency_e2e_ms, case.input_tokens, case.sampling_probability) == (1840, 1200, 0.5)
    assert case.agents_called == ("orchestrator",)
    assert case.session_id is None
    assert case.repeats == ({"questions": []}, "text", None)


def test_what_others_found_of_a_case_is_read_in_its_order_and_what_cannot_be_a_number_is_kept_as_such():
    stated = [
        {"name": "polite", "value": 0.5, "label": "so so", "explanation": "It is curt.", "by": "ragas"},
        {"name": "safe", "value": "high", "via": "langfuse", "span_id": "00f067aa0ba902b7"},
    ]
    one, other = read(reported=stated).reported
    assert (one.name, one.value, one.label, one.explanation, one.by) == ("polite", 0.5, "so so", "It is curt.", "ragas")
    assert (one.via, one.invalid, one.at_ns) == ("case", None, 0)
    assert (other.value, other.via, other.span_id, other.at_ns) == (None, "langfuse", "00f067aa0ba902b7", 1)
    assert other.invalid is not None
    with pytest.raises(CaseError, match=r"reported\[1\].name"):
        read(reported=[stated[0], {"value": 1.0}])


def test_two_fields_are_enough_and_null_means_absent():
    assert read(scenario=None, tags=None, timed_out=None) == Case(case_id="c", model_output="x")


def test_an_absent_list_is_unknown_and_an_empty_one_is_empty():
    assert read().tools_used is None
    assert read(tools_used=[]).tools_used == ()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"case_id": 17}, "case_id"),
        ({"case_id": " "}, "case_id"),
        ({"case_id": None}, "case_id"),
        ({"input_tokens": 5.0}, "input_tokens"),
        ({"input_tokens": "5"}, "input_tokens"),
        ({"input_tokens": True}, "input_tokens"),
        ({"output_tokens": -1}, "output_tokens"),
        ({"latency_e2e_ms": "1"}, "latency_e2e_ms"),
        ({"latency_e2e_ms": -0.1}, "latency_e2e_ms"),
        ({"timed_out": 1}, "timed_out"),
        ({"tags": "a"}, "tags"),
        ({"tags": [1]}, "tags[0]"),
        ({"agents_called": ["a", None]}, "agents_called[1]"),
        ({"tools_used": [{"arguments": {}}]}, "tools_used[0].name"),
        ({"tools_used": [7]}, "tools_used[0]"),
        ({"tools_used": ['{"name": "pay"}']}, "tools_used[0]"),
        ({"transcript": 7}, "transcript"),
        ({"transcript": [{"speaker": "a"}]}, "transcript[0].text"),
        ({"transcript": [{"text": "a", "at": 83}]}, "transcript[0].at"),
        ({"scenario": []}, "scenario"),
        ({"config": []}, "config"),
        ({"metadata": "x"}, "metadata"),
        ({"sampling_probability": 0}, "sampling_probability"),
        ({"sampling_probability": 1.01}, "sampling_probability"),
        ({"sampling_probability": True}, "sampling_probability"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_field(fields, field):
    with pytest.raises(CaseError) as raised:
        read(**fields)
    assert (raised.value.line, raised.value.field) == (7, field)
    assert raised.value.message
    assert raised.value.remedy


@pytest.mark.parametrize("call", ["pay", " [pay]", '{"name": "pay"}', " ", {"name": "{pay"}])
def test_the_schema_takes_what_is_read_as_a_call(call):
    try:
        found = bool(read(tools_used=[call]).tools_used)
    except CaseError:
        found = False
    assert jsonschema_rs.is_valid(case_schema(), {"model_output": "x", "tools_used": [call]}) == found


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "null",
        "7",
        '"x"',
        b"\xff{}",
        '{"case_id": "c", "model_output": NaN}',
        '{"case_id": "c", "model_output": 1e999}',
    ],
)
def test_a_line_that_is_no_json_object_is_refused(line):
    with pytest.raises(CaseError, match=r"line 3: \$"):
        read_case(line, 3)


def test_an_output_is_required_and_an_id_is_the_line_where_it_is_missing():
    with pytest.raises(CaseError, match="model_output: is missing"):
        read_case(json.dumps({"case_id": "c"}), 1)
    assert read_case(json.dumps({"model_output": "x"}), 12).case_id == "line-12"


def test_a_misspelt_field_is_an_error_that_names_the_right_one():
    with pytest.raises(CaseError, match=r"expected_outcom: unknown field; did you mean expected_outcome\?"):
        read(expected_outcom={})
    with pytest.raises(CaseError, match=r"tools_used\[0\].argumnts: .* arguments"):
        read(tools_used=[{"name": "t", "argumnts": {}}])
    with pytest.raises(CaseError, match=r"modl_output: .* model_output"):
        read_case('{"case_id": "c", "modl_output": "x"}', 1)


def test_any_other_unknown_field_is_left_alone_and_remarked():
    case, remarks = read_case_with_remarks('{"case_id": "c", "model_output": "x", "call_centre": 4, "dialects": []}', 1)
    assert case.case_id == "c"
    assert remarks == ("call_centre",)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('{"case_id": "c", "model_output": "x", "model_output": "y"}', "model_output"),
        ('{"case_id": "c", "case_id" :"c", "model_output": "x"}', "case_id"),
        ('{"case_id": "c", "model_output": {"questions": [{"score": 0, "score": 5}]}}', "score"),
        ('{"case_id": "c", "model_output": "x", "\\u0061": 1, "a": 2}', "a"),
        ('{"case_id": "c", "task": "\\u003a", "model_output": "x", "model_output": "y"}', "model_output"),
    ],
)
def test_a_key_that_stands_twice_is_no_case_for_which_is_meant_nobody_knows(line, key):
    with pytest.raises(CaseError, match=rf"^line 7: {key}: stands twice in one object; keep one of the two$"):
        read_case(line, 7)


@pytest.mark.parametrize(
    "output",
    ['"{\\"a\\": 1, \\"a\\": 2}"', '[{"a": 1}, {"a": 2}]', '{"a": {"a": 1}}', "1" * 300, "[" * 1000 + "]" * 1000],
)
def test_what_only_looks_like_a_doubled_key_is_a_case(output):
    assert read_case(f'{{"case_id": "c", "model_output": {output}}}', 1).case_id == "c"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


# Making the line is what takes long, not reading it: of 39 fields any number may hold a tree. Under load a draw may
# then exceed the time that the health check allows.
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(sorted(FULL)), JSON, max_size=8))
def test_whatever_stands_in_a_line_it_is_a_case_or_an_error(data):
    try:
        found = read_case(json.dumps(data), 1)
    except CaseError as error:
        found = error
    assert isinstance(found, Case) or str(found).startswith("line 1: ")


def test_a_tool_that_is_neither_a_name_nor_an_object_is_told_both_ways_of_writing_it():
    with pytest.raises(CaseError, match=r"tools_used\[0\]: is a number; write the tool's name, or an object with it"):
        read(tools_used=[7])


def test_hand_offs_that_stand_apart_are_put_among_the_calls_where_they_were_made():
    line = {
        "case_id": "c", "model_output": "x", "tools_used": ["search", "write"],
        "handoffs": [{"name": "transfer_to_a", "after": 0}, {"name": "transfer_to_b", "after": 1}, "transfer_to_c"],
    }  # fmt: skip
    with pytest.raises(CaseError, match=r"handoffs\[2\]"):
        read_case(json.dumps(line), 1)
    line["handoffs"][2] = {"name": "transfer_to_c", "after": 2, "arguments": {"why": "done"}}
    calls = read_case(json.dumps(line), 1).tools_used
    assert [call.name for call in calls] == ["transfer_to_a", "search", "transfer_to_b", "write", "transfer_to_c"]
    assert [call.handoff for call in calls] == [True, False, True, False, True]
    assert calls[4].arguments == {"why": "done"}


def test_a_misspelt_field_of_a_hand_off_is_an_error():
    line = {"case_id": "c", "model_output": "x", "handoffs": [{"name": "t", "arguements": {}}]}
    with pytest.raises(CaseError, match="did you mean arguments"):
        read_case(json.dumps(line), 1)
