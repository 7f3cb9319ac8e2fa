"""Files of one argument, wherever they are, read as one, with remarks on the line of the file."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from sidejudge.monitor.offline.score.case_lines import TableError
from sidejudge.monitor.offline.score.case_sources import CaseSources
from tests.integrations.history.test_history import bucket  # noqa: F401  # a fixture
from tests.needs import PYARROW
from tests.otlp_requests import S, request, span, trace


def case(name: str) -> dict[str, str]:
    return {"case_id": name, "model_output": f"{name}!"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "b.jsonl").write_text(f"{json.dumps(case('b1'))}\n\n{json.dumps(case('b3'))}\n")
    (tmp_path / "a.csv").write_text("case_id,model_output\na2,a2!\n")
    (tmp_path / "deep" / "c.jsonl").write_text(json.dumps(case("c1")))
    (tmp_path / "notes.txt").write_text("no case")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("", ["a2", "b1", "b3", "c1"]),
        ("b.jsonl", ["b1", "b3"]),
        ("*.jsonl", ["b1", "b3"]),
        ("**/*.jsonl", ["b1", "b3", "c1"]),
        ("[ab].*", ["a2", "b1", "b3"]),
    ],
)
def test_a_file_a_folder_and_a_pattern_are_read_in_the_order_of_names(folder: Path, given: str, names: list) -> None:
    sources = CaseSources(f"{folder}/{given}")
    lines = list(sources.lines())
    assert [json.loads(line.text)["case_id"] for line in lines] == names
    assert [line.number for line in lines] == sorted({line.number for line in lines})
    assert lines[-1].read == sources.size


def test_a_remark_names_the_line_of_the_file(folder: Path) -> None:
    sources = CaseSources(str(folder))
    numbers = {json.loads(line.text)["case_id"]: line.number for line in sources.lines()}
    found = {name: sources.located(f"line {number}: is no case: x") for name, number in numbers.items()}
    assert found == {
        "a2": f"{folder}/a.csv, line 2: is no case: x",
        "b1": f"{folder}/b.jsonl, line 1: is no case: x",
        "b3": f"{folder}/b.jsonl, line 3: is no case: x",
        "c1": f"{folder}/deep/c.jsonl, line 1: is no case: x",
    }
    assert sources.located("warning: line 2: y") == "warning: line 2: y"


def test_recorded_requests_are_cases_one_a_trace(tmp_path: Path) -> None:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": "[]"}
    for number in (1, 2):  # the spans of one trace lie in two files
        part = S(trace_id=trace(7), span_id=span(number), name=f"n{number}", attributes=attributes)
        (tmp_path / f"{number}.pb").write_bytes(request([part]))
    (line,) = CaseSources(f"{tmp_path}/*.pb").lines()
    assert json.loads(line.text)["trace_id"] == trace(7).hex()
    assert line.case is not None
    assert [each.span_id for each in line.case.trace.spans] == [span(number).hex() for number in (1, 2)]


def test_requests_in_json_are_known_by_how_they_begin(tmp_path: Path) -> None:
    spans = [{"traceId": "7" * 32, "spanId": "1" * 16, "name": "chat", "startTimeUnixNano": "1", "endTimeUnixNano": "2",
              "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]}]  # fmt: skip
    (tmp_path / "traces.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, indent=1))
    (tmp_path / "manifest.json").write_text(json.dumps({"files": []}))
    for given in (tmp_path, tmp_path / "traces.json"):
        (line,) = CaseSources(str(given)).lines()
        assert json.loads(line.text)["trace_id"] == "7" * 32
    (tmp_path / "traces.json").unlink()
    with pytest.raises(TableError, match="holds neither cases nor recorded requests"):
        CaseSources(str(tmp_path))


@PYARROW.mark
def test_an_object_store_is_read_by_name_folder_and_pattern(bucket: str, folder: Path) -> None:  # noqa: F811  # the fixture
    fs, pattern = import_module("pyarrow.fs"), bucket
    system, root = fs.FileSystem.from_uri(pattern.replace("%s", "cases"))
    for path in folder.rglob("*.*"):
        with system.open_output_stream(f"{root}/{path.name}") as file:
            file.write(path.read_bytes())
    for given, names in (
        ("cases", ["a2", "b1", "b3", "c1"]), ("cases/*.jsonl", ["b1", "b3", "c1"]), ("cases/a.csv", ["a2"]),
    ):  # fmt: skip
        sources = CaseSources(pattern.replace("%s", given))
        assert [json.loads(line.text)["case_id"] for line in sources.lines()] == names
        assert sources.files[0].name.startswith("s3://bucket/cases/")


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ("none/*.jsonl", "there is no such file"),
        ("none.jsonl", "No such file"),
        ("deep", r"c\.jsonl\.gz: is compressed"),
        ("deep/c.*", r"c\.jsonl\.gz: is compressed"),
        ("deep/c.jsonl.gz", "is compressed"),
    ],
)
def test_what_is_not_there_or_is_not_read_is_refused(folder: Path, given: str, cause: str) -> None:
    (folder / "deep" / "c.jsonl.gz").touch()
    (folder / "deep" / "logs.gz").touch()  # holds no cases by its name
    with pytest.raises(TableError, match=cause):
        list(CaseSources(f"{folder}/{given}").lines())
