"""Backlog: in order of age, bounded in number and in time."""

from __future__ import annotations

from sidejudge.integrations.otlp.wire.request import ChunkOrigin
from sidejudge.monitor.evaluate.judge_queue import DeferredTraces
from sidejudge.monitor.ingest.assembled_trace import Closing

ORIGIN = ChunkOrigin("shop", None, 7)


def closing(number: int, revision: int = 1, completion="root_ended", origin=ORIGIN) -> Closing:
    return Closing(trace_id=bytes([number]) * 16, completion=completion, revision=revision, origin=origin)


def filled(count: int, **bounds: int) -> DeferredTraces:
    deferred = DeferredTraces(**{"max_waiting": 100, "max_wait_ns": 100, **bounds})
    for number in range(count):
        deferred.park(closing(number), deferred.place(now_ns=number))
    return deferred


def order(deferred: DeferredTraces) -> list[int]:
    found = []
    while deferred:
        found.append(deferred.next()[1].trace_id[0])
    return found


def test_the_oldest_goes_first_and_what_comes_back_stands_where_it_stood():
    deferred = filled(5)
    taken = [deferred.next() for _ in range(3)]
    for place, each in reversed(taken):
        deferred.park(each, place)
    assert (deferred.oldest_ns, len(deferred)) == (0, 5)
    assert order(deferred) == [0, 1, 2, 3, 4]
    assert (deferred.oldest_ns, len(deferred)) == (None, 0)


def test_late_spans_renew_what_waits_and_it_stays_the_revision_that_was_not_told():
    deferred = filled(3)
    deferred.renew(closing(1, revision=2, completion="idle", origin=ChunkOrigin("shop", None, 3)))
    found = {each.trace_id[0]: each for _, each in (deferred.next() for _ in range(3))}
    assert (found[1].revision, found[1].completion, found[1].origin.threshold) == (1, "idle", 3)


def test_what_waits_too_long_is_overdue_and_of_too_many_the_oldest():
    deferred = filled(5, max_wait_ns=10)
    assert [each.trace_id[0] for _, each in deferred.overdue(12)] == [0, 1, 2]
    assert closing(1).trace_id not in deferred
    assert closing(3).trace_id in deferred
    crowded = filled(5, max_waiting=3)
    assert [each.trace_id[0] for _, each in crowded.overdue(4)] == [0, 1]
    assert len(crowded) == 3
