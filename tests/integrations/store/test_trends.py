"""Trends of a store: what is summed up stretch by stretch is what the verdicts say."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from sidejudge.integrations.store import bounded_read
from sidejudge.integrations.store.bounded_read import read_trends
from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.scoring.statistics.estimate import estimate, from_sums

STEP = 1_000
UNTIL = 10_000


def stated(number: int, **more) -> FinishedTrace:
    verdict = {"rubric": "qa", "service": "shop", "environment": "prod", "passed": True, "sampling_probability": 1.0}
    at_ns = more.pop("at_ns")
    return FinishedTrace(
        trace_id=number.to_bytes(16, "big"), service="shop", reason="scored", completion="root_ended", revision=1,
        details={}, verdicts=[{**verdict, **more}], closed_ns=at_ns,
    )  # fmt: skip


@pytest.fixture
async def store(tmp_path):
    opened = Store(tmp_path / "state.sqlite")
    yield opened
    opened.close()


async def test_the_sums_of_each_stretch_give_the_estimate_of_its_verdicts(store):
    rng = random.Random(7)
    drawn = [
        (
            rng.randrange(0, 12_000),
            rng.choice(["a", "b", None]),
            rng.choice([True, False, None]),
            rng.choice([1.0, 0.25]),
        )
        for _ in range(300)
    ]
    for number, (at_ns, service, passed, probability) in enumerate(drawn, 1):
        await store.finish(
            stated(number, at_ns=at_ns, service=service, passed=passed, sampling_probability=probability)
        )
    found = {
        (each.number, each.sums.service): each.sums
        for each in read_trends(store.path, until_ns=UNTIL, step_ns=STEP, steps=8)
    }
    for stretch in range(8):
        begin = UNTIL - (8 - stretch) * STEP
        for service in ("a", "b", None):
            mine = [(passed, 1 / p) for at, name, passed, p in drawn if begin <= at < begin + STEP and name == service]
            sums = found.pop((stretch, service), None)
            assert (sums is None) == (not mine)
            if sums is None:
                continue
            assert sums.incomplete == sum(passed is None for passed, _ in mine)
            assert from_sums(
                n=sums.passed + sums.failed, failures=sums.failed, weight=sums.weight,
                failed_weight=sums.failed_weight, squared_weight=sums.squared_weight,
            ) == estimate((passed, weight) for passed, weight in mine if passed is not None)  # fmt: skip
    assert found == {}, "nothing from before or after"


async def test_of_too_many_verdicts_the_oldest_and_the_stretch_told_in_part_are_left_out(store, monkeypatch):
    monkeypatch.setattr(bounded_read, "MOST", 25)
    for number in range(40):
        await store.finish(stated(number + 1, at_ns=6_000 + number * 100))
    found = read_trends(store.path, until_ns=UNTIL, step_ns=STEP, steps=4)
    assert [(each.number, each.sums.passed) for each in found] == [(2, 10), (3, 10)]
    for number, at_ns in enumerate([*range(6_000, 6_020), *range(7_900, 7_903), 9_000], 100):  # by a spent budget
        drawn = {"sampling": {"probability": 1.0, "judged_share": 0.0, "over_budget": ["qa"]}}
        await store.finish(replace(stated(number, at_ns=at_ns), verdicts=[], details=drawn))
    found = read_trends(store.path, until_ns=UNTIL, step_ns=STEP, steps=4)
    assert [(each.number, each.sums.passed, each.sums.unreached) for each in found if each.sums.passed] == [
        (2, 10, 0), (3, 10, 0)
    ]  # fmt: skip
    assert [each.number for each in found] == [2, 3, 3]
    for number in range(200, 204):
        await store.finish(replace(stated(number, at_ns=8_500), verdicts=[], details=drawn))
    found = read_trends(store.path, until_ns=UNTIL, step_ns=STEP, steps=4)
    assert {each.number for each in found} == {2, 3}, "more of them than are read leave out no verdict that was"


async def test_verdicts_of_before_these_columns_give_the_same_and_one_rubric_is_what_it_is_among_all(store):
    for number in range(30):
        more = {
            "rubric": "qa" if number % 3 else "workflow",
            "rubric_version": f"{number % 2}",
            "passed": number % 4 > 0,
        }
        await store.finish(stated(number + 1, at_ns=6_000 + number * 100, sampling_probability=0.25, **more))
    found = read_trends(store.path, until_ns=UNTIL, step_ns=STEP, steps=4)
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("SELECT DISTINCT probability FROM verdicts").fetchall() == [(0.25,)]
        connection.execute("UPDATE verdicts SET probability = NULL, version = NULL")
        connection.commit()
    assert read_trends(store.path, until_ns=UNTIL, step_ns=STEP, steps=4) == found
    one = read_trends(store.path, until_ns=UNTIL, step_ns=STEP, steps=4, rubric="qa")
    assert one == [each for each in found if each.sums.rubric == "qa"] != []


def test_a_store_that_is_not_there_is_an_error_with_its_cause(tmp_path):
    with pytest.raises(StoreError):
        read_trends(tmp_path / "none.sqlite", until_ns=UNTIL, step_ns=STEP, steps=4)
