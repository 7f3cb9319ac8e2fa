"""Whatever the fleet's database does, a span goes on and is judged as ever."""

from __future__ import annotations

from tests.fakes.upstream import upstream
from tests.monitor.alerting.fleet.test_whole_fleet import FAILING
from tests.otlp_requests import HIGH, S, request, span, trace
from tests.postgres_server import SlowProxy
from tests.waiting import until

PROTOBUF = {"content-type": "application/x-protobuf"}
TIMEOUT_S = 60
"""Who waits for the database here waits this long: longer than the client below, and than a trace takes to settle."""


async def test_no_span_waits_for_a_database_that_is_slow_or_goes_silent_in_a_transaction(started, postgres):
    async with upstream() as up, SlowProxy(postgres.port) as proxy:
        database = postgres.url(postgres.new_database(), port=proxy.port)
        app = await started(
            forward={"url": up.url}, **FAILING,
            fleet={"database": database, "every": "20ms", "timeout": f"{TIMEOUT_S}s", "lease": "3m"},
        )  # fmt: skip
        fleet, taken = app.monitor.fleet, 0
        fleet._backoff._longest_s = 0.05

        async def spans_go_on():
            nonlocal taken
            for _ in range(20):
                taken += 1
                body = request([S(trace_id=trace(taken, HIGH), span_id=span(1))])
                answer = await app.http.post(app.otlp + "/v1/traces", content=body, headers=PROTOBUF, timeout=10)
                assert answer.status_code == 200
            await app.settled(taken)

        await until(lambda: dict(fleet.snapshot().rounds).get("ok", 0) >= 3)
        await spans_go_on()
        proxy.silent_after = b"INTO monitors"  # the statement is done, and no answer comes
        await until(lambda: proxy.silences > 0)
        await spans_go_on()
        assert fleet.away is None, "it was in the middle of the transaction all the while"
        proxy.silent_after, proxy.delay_s = None, TIMEOUT_S
        proxy.hang_up()
        await until(lambda: fleet.away is not None and proxy.clients)
        rounds = fleet.snapshot().rounds
        await spans_go_on()
        assert fleet.snapshot().rounds == rounds, "it was connecting all the while"
        assert len(up.requested) == taken
