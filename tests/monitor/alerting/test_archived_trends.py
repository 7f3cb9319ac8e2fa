"""Archived trends: as far back as the history, with the store's own sums; bounded, and no trouble where it is away."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from sidejudge.integrations.store.bounded_read import read_trends
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.alerting.observation import Key
from sidejudge.monitor.alerting.trends import STEPS, ArchivedTrends, Trends
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.trace.time_units import iso_time
from tests.monitor.alerting.test_trends import HOUR, NOW, put, verdict
from tests.needs import PYARROW

pytestmark = PYARROW.mark
DAY = 24 * HOUR
KEY = Key("shop", "unknown", "qa")


@pytest.fixture
async def both(tmp_path: Path):
    """A store and a history with the same verdicts of two months; some were revised."""
    store = Store(tmp_path / "state.sqlite")
    module = import_module("sidejudge.integrations.history.history")
    history = module.History(
        import_module("sidejudge.integrations.history.place").Place(str(tmp_path / "history")), "w"
    )
    kept = []
    for number in range(1, 120):
        at_ns = NOW - number * DAY // 2
        stated = verdict(passed=number % 3 != 0, created_at=iso_time(at_ns)) | {
            "rubric_version": f"qa@{number > 60}", "sampling_probability": 1 / (1 + number % 4), "revision": 1,
        }  # fmt: skip
        await put(store, number, at_ns, stated)
        first = {**stated, "trace_id": number.to_bytes(16, "big").hex(), "case_id": str(number)}
        revised = [{**first, "passed": not first["passed"]}, {**first, "revision": 2}] if number % 5 == 0 else [first]
        for place, record in enumerate(revised):
            kept.append(module.Row(kind="verdicts", day=iso_time(at_ns)[:10], seq=2 * number + place, record=record))
    history.write(kept)
    yield store, tmp_path / "history"
    store.close()


async def test_the_history_sums_up_as_the_store_does(both):
    store, path = both
    span = {"until_ns": NOW, "step_ns": 2 * DAY}
    stored = read_trends(store.path, steps=30, **span)
    module = import_module("sidejudge.integrations.history.in_force")
    place = import_module("sidejudge.integrations.history.place").Place(str(path))
    found = module.history_trends(place, since_ns=NOW - 60 * DAY, **span)
    assert len(stored) == len(found) == 30
    for here, there in zip(
        sorted(stored, key=lambda each: each.number), sorted(found, key=lambda each: each.number), strict=True
    ):
        assert (here.number, here.versions) == (there.number, there.versions)
        for name in ("service", "rubric", "passed", "failed", "incomplete"):
            assert getattr(here.sums, name) == getattr(there.sums, name)
        for name in ("weight", "failed_weight", "squared_weight"):
            assert getattr(here.sums, name) == pytest.approx(getattr(there.sums, name))
    seconds = iter([0.0, 0.0, 1.0, 2.0, 3.0, 11.0])
    slow = module.history_trends(place, since_ns=NOW - 60 * DAY, clock_s=lambda: next(seconds), **span)
    assert {each.number for each in slow} == {29}, "after ten seconds no day is begun, and the newest came first"


@pytest.mark.parametrize("early", [False, True], ids=["by age", "early"])
async def test_a_trend_goes_on_where_the_retention_of_the_store_ends(both, caplog, early):
    store, path = both
    kept_since = partial(store.kept_since_ns, (60 if early else 7) * DAY)
    await store.delete_early(NOW - (7 if early else 30) * DAY)
    whole = await Trends(store.path, HOUR, Declaration()).over(KEY, NOW, 60 * DAY)
    with closing(sqlite3.connect(store.path)) as database, database:
        database.execute("DELETE FROM verdicts WHERE closed_ns < ?", (NOW - 7 * DAY,))
    trends = Trends(store.path, HOUR, Declaration(), archive=ArchivedTrends(str(path), kept_since))
    found = await trends.over(KEY, NOW, 60 * DAY)
    assert whole is not None
    assert found is not None
    assert found.changes == whole.changes
    assert len(found.estimates) == STEPS // 2, "a stretch alone has too few verdicts, two have enough"
    for here, there in zip(found.estimates, whole.estimates, strict=True):
        assert here is not None
        assert there is not None
        assert (here.n, here.pass_ratio) == pytest.approx((there.n, there.pass_ratio))

    path.rename(path.with_name("away"))
    again = await trends.over(KEY, NOW + 1, 60 * DAY)
    assert again is not None
    assert again.estimates[0] == found.estimates[0], "what was read stands"
    alone = Trends(store.path, HOUR, Declaration(), archive=ArchivedTrends("ftp://x/y", kept_since))
    short = await alone.over(KEY, NOW, 60 * DAY)
    assert short is not None
    assert sum(each is not None for each in short.estimates) < 5
    assert "the history cannot be read" in caplog.text
