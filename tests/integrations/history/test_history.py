"""A history loses and doubles no row, wherever a writer is killed, in a directory as in an object store."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from importlib import import_module

import pytest

from tests.needs import MOTO, PYARROW

pytestmark = PYARROW.mark
DAY = 86_400 * 10**9


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A folder of an object store on this machine."""
    MOTO.path()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = import_module("moto.server").ThreadedMotoServer("127.0.0.1", port, verbose=False)
    server.start()
    try:
        fs = import_module("pyarrow.fs")
        options = {"access_key": "a", "secret_key": "s", "region": "eu-west-1", "scheme": "http"}
        fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", allow_bucket_creation=True, **options).create_dir(
            "bucket"
        )
        yield f"s3://a:s@bucket/%s?region=eu-west-1&scheme=http&endpoint_override=127.0.0.1:{port}"
    finally:
        server.stop()


@pytest.fixture(params=["directory", "s3"])
def place(request, tmp_path):
    made = import_module("sidejudge.integrations.history.place").Place
    path = str(tmp_path / "h") if request.param == "directory" else request.getfixturevalue("bucket")
    return made(path.replace("%s", tmp_path.name))


def history(place, writer="w1"):
    return import_module("sidejudge.integrations.history.history").History(place, writer)


def rows(begin, end, day="2026-11-01"):
    made = import_module("sidejudge.integrations.history.history").Row
    return [
        made(
            kind="verdicts", day=day, seq=n,
            record={
                "trace_id": f"t{n}", "rubric": "qa", "revision": 1, "passed": n % 2 == 0, "composite": n, "user": "u",
                "sampling_probability": 0.5,
                "created_at": f"{day}T00:00:00Z", "reason": "half \ud83d of a pair", "cost": 1 << 70,
                "scores": [{"metric": "m", "status": "scored", "value": 1, "weight": None, "reason": None}],
            },
        )
        for n in range(begin, end)
    ]  # fmt: skip


def traces(place):
    return [record["trace_id"] for record in history(place).records("verdicts")]


def held(place):
    return sum(place.read(name).num_rows for name in place.names("verdicts"))


def test_a_delivery_that_is_repeated_after_a_kill_replaces_what_it_wrote(place):
    writer = history(place)
    writer.write(rows(1, 4))
    writer.write(rows(1, 9))  # killed before it was settled: more has come since
    writer.write(rows(9, 12) + rows(12, 14, "2026-11-02"))
    assert traces(place) == [f"t{n}" for n in range(1, 14)]
    assert held(place) == 13
    assert next(history(place).records("verdicts"))["cost"] == 1 << 70


def test_days_that_are_over_become_one_file_and_a_merge_that_was_killed_leaves_no_row_twice(place):
    module = import_module("sidejudge.integrations.history.history")
    writer = history(place)
    for begin in range(0, 12, 2):
        writer.write(rows(begin, begin + 2))
    writer.write(rows(12, 14, "2026-11-02"))
    history(place, "w2").write(rows(50, 51))
    parts = [name for name in place.names("verdicts") if "-w1-" in name and "11-01" in name]
    before = {name: place.read(name) for name in parts}

    assert writer.compact("2026-11-01") == 0, "the day goes on, and its parts are few"
    assert writer.compact("2026-11-02", apart_from=[parts[-1]]) == len(parts) - 1
    assert held(place) == 15
    for name in parts[:3]:  # what a kill leaves, after the merged file is there and before all parts are gone
        place.write(name, before[name])
    assert writer.compact("2026-11-02") == 2
    assert held(place) == 15
    assert sorted(traces(place)) == sorted(f"t{n}" for n in (*range(14), 50))
    assert len(place.names("verdicts")) == 3, "one a day and writer"

    for begin in range(100, 100 + module.MANY):
        writer.write(rows(begin, begin + 1, "2026-11-02"))
    assert writer.compact("2026-11-02") == module.MANY + 1
    writer.write(rows(0, 1))
    writer.compact("2026-11-03")
    assert held(place) == 15 + module.MANY, "a row that was written twice all the same is merged into one"


def test_a_file_that_is_damaged_is_named_and_keeps_no_others_from_being_merged(place):
    writer = history(place)
    for begin in range(2):
        writer.write(rows(begin, begin + 1))
    writer.compact("2026-11-02")
    (merged,) = place.names("verdicts")
    place.put(merged, place.get(merged)[:-9])
    writer.write(rows(2, 3) + rows(3, 4, "2026-11-02"))
    writer.write(rows(4, 5) + rows(5, 6, "2026-11-02"))
    complaints: list[str] = []
    assert (
        import_module("sidejudge.integrations.history.history")
        .History(place, "w1", complaints.append)
        .compact("2026-11-03")
        == 4
    )
    assert [each.partition(":")[0] for each in complaints] == [merged]
    assert len(place.names("verdicts")) == 3
    assert traces(place) == ["t2", "t4", "t3", "t5"]


def test_who_reads_while_files_are_merged_reads_every_row(place, monkeypatch):
    writer = history(place)
    for begin in range(0, 6, 2):
        writer.write(rows(begin, begin + 2) + rows(begin + 10, begin + 12, "2026-11-02"))
    reading = history(place).records("verdicts")
    read = [next(reading)["trace_id"]]
    assert writer.compact("2026-11-03") == 6
    assert sorted([*read, *(each["trace_id"] for each in reading)]) == sorted(traces(place))

    for begin in range(0, 6, 2):
        writer.write(rows(begin + 20, begin + 22))
    listed, until = place.names("verdicts"), 1_793_700_000 * 10**9
    assert writer.compact("2026-11-03") == 4
    one_time = iter([listed])
    names = type(place).names
    monkeypatch.setattr(place, "names", lambda folder: next(one_time, None) or names(place, folder))
    trends = import_module("sidejudge.integrations.history.in_force").history_trends
    (found,) = trends(place, since_ns=until - 30 * DAY, until_ns=until, step_ns=30 * DAY)
    assert found.sums.passed + found.sums.failed == 18


