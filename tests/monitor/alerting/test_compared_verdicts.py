"""Compared verdicts: as far back as the history, each once, as the store has them; none replaced or withdrawn."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from sidejudge.integrations.store.bounded_read import ComparedFilter
from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.monitor.alerting.comparisons import ComparedSource
from sidejudge.monitor.evaluate.backends import OUTAGE
from sidejudge.scoring.result.reason import Reason, quoted, reason_fields
from sidejudge.scoring.result.result import Failed
from sidejudge.scoring.trace.time_units import iso_time
from tests.monitor.alerting.test_trends import NOW, verdict
from tests.needs import PYARROW

pytestmark = PYARROW.mark
DAY = 24 * 3600 * 10**9
SPAN = {"since_ns": NOW - 60 * DAY, "until_ns": NOW}


def key(number: int) -> str:
    return number.to_bytes(16, "big").hex()


def judged(number: int, days_ago: float, *, passed: bool = True, revision: int = 1) -> tuple[str, int, dict]:
    at_ns = NOW - round(days_ago * DAY)
    record = verdict(passed=passed, created_at=iso_time(at_ns)) | {
        "trace_id": key(number), "case_id": key(number), "revision": revision, "rubric_version": "qa@1",
        "scores": [
            {"metric": "accuracy", "value": number / 100, "rating": "pass" if passed else "fail", "status": "ok"},
            {"metric": "tools", "value": None, "rating": None, "status": "unavailable"},
        ],
    }  # fmt: skip
    return "verdicts", at_ns, record


def of_then(number: int, days_ago: float, then: float, **stated: Any) -> tuple[str, int, dict]:
    """A verdict that was reached later than the result that it is of."""
    kind, _, record = judged(number, days_ago, **stated)
    return kind, NOW - round(then * DAY), record


def ended(number: int, days_ago: float, *, revision: int = 1, withdrawn: tuple[str, ...] = ()) -> tuple[str, int, dict]:
    at_ns = NOW - round(days_ago * DAY)
    story = {"name": f"route {number % 2}", "session_id": f"s{number % 7}", "release": f"v{number > 20}", "model": "m"}
    stated = {"trace_id": key(number), "revision": revision, "ended_at": at_ns, "withdrawn": list(withdrawn)}
    return "outcomes", at_ns, story | stated


def archive(path: Path, rows: list[tuple[str, int, dict]]) -> str:
    module = import_module("sidejudge.integrations.history.history")
    history = module.History(import_module("sidejudge.integrations.history.place").Place(str(path)), "w")
    history.write([
        module.Row(kind=kind, day=iso_time(at_ns)[:10], seq=seq, record=record)
        for seq, (kind, at_ns, record) in enumerate(rows)
    ])  # fmt: skip
    return str(path)


@pytest.fixture
async def store(tmp_path: Path):
    """A store with the verdicts of two months."""
    opened = Store(tmp_path / "state.sqlite")
    for number in range(1, 40):
        _, at_ns, stated = judged(number, number * 1.5, passed=number % 3 != 0)
        _, _, story = ended(number, number * 1.5)
        await opened.finish(
            FinishedTrace(
                trace_id=bytes.fromhex(key(number)), service="shop", reason="scored", completion="root_ended",
                revision=1, details={k: story[k] for k in ("name", "session_id", "release", "model")},
                verdicts=[stated], closed_ns=at_ns,
            )
        )  # fmt: skip
    yield opened
    opened.close()


WANTED = [
    ComparedFilter(**SPAN),
    ComparedFilter(**SPAN, all_metrics=True),
    ComparedFilter(**SPAN, metric="accuracy", service="shop", environment="unknown", rubric="qa"),
    ComparedFilter(**SPAN, service="elsewhere"),
    ComparedFilter(**SPAN, rubric="other"),
    ComparedFilter(since_ns=NOW - 40 * DAY, until_ns=NOW - 20 * DAY),
]


async def test_store_and_history_together_are_what_the_store_alone_would_be(store: Store, tmp_path: Path) -> None:
    rows = [row for n in range(1, 40) for row in (judged(n, n * 1.5, passed=n % 3 != 0), ended(n, n * 1.5))]
    path = archive(tmp_path / "history", rows)
    whole = [ComparedSource(store.path, None, lambda now: now - 90 * DAY).read(wanted, NOW) for wanted in WANTED]
    assert [len(each.verdicts) for each in whole] == [39, 39, 39, 0, 0, 13]
    most = ComparedFilter(**SPAN, most=10)
    since = [lambda now: now - 7 * DAY, lambda now: now - 5 * DAY, partial(store.kept_since_ns, 90 * DAY)]
    await store.delete_early(NOW - 7 * DAY)
    for kept_since in since:  # at the second the store has not given up all that it may, at the third more
        with closing(sqlite3.connect(store.path)) as database, database:
            database.execute("DELETE FROM verdicts WHERE closed_ns < ?", (NOW - 7 * DAY,))
        source = ComparedSource(store.path, path, kept_since)
        found = [source.read(wanted, NOW) for wanted in WANTED]
        for here, there in zip(found, whole, strict=True):
            assert not here.capped
            assert [each._replace(closed_ns=each.closed_ns // 10**6) for each in here.verdicts] == [
                each._replace(closed_ns=each.closed_ns // 10**6) for each in there.verdicts
            ]
        latest = source.read(most, NOW)
        assert latest.capped
        assert [each.trace_id for each in latest.verdicts] == [key(number) for number in range(1, 11)]


@pytest.mark.parametrize(
    ("rows", "passed"),
    [
        pytest.param([judged(1, 9), ended(1, 9)], [True], id="one in force"),
        pytest.param([judged(1, 9), judged(1, 9)], [True], id="delivered twice"),
        pytest.param([judged(1, 9), judged(1, 8, passed=False, revision=2)], [False], id="revised on a later day"),
        pytest.param([judged(1, 9), judged(1, 1, passed=False, revision=2)], [], id="revised within the retention"),
        pytest.param(
            [judged(1, 9), ended(1, 9), of_then(1, 1, 9, passed=False, revision=2), ended(1, 9, revision=2)],
            [False],
            id="a reference came a week later",
        ),
        pytest.param([judged(1, 9), ended(1, 8, revision=2, withdrawn=("qa",))], [], id="withdrawn on a later day"),
        pytest.param([judged(1, 9), ended(1, 1, revision=2, withdrawn=("qa",))], [], id="withdrawn lately"),
        pytest.param([judged(1, 9), ended(1, 9, revision=2, withdrawn=("qa",))], [], id="withdrawn at that time"),
        pytest.param([judged(1, 9), ended(1, 8, withdrawn=("other",))], [True], id="another rubric is withdrawn"),
        pytest.param([judged(1, 9), ended(2, 8, withdrawn=("qa",))], [True], id="from another trace"),
        pytest.param(
            [judged(1, 11, revision=2), ended(1, 10, withdrawn=("qa",)), judged(1, 9, passed=False)],
            [False],
            id="judged again after it was withdrawn",
        ),
    ],
)
def test_only_verdicts_in_force_count_in_comparisons_and_trends(tmp_path: Path, rows: list, passed: list) -> None:
    place = import_module("sidejudge.integrations.history.place").Place(archive(tmp_path / "history", rows))
    span = {"since_ns": NOW - 30 * DAY, "until_ns": NOW - 7 * DAY}
    found, capped = import_module("sidejudge.monitor.alerting.archived_verdicts").history_compared(
        place, ComparedFilter(**span)
    )
    assert ([each.passed for each in found], capped) == (passed, False)
    trends = import_module("sidejudge.integrations.history.in_force").history_trends(place, step_ns=23 * DAY, **span)
    assert sum(each.sums.passed for each in trends) == passed.count(True)
    assert sum(each.sums.failed for each in trends) == passed.count(False)


def took(number: int, days_ago: float, *, latency: float | None, revision: int = 1, probability: float = 0.5) -> tuple:
    kind, at_ns, record = ended(number, days_ago, revision=revision)
    figures = {"values": {} if latency is None else {"latency": latency}, "version": "v1", "models": []}
    return kind, at_ns, record | {"service": "shop", "figures": figures, "sampling": {"probability": probability}}


@pytest.mark.parametrize(
    ("rows", "wanted", "latencies"),
    [
        ([took(1, 9, latency=2.0)], {}, [2.0]),
        ([took(1, 9, latency=2.0), took(2, 8, latency=3.0)], {}, [3.0, 2.0]),
        ([took(1, 9, latency=2.0), took(1, 9, latency=2.0)], {}, [2.0]),
        ([took(1, 9, latency=2.0), took(1, 9, latency=4.0, revision=2)], {}, [4.0]),
        ([took(1, 9, latency=2.0), took(1, 1, latency=4.0, revision=2)], {}, []),
        ([took(1, 9, latency=None), took(2, 9, latency=1.0, probability=0.0), ended(3, 9)], {}, []),
        ([took(1, 9, latency=2.0)], {"service": "shop", "environment": "unknown"}, [2.0]),
        ([took(1, 9, latency=2.0)], {"service": "elsewhere"}, []),
        ([took(1, 9, latency=2.0)], {"rubric": "qa"}, [2.0]),
        ([took(1, 9, latency=2.0)], {"metric": "cost"}, []),
    ],
    ids=["one", "the newest first", "delivered twice", "revised", "revised within the retention", "without a value",
         "of its place", "of another place", "of no rubric", "another figure"],
)  # fmt: skip
def test_figures_of_the_application_come_from_outcomes_in_force(
    tmp_path: Path, rows: list, wanted: dict, latencies: list
) -> None:
    place = import_module("sidejudge.integrations.history.place").Place(archive(tmp_path / "history", rows))
    span = {"since_ns": NOW - 30 * DAY, "until_ns": NOW - 7 * DAY, "figure": True, "metric": "latency"}
    read = import_module("sidejudge.monitor.alerting.archived_verdicts").history_compared
    found, capped = read(place, ComparedFilter(**span | wanted))
    assert ([each.metrics["latency"] for each in found], capped) == ([(value, False) for value in latencies], False)
    assert all((each.weight, each.passed, each.model) == (2.0, None, "m") for each in found)


async def test_figures_of_store_and_history_together_are_each_trace_once(store: Store, tmp_path: Path) -> None:
    for number, days_ago in ((101, 1), (102, 6), (103, 8)):
        _, at_ns, record = took(number, days_ago, latency=float(number))
        await store.finish(
            FinishedTrace(
                trace_id=bytes.fromhex(key(number)), service="shop", reason="scored", completion="root_ended",
                revision=1, closed_ns=at_ns, verdicts=[],
                details={k: record[k] for k in ("name", "session_id", "release", "model", "figures", "sampling")},
            )
        )  # fmt: skip
    path = archive(tmp_path / "history", [took(n, d, latency=float(n)) for n, d in ((102, 6), (103, 8), (104, 20))])
    wanted = ComparedFilter(**SPAN, figure=True, metric="latency")
    found = ComparedSource(store.path, path, lambda now: now - 7 * DAY).read(wanted, NOW)
    assert [each.metrics["latency"][0] for each in found.verdicts] == [101.0, 102.0, 103.0, 104.0]
    alone = ComparedSource(store.path, None, lambda now: now - 7 * DAY).read(wanted, NOW)
    assert found.verdicts[2]._replace(closed_ns=0) == alone.verdicts[2]._replace(closed_ns=0)


async def test_a_reading_stands_for_ten_minutes_and_what_is_away_leaves_the_store(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock_s = archive(tmp_path / "history", [judged(50, 59)]), [0.0]
    source = ComparedSource(store.path, path, lambda now: now - 7 * DAY, clock_s=lambda: clock_s[0])
    assert len(source.read(ComparedFilter(**SPAN), NOW).verdicts) == 40
    archive(tmp_path / "history", [judged(51, 59.5), judged(50, 59)])
    assert len(source.read(ComparedFilter(**SPAN), NOW).verdicts) == 40
    clock_s[0] = 601.0
    assert len(source.read(ComparedFilter(**SPAN), NOW).verdicts) == 41
    away = ComparedSource(store.path, "ftp://x/y", lambda now: now - 7 * DAY)
    assert len(away.read(ComparedFilter(**SPAN), NOW).verdicts) == 39
    assert "the history cannot be read; comparisons end" in caplog.text


def test_a_history_that_is_slow_is_left_where_ten_seconds_are_over(tmp_path: Path) -> None:
    place = import_module("sidejudge.integrations.history.place").Place(
        archive(tmp_path / "history", [judged(number, number) for number in range(8, 14)])
    )
    seconds = iter([0.0, 0.0, 1.0, 11.0])
    read = import_module("sidejudge.monitor.alerting.archived_verdicts").history_compared
    found, capped = read(place, ComparedFilter(**SPAN), clock_s=lambda: next(seconds))
    assert ([each.trace_id for each in found], capped) == ([key(8), key(9)], True)


OUT = {"metric": "accuracy", "status": Failed.status, "weight": 1.0}


async def outage(store: Store, *, budget: int, asked: int, other: int) -> None:
    """Traces of the last hour without a verdict, or with one that is incomplete, of release v2."""
    for number in range(1000, 1000 + budget + asked + other):
        kind = "budget" if number < 1000 + budget else "asked" if number < 1000 + budget + asked else "other"
        why = {"asked": Reason(f"{OUTAGE}: HTTP 503"), "other": Reason("{error}", error=quoted(f"no JSON: {OUTAGE}"))}
        reason = reason_fields(why.get(kind, ""))
        stated = verdict(passed=True) | {"passed": None, "trace_id": key(number), "scores": [OUT | reason]}
        drawn = {"probability": 0.5, "judged_share": 0.0, "over_budget": ["qa"]} if kind == "budget" else {}
        await store.finish(
            FinishedTrace(
                trace_id=bytes.fromhex(key(number)), service="shop", reason="over_budget", completion="root_ended",
                revision=1, details={"release": "v2", "sampling": drawn},
                verdicts=[] if kind == "budget" else [stated], closed_ns=NOW - number,
            )
        )  # fmt: skip


async def test_what_nobody_was_asked_about_is_there_for_itself(store: Store):
    await outage(store, budget=3, asked=4, other=5)
    wanted = ComparedFilter(since_ns=NOW - DAY // 24, until_ns=NOW, rubric="qa", service="shop")
    found = ComparedSource(store.path, None, lambda _: 0).read(wanted, NOW).verdicts
    of = [(each.passed, each.unanswered, each.release, each.weight) for each in found]
    assert of == [(None, True, "v2", 2.0)] * 7 + [(None, False, "v2", 2.0)] * 5
    assert [each.closed_ns for each in found] == sorted((each.closed_ns for each in found), reverse=True)
    last = ComparedSource(store.path, None, lambda _: 0).read(replace(wanted, most=2), NOW)
    assert (len(last.verdicts), last.capped) == (2, True)
