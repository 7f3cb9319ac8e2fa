"""Delivery: taken once, tried again while it helps, given up where it does not; everything is counted."""

from __future__ import annotations

import ast
import gzip
import inspect
import re
from collections import Counter
from dataclasses import replace

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from sidejudge.integrations.otel_events.providers import telemetry
from sidejudge.integrations.otel_events.request import TRACES
from sidejudge.integrations.post import Poster
from sidejudge.monitor.deliver.dispatcher import Dispatcher
from sidejudge.monitor.deliver.otel_events import sink
from sidejudge.monitor.deliver.otel_events.sink import BATCH, EXPIRES_NS, TERMS, SignalDestination
from tests.fakes.collector import spans
from tests.fakes.receiver import Act, receiving
from tests.waiting import until


class Counters:
    def __init__(self):
        self.exported_items, self.failed, self.last_success_s = 0, Counter(), None

    def exported(self, destination, count=1, *, at_s=None):
        assert destination == "otel_events"
        self.exported_items += count
        self.last_success_s = at_s if at_s is not None else self.last_success_s

    def export_failed(self, destination, reason, count=1):
        self.failed[reason] += count


class Bench:
    def __init__(self, fake, room=4096, timeout_s=10.0):
        self.now_ns, self.fake, self.counters = 10**9, fake, Counters()
        self.telemetry = telemetry(version="1", environment=None, clock_ns=lambda: self.now_ns, room=room)
        poster = Poster(f"{fake.url}/v1/traces", timeout_s)
        destination = SignalDestination(TRACES, poster, {"x-tenant": "blue"}, gather_s=0.01)
        queue = self.telemetry.spans
        self.delivery = Dispatcher(
            destination, queue, clock_ns=lambda: self.now_ns, counters=self.counters,
            terms=replace(TERMS, first_pause_s=0.01),
        )  # fmt: skip
        queue.on_put = self.delivery.wake
        queue.on_dropped = self.dropped

    def dropped(self):
        self.counters.exported("otel_events")
        self.counters.export_failed("otel_events", "no_room")

    def write(self, count, begin=0):
        for number in range(begin, begin + count):
            self.telemetry.tracer.start_span(f"s{number}").end()

    async def start(self):
        await self.delivery.start()

    async def stop(self):
        await self.delivery.close()

    @property
    def state(self):
        return self.delivery.status.state

    @property
    def reason(self):
        return self.delivery.status.reason

    @property
    def waiting(self):
        return self.delivery.snapshot().waiting

    def names(self):
        return [span.name for span in spans(self.fake.taken)]


@pytest.fixture
def fake():
    with receiving() as server:
        yield server


async def test_everything_is_taken_once_in_order_in_batches(fake):
    bench = Bench(fake)
    bench.write(2 * BATCH + 7)
    await bench.start()
    await until(lambda: bench.waiting == 0)
    bench.write(1, begin=2 * BATCH + 7)
    await until(lambda: bench.counters.exported_items == 2 * BATCH + 8)
    await bench.stop()
    assert bench.names() == [f"s{number}" for number in range(2 * BATCH + 8)]
    assert (bench.counters.exported_items, bench.counters.failed) == (2 * BATCH + 8, {})
    assert (bench.state, bench.reason, bench.delivery.snapshot().dead) == ("ok", "", 0)
    got = fake.got[0]
    assert (got.headers["content-type"], got.headers["content-encoding"]) == ("application/x-protobuf", "gzip")
    assert got.headers["x-tenant"] == "blue"
    assert gzip.decompress(got.body)


@pytest.mark.parametrize("act", [Act(status=503), Act(status=429), Act(reset=True)], ids=["503", "429", "reset"])
async def test_what_may_pass_is_tried_again_and_arrives_once(fake, act):
    fake.act = lambda number: act if number < 3 else Act()
    bench = Bench(fake)
    bench.write(5)
    await bench.start()
    await until(lambda: bench.state == "retrying")
    assert bench.reason.startswith("/v1/traces: ")
    assert (bench.waiting, bench.delivery.snapshot().oldest_s) == (5, 1.0)
    await until(lambda: bench.state == "ok")
    await bench.stop()
    assert bench.names() == [f"s{number}" for number in range(5)]
    assert (bench.counters.exported_items, bench.counters.failed) == (5, {})


