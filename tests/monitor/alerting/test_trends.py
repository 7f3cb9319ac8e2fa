"""Trends: read when somebody looks, no more often than it may cost, and the last known while the store is out."""

from __future__ import annotations

import pytest

from sidejudge.dashboards.pages.trend import trend_drawing
from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.monitor.alerting.observation import Key, observe_stored
from sidejudge.monitor.alerting.trends import STEPS, Trends
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.monitor.evaluate.backends import EMBEDDINGS_OUT
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.result.reason import Reason, reason_fields
from sidejudge.scoring.result.result import Failed
from sidejudge.scoring.status.status import Thresholds
from tests.seed_policy import estimate_of

HOUR = 3600 * 10**9
NOW = 1_790_000_000 * 10**9


def verdict(*, passed: bool, service: str | None = "shop", created_at: str = "2026-09-21T13:30:00.000Z") -> dict:
    return {
        "rubric": "qa", "service": service, "environment": None, "passed": passed, "sampling_probability": 0.5,
        "trace_id": None, "case_id": "c", "created_at": created_at, "scores": [], "composite_norm": None,
    }  # fmt: skip


KEY = Key("shop", "unknown", "qa")


async def put(store: Store, number: int, at_ns: int, stated: dict) -> None:
    trace_id = number.to_bytes(16, "big")
    await store.finish(
        FinishedTrace(
            trace_id=trace_id, service="shop", reason="scored", completion="root_ended", revision=1, details={},
            verdicts=[{**stated, "case_id": trace_id.hex()}], closed_ns=at_ns,
        )
    )  # fmt: skip


@pytest.fixture
async def store(tmp_path):
    opened = Store(tmp_path / "state.sqlite")
    yield opened
    opened.close()


@pytest.mark.parametrize("effect", [1.0, 4.0])
async def test_the_last_stretch_is_what_the_window_holds(store, effect):
    windows = Windows(HOUR)
    windows.design[Key("shop", "unknown", "qa")] = effect
    for number in range(1, 41):
        stated = verdict(passed=number % 4 != 0)
        await put(store, number, NOW - number, stated)
        key, seen = observe_stored({**stated, "case_id": str(number)})
        windows.add(key, seen)
    trends = Trends(store.path, HOUR, Declaration(), design=windows.design)
    trend = (await trends.at(NOW))[Key("shop", "unknown", "qa")]
    closer = await trends.over(Key("shop", "unknown", "qa"), NOW, STEPS * HOUR)
    assert closer.estimates == trend.estimates
    assert len(trend.estimates) == STEPS
    assert trend.estimates[-1] == estimate_of(windows, Key("shop", "unknown", "qa"), NOW)
    assert set(trend.estimates[:-1]) == {None}
    assert trend.reported()[-1] is not None, "forty are enough"


async def test_what_names_no_service_stands_under_the_name_that_windows_give_it(store):
    await put(store, 1, NOW - 1, verdict(passed=True, service=None))
    found = await Trends(store.path, HOUR, Declaration()).at(NOW)
    assert list(found) == [Key("unknown_service", "unknown", "qa")]
    assert found[Key("unknown_service", "unknown", "qa")].reported()[-1] is None, "one is not enough"


async def test_however_many_look_it_is_read_once_and_then_rests(store):
    seconds = [100.0]
    trends = Trends(store.path, HOUR, Declaration(), clock_s=lambda: seconds[0])
    assert await trends.at(NOW) == {}
    await put(store, 1, NOW - 1, verdict(passed=True))
    assert await trends.at(NOW) == {}, "it rests"
    seconds[0] += 10
    assert len(await trends.at(NOW)) == 1


async def test_while_the_store_cannot_be_read_the_last_known_stands(store):
    seconds = [100.0]
    await put(store, 1, NOW - 1, verdict(passed=True))
    trends = Trends(store.path, HOUR, Declaration(), clock_s=lambda: seconds[0])
    known = await trends.at(NOW)
    store.close()
    store.path.unlink()
    seconds[0] += 10
    assert await trends.at(NOW) is known


