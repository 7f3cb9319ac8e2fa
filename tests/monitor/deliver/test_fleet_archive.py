"""Results of all monitors in one archive: hostile contents, outages, retention, erasure."""

from __future__ import annotations

import json
import time

import pytest

from sidejudge.integrations.postgres import archive
from sidejudge.integrations.postgres.archive import MOST_BYTES, ArchivedResult
from sidejudge.integrations.postgres.database import Database
from tests.integrations.postgres.conftest import database

__all__ = ["database"]

HOSTILE = {
    "nul": "a\0b",
    "lone surrogate": "x\ud800y\udfff",
    "ten megabytes": "é" * 5_000_000,
    "not a number": float("nan"),
    "endless": float("inf"),
    "a large number": 10**4000,
    "a key \0 of its own": {"\ud83d": "\u0000"},
    "quotes": "'; DROP TABLE results; --\\u0000 \\ \" %s %(a)s",
}


def result(trace_id: str = "ab" * 16, *, age_s: float = 0, **outcome: object) -> ArchivedResult:
    return ArchivedResult(trace_id, 1, "checkout", time.time() - age_s, outcome, [{"rubric": "qa", "passed": True}])


async def put(database: Database, *results: ArchivedResult) -> None:
    async with database.transaction() as transaction:
        await archive.put_results(transaction, "m", results)


async def kept(database: Database, what: str = "count(*)") -> list[tuple]:
    async with database.transaction() as transaction:
        return await transaction.rows(f"SELECT {what} FROM results")


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_contents_are_kept_as_far_as_they_have_a_form(database: Database, name: str) -> None:
    await put(database, result(**{name: HOSTILE[name], "id": "t"}))
    [(outcome, verdicts)] = await kept(database, "outcome, verdicts")
    assert outcome["id"] == "t"
    assert verdicts == [{"rubric": "qa", "passed": True}]
    assert len(json.dumps(outcome)) < MOST_BYTES


async def test_what_is_nested_a_thousand_deep_or_large_is_cut(database: Database) -> None:
    deep: object = "end"
    for _ in range(900):
        deep = [deep]
    await put(database, result(deep=deep), result("cd" * 16, many=["x" * 16_000] * 100, reason="scored"))
    outcomes = [outcome for (outcome,) in await kept(database, "outcome")]
    assert outcomes[1] == {"reason": "scored", "cut": True}


async def test_a_result_that_is_delivered_twice_stands_once(database: Database) -> None:
    await put(database, result())
    await put(database, result())
    assert await kept(database) == [(1,)]


async def test_old_results_go_and_a_person_is_forgotten(database: Database) -> None:
    await put(database, result("aa", age_s=100), result("bb", user="u1"), result("cc", session="s1"), result("dd"))
    async with database.transaction() as transaction:
        gone = await archive.purge(transaction, results_s=50, windows_s=9, answers_s=9, answers=9)
    assert gone == 1
    async with database.transaction() as transaction:
        gone = await archive.erase_results(transaction, traces=[], users=["u1"], sessions=["s1"], before_s=None)
    assert gone == 2
    assert await kept(database, "trace_id") == [("dd",)]
