"""``sidejudge testcase``: a judged trace becomes a test, in a file or in a dataset, or nothing is written."""

from __future__ import annotations

import json

import pytest
import yaml

from sidejudge.monitor.offline.test.test_file import read_test_set
from tests.fakes.langfuse import datasets
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse

TRACE = "ab" * 16
CASE = {
    "case_id": TRACE, "trace_id": TRACE, "input": "Where is A-17?", "model_output": "No idea.", "service": "shop",
    "user_id": "ann", "transcript": None, "config": {}, "expected_outcome": None,
}  # fmt: skip
VERDICTS = [{"rubric": "qa", "passed": False, "scores": [{"metric": "facts", "rating": "fail"}, {"metric": "x"}]}]


@pytest.fixture
def at(monitor_at):
    return lambda **changes: monitor_at({f"/v1/traces/{TRACE}": {"verdicts": VERDICTS, "case": CASE, **changes}})


@pytest.mark.parametrize("name", ["tests.yaml", "tests.json", "tests.jsonl"])
def test_tests_are_written_behind_each_other_and_can_be_put_to_an_agent(call, at, tmp_path, name):
    file, url = tmp_path / name, at()
    for number, expected in enumerate(("It has been shipped.", '["shipped", "A-17"]'), 1):
        found = call("testcase", TRACE, "--into", file, "--expected", expected, "--id", f"t{number}", "--url", url)
        assert found.exit_code == 0, found.output
        assert f"{number} test{'s' if number > 1 else ''}, the last is t{number}" in found.output
    first, second = read_test_set(file, ()).tests
    assert (first["id"], first["input"], first["expected"]) == ("t1", "Where is A-17?", "It has been shipped.")
    assert second["expected"] == ["shipped", "A-17"]
    assert first["tags"] == ["regression", "facts"]
    assert "ann" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_what_stands_in_a_file_stays_with_its_comments(call, at, tmp_path):
    file = tmp_path / "orders.yaml"
    file.write_text("# ours\nname: orders\ntests:\n- id: first  # the oldest\n  input: Hello\n")
    assert call("testcase", TRACE, "--into", file, "--expected", "x", "--url", at()).exit_code == 0
    assert file.read_text().startswith(
        "# ours\nname: orders\ntests:\n- id: first  # the oldest\n  input: Hello\n- id: "
    )
    assert [each["id"] for each in yaml.safe_load(file.read_text())["tests"]] == ["first", "trace-abababababab"]


@pytest.mark.parametrize(
    ("changes", "arguments", "cause"),
    [
        ({"case": None}, ("--expected", "x"), "contents"),
        ({}, (), "what would have been right is not known"),
        ({"case": {**CASE, "input": None}}, ("--expected", "x"), "has no input"),
        ({}, ("--expected", "x", "--id", "taken"), "is the id of tests[0] already"),
    ],
)
def test_what_is_not_known_or_taken_is_refused_and_the_file_stays_as_it_was(
    call, at, tmp_path, changes, arguments, cause
):
    file = tmp_path / "tests.jsonl"
    before = json.dumps({"id": "taken", "input": "x"}) + "\n"
    file.write_text(before)
    found = call("testcase", TRACE, "--into", file, *arguments, "--url", at(**changes))
    assert found.exit_code == 2
    assert cause in found.output
    assert file.read_text() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_dataset_of_langfuse_takes_it_with_the_trace_that_it_is_made_from(call, at, tmp_path):
    config = tmp_path / "c.yaml"
    with FakeLangfuse(parts=(datasets.part,)) as fake:
        datasets.datasets_of(fake)["regressions"] = []
        config.write_text(
            yaml.safe_dump(
                {"sinks": {"langfuse": {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}}}
            )
        )
        arguments = ("testcase", TRACE, "--expected", "Shipped.", "--url", at(), "--config", config)
        found = call(*arguments, "--dataset", "regressions")
        assert found.exit_code == 0, found.output
        (item,) = datasets.datasets_of(fake)["regressions"]
        assert (item["input"], item["expectedOutput"], item["sourceTraceId"]) == ("Where is A-17?", "Shipped.", TRACE)
        unknown = call(*arguments, "--dataset", "nothing")
        assert unknown.exit_code == 2
        assert "create the dataset" in unknown.output
