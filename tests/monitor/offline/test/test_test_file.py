"""Test sets from files: three formats with one meaning, and every mistake told at once with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.cases.fields import _READERS
from sidejudge.monitor.offline.test.test_file import ANSWERED, CASE_FIELDS, TestSetError, append_test, read_test_set

TESTS = [
    {"input": "What is 2 + 2?", "expected": {"answer": "4"}, "tags": ["math"], "complexity": "low"},
    {"id": "hi", "input": [{"role": "user", "content": "${HOME} $${x}"}], "scenario": {"tools_should_include": ["a"]}},
    {"input": {"any": "json"}, "expected": None, "team": "billing", "metadata": {"n": 1}, "task": None},
]


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def problems(path: Path, text: str, *scenarios: str) -> list[str]:
    with pytest.raises(TestSetError) as reported:
        read_test_set(written(path, text), scenarios)
    return [str(problem) for problem in reported.value.problems]


def test_yaml_json_and_json_lines_say_the_same(tmp_path: Path) -> None:
    found = [
        read_test_set(written(tmp_path / name, text), ())
        for name, text in (
            ("s.yaml", yaml.safe_dump({"name": "s", "tests": TESTS})),
            ("s.json", json.dumps({"name": "s", "tests": TESTS})),
            ("s.jsonl", "\n" + "".join(json.dumps(test) + "\n\n" for test in TESTS)),
        )
    ]
    assert found[0] == found[1] == found[2]
    first, second, third = found[0].tests
    assert (first["id"], first["complexity"], first["expected"]) == ("test-0001", "low", {"answer": "4"})
    assert (second["id"], second["complexity"]) == ("hi", "medium")
    assert second["input"] == [{"role": "user", "content": "${HOME} $${x}"}], "variables are text in a test"
    assert third["id"] == "test-0003"
    assert third["team"] == "billing", "a field of the author's own is kept"
    assert third["expected"] is None
    assert "task" not in third


def test_every_mistake_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    reported = problems(
        tmp_path / "s.yaml",
        """\
nmae: oops
tests:
  - inptu: a
  - {input: b, expcted: x, tags: a}
  - {id: 7, input: c, complexity: [high]}
  - {id: one, input: d, tools_used: [], case_id: x}
  - {id: one, input: e, scenario: refnud}
  - {id: test-0007, input: f, scenario: {tools_should_inclde: [x]}}
  - input: g
  - just text
