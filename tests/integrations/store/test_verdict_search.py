"""Search of verdicts: by what is inside them, with counts, page by page, bounded in time."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from sidejudge.integrations.store import connection, verdict_search
from sidejudge.integrations.store.archive import read_traces, read_verdicts
from sidejudge.integrations.store.bounded_read import ComparedFilter, read_compared
from sidejudge.integrations.store.errors import StoreCorrupt, StoreUnavailable
from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.integrations.store.verdict_search import VerdictFilter, search_verdicts

ROWS = [
    # service, rubric, passed, composite, failing metric, name, reason
    ("shop", "qa", True, 0.95, None, "Refund", ""),
    ("shop", "qa", False, 0.4, "accuracy", "refund of Ann", "accuracy: wrong"),
    ("shop", "own-one", False, 0.7, "tone", "chat", "tone: Ärger"),
    ("", "qa", None, None, None, "chat", "no judge"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("search") / "s.sqlite"
    store = Store(path)

    async def fill() -> None:
        for number, (service, rubric, passed, composite, metric, name, reason) in enumerate(ROWS, 1):
            scores = [{"metric": metric, "rating": "fail", "value": 0.25, "reason": reason}] if metric else []
            verdict = {
                "trace_id": f"{number:032x}", "rubric": rubric, "service": service, "environment": "prod",
                "passed": passed, "state": "incomplete" if passed is None else "valid", "composite_norm": composite,
                "reason": reason, "scores": scores, "sampling_probability": 0.5,
            }  # fmt: skip
            await store.finish(FinishedTrace(
                trace_id=number.to_bytes(16, "big"), service=service, reason="scored", completion="root_ended",
                revision=1, verdicts=[verdict],
                details={"name": name, "input_beginning": f"question {number}", "release": f"1.{number}"},
                closed_ns=number,
            ))  # fmt: skip

    asyncio.run(fill())
    store.close()
    return path


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (VerdictFilter(), [4, 3, 2, 1]),
        (VerdictFilter(passed="false"), [3, 2]),
        (VerdictFilter(passed="none"), [4]),
        (VerdictFilter(service="unknown_service"), [4]),
        (VerdictFilter(rubric="own-one"), [3]),
        (VerdictFilter(state="valid"), [3, 2, 1]),
        (VerdictFilter(metric="accuracy"), [2]),
        (VerdictFilter(below=0.5), [2]),
        (VerdictFilter(since_ns=3), [4, 3]),
        (VerdictFilter(since_ns=2, until_ns=4), [3, 2]),
        (VerdictFilter(release="1.2"), [2]),
        (VerdictFilter(prompt="1.2"), []),
        (VerdictFilter(text="REFUND"), [2, 1]),
        (VerdictFilter(text="ärger", in_reasons=True), [3]),
        (VerdictFilter(text="ärger"), []),
        (VerdictFilter(text="%"), []),
        (VerdictFilter(text="QUESTION 2", in_reasons=True), [2]),
        (VerdictFilter(text="question 2"), []),
        (VerdictFilter(text="refund", passed="false", below=0.3), []),
    ],
)
def test_every_filter_restricts_and_all_hold_together(path: Path, wanted: VerdictFilter, found: list[int]) -> None:
    verdicts = search_verdicts(path, wanted, after=None, limit=10).verdicts
    assert [verdict["closed_ns"] for verdict in verdicts] == found


def test_what_matches_is_counted_by_what_may_be_chosen_and_outcomes_whatever_is_chosen(path: Path) -> None:
    found = search_verdicts(path, VerdictFilter(passed="false"), after=None, limit=1)
    assert found.counts == {
        "passed": {"true": 1, "false": 2, "none": 1}, "service": {"shop": 2}, "environment": {"prod": 2},
        "rubric": {"own-one": 1, "qa": 1}, "metric": {"accuracy": 1, "tone": 1},
    }  # fmt: skip
    assert found.capped is False
    assert found.verdicts[0]["name"] == "chat"


def test_pages_follow_each_other(path: Path) -> None:
    first = search_verdicts(path, VerdictFilter(), after=None, limit=2).verdicts
    last = first[-1]
    after = (last["closed_ns"], last["trace_id"], last["rubric"])
    second = search_verdicts(path, VerdictFilter(), after=after, limit=2, counted=False)
    assert [each["closed_ns"] for each in (*first, *second.verdicts)] == [4, 3, 2, 1]
    assert second.counts == {}


def test_only_so_many_are_looked_at(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict_search, "MOST", 2)
    found = search_verdicts(path, VerdictFilter(text="refund"), after=None, limit=10)
    assert found.verdicts == []
    assert found.capped is True


def test_a_search_that_takes_too_long_is_ended_with_the_remedy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_LONGEST_S", -1.0)
    monkeypatch.setattr(connection, "_INSTRUCTIONS", 1)
    with pytest.raises(StoreUnavailable, match="narrow it by time"):
        search_verdicts(path, VerdictFilter(), after=None, limit=10)


def test_what_is_compared_holds_versions_metrics_and_no_more_than_its_time(path: Path) -> None:
    where = {"service": "shop", "environment": "prod", "rubric": "qa"}
    newest, oldest = read_compared(path, ComparedFilter(**where, since_ns=1, until_ns=3, all_metrics=True))
    assert (newest.closed_ns, newest.passed, newest.weight, newest.release) == (2, False, 2.0, "1.2")
    assert newest.metrics == {"accuracy": (0.25, True)}
    assert (oldest.passed, oldest.metrics, oldest.name) == (True, {}, "Refund")
    (one,) = read_compared(path, ComparedFilter(**where, since_ns=2, until_ns=3, metric="accuracy"))
    (none,) = read_compared(path, ComparedFilter(**where, since_ns=2, until_ns=3, metric="tone"))
    assert (one.metrics, none.metrics) == ({"accuracy": (0.25, True)}, {})
    assert read_compared(path, ComparedFilter(**where, since_ns=3, until_ns=9)) == []
    wanted = ComparedFilter(**where | {"service": "unknown_service"}, since_ns=0, until_ns=9)
    assert [each.passed for each in read_compared(path, wanted)] == [None]
    assert len(read_compared(path, ComparedFilter(since_ns=0, until_ns=9, most=3))) == 3


@pytest.mark.parametrize("spoilt", ["verdict", "json", "story"])
def test_a_text_that_is_not_what_was_written_is_damage_whoever_reads_it(
    path: Path, tmp_path: Path, spoilt: str
) -> None:
    copy = tmp_path / "s.sqlite"
    column, text, table = {
        "verdict": ("verdict", "[1]", "verdicts"),
        "json": ("verdict", "{", "verdicts"),
        "story": ("story", "[", "traces"),
    }[spoilt]
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        target.execute(f"UPDATE {table} SET {column} = ?", (text,))
        target.commit()
    store = Store(copy)
    of_traces = [store.traces, lambda: read_traces(copy, reason=None, service=None, limit=9)]
    of_verdicts = [store.verdicts, lambda: list(read_verdicts(copy, 0))]
    readers = [
        lambda: store.details(b"\0" * 15 + b"\2"),
        lambda: search_verdicts(copy, VerdictFilter(), after=None, limit=9),
        *(of_traces if spoilt == "story" else of_verdicts),
    ]
    for read in readers:
        with pytest.raises(StoreCorrupt, match="no longer what was written"):
            read()
    store.close()


async def test_of_many_verdicts_what_is_shown_is_in_memory_and_not_all_that_they_hold(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    verdict = {"rubric": "qa", "passed": True, "scores": [{"metric": f"m{n}", "value": n} for n in range(200)]}
    text = len(json.dumps(verdict))
    await store.finish_each([
        FinishedTrace(
            trace_id=number.to_bytes(16, "big"), service="shop", reason="scored", completion="root_ended", revision=1,
            verdicts=[verdict], details={}, closed_ns=number,
        )
        for number in range(200)
    ])  # fmt: skip
    store.close()
    tracemalloc.start()
    found = search_verdicts(
        store.path, VerdictFilter(), after=None, limit=200, counted=False,
        shown=lambda each: {"closed_ns": each["closed_ns"]},
    )  # fmt: skip
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.verdicts) == 200
    assert most < 2 * 200 * text, "the texts, once"
