"""Salvage: what is intact of a damaged store goes on, the rest is counted, and the damaged file stays as it was."""

from __future__ import annotations

import random
import shutil
import sqlite3
import struct
import time
from contextlib import closing
from pathlib import Path

import pytest

from sidejudge.integrations.otlp.wire.request import ChunkOrigin, split
from sidejudge.integrations.store.damaged_files import with_head_of
from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.salvage import is_damaged, salvage
from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from tests.otlp_requests import S, request, span, trace

TRACES, OPEN = 150, 100


async def filled(path):
    store = Store(path)
    await fill(store)
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


async def fill(store, traces=TRACES):
    origin = ChunkOrigin("shop", None, 0)
    spans = [S(trace_id=trace(n), span_id=span(1), attributes={"text": "x" * 800}) for n in range(OPEN)]
    await store.append(split(request(spans), lambda _: origin).chunks, time.time_ns())
    for n in range(traces):
        tid = trace(1_000 + n)
        verdict = {
            "trace_id": tid.hex(), "case_id": "c", "service": "shop", "environment": None, "rubric": "qa",
            "passed": True, "reason": "r" * 300, "revision": 1,
        }  # fmt: skip
        await store.finish(FinishedTrace(
            trace_id=tid, service="shop", reason="scored", closed_ns=time.time_ns(), completion="root_ended",
            revision=1, details={"name": "n" * 100}, chunks=0, verdicts=[verdict],
        ))  # fmt: skip


def held(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("chunks", "traces", "verdicts")
        }


def page_spoilt(path, number, size=8192):
    data = bytearray(path.read_bytes())
    data[number * size : (number + 1) * size] = random.Random(number).randbytes(size)
    path.write_bytes(data)


async def test_a_sound_store_is_not_taken_for_a_damaged_one(tmp_path):
    path = await filled(tmp_path / "s.sqlite")
    assert not is_damaged(path)
    assert not is_damaged(tmp_path / "none.sqlite")
    (tmp_path / "empty.sqlite").touch()
    assert not is_damaged(tmp_path / "empty.sqlite")


@pytest.mark.parametrize("byte", [0xFF, ord("}")], ids=["no text", "no JSON"])
async def test_a_byte_inside_of_a_text_which_sqlite_does_not_notice_costs_its_row_alone(tmp_path, byte):
    path = await filled(tmp_path / "s.sqlite")
    before, data = held(path), bytearray(path.read_bytes())
    data[data.index(b'"passed"') - 1] = byte
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)
    assert is_damaged(path)
    assert salvage(path).lost == {"verdicts": 1}
    assert held(path) == {**before, "verdicts": before["verdicts"] - 1}
    assert not is_damaged(path)


