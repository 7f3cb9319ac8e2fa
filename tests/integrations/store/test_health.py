"""A store whose file, disk or lock is taken away says so at once, logs it once, and goes on when it can."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass

import pytest

from sidejudge.integrations.store.errors import StoreCorrupt, StoreError, StoreUnavailable
from sidejudge.integrations.store.health import StoreHealth
from sidejudge.integrations.store.sqlite import Store

A = b"a" * 16
UNAVAILABLE = StoreUnavailable("store s: the disk is full")


@dataclass(frozen=True)
class Origin:
    service: str = "s"
    environment: None = None
    threshold: int = 0


@dataclass(frozen=True)
class Chunk:
    trace_id: bytes
    payload: bytes = b"1"
    origin: Origin = Origin()


@pytest.fixture
def store(tmp_path):
    opened = Store(tmp_path / "s.sqlite")
    yield opened
    opened.close()


async def test_a_file_that_is_removed_while_it_is_in_use_takes_nothing_more(store, tmp_path):
    await store.append([Chunk(A)], 1)
    os.link(store.path, tmp_path / "kept")
    store.path.unlink()
    with pytest.raises(StoreUnavailable, match="removed or replaced"):
        await store.append([Chunk(A)], 2)
    assert "removed or replaced" in store.trouble
    (tmp_path / "kept").rename(store.path)
    await store.try_again()
    assert store.trouble is None
    await store.append([Chunk(A)], 3)
    assert len(store.chunks(A)) == 2, "nothing of what was refused"


async def test_a_file_that_is_replaced_by_another_takes_nothing_more(store, tmp_path):
    await store.append([Chunk(A)], 1)
    (tmp_path / "other").write_bytes(store.path.read_bytes())
    (tmp_path / "other").replace(store.path)
    with pytest.raises(StoreUnavailable, match="removed or replaced"):
        await store.append([Chunk(A)], 2)


async def test_a_disk_that_stays_full_is_logged_once_and_so_is_its_end(store, caplog):
    caplog.set_level(logging.WARNING, logger="sidejudge.store")
    store._write_connection.execute("PRAGMA max_page_count = 20")
    for _ in range(50):
        with pytest.raises(StoreUnavailable):
            await store.append([Chunk(A, bytes(1 << 20))], 1)
    assert len(caplog.records) == 1
    assert "full" in store.trouble
    store._write_connection.execute("PRAGMA max_page_count = 100000")
    await store.try_again()
    assert store.trouble is None
    assert [(record.message, record.refused) for record in caplog.records][1:] == [("the store works again", 50)]


def test_a_failure_that_lasts_is_logged_once_a_minute(caplog):
    now = [0.0]
    health = StoreHealth(lambda: now[0])
    for _ in range(1800):
        health.failed("write", UNAVAILABLE)
        now[0] += 0.1
    assert [record.refused for record in caplog.records] == [1, 601, 1202]


def test_what_is_wrong_with_the_data_says_nothing_of_the_store(caplog):
    health = StoreHealth()
    health.failed("write", StoreError("a number is too large"))
    assert health.trouble is None
    assert len(caplog.records) == 1


def test_an_operation_that_fails_is_not_mended_by_another_that_works():
    health = StoreHealth()
    health.failed("chunks", StoreCorrupt("store s: a page is damaged"))
    health.worked("story")
    health.worked("write")
    assert health.trouble == "store s: a page is damaged"
    health.worked("chunks")
    assert health.trouble is None


def test_a_failure_that_nobody_repeats_counts_for_two_minutes():
    now = [0.0]
    health = StoreHealth(lambda: now[0])
    health.failed("judge_calls_of", UNAVAILABLE)
    now[0] = 100.0
    health.failed("judge_calls_of", UNAVAILABLE)
    now[0] = 219.0
    assert health.trouble == str(UNAVAILABLE)
    now[0] = 220.0
    assert health.trouble is None


def test_a_read_that_fails_is_an_error_of_the_store_and_passes(store):
    store._reading.set_progress_handler(lambda: 1, 1)
    with pytest.raises(StoreError):
        store.chunks_and_stories([A])
    store._reading.set_progress_handler(None, 1)
    assert store.chunks_and_stories([A]) == [([], None)]


def test_a_store_behind_a_link_has_one_monitor(store, tmp_path):
    link = tmp_path / "link.sqlite"
    link.symlink_to(store.path)
    with pytest.raises(StoreUnavailable, match="another monitor uses it"):
        Store(link)


async def test_a_lock_that_was_removed_is_taken_again(store):
    lock = store.path.with_name("s.sqlite.lock")
    lock.unlink()
    await store.append([Chunk(A)], 1)
    with pytest.raises(StoreUnavailable, match="another monitor uses it"):
        Store(store.path)


async def test_of_two_monitors_that_both_hold_a_lock_one_goes_on(store):
    store.path.with_name("s.sqlite.lock").unlink()
    second = Store(store.path)
    with pytest.raises(StoreUnavailable, match="another monitor uses it"):
        await store.append([Chunk(A)], 1)
    await second.append([Chunk(A)], 1)
    second.close()
    await store.append([Chunk(A)], 2)
