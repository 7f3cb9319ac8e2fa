"""The outbox: written with the ending, kept over restarts, never purged while it waits."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace

import pytest

from sidejudge.integrations.otlp.wire.chunk import Chunk, ChunkOrigin
from sidejudge.integrations.store.archive import read_dead, read_details, replay_dead
from sidejudge.integrations.store.erasure import erase
from sidejudge.integrations.store.errors import StoreError, StoreUnavailable
from sidejudge.integrations.store.outbox import SETTLES_NS, ScoreRow
from sidejudge.integrations.store.sqlite import FinishedTrace, Store

TRACE = "0" * 31 + "1"
SECOND_NS = 10**9
HOUR_NS = 3600 * SECOND_NS
MARKED_NS = 240 * HOUR_NS
SPANS = Chunk(trace_id=bytes.fromhex(TRACE), payload=b"spans", headers=(), origin=ChunkOrigin("shop", "prod", 0))


@pytest.fixture
def store(tmp_path):
    opened = Store(tmp_path / "s.sqlite")
    yield opened
    opened.close()


def ended(*scores, revision=1, now_ns=100):
    return FinishedTrace(
        trace_id=TRACE, service="s", reason="scored", completion="idle", revision=revision, details={},
        closed_ns=now_ns,
        scores=[ScoreRow(id=name, at_ns=7 * revision, body=body) for name, body in scores],
    )  # fmt: skip


async def test_scores_wait_with_the_ending_or_not_at_all(store):
    await store.finish(ended(("a", '"1"')))
    with pytest.raises(StoreError):
        await store.finish(ended(("b", object()), revision=2))
    assert store.details(TRACE)["revision"] == 1
    assert [row.id for row in store.outbox.due(100, 10)] == ["a"]


async def test_an_older_revision_that_comes_late_takes_nothing_back(store):
    await store.finish(ended(("a", '"2"'), revision=2))
    await store.finish(ended(("a", '"1"'), revision=1))
    assert [row.body for row in store.outbox.due(100, 10)] == ['"2"']


async def test_a_revision_keeps_the_time_of_the_first_and_its_place_in_the_row(store):
    await store.finish(ended(("a", '"1"')))
    await store.finish(ended(("a", '"2"'), revision=2, now_ns=900))
    (row,) = store.outbox.due(900, 10)
    assert (row.at_ns, row.queued_ns, row.version, row.body) == (7, 100, 2, '"2"')


async def test_word_of_an_older_version_changes_nothing(store):
    await store.finish(ended(("a", '"1"')))
    (row,) = store.outbox.due(100, 10)
    await store.finish(ended(("a", '"2"'), revision=2))
    await store.outbox.taken([row], 100, verify=True)
    await store.outbox.park([row], "refused")
    assert (store.outbox.counts().waiting, store.outbox.counts().dead) == (1, 0)


async def test_what_is_not_said_any_more_is_to_be_deleted_later_and_comes_back_when_it_is_said_again(store):
    await store.finish(ended(("a", '"1"'), ("b", '"1"')))
    await store.finish(ended(("b", '"1"'), revision=2))
    assert [row.id for row in store.outbox.due(100, 10)] == ["b"]
    assert [row.body for row in store.outbox.due(100 + SETTLES_NS, 10) if row.id == "a"] == [None]
    await store.finish(ended(("a", '"1"'), ("b", '"1"'), revision=3))
    assert {row.id: row.body for row in store.outbox.due(100, 10)} == {"a": '"1"', "b": '"1"'}


async def test_what_was_taken_is_looked_for_after_twenty_seconds(store):
    await store.finish(ended(("a", '"1"')))
    await store.outbox.taken(store.outbox.due(100, 10), 100, verify=True)
    assert store.outbox.unseen(100 + 20 * SECOND_NS - 1, 10) == []
    assert [row.id for row in store.outbox.unseen(100 + 20 * SECOND_NS, 10)] == ["a"]


async def test_what_takes_a_score_back_is_overwritten_and_deleted_a_minute_after_that(store):
    await store.finish(ended(("a", '{"value":1}')))
    await store.outbox.taken(store.outbox.due(100, 10), 100, verify=True)
    await store.finish(ended(revision=2, now_ns=200))
    (row,) = store.outbox.due(200, 10)
    assert row.withdrawn
    await store.outbox.taken([row], 300, verify=True)
    assert store.outbox.due(300 + 60 * SECOND_NS - 1, 10) == []
    assert [row.body for row in store.outbox.due(300 + 60 * SECOND_NS, 10)] == [None]


@pytest.mark.parametrize(
    ("deleted_ns", "seen_ns", "looks"),
    [
        (SECOND_NS, 48 * HOUR_NS + SECOND_NS, False), (SECOND_NS, 48 * HOUR_NS, True),
        (SECOND_NS, 2 * SECOND_NS, True),
    ],
)  # fmt: skip
async def test_what_came_back_after_a_deletion_is_watched_hourly_while_that_may_still_be_done(
    store, deleted_ns, seen_ns, looks
):
    await store.finish(ended(("a", '{"value":1}')))
    await store.outbox.taken(store.outbox.due(100, 10), 100, verify=True)
    await store.finish(ended(revision=2, now_ns=200))
    await store.outbox.taken(store.outbox.due(200, 10), 200, verify=True)
    await store.outbox.taken(store.outbox.due(200 + 60 * SECOND_NS, 10), deleted_ns, verify=True)
    await store.finish(ended(("a", '{"value":3}'), revision=3, now_ns=deleted_ns))
    rows = store.outbox.due(deleted_ns, 10)
    await store.outbox.taken(rows, deleted_ns, verify=True)
    await store.outbox.seen(rows, seen_ns)
    assert store.outbox.unseen(seen_ns + HOUR_NS - 1, 10) == []
    assert [row.id for row in store.outbox.unseen(seen_ns + HOUR_NS, 10)] == ["a"] * looks


async def test_what_was_seen_and_deleted_by_nobody_is_looked_for_once_more_only_where_that_is_wanted(store):
    await store.finish(ended(("a", '"1"'), ("b", '"1"')))
    one, other = store.outbox.due(100, 10)
    await store.outbox.taken([one, other], 100, verify=True)
    await store.outbox.seen([one], 100)
    await store.outbox.seen([other], 100, twice=True)
    assert [row.id for row in store.outbox.unseen(100 + HOUR_NS, 10)] == [other.id]


async def test_the_first_writing_of_a_score_is_known_from_those_that_follow_it(store):
    first_ns = 1_700_000_000 * SECOND_NS + 999_999
    for revision, body in ((1, '"1"'), (2, '"2"')):
        await store.finish(replace(ended(revision=revision), scores=[ScoreRow(id="a", at_ns=first_ns, body=body)]))
        (row,) = store.outbox.due(100, 10)
        assert row.first is (revision == 1)
        await store.outbox.taken([row], 100, verify=True)


async def test_what_waits_or_was_given_up_is_never_purged_and_survives_a_restart(store, tmp_path):
    await store.finish(ended(("waits", '"1"'), ("dead", '"1"'), ("stored", '"1"')))
    rows = {row.id: row for row in store.outbox.due(100, 10)}
    await store.outbox.park([rows["dead"]], "refused")
    await store.outbox.taken([rows["stored"]], 100, verify=False)
    await store.purge(10**18)
    store.close()
    again = Store(tmp_path / "s.sqlite")
    counts = again.outbox.counts()
    assert (counts.waiting, counts.oldest_ns, counts.unseen, counts.dead) == (1, 100, 0, 1)
    with closing(sqlite3.connect(tmp_path / "s.sqlite")) as other, other:
        assert other.execute("SELECT count(*) FROM outbox").fetchone() == (2,)
    other.close()
    again.close()


async def test_what_was_given_up_is_listed_and_replayed_beside_a_running_monitor(store):
    await store.finish(ended(("a", '{"name":"x"}'), ("b", '{"name":"y"}')))
    await store.outbox.park(store.outbox.due(100, 10), "refused")
    assert [(dead.id, dead.trace_id, dead.reason) for dead in read_dead(store.path)] == [
        ("a", TRACE, "refused"), ("b", TRACE, "refused"),
    ]  # fmt: skip
    assert (replay_dead(store.path, ["a", "nobody"]), replay_dead(store.path, None)) == (1, 1)
    assert store.outbox.counts().waiting == 2


@pytest.fixture
async def untaken(store):
    """A mark of ten days after the epoch, with a score that it holds back."""
    await store.append([SPANS], MARKED_NS, untaken=True)
    await store.finish(ended(("a", '"1"')))
    return store.untaken


async def test_a_mark_that_is_on_its_way_while_upstream_takes_another_trace_is_not_forgotten(store, untaken):
    written, other = threading.Event(), bytes(15) + b"\2"

    class Slow:
        trace_id, origin = other, SPANS.origin

        @property
        def payload(self):
            written.wait(5)
            return b"spans"

    taking = asyncio.ensure_future(untaken.took([SPANS.trace_id]))
    await asyncio.sleep(0)
    time.sleep(0.05)  # noqa: ASYNC251  # the loop is busy: the mark is deleted, and nobody knows it yet
    appending = asyncio.ensure_future(store.append([Slow()], 1, untaken=True))
    await taking
    written.set()
    await appending
    assert other in untaken
    await untaken.took([other])
    assert other not in untaken
    assert not untaken.any


async def test_a_trace_that_upstream_has_not_taken_is_first_asked_for_after_a_minute(untaken):
    assert untaken.to_ask_for(MARKED_NS + 60 * SECOND_NS - 1, 10) == []
    assert untaken.to_ask_for(MARKED_NS + 60 * SECOND_NS, 10) == [(bytes.fromhex(TRACE), 0)]
    assert untaken.to_ask_for(MARKED_NS * 9, 10) == [(bytes.fromhex(TRACE), 0)]


@pytest.mark.parametrize(
    ("kept_since_ns", "before_ns", "gone"),
    [
        (None, MARKED_NS, 0), (None, MARKED_NS + 1, 1),
        # Its spans may be among the requests that are kept, from five minutes after the mark,
        (MARKED_NS + 300 * SECOND_NS, MARKED_NS + 144 * HOUR_NS, 0),
        (MARKED_NS + 300 * SECOND_NS + 1, MARKED_NS + 1, 1),
        # and then it stays for six days more at most.
        (MARKED_NS, MARKED_NS + 144 * HOUR_NS + 1, 1),
    ],
)  # fmt: skip
async def test_a_mark_is_let_go_of_with_the_scores_that_it_holds_back(store, untaken, kept_since_ns, before_ns, gone):
    untaken.kept_since_ns = lambda: kept_since_ns
    assert await untaken.forget(before_ns) == gone
    assert (bytes.fromhex(TRACE) in untaken) is (not gone)
    assert store.outbox.counts().waiting == 1 - gone


def test_a_store_that_is_none_says_so(tmp_path):
    with pytest.raises(StoreUnavailable, match="no such file"):
        read_dead(tmp_path / "nothing.sqlite")
    (tmp_path / "text").write_text("no database, whatever its name says" * 100)
    with pytest.raises(StoreUnavailable, match="cannot be used as a store"):
        replay_dead(tmp_path / "text", None)


async def test_the_address_of_a_trace_s_page_is_known_to_who_reads_the_store(store):
    await store.finish(ended())
    assert "trace_url" not in read_details(store.path, TRACE)
    await store.keep_fact("trace_link", {"base_url": "b", "prefix": "https://lf.example/project/p/traces/"})
    assert read_details(store.path, TRACE)["trace_url"] == f"https://lf.example/project/p/traces/{TRACE}"


def test_a_store_of_the_version_before_gets_an_outbox(tmp_path, left_by):
    path = tmp_path / "old.sqlite"
    left_by(path, 6)
    store = Store(path)
    assert store.outbox.counts().waiting == 0
    store.close()


async def test_a_forgotten_score_that_may_still_be_on_its_way_is_deleted_once_it_is_stored(store, tmp_path):
    await store.finish(ended(("seen", '"1"'), ("sent", '"1"'), ("waiting", '"1"')))
    rows = {row.id: row for row in store.outbox.due(100, 10)}
    await store.outbox.taken([rows["seen"]], 200, verify=False)
    await store.outbox.taken([rows["sent"]], 200, verify=True)
    await asyncio.to_thread(erase, tmp_path / "s.sqlite", [bytes.fromhex(TRACE)], scores=True, now_ns=300)
    assert [row.id for row in store.outbox.due(300, 10)] == ["seen"]
    await store.outbox.taken([rows["waiting"]], 400, verify=True)  # word of the writing that was on its way
    assert {row.id: row.body for row in store.outbox.due(300 + SETTLES_NS, 10)} == dict.fromkeys(rows)


async def test_a_score_that_is_to_be_deleted_is_deleted_though_its_trace_is_forgotten(store, tmp_path):
    await store.finish(ended(("a", '{"value":1}'), ("b", '{"value":1}')))
    await store.outbox.taken(store.outbox.due(100, 10), 200, verify=False)
    await store.finish(ended(("a", '{"value":2}'), revision=2))  # which withdraws the other
    assert {row.id: row.withdrawn for row in store.outbox.due(10**18, 10)} == {"a": False, "b": True}
    await asyncio.to_thread(erase, tmp_path / "s.sqlite", [bytes.fromhex(TRACE)], scores=False, now_ns=300)
    assert {row.id: row.body for row in store.outbox.due(10**18, 10)} == {"b": None}
