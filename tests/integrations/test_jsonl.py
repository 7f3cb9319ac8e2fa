"""JSON Lines: whatever the records hold, whoever takes the file away."""

from __future__ import annotations

import json

from integrations.jsonl import JsonLines


def test_records_are_appended_one_a_line(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    sink = JsonLines(path)
    assert sink.write([{"a": 1}, {"b": "line\nbreak"}]) == 0
    assert sink.write([{"c": 2**70, "half": "\ud83d"}]) == 0
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"a": 1}, {"b": "line\nbreak"}, {"c": 2**70, "half": "\ud83d"},
    ]  # fmt: skip


def test_a_rotated_file_is_begun_anew(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    sink = JsonLines(path)
    sink.write([{"a": 1}])
    path.rename(tmp_path / "old")
    sink.write([{"b": 2}])
    assert path.read_text() == '{"b":2}\n'


def test_a_file_that_cannot_be_written_is_told_once_and_counted(tmp_path, caplog):
    sink = JsonLines(tmp_path / "no such folder" / "verdicts.jsonl")
    assert [sink.write([{"a": 1}, {"b": 2}]), sink.write([{"c": 3}])] == [2, 1]
    assert [record.getMessage() for record in caplog.records] == ["cannot append verdicts"]
