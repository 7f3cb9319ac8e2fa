"""JSON Lines: whatever the records hold, whoever takes the file away, whenever the process is killed."""

from __future__ import annotations

import json
import os

import pytest

from sidejudge.integrations.backoff import DestinationUnreachableError
from sidejudge.integrations.jsonl import JsonLines, line

LINES = [line({"n": number, "text": "x" * (7 * number % 40)}) for number in range(6)]


def test_records_are_appended_one_a_line(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    sink = JsonLines(path)
    sink.append([line({"a": 1}), line({"b": "line\nbreak"})])
    sink.append([line({"c": 2**70, "half": "\ud83d"})])
    assert [json.loads(each) for each in path.read_text().splitlines()] == [
        {"a": 1}, {"b": "line\nbreak"}, {"c": 2**70, "half": "\ud83d"},
    ]  # fmt: skip


def test_a_rotated_file_is_begun_anew(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    sink = JsonLines(path)
    sink.append([line({"a": 1})])
    path.rename(tmp_path / "old")
    sink.append([line({"b": 2})])
    assert path.read_text() == '{"b":2}\n'


def test_a_file_that_cannot_be_appended_to_may_be_tried_again(tmp_path):
    sink = JsonLines(tmp_path / "later" / "verdicts.jsonl")
    with pytest.raises(DestinationUnreachableError, match="No such file or directory"):
        sink.append(LINES)
    (tmp_path / "later").mkdir()
    sink.append(LINES)
    assert (tmp_path / "later" / "verdicts.jsonl").read_bytes() == b"".join(LINES)


@pytest.mark.parametrize("before", [b"", b'{"old":1}\n', LINES[0]], ids=["new", "used", "alike"])
def test_wherever_the_process_before_was_killed_every_line_is_there_once(tmp_path, before):
    path, whole = tmp_path / "verdicts.jsonl", b"".join(LINES)
    for written in range(len(whole) + 1):
        path.write_bytes(before + whole[:written])
        JsonLines(path).append(LINES)
        assert path.read_bytes() in (before + whole, whole), written


def test_a_torn_line_of_something_else_is_ended_before_ours_begins(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    path.write_bytes(b'{"torn')
    JsonLines(path).append(LINES)
    assert path.read_bytes() == b'{"torn\n' + b"".join(LINES)


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_file_is_made_for_whom_it_is_meant_and_one_that_is_there_keeps_its_own(mode, tmp_path):
    path = tmp_path / "verdicts.jsonl"
    before = os.umask(0)
    try:
        assert JsonLines(path, mode).check() == 0
        assert path.stat().st_mode & 0o777 == mode
        path.chmod(0o644)
        assert JsonLines(path, mode).check() == 0o644 & ~mode, "who may read it beyond that is named"
        JsonLines(path, mode).append([line({"a": 1})])
        assert path.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)
