"""Whatever the fleet's database does, a span goes on and is judged as fast as ever."""

from __future__ import annotations

import time

from tests.fakes.upstream import upstream
from tests.monitor.alerting.fleet.test_whole_fleet import FAILING
from tests.otlp_requests import HIGH, S, request, span, trace
from tests.postgres_server import SlowProxy
from tests.waiting import until

PROTOBUF = {"content-type": "application/x-protobuf"}
LONGEST_S = 0.4
"""Far below the second that the database is given here, and far above what a busy machine takes."""


async def test_no_span_waits_for_a_database_that_is_slow_or_goes_silent_in_a_transaction(started, postgres):
    async with upstream() as up, SlowProxy(postgres.port) as proxy:
        database = postgres.url(postgres.new_database(), port=proxy.port)
        app = await started(
            forward={"url": up.url}, fleet={"database": database, "every": "20ms", "timeout": "1s", "lease": "3s"},
            **FAILING,
        )  # fmt: skip
        fleet, taken = app.monitor.fleet, 0

        async def longest(requests):
            nonlocal taken
            slowest = 0.0
            for _ in range(requests):
                taken += 1
                body = request([S(trace_id=trace(taken, HIGH), span_id=span(1))])
                begun = time.monotonic()
                answer = await app.http.post(app.otlp + "/v1/traces", content=body, headers=PROTOBUF)
                slowest = max(slowest, time.monotonic() - begun)
                assert answer.status_code == 200
            return slowest

        await until(lambda: dict(fleet.snapshot().rounds).get("ok", 0) >= 3)
        assert await longest(40) < LONGEST_S
        proxy.silent_after = b"INTO monitors"  # the statement is done, and no answer comes
        await until(lambda: proxy.silences > 0)
        assert fleet.away is None, "it is in the middle of the transaction"
        assert await longest(40) < LONGEST_S
        await app.settled(taken)
        await until(lambda: fleet.away is not None)
        proxy.silent_after, proxy.delay_s = None, 5.0
        assert await longest(40) < LONGEST_S
        await app.settled(taken)
        assert len(up.requested) == taken