async def test_another_version_of_the_rubric_is_a_change_where_it_begins_and_again_where_the_old_one_returns(store):
    for number, (hours, version) in enumerate([(24, "a"), (8, "a"), (6, "a"), (6, "b"), (5, "b"), (2, "a")], 1):
        await put(store, number, NOW - hours * HOUR + 1, {**verdict(passed=True), "rubric_version": f"qa@{version}"})
    trend = (await Trends(store.path, HOUR, Declaration()).at(NOW))[Key("shop", "unknown", "qa")]
    assert trend.changes == (STEPS - 6, STEPS - 2)


async def test_a_trend_begins_with_the_first_verdict_while_the_store_holds_fewer_windows(store):
    key = Key("shop", "unknown", "qa")
    for number in range(1, 61):
        await put(store, number, NOW - number * 60 * 10**9, verdict(passed=number > 30))
    trends = Trends(store.path, HOUR, Declaration())
    trend = (await trends.at(NOW))[key]
    assert (len(trend.estimates), trend.step_ns) == (STEPS, 2 * HOUR // STEPS), "an hour ago, so two windows"
    assert sum(each is not None for each in trend.reported()) >= 10, "five verdicts are shown, with their wide bounds"
    assert await trends.fitting(key, NOW) == "6h"
    assert await trends.fitting(key, NOW - 60 * 10**9) == "1h"
    assert await trends.fitting(Key("x", "unknown", "qa"), NOW) == "1d"


async def test_windows_that_reach_back_before_all_time_have_a_trend(store):
    await put(store, 1, NOW - HOUR, verdict(passed=True))
    found = await Trends(store.path, 36_500 * 24 * HOUR, Declaration()).at(NOW)
    assert len(found[Key("shop", "unknown", "qa")].estimates) == STEPS


async def test_stretches_are_as_long_as_the_verdicts_need(store):
    """One an hour of them all, half of the early ones failed: no hour has enough, six have."""
    for hour in range(STEPS):
        stated = {**verdict(passed=hour < 12 or hour % 2 == 0), "rubric_version": "qa@b" if hour < 3 else "qa@a"}
        await put(store, hour + 1, NOW - hour * HOUR - 1, stated)
    trends = Trends(store.path, HOUR, Declaration())
    for trend in ((await trends.at(NOW))[KEY], await trends.over(KEY, NOW, STEPS * HOUR)):
        assert trend.step_ns == 6 * HOUR
        assert [each.n for each in trend.reported()] == [6, 6, 6, 6]
        assert [each.pass_ratio for each in trend.reported()] == [0.5, 0.5, 1.0, 1.0]
        assert trend.changes == (3,), "the rubric changed in the last of them"


async def test_a_stretch_in_which_most_got_no_answer_is_a_gap_and_its_traces_are_counted(store):
    failed = {
        "metric": "kind",
        "status": Failed.status,
        "weight": 1.0,
        **reason_fields(Reason(f"{EMBEDDINGS_OUT}: HTTP 503")),
    }
    for number in range(1, 41):
        await put(store, number, NOW - HOUR - number, verdict(passed=True))
        await put(store, 100 + number, NOW - number, verdict(passed=False))
    whole = (await Trends(store.path, HOUR, Declaration()).over(KEY, NOW, STEPS * HOUR)).reported()
    assert [each is not None for each in whole[-2:]] == [True, True]
    for number in range(1, 42):
        await put(store, 200 + number, NOW - number, verdict(passed=True) | {"passed": None, "scores": [failed]})
    trend = await Trends(store.path, HOUR, Declaration()).over(KEY, NOW, STEPS * HOUR)
    assert [each is not None for each in trend.reported()[-2:]] == [True, False]
    words = trend_drawing(trend, Thresholds(warning=0.85, critical=0.7)).words
    assert "from 100.0% to 100.0%" in words
    assert "nobody could be asked about 41 more traces" in words
