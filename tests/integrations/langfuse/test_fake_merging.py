"""The fake merges writings of a score as the server does: held to the sort of Node.js, recordings and observations."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.fakes.langfuse.merging import v8_sorted
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode

from .test_fake import MODES, recordings, replay

NODE = {
    # What Node.js 20 makes of places in an array by `(a, b) => a === b ? -1 : a - b`.
    (1, 1): (1, 0),
    (1, 1, 1): (2, 1, 0),
    (1, 1, 2): (1, 0, 2),
    (2, 1, 1): (2, 1, 0),
    (1, 2, 1): (2, 0, 1),
    (1, 2, 1, 2, 1): (4, 2, 0, 3, 1),
    (3, 1, 2, 1, 3, 3, 2, 1, 1, 2): (8, 7, 3, 1, 9, 6, 2, 5, 4, 0),
    (1, 2, 3, 3, 3, 2, 2, 1, 1, 1, 1, 4, 5, 5, 0, 0): (15, 14, 10, 9, 8, 7, 0, 6, 5, 1, 4, 3, 2, 11, 13, 12),
}


@pytest.mark.parametrize("times", NODE, ids=str)
def test_ties_are_sorted_as_the_server_s_runtime_sorts_them(times):
    places = v8_sorted(list(enumerate(times)), lambda a, b: a[1] - b[1] or -1)
    assert tuple(place for place, _ in places) == NODE[times]


READ = (
    "score-day-3-read", "score-day-5-read", "score-conflict-2-read", "score-conflict-3-read", "score-conflict-4-read",
    "score-quick-read", "score-null-comment-3-read", "score-get-v3-after-upsert", "score-delete-6-recreated-read",
    "ingestion-scores-read",
)  # fmt: skip
"""Recorded answers that show what became of several writings."""


@pytest.mark.parametrize("mode", ["dual", "events_only"])
def test_what_is_read_after_several_writings_is_what_was_recorded(shared, mode):
    compared = 0
    with FakeLangfuse(MODES[mode]) as fake, httpx.Client(base_url=fake.base_url) as http:
        fake.clock_s = _never_twice()
        ids: dict[str, str] = {}
        for exchange in recordings(shared, mode):
            got = replay(http, exchange, ids)
            body = exchange["response"]["body"]
            if isinstance(body, dict) and isinstance(body.get("id"), str) and got.is_success:
                ids[body["id"]] = got.json()["id"]
            if exchange["name"] in READ:
                compared += 1
                recorded, answered = (sorted(each["data"], key=lambda row: row["id"]) for each in (body, got.json()))
                assert [_shown(row) for row in answered] == [_shown(row) for row in recorded], exchange["name"]
                stamped = [row for row in recorded if row["id"] in ("score-day-a", "ing-score3-a")]
                times = {row["id"]: row["timestamp"] for row in answered}
                assert all(times[row["id"]] == row["timestamp"] for row in stamped)
    assert compared >= 5


def _never_twice() -> Callable[[], float]:
    """A clock that shows no millisecond twice.

    The recorded requests were further apart than one, those that are replayed are not: of two writings that the server
    stamps with one millisecond either may win, by the ids that it draws for them.
    """
    milliseconds = itertools.count(time.time_ns() // 10**6)
    return lambda: next(milliseconds) / 1000


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    kept = ("id", "name", "source", "environment", "dataType", "value", "comment", "metadata", "subject")
    return {key: row[key] for key in kept if key in row}


START = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.fixture
def write():
    with FakeLangfuse(Mode.DUAL) as fake, httpx.Client(base_url=fake.base_url, auth=(PUBLIC_KEY, SECRET_KEY)) as http:

        def one(value: float, event: str, *, ms: int = 0) -> dict[str, Any]:
            """The row after one more writing in a request of its own."""
            at = (START + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            body = {"id": "s", "traceId": "1" * 32, "name": "quality", "value": value, "dataType": "NUMERIC"}
            batch = [{"id": event, "type": "score-create", "timestamp": at, "body": body}]
            assert http.post("/api/public/ingestion", json={"batch": batch}).status_code == 207
            (row,) = fake.scores.stored()
            return row

        yield one


def test_of_two_requests_with_one_time_the_one_whose_event_id_is_less_wins_as_was_seen(write):
    assert write(1, "0001-x")["value"] == 1
    assert write(2, "0002-x")["value"] == 1
    assert write(3, "0000-x")["value"] == 3


def test_a_millisecond_later_wins_and_the_score_keeps_its_first_time_as_was_seen(write):
    write(1, "0001-x")
    write(2, "0002-x")
    assert write(2, "0003-x", ms=1)["value"] == 2
    row = write(3, "0002-a", ms=2)
    assert (row["value"], row["timestamp"]) == (3, "2026-11-20T10:00:00.000Z")


def test_an_event_that_arrives_after_a_later_one_changes_nothing(write):
    write(1, "a")
    write(3, "b", ms=2)
    assert write(2, "c", ms=1)["value"] == 3
