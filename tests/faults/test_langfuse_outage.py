"""Langfuse is down for as long as the disk allows, and comes back with a limit."""

from __future__ import annotations

from collections import Counter

import pytest

from sidejudge.integrations.langfuse.client import Access, Langfuse, RequestBudget
from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.runtime.retention import RetentionTerms, free_space
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode, only
from tests.langfuse_bench import START_NS, Bench, score

PER_MINUTE = 120
MOST = 4096
"""More traces than the disk holds."""
MINUTE_NS = 60 * 10**9
NAMES = ("qa_score", "qa_a", "qa_b", "qa_c")


class NothingOpen:
    def forget(self, closed_before_ns: int) -> None:
        """There is no assembler here."""


@pytest.mark.parametrize("mode", [Mode.DUAL, Mode.NEW], ids=lambda mode: mode.value)
async def test_after_an_outage_as_long_as_the_disk_allows_all_scores_arrive_by_age_and_within_the_limit(tmp_path, mode):
    held: list[Bench] = []

    async def sleep(seconds: float) -> None:
        held[0].now_ns += int(seconds * 1e9)

    budget = RequestBudget(PER_MINUTE, now_s=lambda: held[0].now_ns / 1e9, sleep=sleep)
    store = Store(tmp_path / "state.sqlite", max_bytes=2 * 2**20)
    with FakeLangfuse(mode) as fake:
        fake.scores.takes_events = False  # so that the order of single scores is seen
        access = Access(base_url=fake.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY)
        async with Langfuse(access, budget=budget, timeout_s=5.0) as langfuse:
            bench = Bench(fake, store, langfuse)
            held.append(bench)
            fake.standing_fault = only("POST", "/scores", faults.store_away())
            ended = await fill(bench)
            assert ended > 100
            assert store.outbox.counts().waiting == ended * len(NAMES)
            at: list[int] = []
            order: list[str] = []

            def watched(request):
                at.append(bench.now_ns)
                if (request.method, request.path) == ("POST", "/scores"):
                    bodies = request.body if isinstance(request.body, list) else [request.body]
                    order.extend(body["traceId"] for body in bodies)

            fake.standing_fault = watched
            await bench.settle(20_000)
    values = bench.values()
    assert len(values) == ended * len(NAMES)
    assert all(values[score(n, 0.0, name)["id"]] == n / MOST for n in range(ended) for name in NAMES)
    _, *others = dict.fromkeys(order)
    # What is tried until it is known that the server is back goes first; the others follow by age.
    assert others == sorted(others)
    assert len(others) == ended - 1
    busiest = max(Counter(moment // MINUTE_NS for moment in at).values())
    assert busiest <= PER_MINUTE + PER_MINUTE / 60 * 2 + 1
    assert store.outbox.counts().dead == 0
    store.close()


async def fill(bench: Bench) -> int:
    """End traces until the store takes no more spans; how many it took."""
    number = 0
    while bench.store._capacity.refusal is None:
        try:
            await bench.end(number, *(score(number, number / MOST, name, comment="why " * 60) for name in NAMES))
        except StoreError:
            break
        number += 1
        bench.now_ns += 10**9
        if number % 50 == 0:
            await bench.step()
            await free_space(
                bench.store,
                NothingOpen(),
                None,
                RetentionTerms(retention_ns=24 * 60 * MINUTE_NS, late_ns=10 * MINUTE_NS),
                now_ns=bench.now_ns,
            )
            await bench.store.purge(START_NS)  # measures
    return number
