"""Lines in the formats of other tools are cases; what is not read is among the remarks."""

from __future__ import annotations

import json

import pytest

from sidejudge.integrations.cases.lines import CaseError, read_case, read_case_with_remarks
from sidejudge.integrations.cases.names import OTHER_NAMES
from sidejudge.scoring.trace.span import ToolCall

DEEPEVAL = {
    "input": "What if these shoes do not fit?", "actual_output": "30 days to return.",
    "expected_output": "You have 30 days.", "retrieval_context": ["All customers have 30 days."],
    "tools_called": [{"name": "lookup", "description": "d", "input_parameters": {"q": 1}, "output": "found"}],
    "token_cost": 0.01, "additional_metadata": {"a": "b"},
}  # fmt: skip
RAGAS = {
    "user_input": "When?", "response": "Tomorrow.", "reference": "Tomorrow.",
    "retrieved_contexts": ["It opens tomorrow."],
}  # fmt: skip
RAGAS_BEFORE = {"question": "When?", "answer": "Tomorrow.", "ground_truth": "Tomorrow.", "contexts": ["Tomorrow."]}
LANGFUSE = {"id": "item-1", "input": {"q": "When?"}, "output": "Tomorrow.", "expectedOutput": "Tomorrow."}
MLFLOW = {"inputs": {"q": "When?"}, "outputs": "Tomorrow.", "expectations": {"expected_response": "Tomorrow."}}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (DEEPEVAL, {
            "case_id": "line-3", "input": "What if these shoes do not fit?", "model_output": "30 days to return.",
            "expected_outcome": "You have 30 days.", "context": ("All customers have 30 days.",), "cost_usd": 0.01,
            "tools_used": (ToolCall(name="lookup", arguments={"q": 1}, result="found"),), "metadata": {"a": "b"},
        }),
        (RAGAS, {"input": "When?", "model_output": "Tomorrow.", "expected_outcome": "Tomorrow.",
                 "context": ("It opens tomorrow.",)}),
        (RAGAS_BEFORE, {"input": "When?", "model_output": "Tomorrow.", "expected_outcome": "Tomorrow.",
                        "context": ("Tomorrow.",)}),
        (LANGFUSE, {"case_id": "item-1", "input": {"q": "When?"}, "expected_outcome": "Tomorrow."}),
        (MLFLOW, {"input": {"q": "When?"}, "model_output": "Tomorrow.", "expected_outcome": "Tomorrow."}),
    ],
)  # fmt: skip
def test_a_line_of_another_tool_is_a_case_and_nothing_of_it_is_lost(line, expected):
    case, remarks = read_case_with_remarks(json.dumps(line), 3)
    assert {name: getattr(case, name) for name in expected} == expected
    assert remarks == ()


def test_our_own_name_goes_first_and_the_other_is_reported_as_ignored():
    case, remarks = read_case_with_remarks('{"model_output": "a", "answer": "b", "response": "c", "id": 7}', 1)
    assert (case.model_output, case.case_id) == ("a", "7")
    assert remarks == ("answer", "response")


def test_null_is_an_output_under_our_name_alone():
    assert read_case('{"case_id": "1", "model_output": null}', 1).model_output is None
    assert read_case('{"model_output": null, "answer": "x"}', 1).model_output == "x"


def test_of_two_other_names_the_first_is_read():
    case, remarks = read_case_with_remarks('{"output": "b", "actual_output": "a"}', 1)
    assert (case.model_output, remarks) == ("a", ("output",))


def test_a_line_without_an_output_names_all_that_is_read_for_it():
    with pytest.raises(CaseError) as refused:
        read_case('{"input": "x"}', 4)
    assert str(refused.value).startswith("line 4: model_output: is missing")
    assert all(name in refused.value.remedy for name in OTHER_NAMES["model_output"])


def test_a_misspelt_field_is_refused_as_before():
    with pytest.raises(CaseError, match="did you mean expected_outcome"):
        read_case('{"model_output": "x", "expected_outcom": 1}', 1)


def test_no_name_stands_for_two_fields_or_for_one_of_ours():
    others = [other for each in OTHER_NAMES.values() for other in each]
    assert len(set(others)) == len(others)
    assert not set(others) & set(OTHER_NAMES)
