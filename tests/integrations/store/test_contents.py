"""Contents in the store: asked for with a trace's end, written later, bounded, erased, and salvaged."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from sidejudge.integrations.otlp.wire.request import ChunkOrigin, split
from sidejudge.integrations.store.connection import VERSION
from sidejudge.integrations.store.contents import WaitingContents
from sidejudge.integrations.store.erasure import erase
from sidejudge.integrations.store.salvage import salvage
from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from tests.otlp_requests import S, request, span, trace

A, B = trace(1), trace(2)
PLENTY = 1 << 20


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    yield store
    store.close()


def ended(trace_id, *, revision=1, closed_ns=100, keep=True):
    return FinishedTrace(
        trace_id=trace_id, service="shop", reason="scored", completion="root_ended", revision=revision, details={},
        closed_ns=closed_ns, keep_contents=keep,
    )  # fmt: skip


async def put(store, trace_id, body, revision=1, most=PLENTY):
    await store.contents.put([(WaitingContents(trace_id, revision), body)], most)


async def test_what_is_wanted_waits_until_it_is_written_and_nothing_else_does(store):
    await store.finish_each([ended(A), ended(B, keep=False)])
    assert store.contents.waiting(9) == [(A, 1)]
    assert store.contents.of(A) is None
    await put(store, A, b"spans")
    assert (store.contents.waiting(9), store.contents.of(A), store.contents.bytes) == ([], b"spans", 5)
    assert store.contents.of(B) is None


async def test_what_is_held_is_known_without_counting_it_anew(store):
    await store.finish_each([ended(A), ended(B)])
    await put(store, A, b"spans")
    await put(store, A, b"of another revision", revision=9)
    await put(store, trace(3), b"erased meanwhile")
    assert store.contents.bytes == 5
    await store.finish(ended(A, revision=2))
    await put(store, A, b"all spans", revision=2)
    await put(store, B, b"others")
    assert store.contents.bytes == len(b"all spansothers")
    held = store.contents.bytes
    await store.contents.trim(PLENTY)  # counts
    assert store.contents.bytes == held


async def test_a_trace_without_chunks_leaves_no_row_and_a_revision_without_any_leaves_what_was_kept(store):
    await store.finish_each([ended(A), ended(B)])
    await put(store, A, None)
    await put(store, B, b"spans")
    await store.finish_each([ended(A, revision=2, keep=False), ended(B, revision=2)])
    await put(store, B, None, revision=2)
    assert (store.contents.of(A), store.contents.of(B), store.contents.waiting(9)) == (None, b"spans", [])


async def test_a_revision_that_came_while_the_one_before_was_read_is_read_again(store):
    await store.finish(ended(A))
    (waiting,) = store.contents.waiting(9)
    await store.finish(ended(A, revision=2))
    await store.contents.put([(waiting, b"early")], PLENTY)
    assert (store.contents.of(A), store.contents.waiting(9)) == (None, [(A, 2)])


async def test_a_trace_that_passes_after_all_is_not_kept_and_an_older_revision_changes_nothing(store):
    await store.finish(ended(A, revision=2))
    await put(store, A, b"spans", revision=2)
    await store.finish(ended(A, revision=1, keep=False))
    assert store.contents.of(A) == b"spans"
    await store.finish(ended(A, revision=3, keep=False))
    assert store.contents.of(A) is None


async def test_the_oldest_go_first_beyond_the_bytes_and_what_is_past_its_time_goes(store):
    for number in range(1_200):
        await store.finish(ended(trace(number), closed_ns=number))
    rows = [(WaitingContents(trace(number), 1), b"x" * 10) for number in range(1_200)]
    await store.contents.put(rows, 11_000)
    assert store.contents.bytes == 11_000
    assert [store.contents.of(trace(number)) is None for number in (0, 99, 100, 1_199)] == [True, True, False, False]
    await store.contents.purge(1_199, 11_000)
    assert (store.contents.bytes, store.contents.of(trace(1_199))) == (10, b"x" * 10)
    await store.contents.purge(0, 0)
    assert (store.contents.bytes, store.contents.of(trace(1_199))) == (0, None)


async def test_what_is_erased_while_it_is_read_is_not_written_again(store, tmp_path):
    await store.finish_each([ended(A), ended(B)])
    await put(store, B, b"spans")
    found = erase(tmp_path / "s.sqlite", [A, B], scores=False, now_ns=200)
    await put(store, A, b"spans")
    assert found.rows["contents"] == 2
    assert (store.contents.of(A), store.contents.of(B)) == (None, None)


async def test_a_store_of_the_version_before_is_brought_up_to_date_and_salvaged_with_its_contents(tmp_path, left_by):
    path = tmp_path / "old.sqlite"
    left_by(path, 12)
    store = Store(path)
    await store.append(split(request([S(trace_id=A, span_id=span(1))]), lambda _: ChunkOrigin("s", None, 0)).chunks, 1)
    await store.finish(ended(A))
    await put(store, A, b"spans")
    store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    assert salvage(path).rows["contents"] == 1
    again = Store(path)
    assert (again.contents.of(A), again.contents.bytes) == (b"spans", 5)
    again.close()
