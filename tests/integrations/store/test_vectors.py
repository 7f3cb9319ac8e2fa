"""Vectors stay known, within their bound, across restarts."""

from __future__ import annotations

import sqlite3

from sidejudge.integrations.store.connection import schema
from sidejudge.integrations.store.sqlite import Store


async def test_vectors_are_found_again_after_a_restart(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    await store.vectors.put({"a": b"\x00\x00\x80?", "b": b"\x00"}, now_ns=1, most=10)
    store.close()
    again = Store(tmp_path / "s.sqlite")
    assert again.vectors.get(["a", "c"], now_ns=2) == {"a": b"\x00\x00\x80?"}
    again.close()


async def test_the_vectors_that_were_not_used_for_longest_are_forgotten_first(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    await store.vectors.put({"old": b"1", "used": b"2"}, now_ns=1, most=3)
    store.vectors.get(["used"], now_ns=2)
    await store.vectors.put({"x": b"3", "y": b"4"}, now_ns=3, most=3)
    assert store.vectors.get(["old", "used", "x", "y"], now_ns=4) == {"used": b"2", "x": b"3", "y": b"4"}
    store.close()


async def test_a_store_of_the_version_before_learns_to_keep_vectors(tmp_path):
    path = tmp_path / "s.sqlite"
    other = sqlite3.connect(path)
    other.executescript(schema(1) + schema(2) + "PRAGMA user_version = 2;")
    other.execute("INSERT INTO judged VALUES ('a', 1, '1')")
    other.commit()
    other.close()
    store = Store(path)
    await store.vectors.put({"a": b"1"}, now_ns=1, most=10)
    assert store.judged.get(["a"], now_ns=2) == {"a": "1"}
    store.close()
