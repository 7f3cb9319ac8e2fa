"""What was read out of Langfuse, and what verdicts were held against, survive in the store until nobody asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sidejudge.integrations.store.pulled import Taken
from sidejudge.integrations.store.sqlite import FinishedTrace, Store

TRACE, KEY = "1" * 32, b"k" * 16


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store(path)
    yield opened
    opened.close()


async def test_what_was_taken_is_known_with_its_rows_and_what_was_not_with_the_reason(store):
    spans = frozenset({b"a" * 8, b"b" * 8})
    await store.pulled.put(
        [
            Taken(trace_id=TRACE, last_ns=5, reason=None, spans=spans),
            Taken(trace_id="not hex", last_ns=9, reason="undecodable"),
        ]
    )
    known = store.pulled.known([TRACE, "not hex", "unknown"])
    assert known == {TRACE: (None, spans), "not hex": ("undecodable", frozenset())}
    await store.pulled.put([Taken(trace_id=TRACE, last_ns=1, reason=None, spans=spans | {b"c" * 8})])
    await store.pulled.forget(5)
    assert len(store.pulled.known([TRACE])[TRACE][1]) == 3, "it was seen later than that"
    await store.pulled.forget(6)
    assert store.pulled.known([TRACE, "not hex"]) == {"not hex": ("undecodable", frozenset())}


def end(**more: object) -> FinishedTrace:
    stated = {"trace_id": TRACE, "service": None, "reason": "scored", "completion": "idle", "revision": 1}
    return FinishedTrace(**{**stated, "details": {}, "closed_ns": 100, **more})


async def test_what_a_verdict_was_held_against_is_written_with_it_and_replaced_by_the_next(store):
    await store.finish(end(referred=[(KEY, None), (b"o" * 16, b"d" * 16)]))
    trace_id = bytes.fromhex(TRACE)
    assert list(store.referred(100)) == [(100, KEY, trace_id, None), (100, b"o" * 16, trace_id, b"d" * 16)]
    await store.finish(end(revision=2, closed_ns=200, referred=[(KEY, b"e" * 16)]))
    assert list(store.referred(0)) == [(200, KEY, trace_id, b"e" * 16)]
    assert list(store.referred(201)) == []
    assert store.referred_of(trace_id) == [(KEY, b"e" * 16)]
    await store.finish(end(closed_ns=150, referred=[(KEY, None)]))
    assert list(store.referred(0)) == [(200, KEY, trace_id, b"e" * 16)], "an older revision changes nothing"
    await store.purge(0, chunks_before_ns=300, referred_before_ns=200)
    assert len(list(store.referred(0))) == 1, "it may be revised for longer than its spans are held"
    await store.purge(0, chunks_before_ns=300)
    assert list(store.referred(0)) == []


def test_a_file_of_version_7_is_brought_up_to_date(path, left_by):
    left_by(path, 7)
    store = Store(path)
    assert store.pulled.known([TRACE]) == {}
    assert list(store.referred(0)) == []
    store.close()
