"""A store with a limit stays below it, and what it holds can still be judged and let go."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from sidejudge.integrations.store.sqlite import FinishedTrace, Store, StoreUnavailable

LIMIT = 1 << 20


@dataclass(frozen=True)
class Origin:
    service: str | None = "shop"
    environment: str | None = "prod"
    threshold: int = 7


@dataclass(frozen=True)
class Chunk:
    trace_id: bytes
    payload: bytes
    origin: Origin = Origin()


def trace(number: int) -> bytes:
    return number.to_bytes(16, "big")


def ending(number: int, at: int, reason: str = "") -> FinishedTrace:
    return FinishedTrace(
        trace_id=trace(number), service="shop", reason="scored", completion="root_ended", revision=1,
        details={"n": number},
        verdicts=[{"rubric": "qa", "service": "shop", "environment": None, "passed": True, "reason": reason}],
        closed_ns=at,
    )  # fmt: skip


async def filled(store: Store) -> int:
    """Chunks of 8 KiB until no more is taken; how many were."""
    for number in range(1000):
        try:
            await store.append([Chunk(trace(number), os.urandom(8192))], number)
        except StoreUnavailable:
            return number
    raise AssertionError("the store took everything")


@pytest.fixture
def store(tmp_path):
    opened = Store(tmp_path / "s.sqlite", max_bytes=LIMIT)
    yield opened
    opened.close()


async def test_spans_are_refused_before_the_limit_and_what_is_held_can_be_judged(store):
    taken = await filled(store)
    with pytest.raises(StoreUnavailable, match=r"store\.max_bytes"):
        await store.append([Chunk(trace(5000), b"more")], 5000)
    assert 0.9 <= store.fullness < 0.95
    for number in range(taken):
        await store.finish(ending(number, at=1000 + number))
    assert len(store.verdicts(limit=1000)) == taken
    assert store.path.stat().st_size <= LIMIT


async def test_endings_that_do_not_fit_together_are_written_as_far_as_there_is_room(store):
    taken = await filled(store)
    left = [ending(number, at=1000 + number, reason="r" * 16_000) for number in range(taken)]
    while left:
        refused = await store.finish_each(left)
        rest = [each for each, why in zip(left, refused, strict=True) if why is not None]
        assert len(rest) < len(left), "judging would never go on"
        left = rest
        await store.purge(2000)
    assert store.open_traces() == set()
    assert store.path.stat().st_size <= LIMIT


async def test_what_is_let_go_makes_room_for_new_spans(store):
    taken = await filled(store)
    for number in range(taken):
        await store.finish(ending(number, at=1000 + number))
    await store.purge(0, chunks_before_ns=1000 + taken // 2)
    assert 0.3 < store.fullness < 0.7
    await store.append([Chunk(trace(5000), b"new")], 5000)
    assert store.chunks(trace(5000)) == [b"new"]


async def test_the_fullness_is_known_after_a_restart(tmp_path):
    first = Store(tmp_path / "s.sqlite", max_bytes=LIMIT)
    await filled(first)
    before = first.fullness
    first.close()
    second = Store(tmp_path / "s.sqlite", max_bytes=LIMIT)
    assert second.fullness == pytest.approx(before, abs=0.01)
    with pytest.raises(StoreUnavailable, match="nearly full"):
        await second.append([Chunk(trace(1), b"more")], 1)
    second.close()


async def test_a_file_that_is_larger_than_its_new_limit_is_opened_and_takes_nothing(tmp_path):
    path = tmp_path / "s.sqlite"
    first = Store(path)
    for number in range(100):
        await first.append([Chunk(trace(number), os.urandom(8192))], number)
    first.close()
    second = Store(path, max_bytes=LIMIT // 2)
    assert second.fullness > 1
    assert len(second.open_traces()) == 100
    with pytest.raises(StoreUnavailable):
        await second.append([Chunk(trace(1), b"more")], 1)
    second.close()


async def test_a_store_without_a_limit_is_never_full(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    for number in range(100):
        await store.append([Chunk(trace(number), os.urandom(8192))], number)
    assert store.fullness == 0.0
    store.close()


@pytest.mark.parametrize(
    ("free", "total", "taken"), [(15 << 20, 1 << 30, False), (17 << 20, 1 << 30, True), (9 << 20, 32 << 20, True)]
)
async def test_new_spans_leave_some_of_the_disk_in_which_what_is_held_is_judged_and_let_go(
    store, monkeypatch, free, total, taken
):
    await store.append([Chunk(trace(1), b"held")], 1)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=free, total=total))
    if taken:
        await store.append([Chunk(trace(2), b"new")], 2)
    else:
        with pytest.raises(StoreUnavailable, match=r"full but for 15\.0 MiB; free some"):
            await store.append([Chunk(trace(2), b"new")], 2)
        assert "full but for" in store.trouble
    await store.finish(ending(1, at=1000))
    assert len(store.verdicts(limit=10)) == 1