def test_what_is_to_be_forgotten_is_in_no_file_of_any_writer(place):
    writer = history(place)
    writer.write(rows(1, 5))
    writer.compact("2026-11-03")
    history(place, "w2").write(rows(5, 8))
    assert writer.erase(lambda record: record["trace_id"] in ("t2", "t6")) == 2
    assert traces(place) == ["t1", "t3", "t4", "t5", "t7"]
    assert writer.erase(lambda record: record.get("user") == "u") == 5
    assert not place.names("verdicts")


def test_a_session_that_is_to_be_forgotten_is_in_no_row_and_another_one_stays(place):
    row = import_module("sidejudge.integrations.history.history").Row

    def session(key, user, seq):
        own = {"session_id": f"s-{user}", "revision": 1}
        verdict = {"trace_id": None, "case_id": key, "rubric": "qa", "created_at": "2026-11-01T00:00:00Z", **own}
        outcome = {"trace_id": key, "user": user, "ended_at": 1_793_491_200 * 10**9, "session": True, **own}
        return [row(kind=kind, day="2026-11-01", seq=seq, record=record)
                for kind, record in (("verdicts", verdict), ("outcomes", outcome))]  # fmt: skip

    def held():
        return [each.get("case_id") for each in history(place).records("verdicts")]

    writer = history(place)
    keys = ["a" * 32, "b" * 32, "c" * 32]
    writer.write([each for seq, key in enumerate(keys) for each in session(key, f"u{seq}", seq)] + rows(7, 9))
    assert writer.erase(lambda record: record.get("user") == "u0") == 2, "which the outcome alone has"
    assert held() == [*keys[1:], None, None]
    assert writer.erase(lambda record: record.get("session_id") == "s-u1") == 2
    assert held() == [*keys[2:], None, None]


def test_what_is_no_part_of_a_history_is_left_out_and_left_alone(place):
    pa = import_module("pyarrow")
    day, foreign = "verdicts/day=2026-11-01", "verdicts/day=2026-11-01/foreign.parquet"
    history(place).write(rows(1, 5))
    whole = next(iter(place.names("verdicts")))
    place.write(foreign, pa.table({"created_at": [1], "passed": ["yes"]}))
    place.write(f"{day}/typed.parquet", pa.table({"trace_id": ["t2"], "record": ["[1"], "rubric": [7]}))
    with place._system.open_input_file(f"{place._root}/{whole}") as other:
        cut = other.read()[:-9]
    with place._system.open_output_stream(f"{place._root}/{day}/part-w9-cut.parquet") as file:
        file.write(cut)
    complaints: list[str] = []
    reader = import_module("sidejudge.integrations.history.history").History(place, "w1", complaints.append)
    assert [each["trace_id"] for each in reader.records("verdicts")] == ["t1", "t2", "t3", "t4"]
    assert len(complaints) == 3
    trends = import_module("sidejudge.integrations.history.in_force").history_trends
    until = 1_793_700_000 * 10**9
    (found,) = trends(place, since_ns=until - 30 * DAY, until_ns=until, step_ns=30 * DAY)
    assert (found.sums.passed, found.sums.failed) == (2, 2)
    place.write(f"{day}/numbers.parquet", pa.table({"trace_id": [1, 2]}))
    assert reader.erase(lambda record: record["trace_id"] == "t1") == 1
    assert {foreign, f"{day}/typed.parquet", f"{day}/part-w9-cut.parquet"} < set(place.names("verdicts"))


def test_files_that_an_older_version_has_written_are_merged_with_newer_ones(place):
    writer = history(place)
    writer.write(rows(1, 3))
    (old,) = place.names("verdicts")
    place.write(old, place.read(old).drop_columns(["selection", "scores", "service"]))
    writer.write(rows(3, 6))
    assert writer.compact("2026-11-02") == 2
    assert traces(place) == [f"t{n}" for n in range(1, 6)]
    (merged,) = place.names("verdicts")
    assert place.read(merged)["scores"].null_count == 2


def test_what_lies_under_the_name_of_a_file_in_the_making_lends_it_neither_mode_nor_target(tmp_path):
    made = import_module("sidejudge.integrations.history.place").Place
    elsewhere, half = tmp_path / "elsewhere", tmp_path / "h" / ".a.parquet.tmp"
    elsewhere.touch()
    half.parent.mkdir()
    half.symlink_to(elsewhere)
    made(str(half.parent)).put("a.parquet", b"rows")
    half.touch(0o644)
    made(str(half.parent)).put("a.parquet", b"rows")
    assert elsewhere.read_bytes() == b""
    assert (half.parent / "a.parquet").stat().st_mode & 0o777 == 0o600


def test_a_write_that_fails_leaves_no_file(place):
    pa = import_module("pyarrow")
    with pytest.raises(pa.ArrowException):
        place.write("verdicts/day=2026-11-01/x.parquet", pa.table({"a": pa.nulls(1, pa.month_day_nano_interval())}))
    assert not place.names("verdicts")
