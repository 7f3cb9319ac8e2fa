"""Dispatcher: delivery in order, at least once, whatever the destination does."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from sidejudge.integrations.backoff import DestinationUnreachableError, RefusedError
from sidejudge.integrations.store.notification_outbox import Entry
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.deliver.dispatcher import DeliveryTerms, Dispatcher, StoredQueue
from sidejudge.scoring.status.snapshots import QueueStatus
from tests.waiting import until

PAUSE_S = 0.01


class Destination:
    """Takes what it is given, after the failures that it was told to have."""

    def __init__(self, *failures, batch=1, gather_s=0.0):
        self.name, self.batch, self.gather_s = "slack", batch, gather_s
        self.alone = ""
        self.failures = list(failures)
        self.refuses: dict[str, str] = {}
        self.reads_first = False
        self.taken: list[str] = []
        self.attempts = 0

    def together(self, entries):
        if self.reads_first:
            self.read(entries)
        return entries[:1] if entries[0].id == self.alone else [each for each in entries if each.id != self.alone]

    @staticmethod
    def read(entries):
        return [json.loads(each.body)["kind"] for each in entries if each.body != "{}"]

    async def deliver(self, entries):
        self.attempts += 1
        self.read(entries)
        if self.failures:
            failure = self.failures.pop(0)
            if failure == "hang":
                await asyncio.Event().wait()
            raise failure
        self.taken += [each.id for each in entries if each.id not in self.refuses]
        return {each.seq: self.refuses[each.id] for each in entries if each.id in self.refuses}


class Counters:
    """Keeps what it is called with."""

    def __init__(self):
        self.calls = []

    def exported(self, destination, count=1, *, at_s=None):
        self.calls.append(("exported", destination, count))
        self.last_taken_s = at_s

    def export_failed(self, destination, reason, count=1):
        self.calls.append(("failed", destination, reason, count))


@pytest.fixture
async def office(tmp_path):
    """Dispatchers over one store; ends what a test leaves running."""
    store, running = Store(tmp_path / "state.sqlite"), []

    async def start(destination, clock_ns=time.time_ns, counters=None):
        queue, terms = StoredQueue(store.notifications, destination.name), DeliveryTerms(first_pause_s=PAUSE_S)
        dispatcher = Dispatcher(destination, queue, clock_ns=clock_ns, counters=counters, terms=terms)
        await dispatcher.start()
        running.append(dispatcher)
        return dispatcher

    yield store, start
    for dispatcher in running:
        await dispatcher.close()
    store.close()


def entries(*ids):
    return [Entry(destination="slack", id=each, body="{}") for each in ids]


def idle(store):
    return lambda: not store.notifications.waiting("slack", 1)


async def test_what_waited_before_and_what_comes_later_is_delivered_in_order(office):
    store, start = office
    await store.notifications.put(entries("a", "b"), 1)
    destination = Destination()
    dispatcher = await start(destination)
    await until(idle(store))
    await store.notifications.put(entries("c"), 2)
    dispatcher.wake()
    await until(idle(store))
    assert destination.taken == ["a", "b", "c"]
    assert dispatcher.snapshot().last_success_s is not None


async def test_what_cannot_be_taken_now_holds_up_what_is_behind_it(office):
    store, start = office
    destination = Destination(*(DestinationUnreachableError("it answered 503") for _ in range(3)))
    await store.notifications.put(entries("a", "b"), time.time_ns())
    dispatcher = await start(destination)
    await until(lambda: destination.attempts >= 2)
    standing = dispatcher.snapshot()
    if destination.failures:
        assert (standing.state, standing.reason) == ("retrying", "it answered 503")
    await until(idle(store))
    assert destination.taken == ["a", "b"]
    assert dispatcher.snapshot().state == "ok"


async def test_what_is_refused_is_set_aside_and_the_rest_goes_on(office):
    store, start = office
    destination = Destination(RefusedError("it answered 400"))
    counters = Counters()
    await store.notifications.put(entries("a", "b"), 1)
    dispatcher = await start(destination, counters=counters)
    await until(idle(store))
    assert destination.taken == ["b"]
    standing = dispatcher.snapshot()
    assert (standing.state, standing.dead, standing.reason) == ("ok", 1, "it answered 400")
    assert counters.calls == [
        ("exported", "slack", 1),
        ("failed", "slack", "not_delivered", 1),
        ("exported", "slack", 1),
    ]


@pytest.mark.parametrize("reads_first", [False, True])
@pytest.mark.parametrize("body", ['{"kinf": "alert"}', '{"kind": "alert"', "[1]"])
async def test_what_cannot_be_read_is_set_aside_and_holds_up_nothing(office, body, reads_first):
    store, start = office
    destination = Destination(batch=10)
    destination.reads_first = reads_first
    await store.notifications.put([*entries("a"), Entry(destination="slack", id="b", body=body), *entries("c")], 1)
    dispatcher = await start(destination)
    await until(lambda: destination.taken == ["a", "c"] and dispatcher.snapshot().state == "ok")
    standing = dispatcher.snapshot()
    assert (standing.waiting, standing.dead) == (0, 1)
    assert standing.reason.startswith("it cannot be read: ")


async def test_a_batch_is_delivered_but_for_those_that_are_refused(office):
    store, start = office
    destination = Destination(batch=10)
    destination.refuses = {"b": "no such trace"}
    await store.notifications.put(entries("a", "b", "c"), 1)
    dispatcher = await start(destination)
    await until(idle(store))
    assert destination.taken == ["a", "c"]
    assert dispatcher.snapshot().dead == 1


async def test_what_belongs_to_what_came_first_is_waited_for_and_goes_with_it(office):
    store, start = office
    destination = Destination(batch=10, gather_s=2.0)
    destination.alone = "report"
    dispatcher = await start(destination)
    await store.notifications.put(entries("a"), 1)
    dispatcher.wake()
    await store.notifications.put(entries("b"), 2)
    dispatcher.wake()
    await store.notifications.put(entries("report"), 3)
    await until(idle(store))
    assert destination.taken == ["a", "b", "report"]
    assert destination.attempts == 2


async def test_a_batch_that_is_full_waits_for_nothing(office):
    store, start = office
    await store.notifications.put(entries("a", "b"), 1)
    destination = Destination(batch=2, gather_s=60)
    await start(destination)
    await until(lambda: destination.taken == ["a", "b"])


async def test_what_waits_as_it_closes_is_delivered_first_unless_the_destination_was_away(office):
    store, start = office
    sound, away = Destination(), Destination(DestinationUnreachableError("it answered 503", retry_after_s=60))
    away.name = "pager"
    for destination in (sound, away):
        await store.notifications.put([Entry(destination=destination.name, id="a", body="{}")], 1)
    first, second = await start(sound), await start(away, clock_ns=lambda: 1)
    await until(lambda: sound.taken and away.attempts == 1)
    await store.notifications.put(entries("b"), 2)
    for dispatcher in (first, second):
        await dispatcher.close()
    assert (sound.taken, away.taken) == (["a", "b"], [])


@pytest.mark.parametrize(("refused", "at_s"), [({}, 1e9), ({"a": "no"}, 1e9), ({"a": "no", "b": "no"}, None)])
async def test_the_time_of_the_last_delivery_is_when_something_of_it_was_taken(office, refused, at_s):
    store, start = office
    await store.notifications.put(entries("a", "b"), 1)
    destination, counters = Destination(batch=2), Counters()
    destination.refuses = refused
    await start(destination, clock_ns=lambda: 10**18, counters=counters)
    await until(idle(store))
    assert counters.last_taken_s == at_s


async def test_what_is_a_moment_younger_than_a_day_waits_on(office):
    store, start = office
    queued_ns = time.time_ns()
    await store.notifications.put(entries("a"), queued_ns)
    destination = Destination(*(DestinationUnreachableError("nobody listens") for _ in range(3)))
    await start(destination, clock_ns=lambda: queued_ns + 24 * 3600 * 10**9 - 1)
    await until(lambda: destination.taken == ["a"])
    assert destination.attempts == 4


async def test_what_cannot_be_delivered_for_a_day_is_set_aside(office):
    store, start = office
    queued_ns = time.time_ns()
    await store.notifications.put(entries("a"), queued_ns)
    destination = Destination(DestinationUnreachableError("nobody listens"))
    await start(destination, clock_ns=lambda: queued_ns + 24 * 3600 * 10**9)
    await until(idle(store))
    assert store.notifications.queue("slack").reason == "not taken in time: nobody listens"
    assert destination.taken == []


async def test_what_was_set_aside_is_tried_again_at_the_next_start(office):
    store, start = office
    await store.notifications.put(entries("a"), 1)
    first = await start(Destination(RefusedError("wrong address")))
    await until(idle(store))
    await first.close()
    mended = Destination()
    await start(mended)
    await until(lambda: mended.taken == ["a"])
    await until(lambda: store.notifications.queue("slack") == QueueStatus())


async def test_an_unforeseen_error_does_not_end_deliveries(office):
    store, start = office
    destination = Destination(ZeroDivisionError("a mistake"))
    await store.notifications.put(entries("a"), 1)
    await start(destination)
    await until(lambda: destination.taken == ["a"])


async def test_a_delivery_that_is_cut_off_is_made_again(office):
    store, start = office
    await store.notifications.put(entries("a"), 1)
    hanging = Destination("hang")
    dispatcher = await start(hanging)
    await until(lambda: hanging.attempts == 1)
    dispatcher._task.cancel()
    await dispatcher.close()
    again = Destination()
    await start(again)
    await until(lambda: again.taken == ["a"])
