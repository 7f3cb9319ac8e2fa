"""Cases from CSV and Parquet are the same cases as from JSON Lines."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from sidejudge.integrations.cases.lines import read_case
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
    [
        ("c.csv", b"a,a\n1,2\n"),
        ("c.csv", b"model_output\n\xff\xfe\n"),
        ("c.parquet", b"no parquet"),
        ("c.csv", b'model_output\nx\n"cut off,\ny\n'),
        ("c.csv", b'model_output\n"is "quoted" within"\n'),
        ("c.csv", b"case_id;model_output\r\n1;yes\r\n"),
        ("c.tsv", b"case_id,model_output\n1,yes\n"),
    ],
)
def test_what_is_no_table_is_one_error_with_a_remedy(tmp_path, name, content):
    if name.endswith("parquet"):
        PYARROW.path()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError) as refused:
        cases(tmp_path / name)
    assert name in refused.value.cause
    assert refused.value.remedy


def test_the_line_that_is_no_utf_8_is_named(tmp_path):
    (tmp_path / "c.csv").write_bytes(b'model_output\n"two\nlines"\n' + b"x\n" * 20 + b"\xff\nx\n")
    with pytest.raises(TableError, match="line 24: is not UTF-8"):
        cases(tmp_path / "c.csv")


@pytest.mark.parametrize("written", ["soon", "inf", "-Infinity", "1e999"])
def test_a_wrong_number_is_refused_with_its_line_and_field(tmp_path, written):
    (tmp_path / "c.csv").write_text(f"model_output,latency_e2e_ms\nx,{written}\n")
    with pytest.raises(ValueError, match=r"line 2: latency_e2e_ms"):
        cases(tmp_path / "c.csv")


def test_score_reads_a_table(tmp_path):
    (tmp_path / "c.csv").write_text("id,question,answer,ground_truth\n1,q,yes,yes\n")
    arguments = ["score", str(tmp_path / "c.csv"), "--rubric", "run_health", "--out", str(tmp_path / "v.jsonl")]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.stderr
    assert json.loads((tmp_path / "v.jsonl").read_text())["case_id"] == "1"


def test_a_text_stays_a_text_where_it_reads_as_json(tmp_path):
    row = {"case_id": "[1]", "output": '{"a": 1}', "system_prompt": '{"policy": "kind"}', "error": '{"code": 500}',
           "transcript": '[{"speaker": "a", "text": "hello"}]', "name": "[2]"}  # fmt: skip
    with (tmp_path / "c.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writerows([dict(zip(row, row, strict=True)), row, {**row, "transcript": '["a"]'}])
    first, second = cases(tmp_path / "c.csv")
    assert (first.case_id, first.model_output, first.system_prompt) == ("[1]", '{"a": 1}', '{"policy": "kind"}')
    assert (first.error, first.name, first.transcript_text) == ('{"code": 500}', "[2]", "a: hello")
    assert second.transcript == '["a"]'


def test_a_row_with_more_cells_than_columns_is_no_case(tmp_path):
    (tmp_path / "c.csv").write_text('case_id,model_output\na,Yes, but no\nb,good,,\nc,"Yes, and"\n')
    arguments = ["score", str(tmp_path / "c.csv"), "--rubric", "run_health", "--out", str(tmp_path / "v.jsonl")]
    done = CliRunner().invoke(main, arguments)
    assert "line 2: has 3 cells for 2 columns; quote a cell that holds ','" in done.stderr
    assert done.exit_code == 1
    judged = [json.loads(line)["case_id"] for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert judged == ["b", "c"]


def test_a_row_whose_json_has_a_key_twice_is_no_case(tmp_path):
    with (tmp_path / "c.csv").open("w", newline="") as file:
        rows = [["a", '{"x": 1, "x": 2}'], ["b", '[{"x": 1}, {"x": 2}]'], ["c", '{"x": {"\\u0079": 1, "y": 2}}']]
        csv.writer(file).writerows([["case_id", "metadata"], *rows])
    with case_lines(tmp_path / "c.csv") as found:
        faults = [line.fault for line in found]
    assert faults == [
        "metadata.x: stands twice in one object; keep one of the two", "",
        "metadata.y: stands twice in one object; keep one of the two",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "cell", ["['one', 'two']", "['one' 'two']", "[one, two]", "['[one] ]', 'two']", "[[one], [two]"]
)
@pytest.mark.parametrize("field", ["contexts", "agents_called"])
def test_a_list_that_a_table_writes_in_another_way_than_json_is_no_single_text(tmp_path, field, cell):
    with (tmp_path / "c.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [["model_output", field], ["x", cell], ["x", '["one", "two"]'], ["x", "[1] one"], ["x", "[1] one [2]"]]
        )
    with case_lines(tmp_path / "c.csv") as found:
        refused, *others = found
    assert (refused.fault.partition(";")[0], refused.text) == (f"{field}: is a list, but no JSON", None)
    assert [json.loads(other.text)[field] for other in others] == [["one", "two"], ["[1] one"], ["[1] one [2]"]]


@pytest.mark.parametrize("answer", ["model_output", "answer"])
@pytest.mark.parametrize("ending", ["csv", pytest.param("parquet", marks=PYARROW.mark)])
def test_a_row_without_an_answer_is_a_case_to_which_none_came(tmp_path, ending, answer):
    path = tmp_path / f"c.{ending}"
    rows = [{"case_id": "a", answer: "yes", "output": None}, {"case_id": "b", answer: None, "output": None}]
    if ending == "csv":
        path.write_text(f"case_id,{answer},output\na,yes,\nb,,\n")
    else:
        pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        parquet.write_table(pa.Table.from_pylist(rows), path)
    assert [(case.case_id, case.model_output) for case in cases(path)] == [("a", "yes"), ("b", None)]


@pytest.mark.parametrize(("written", "count"), [("12.0", 12), ("12", 12), ("nan", None)])
def test_a_count_is_whole_however_a_table_writes_it(tmp_path, written, count):
    (tmp_path / "c.csv").write_text(f"model_output,input_tokens\nx,{written}\n")
    (case,) = cases(tmp_path / "c.csv")
    assert (case.input_tokens, type(case.input_tokens)) == (count, type(count))


def test_a_number_of_any_length_is_a_number_or_a_fault_of_its_line(tmp_path):
    (tmp_path / "c.csv").write_text(f"model_output,latency_e2e_ms\nx,{10**30}\n")
    assert [case.latency_e2e_ms for case in cases(tmp_path / "c.csv")] == [1e30]
    (tmp_path / "c.csv").write_text(f"model_output,input_tokens\nx,{10**30}\n")
    with pytest.raises(ValueError, match=r"line 2: input_tokens"):
        cases(tmp_path / "c.csv")


@PYARROW.mark
def test_objects_of_parquet_have_no_keys_of_other_rows(tmp_path):
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    expected = [{"questions": [{"id": "q", "score": 5}]}, {"keywords": ["refund"]}, {}]
    tools = [[{"name": "pay", "arguments": {"amount": 1}}, {"name": "find", "arguments": {"order": "A"}}], [], None]
    rows = [
        {"model_output": "x", "expected_outcome": one, "tools_used": calls}
        for one, calls in zip(expected, tools, strict=True)
    ]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "c.parquet")
    found = cases(tmp_path / "c.parquet")
    assert [case.expected_outcome for case in found] == expected
    assert [call.arguments for call in found[0].tools_used] == [{"amount": 1}, {"order": "A"}]


@PYARROW.mark
def test_values_of_parquet_that_json_lacks_are_what_they_stand_for(tmp_path):
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    table = pa.table({
        "model_output": pa.array(["ü".encode(), b"y"], pa.binary()),
        "cost_usd": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
        "input_tokens": [12.0, None], "latency_e2e_ms": [float("nan"), 5.5],
        "metadata": [{"share": float("nan"), "k": 1}, None],
    })  # fmt: skip
    parquet.write_table(table, tmp_path / "c.parquet")
    first, second = cases(tmp_path / "c.parquet")
    assert (first.model_output, first.cost_usd, first.input_tokens, first.latency_e2e_ms) == ("ü", 1.25, 12, None)
    assert first.metadata == {"k": 1}
    assert (second.model_output, second.cost_usd, second.input_tokens, second.latency_e2e_ms) == ("y", None, None, 5.5)


@PYARROW.mark
def test_a_column_of_json_holds_what_its_json_says(tmp_path):
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    if not hasattr(pa, "json_"):
        pytest.skip("this pyarrow reads such a column as one of text")
    stated = [
        {"model_output": "yes", "expected_outcome": "yes", "tools_used": [{"name": "pay", "arguments": {"n": None}}]},
        {"model_output": {"n": 1}, "expected_outcome": {"n": None}, "tools_used": ["find"]},
        {"model_output": None, "expected_outcome": [1, 2], "tools_used": None},
    ]
    columns = {
        name: pa.array([None if row[name] is None else json.dumps(row[name]) for row in stated], pa.json_())
        for name in ("model_output", "expected_outcome")
    }
    calls = pa.array([json.dumps(call) for row in stated for call in row["tools_used"] or ()], pa.json_())
    columns["tools_used"] = pa.ListArray.from_arrays(pa.array([0, 1, None, 2], pa.int32()), calls)
    table = pa.table(columns)
    parquet.write_table(table, tmp_path / "c.parquet")
    assert cases(tmp_path / "c.parquet") == [
        read_case(json.dumps({"case_id": f"line-{number}", **row}), number) for number, row in enumerate(stated, 1)
    ]


@PYARROW.mark
def test_a_column_of_json_with_a_key_twice_is_no_case_and_one_of_another_extension_is_read(tmp_path):
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    if not hasattr(pa, "json_"):
        pytest.skip("this pyarrow reads such a column as one of text")
    span = pa.struct([("from", pa.int32())])
    spans = pa.ExtensionArray.from_storage(pa.opaque(span, "range", "another's"), pa.array([{"from": 1}] * 2, span))
    metadata = pa.array(['{"x": [{"y": 1, "y": 2}]}', '{"x": 1}'], pa.json_())
    columns = {"model_output": ["a", "b"], "metadata": metadata, "expected_outcome": spans}
    parquet.write_table(pa.table(columns), tmp_path / "c.parquet")
    with case_lines(tmp_path / "c.parquet") as found:
        twice, read = found
    assert (twice.text, twice.fault) == (None, "metadata.y: stands twice in one object; keep one of the two")
    assert json.loads(read.text) == {"model_output": "b", "metadata": {"x": 1}, "expected_outcome": {"from": 1}}


@PYARROW.mark
@pytest.mark.parametrize(
    ("written", "text"), [("17", "17"), ('"call-17"', "call-17"), ('{"code": 500}', '{"code": 500}')]
)
def test_a_text_in_a_column_of_json_stays_one(tmp_path, written, text):
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    if not hasattr(pa, "json_"):
        pytest.skip("this pyarrow reads such a column as one of text")
    stated = pa.array([written], pa.json_())
    parquet.write_table(pa.table({"model_output": ["x"], "case_id": stated, "error": stated}), tmp_path / "c.parquet")
    (case,) = cases(tmp_path / "c.parquet")
    assert (case.case_id, case.error) == (text, text)