async def test_any_page_may_be_spoilt_and_most_of_the_rest_goes_on(tmp_path):
    whole = await filled(tmp_path / "whole.sqlite")
    before, pages = held(whole), whole.stat().st_size // 8192
    kept = []
    for number in range(1, pages, max(1, pages // 12)):
        path = tmp_path / f"{number}" / "s.sqlite"
        path.parent.mkdir()
        shutil.copy(whole, path)
        page_spoilt(path, number)
        spoilt = path.read_bytes()
        if not is_damaged(path):
            continue  # a page that nothing stands on
        found = salvage(path)
        assert found.kept_as.read_bytes() == spoilt
        assert not is_damaged(path)
        again = Store(path)
        assert set(again.open_traces()) <= {trace(n) for n in range(OPEN)}
        again.close()
        after = held(path)
        assert all(after[table] <= before[table] for table in before)
        assert found.rows["chunks"] == after["chunks"]
        kept.append(sum(after.values()) / sum(before.values()))
    assert kept, "some page was in use"
    assert sum(kept) / len(kept) > 0.6


@pytest.mark.parametrize(("share", "chunks", "all_rows"), [(0.3, 0, 0), (0.7, 9, 9), (0.95, OPEN, 300)])
async def test_a_file_that_was_cut_off_gives_what_is_left_of_it(share, chunks, all_rows, tmp_path):
    path = await filled(tmp_path / "s.sqlite")
    whole = path.read_bytes()
    path.write_bytes(cut := whole[: int(len(whole) * share)])
    assert is_damaged(path)
    found = salvage(path)
    assert found.lost
    assert found.kept_as.read_bytes() == cut
    assert found.rows["chunks"] >= chunks
    assert sum(found.rows.values()) >= all_rows
    Store(path).close()


async def killed(tmp_path):
    """A store as a process leaves it that is killed: its latest commits stand in the write-ahead log alone."""
    store, path = Store(tmp_path / "s.sqlite"), tmp_path / "killed" / "s.sqlite"
    await fill(store, 30)
    path.parent.mkdir()
    for each in ("", "-wal"):
        shutil.copy(f"{store.path}{each}", f"{path}{each}")
    store.close()
    return path, path.with_name("s.sqlite-wal")


def everything(folder):
    return sum(held(folder / "s.sqlite").values())


async def test_a_log_that_is_half_written_at_its_end_is_not_damaged(tmp_path):
    path, log = await killed(tmp_path)
    assert not is_damaged(path)
    log.write_bytes(log.read_bytes()[:-3_000])
    assert not is_damaged(path)


@pytest.mark.parametrize(("share", "of_frame"), [(0.1, 500), (0.5, 20), (0.3, 9)])
async def test_a_byte_of_the_log_does_not_cost_what_was_committed_behind_it(share, of_frame, tmp_path):
    path, log = await killed(tmp_path)
    before = everything(shutil.copytree(path.parent, tmp_path / "sound"))
    frame = 8192 + 24
    data = bytearray(log.read_bytes())
    data[32 + int(share * (len(data) // frame)) * frame + of_frame] ^= 0x10
    log.write_bytes(data)
    assert everything(shutil.copytree(path.parent, tmp_path / "plain")) < before - 10, "SQLite leaves out the rest"
    assert is_damaged(path)
    found = salvage(path)
    assert log.with_name(f"{found.kept_as.name}-wal").read_bytes() == data, "the damaged files are kept as they were"
    assert everything(path.parent) >= before - 10
    assert not is_damaged(path)


@pytest.mark.parametrize("pages", [(0,), (0, 1), (0, 5), "schema"])
async def test_a_file_whose_list_of_tables_is_gone_loses_no_row_for_it(pages, tmp_path):
    path = await filled(tmp_path / "s.sqlite")
    before = held(path)
    for number in _schema_pages(path) if pages == "schema" else pages:
        page_spoilt(path, number)
    damaged = path.read_bytes()
    assert is_damaged(path)
    found = salvage(path)
    assert found.kept_as.read_bytes() == damaged
    assert held(path) == {**before, "traces": 0} if pages == (0, 5) else before
    assert not is_damaged(path)
    assert not list(tmp_path.glob("*.reading*"))


async def test_commits_that_stand_in_the_log_alone_outlive_the_first_page_too(tmp_path):
    path = await filled(tmp_path / "whole.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE traces SET reason = 'shed'")
        connection.commit()
        torn = tmp_path / "torn" / "s.sqlite"
        torn.parent.mkdir()
        for each in ("", "-wal"):
            shutil.copy(f"{path}{each}", f"{torn}{each}")
    page_spoilt(torn, 0)
    assert is_damaged(torn)
    salvage(torn)
    with closing(sqlite3.connect(torn)) as connection:
        assert connection.execute("SELECT reason, count(*) FROM traces").fetchall() == [("shed", TRACES)]


def _schema_pages(path):
    """Where pages stand that the first one points to: they list the tables."""
    head = path.read_bytes()[:8192]
    (cells,) = struct.unpack_from(">H", head, 103)
    places = (108, *struct.unpack_from(f">{cells}H", head, 112))
    return [struct.unpack_from(">I", head, at)[0] - 1 for at in places]


async def test_a_file_whose_beginning_is_gone_is_kept_and_an_empty_store_takes_its_place(tmp_path):
    path = await filled(tmp_path / "s.sqlite")
    path.write_bytes(b"\xff" * 8192 * 20 + path.read_bytes()[8192 * 20 :])
    assert is_damaged(path)
    found = salvage(path)
    assert set(found.rows.values()) == {0}
    assert None in found.lost.values(), "nobody knows how much there was"
    Store(path).close()
    assert "s.sqlite.damaged-1" in salvage_names(tmp_path)


def salvage_names(folder):
    return sorted(each.name for each in folder.iterdir() if "damaged" in each.name)


@pytest.mark.parametrize("moves", range(5))
async def test_a_salvage_that_is_killed_between_two_moves_is_brought_to_its_end(moves, tmp_path, monkeypatch):
    path = await filled(tmp_path / "s.sqlite")
    page_spoilt(path, 30)
    move, left = Path.replace, [moves]

    def killed(self, to):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return move(self, to)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        salvage(path)
    monkeypatch.undo()
    assert is_damaged(path)
    found = salvage(path)
    assert found.kept_as.name == "s.sqlite.damaged-1"
    assert found.lost or not moves, "it does not seem that nothing was lost"
    assert found.rows["traces"] == held(path)["traces"] > 100
    assert not is_damaged(path)
    assert "s.sqlite.damaged-1" in salvage_names(tmp_path)
    assert not any("successor" in name for name in salvage_names(tmp_path))


async def test_a_store_that_was_begun_beside_an_unused_successor_stays(tmp_path):
    path = await filled(tmp_path / "s.sqlite")
    for name in ("s.sqlite.damaged-1", "s.sqlite.damaged-1.successor"):
        shutil.copyfile(path, tmp_path / name)
    assert not is_damaged(path)


async def test_nobody_else_reads_a_store_that_is_being_salvaged(tmp_path):
    path = await filled(tmp_path / "s.sqlite")
    seen = {}
    with with_head_of(path, path.read_bytes()):
        seen = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
    assert seen["s.sqlite.reading"] == 0o600


async def test_a_new_store_that_cannot_be_written_is_an_error_of_the_store(tmp_path):
    path = await filled(tmp_path / "s.sqlite")
    page_spoilt(path, 30)
    (tmp_path / "s.sqlite.recovered").mkdir()
    with pytest.raises(StoreError, match="no new one can be put in its place"):
        salvage(path)
    assert is_damaged(path)


async def test_a_store_in_use_is_left_alone(tmp_path):
    path = await filled(tmp_path / "s.sqlite")
    store = Store(path)
    with pytest.raises(StoreError, match="another monitor uses it"):
        salvage(path)
    store.close()
