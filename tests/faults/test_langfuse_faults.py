"""4,000 scores through faults of every kind: at the end each is stored once, with its last value."""

from __future__ import annotations

import random

import pytest

from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import Mode
from tests.langfuse_bench import Bench, bench, fake, score  # noqa: F401  # fixtures

TRACES = 1_000
NAMES = ("qa_score", "qa_a", "qa_b", "qa_c")


@pytest.mark.timeout(900)  # a minute alone, many where the machine is shared
async def test_four_thousand_scores_through_faults_of_every_kind_are_each_stored_once(bench):  # noqa: F811  # the fixture of that name
    dice = random.Random(6)
    bench.fake.mode = Mode.NEW
    bench.langfuse._timeout_s = 2.0
    kinds = [
        faults.error(401, "Invalid credentials."), faults.suspended(), faults.resources(), faults.rate_limited(5),
        faults.store_away(), faults.database_away(), faults.proxy_page(), faults.login_page(), faults.resets(),
        faults.resets(20), faults.lost_answer(bench.fake), faults.forgets(bench.fake), faults.gone(),
    ]  # fmt: skip
    broken = [True]

    def sometimes(request):
        return dice.choice(kinds)(request) if broken[0] and dice.random() < 0.08 else None

    bench.fake.standing_fault = sometimes
    wanted: dict[str, float] = {}
    for number in range(TRACES):
        rounds = 2 if number % 10 == 0 else 1
        for revision in range(1, rounds + 1):
            stated = [score(number, dice.random(), name) for name in NAMES]
            await bench.end(number, *stated, revision=revision)
            wanted |= {each["id"]: each["value"] for each in stated}
        if number % 25 == 0:
            await bench.step()
        if number % 500 == 250:  # the process is killed, and another takes its place
            bench.delivery = bench.new_delivery()
    await bench.step(200)
    broken[0] = False
    await bench.settle(3_000)
    assert len(wanted) == 4_000
    assert bench.values() == wanted
    assert bench.store.outbox.counts().dead == 0
    assert bench.failed.total() > 100
