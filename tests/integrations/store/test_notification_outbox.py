"""Mail: what waits, in which order, and what is noted with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sidejudge.integrations.store.connection import connect, queries
from sidejudge.integrations.store.notification_outbox import Entry
from sidejudge.integrations.store.sqlite import Store
from sidejudge.scoring.status.snapshots import QueueStatus


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "state.sqlite")
    yield made
    made.close()


def entry(id_, body="{}", destination="slack"):
    return Entry(destination=destination, id=id_, body=body)


async def test_entries_wait_in_order_of_arrival_within_their_destination(store):
    await store.notifications.put([entry("a"), entry("b"), entry("x", destination="hook")], 5)
    await store.notifications.put([entry("c")], 6)
    assert [each.id for each in store.notifications.waiting("slack", 10)] == ["a", "b", "c"]
    assert [each.id for each in store.notifications.waiting("slack", 2)] == ["a", "b"]
    assert [each.id for each in store.notifications.waiting("hook", 10)] == ["x"]
    assert store.notifications.queue("slack") == QueueStatus(waiting=3, oldest_ns=5)


async def test_a_later_body_takes_the_place_of_one_that_waits_and_outlives_its_delivery(store):
    await store.notifications.put([entry("a", "1")], 5)
    (first,) = store.notifications.waiting("slack", 10)
    await store.notifications.put([entry("a", "2")], 6)
    await store.notifications.settle([first.seq], {})
    (second,) = store.notifications.waiting("slack", 10)
    assert second.body == "2"
    await store.notifications.settle([second.seq], {})
    assert store.notifications.queue("slack") == QueueStatus()


async def test_a_number_is_never_used_twice(store):
    await store.notifications.put([entry("a")], 5)
    (first,) = store.notifications.waiting("slack", 10)
    await store.notifications.settle([first.seq], {})
    await store.notifications.put([entry("b")], 5)
    assert store.notifications.waiting("slack", 10)[0].seq > first.seq


async def test_what_is_set_aside_is_counted_with_its_reason_and_waits_again_when_asked(store):
    await store.notifications.put([entry("a"), entry("b"), entry("c")], 5)
    a, b, _ = store.notifications.waiting("slack", 10)
    await store.notifications.settle([], {a.seq: "no", b.seq: "never"})
    assert store.notifications.queue("slack") == QueueStatus(waiting=1, oldest_ns=5, parked=2, reason="never")
    assert await store.notifications.unpark("slack") == 2
    assert [each.id for each in store.notifications.waiting("slack", 10)] == ["a", "b", "c"]


async def test_what_was_set_aside_earlier_about_the_same_is_dropped_once_something_later_is_delivered(store):
    ids = ["ab-1", "cd-1", "ab-2", "ab-3", "ab-1"]
    for number, id_ in enumerate(ids):
        await store.notifications.put([entry(id_, destination="hook" if number == 4 else "slack")], 5)
    first, other, second, last = store.notifications.waiting("slack", 10)
    (elsewhere,) = store.notifications.waiting("hook", 10)
    await store.notifications.settle([], {each.seq: "no" for each in (first, other, last, elsewhere)}, subject=3)
    await store.notifications.settle([second.seq], {}, subject=3)
    assert await store.notifications.unpark("slack") == 2
    assert [each.id for each in store.notifications.waiting("slack", 10)] == ["cd-1", "ab-3"]
    assert await store.notifications.unpark("hook") == 1


async def test_only_what_was_set_aside_long_ago_is_forgotten(store):
    await store.notifications.put([entry("old"), entry("waits")], 5)
    await store.notifications.put([entry("new")], 50)
    old, _, new = store.notifications.waiting("slack", 10)
    await store.notifications.settle([], {old.seq: "no", new.seq: "no"})
    await store.notifications.forget(50)
    assert await store.notifications.unpark("slack") == 1
    assert [each.id for each in store.notifications.waiting("slack", 10)] == ["waits", "new"]


async def test_notes_are_committed_with_the_entries_or_not_at_all(tmp_path, store):
    await store.notifications.put([entry("a")], 5, {"told": "yes", "gone": "soon"})
    await store.notifications.put([], 6, {"gone": None})
    with pytest.raises(Exception, match="NOT NULL"):
        await store.notifications.put([entry("b", None)], 7, {"told": "no"})
    store.close()
    again = Store(tmp_path / "state.sqlite")
    assert again.notifications.notes() == {"told": "yes"}
    assert [each.id for each in again.notifications.waiting("slack", 10)] == ["a"]
    again.close()


async def test_neither_a_delivery_nor_the_status_of_a_queue_reads_what_waits_there(tmp_path, store):
    outbox, bodies = store.notifications, "x" * 4096
    read: list[int] = []

    def pages() -> int:
        """8 kB pages that one who reads the status for the first time takes from the file."""
        other = connect(tmp_path / "state.sqlite")
        try:
            before = _read_bytes()
            assert other.execute(queries()["mail_status"], {"destination": "slack"}).fetchone()[0] == 1_000
            return (_read_bytes() - before) // 8192
        finally:
            other.close()

    def steps() -> int:
        read.append(1)
        return 0

    await outbox.put([entry(f"{number:016x}-firing", bodies) for number in range(1_001)], 5)
    writing = store._write_connection
    writing.set_progress_handler(steps, 100)
    await outbox.settle([outbox.waiting("slack", 1)[0].seq], {}, subject=17)
    writing.set_progress_handler(None, 0)
    assert len(read) <= 5
    assert pages() <= 20


def _read_bytes() -> int:
    [read] = re.findall(r"rchar: (\d+)", Path("/proc/self/io").read_text())
    return int(read)
