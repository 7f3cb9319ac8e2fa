"""A bounded queue in memory: the oldest goes where it is full, but never what is under way."""

from __future__ import annotations

from sidejudge.integrations.otel_events.providers import MemoryQueue
from sidejudge.scoring.status.snapshots import QueueStatus


async def test_the_oldest_goes_where_the_queue_is_full_and_is_counted():
    now_ns, dropped, put = [0], [], []
    queue = MemoryQueue(2, lambda: now_ns[0])
    queue.on_dropped, queue.on_put = lambda: dropped.append(now_ns[0]), lambda: put.append(now_ns[0])
    for number in range(5):
        now_ns[0] = number
        queue.put(f"s{number}")
    assert (dropped, put) == ([2, 3, 4], [0, 1, 2, 3, 4])
    assert queue.status() == QueueStatus(waiting=2, oldest_ns=3, parked=3)
    assert [item.body for item in queue.waiting(9)] == ["s3", "s4"]


async def test_what_is_under_way_is_kept_until_it_is_settled():
    queue = MemoryQueue(2, lambda: 7)
    for number in range(2):
        queue.put(number)
    first, second = queue.waiting(9)
    for number in range(2, 5):
        queue.put(number)
    assert [item.body for item in queue.waiting(1)] == [0]
    assert queue.status().waiting == 4
    await queue.settle([first.seq], {second.seq: "refused"})
    assert [item.body for item in queue.waiting(9)] == [3, 4]
    assert queue.status() == QueueStatus(waiting=2, oldest_ns=7, parked=2)
