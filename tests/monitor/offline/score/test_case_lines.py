"""Cases from CSV and Parquet are the same cases as from JSON Lines."""

from __future__ import annotations

import csv
import json
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from sidejudge.integrations.cases import read_case
from sidejudge.monitor.cli import main
from sidejudge.monitor.offline.score.case_lines import TableError, case_lines
from tests.needs import PYARROW

ROWS = [
    {"id": "a", "question": "When, and why?", "actual_output": '{"x": 1}', "contexts": ["It opens\ntomorrow."],
     "latency_e2e_ms": 12.5, "input_tokens": 3, "metadata": {"k": "v"}, "timed_out": True},
    {"id": "b", "question": "007", "actual_output": "007", "contexts": ["ünï"]},
]  # fmt: skip


def cases(path: Path):
    with case_lines(path) as found:
        return [read_case(line.text, line.number) for line in found]


@pytest.fixture
def expected(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return cases(path)


@pytest.mark.parametrize(("name", "delimiter"), [("c.csv", ","), ("c.tsv", "\t")])
def test_rows_of_a_table_are_the_cases_that_lines_of_json_are(tmp_path, expected, name, delimiter):
    with (tmp_path / name).open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, list(ROWS[0]), delimiter=delimiter)
        writer.writeheader()
        for row in ROWS:
            writer.writerow({
                key: json.dumps(value) if isinstance(value, dict | list) else str(value).lower() if value is True
                else value for key, value in row.items()
            })  # fmt: skip
    assert cases(tmp_path / name) == expected


def test_a_table_comes_on_standard_input_where_its_format_is_named(tmp_path):
    table = 'id,expected_output,actual_output\na,yes,yes\nb,"two\nlines",no\n'
    done = CliRunner().invoke(main, ["score", "-", "--format", "csv", "--rubric", "answer", "--out", "-"], input=table)
    assert [json.loads(line)["case_id"] for line in done.stdout.splitlines()] == ["a", "b"], done.output


@PYARROW.mark
def test_rows_of_parquet_are_the_same_cases(tmp_path, expected):
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")

    parquet.write_table(pa.Table.from_pylist(ROWS), tmp_path / "c.parquet")
    assert cases(tmp_path / "c.parquet") == expected


def test_a_text_in_a_list_field_is_one_text_and_an_id_is_the_line(tmp_path):
    (tmp_path / "c.csv").write_text('model_output,context,tags\nyes,"one, passage",x\n\n"two\nlines",,\n')
    first, second = cases(tmp_path / "c.csv")
    assert (first.context, first.tags, first.case_id) == (("one, passage",), ("x",), "line-2")
    assert (second.model_output, second.context, second.case_id) == ("two\nlines", None, "line-5")


@pytest.mark.parametrize(
    ("name", "content"),
    [("c.csv", b"a,a\n1,2\n"), ("c.csv", b"model_output\n\xff\xfe\n"), ("c.parquet", b"no parquet")],
)
def test_what_is_no_table_is_one_error_with_a_remedy(tmp_path, name, content):
    if name.endswith("parquet"):
        PYARROW.path()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError) as refused:
        cases(tmp_path / name)
    assert name in refused.value.cause
    assert refused.value.remedy


def test_a_wrong_number_is_refused_with_its_line_and_field(tmp_path):
    (tmp_path / "c.csv").write_text("model_output,latency_e2e_ms\nx,soon\n")
    with pytest.raises(ValueError, match=r"line 2: latency_e2e_ms"):
        cases(tmp_path / "c.csv")


def test_score_reads_a_table(tmp_path):
    (tmp_path / "c.csv").write_text("id,question,answer,ground_truth\n1,q,yes,yes\n")
    arguments = ["score", str(tmp_path / "c.csv"), "--rubric", "run_health", "--out", str(tmp_path / "v.jsonl")]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.stderr
    assert json.loads((tmp_path / "v.jsonl").read_text())["case_id"] == "1"