""",
        "refund",
    )
    assert [each.replace(f"{tmp_path}/", "") for each in reported] == [
        "nmae (s.yaml, line 1): unknown key; did you mean name?",
        "tests[0].inptu (s.yaml, line 3): unknown key; did you mean input?",
        "tests[1].expcted (s.yaml, line 4): unknown key; did you mean expected?",
        "tests[1].tags (s.yaml, line 4): is text; write a list",
        "tests[2].id (s.yaml, line 5): must be text; put it in quotation marks",
        "tests[2].complexity (s.yaml, line 5): must be text; put it in quotation marks",
        "tests[3].tools_used (s.yaml, line 6): is what the agent answers; a test does not have it",
        "tests[3].case_id (s.yaml, line 6): has another name in a test; did you mean id?",
        "tests[4].scenario (s.yaml, line 7): there is no scenario 'refnud'; did you mean refund?",
        "tests[4].id (s.yaml, line 7): 'one' is the id of tests[3] already; every test needs its own",
        "tests[5].scenario (s.yaml, line 8): tools_should_inclde: unknown key; did you mean tools_should_include?",
        "tests[6].id (s.yaml, line 9): 'test-0007' is the id of tests[5] already; every test needs its own",
        "tests[7] (s.yaml, line 10): must be a map of fields with input",
    ]


@pytest.mark.parametrize(
    ("name", "text", "stated"),
    [
        ("s.json", '{"tests": [', "line 1: is not JSON"),
        ("s.json", '{"name": "a", "name": "b", "tests": []}', "key 'name' stands twice"),
        ("s.json", '{"name": "a", "tests": [{"input": NaN}]}', "NaN is not a JSON number"),
        ("s.json", "[]", "must be a map with name and tests"),
        ("s.json", "{}", "tests (s.json): is required"),
        ("s.json", '{"tests": {}}', "tests (s.json): must be a list of tests"),
        ("s.json", '{"tests": []}', "tests (s.json): is empty"),
        ("s.json", '{"name": 3, "tests": [{"input": 1}]}', "name (s.json): must be text"),
        ("s.json", '{"tests": [{"input": null}]}', "tests[0].input (s.json): is required"),
        ("s.jsonl", '{"input": 1, "expectedOutput": "x"}', "another name in a test; did you mean expected?"),
        ("s.jsonl", '{"input": 1, "retrieved_contexts": ["x"]}', "another name in a test; did you mean context?"),
        ("s.jsonl", '{"input": 1}\n{"input"}\n', "s.jsonl, line 2: is not JSON"),
        ("s.jsonl", '{"input": 1}\n\n{"inpt": 1}\n', "tests[1].inpt (s.jsonl, line 3): unknown key"),
        ("s.yaml", "name: a\n\tx", "s.yaml, line 2: indents with a tab"),
        ("s.txt", "x", "must end with one of .yaml"),
        (
            "s.json",
            '{"tests": [{"input": ' + "[" * 500 + "]" * 500 + "}]}",
            "tests[0] (s.json): is nested more than 100",
        ),
        ("s.json", "[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_test_set_is_told(tmp_path: Path, name: str, text: str, stated: str) -> None:
    assert stated in problems(tmp_path / name, text)[0].replace(f"{tmp_path}/", "")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TestSetError) as reported:
        read_test_set(tmp_path / "none.yaml", ())
    assert reported.value.problems[0].unreadable
    (tmp_path / "latin.yaml").write_bytes(b"name: \xff")
    with pytest.raises(TestSetError, match="it is not UTF-8"):
        read_test_set(tmp_path / "latin.yaml", ())


def test_every_field_of_a_case_is_the_tests_or_the_agents() -> None:
    of_neither = {
        "case_id",
        "expected_outcome",
        "sampling_probability",
        "complete",
        "completion",
        "content_captured",
        "reported",
    }
    assert {*CASE_FIELDS, *ANSWERED, *of_neither, "capture_switch"} == set(_READERS)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(
    ["id", "input", "expected", "tags", "scenario", "metadata", "complexity", "context", "x", "transcript"]
)


@given(st.lists(st.dictionaries(names, json_values, max_size=5) | json_values, max_size=4))
def test_whatever_a_file_holds_it_is_a_test_set_or_a_list_of_problems(tmp_path_factory, tests) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps({"name": "any", "tests": tests}))
    try:
        ids = [test["id"] for test in read_test_set(path, ()).tests]
    except TestSetError as error:
        ids = [problem.path for problem in error.problems]
    assert ids


@pytest.mark.parametrize("text", ["it's\u2028so", "it's\x85so", "'\u2029", "ä #\u2028"])
def test_a_text_with_other_ends_of_lines_is_written_behind_others_as_it_is(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "t.yaml").write_text("tests:\n  - id: first\n    input: |+\n      two\n\n\n")
    append_test(path, {"id": "second", "input": text}, ())
    assert [test["input"] for test in read_test_set(path, ()).tests] == ["two\n\n\n", text]


def test_a_name_of_other_tools_beside_ours_is_a_field_of_the_author(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"input": 1, "expected": "x", "expected_output": "y", "reference": "JIRA-7"}\n')
    (test,) = read_test_set(path, ()).tests
    assert (test["expected"], test["expected_output"], test["reference"]) == ("x", "y", "JIRA-7")


def test_a_name_of_other_tools_without_a_value_hides_no_reference(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"input": 1, "expected_output": null, "retrieval_context": null, "ground_truth": null}\n')
    (test,) = read_test_set(path, ()).tests
    assert set(test) == {"input", "id", "complexity"}
