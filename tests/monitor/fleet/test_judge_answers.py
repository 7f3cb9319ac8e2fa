"""Answers that one monitor paid for are known to the others a round later."""

from __future__ import annotations

import time
from pathlib import Path

from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config.fleet import FleetSection
from sidejudge.monitor.fleet.fleet import Fleet
from sidejudge.monitor.fleet.judge_budget import MOST_WAITING, SharedAnswers
from tests.postgres_server import PostgresServer


async def test_what_one_paid_for_another_knows_and_an_outage_costs_nothing_but_money(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url, stores = postgres.url(postgres.new_database()), []
    made: list[tuple[Fleet, SharedAnswers]] = []
    for name in ("a", "b"):
        stores.append(Store(tmp_path / name))
        fleet = Fleet(FleetSection.model_validate({"database": url, "name": name}), stores[-1].kept.room("fleet"))
        made.append((fleet, SharedAnswers(stores[-1].judged, fleet, time.time_ns, most=100)))
    (one, paid), (two, other) = made
    await paid.put({"k": '["yes"]', "large": "x" * 100_000}, time.time_ns(), 100)
    assert paid.get(["k"], time.time_ns()) == {"k": '["yes"]'}, "here at once"
    await one.round()
    await two.round()
    assert other.get(["k", "large"], time.time_ns()) == {"k": '["yes"]'}
    with postgres.stopped():
        await paid.put({f"n{n}": "1" for n in range(MOST_WAITING + 5)}, time.time_ns(), 10_000)
        await one.round()
        assert len(paid._waiting) == MOST_WAITING, "bounded"
    await one.round()
    assert len(paid._waiting) < MOST_WAITING, "caught up with, some at a time"
    for fleet, _ in made:
        fleet.database.close()
    for store in stores:
        store.close()
