"""What judges answered stays known, within its bound, across restarts; and so does what it cost."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from sidejudge.integrations.store.connection import VERSION, schema
from sidejudge.integrations.store.sqlite import Store


@pytest.fixture
def store(tmp_path):
    opened = Store(tmp_path / "s.sqlite")
    yield opened
    opened.close()


async def test_answers_are_found_again_after_a_restart(store, tmp_path):
    await store.judged.put({"a": "1", "b": "2"}, now_ns=1, most=10)
    store.close()
    again = Store(tmp_path / "s.sqlite")
    assert again.judged.get(["b", "a", "c"], now_ns=2) == {"a": "1", "b": "2"}
    again.close()


async def test_the_answers_that_were_not_used_for_longest_are_forgotten_first(store):
    await store.judged.put({"old": "1", "used": "2"}, now_ns=1, most=3)
    store.judged.get(["used"], now_ns=2)
    await store.judged.put({"x": "3", "y": "4"}, now_ns=3, most=3)
    assert store.judged.get(["old", "used", "x", "y"], now_ns=4) == {"used": "2", "x": "3", "y": "4"}


async def test_there_are_never_more_than_the_bound(store):
    for n in range(1_200):
        await store.judged.put({f"{n}": "1"}, now_ns=n, most=500)
        if n % 50 == 0:
            with closing(sqlite3.connect(store.path)) as other, other:
                assert other.execute("SELECT count(*) FROM judged").fetchone()[0] <= 500
            other.close()
    assert len(store.judged.get([f"{n}" for n in range(1_200)], 0)) > 480


async def test_an_answer_that_is_put_again_replaces_the_one_before(store):
    await store.judged.put({"a": "1"}, now_ns=1, most=10)
    await store.judged.put({"a": "2"}, now_ns=2, most=10)
    assert store.judged.get(["a"], now_ns=3) == {"a": "2"}


async def test_what_was_spent_is_summed_by_the_hour_and_survives(store, tmp_path):
    for hour, usd in ((0, 0.5), (3600, 0.25), (3600, 0.5), (7200, 1.0)):
        await store.judged.spend(hour, usd)
    store.close()
    again = Store(tmp_path / "s.sqlite")
    assert again.judged.spent_since(3600) == {3600: 0.75, 7200: 1.0}
    again.close()


async def test_a_store_of_the_version_before_is_brought_up_to_date_and_keeps_what_it_holds(tmp_path):
    path = tmp_path / "s.sqlite"
    other = sqlite3.connect(path)
    other.executescript(schema(1) + "PRAGMA user_version = 1;")
    other.execute("INSERT INTO traces VALUES (?, 1, 1, 'shop', 'scored', 'root_ended', '{}')", (b"a" * 16,))
    other.commit()
    other.close()
    store = Store(path)
    assert store.details(b"a" * 16)["service"] == "shop"
    await store.judged.put({"a": "1"}, now_ns=1, most=10)
    store.close()
    with closing(sqlite3.connect(path)) as other, other:
        assert other.execute("PRAGMA user_version").fetchone() == (VERSION,)
    other.close()