async def test_an_endpoint_that_asks_for_time_is_given_it(fake):
    fake.act = lambda _: Act(status=503, headers={"retry-after": "900"})
    bench = Bench(fake)
    bench.write(1)
    await bench.start()
    await until(lambda: bench.state == "retrying")
    await bench.stop()
    assert len(fake.got) == 1


async def test_what_is_refused_is_given_up_at_once_and_the_next_is_tried(fake):
    fake.act = lambda number: Act(status=400, body=b"bad") if number == 0 else Act()
    bench = Bench(fake)
    bench.write(BATCH + 3)
    await bench.start()
    await until(lambda: bench.state == "ok")
    await bench.stop()
    assert bench.names() == [f"s{number}" for number in range(BATCH, BATCH + 3)]
    assert bench.counters.failed == {"refused": BATCH}
    assert bench.counters.exported_items == BATCH + 3


async def test_a_batch_that_never_passes_does_not_hold_up_the_others_for_ever(fake):
    bench = Bench(fake)

    def act(number):
        bench.now_ns += EXPIRES_NS // 2  # as if the pauses had been as long as they may be
        return Act(status=500) if number < 2 else Act()

    fake.act = act
    bench.write(BATCH + 1)
    await bench.start()
    await until(lambda: bench.state == "ok")
    await bench.stop()
    assert bench.names() == [f"s{BATCH}"]
    assert bench.counters.failed == {"not_delivered": BATCH}


@pytest.mark.parametrize(("rejected", "state", "taken"), [(2, "ok", 3), (5, "stopped", 0), (99, "stopped", 0)])
async def test_a_partial_success_is_counted_as_what_it_is(fake, rejected, state, taken):
    stated = ExportTraceServiceResponse()
    stated.partial_success.rejected_spans, stated.partial_success.error_message = rejected, "too old"
    fake.act = lambda _: Act(body=stated.SerializeToString())
    bench = Bench(fake)
    bench.write(5)
    await bench.start()
    await until(lambda: bench.state == state)
    await bench.stop()
    assert bench.counters.failed == {"refused": 5 - taken}
    assert bench.counters.exported_items == 5
    assert (bench.counters.last_success_s is None) is (taken == 0)
    assert ("too old" in bench.reason) is (taken == 0)


@pytest.mark.parametrize("body", [b"{}", b"", b"\xff\xff", b"OK"])
async def test_an_answer_that_says_nothing_refuses_nothing(fake, body):
    fake.act = lambda _: Act(body=body)
    bench = Bench(fake)
    bench.write(1)
    await bench.start()
    await until(lambda: bench.state == "ok")
    await bench.stop()
    assert bench.counters.failed == {}


async def test_in_a_long_outage_memory_is_bounded_and_what_goes_is_counted(fake):
    fake.act = lambda _: Act(status=503)
    bench = Bench(fake, room=100)
    await bench.start()
    bench.write(10)
    await until(lambda: bench.state == "retrying")
    bench.write(150, begin=10)
    assert bench.waiting == 110, "what is under way, and a full queue"
    assert bench.counters.failed == {"no_room": 50}
    fake.act = lambda _: Act()
    await until(lambda: bench.waiting == 0)
    await bench.stop()
    assert bench.names() == [f"s{number}" for number in (*range(10), *range(60, 160))]
    assert bench.counters.exported_items == 160


async def test_a_last_try_sends_what_waits_and_keeps_what_is_not_taken(fake):
    bench = Bench(fake)
    bench.write(BATCH + 5)
    await bench.delivery.flush()
    assert len(bench.names()) == BATCH + 5
    fake.act = lambda _: Act(status=503)
    bench.write(7)
    await bench.delivery.flush()
    assert bench.waiting == 7


async def test_a_fault_of_our_own_costs_a_batch_and_not_the_task(fake):
    bench = Bench(fake)
    bench.telemetry.spans.put(object())  # which nobody can write
    await bench.start()
    await until(lambda: bench.state == "stopped")
    assert bench.reason == "/v1/traces: it could not be written or sent: AttributeError"
    assert bench.counters.failed == {"refused": 1}
    bench.write(1)
    await until(lambda: bench.state == "ok")
    await bench.stop()
    assert bench.names() == ["s0"]


def test_the_module_of_the_sink_imports_nothing_of_an_sdk_that_is_an_extra():
    imported = [each for each in ast.parse(inspect.getsource(sink)).body if isinstance(each, ast.ImportFrom)]
    assert not [
        each.module for each in imported if re.match(r"opentelemetry|.*\.integrations\.otel_events", each.module)
    ]
