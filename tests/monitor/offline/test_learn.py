"""Runs out of a store: which of its traces are runs, and which of these are good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sidejudge.integrations.otlp.wire.chunk import Chunk, ChunkOrigin
from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.offline.learn import Good, RunSource
from tests.otlp_requests import S, request, span


async def stored(path: Path, *traces: dict[str, Any]) -> None:
    store = Store(path)
    try:
        for number, details in enumerate(traces, 1):
            verdicts = [{"rubric": "run_health", "passed": passed} for passed in details.pop("passed", ())]
            await store.finish(
                FinishedTrace(
                    trace_id=number.to_bytes(16), service="desk", reason="scored", completion="idle", revision=1,
                    details={"name": "desk", "agents_called": [], **details}, verdicts=verdicts, closed_ns=number,
                )
            )  # fmt: skip
    finally:
        store.close()


def read(path: Path, good: Good = "all") -> list[tuple[tuple[str, ...], bool | None]]:
    source = RunSource(match=MatchSection(), group_by="name", good=good, reward=None, labels={})
    return [(run.called, run.good) for run in source.read([path], pytest.fail)]


async def test_a_conversation_is_no_run_beside_its_turns(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    await stored(path, {"calls": ["find"]}, {"calls": ["pay"]}, {"kind": "session", "calls": ["find", "pay"]})
    assert read(path) == [(("find",), None), (("pay",), None)]


@pytest.mark.parametrize(("complete", "read_as"), [(True, [(("find",), None)]), (False, [])])
async def test_a_trace_that_was_cut_short_is_no_run_though_its_spans_are_held(
    tmp_path: Path, *, complete: bool, read_as: list[Any]
) -> None:
    path = tmp_path / "state.sqlite"
    store = Store(path)
    trace_id, attributes = (1).to_bytes(16), {"openinference.span.kind": "TOOL", "tool.name": "find"}
    try:
        payload = request([S(trace_id=trace_id, span_id=span(1), name="desk", attributes=attributes)])
        await store.append(
            [Chunk(trace_id=trace_id, payload=payload, headers=(), origin=ChunkOrigin("desk", None, 0))], 1
        )
    finally:
        store.close()
    await stored(path, {"complete": complete})
    assert read(path) == read_as


async def test_of_passed_runs_those_without_a_verdict_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    await stored(
        path,
        {"calls": ["a"], "passed": [True]},
        {"calls": ["b"], "passed": [False]},
        {"calls": ["c"], "passed": [None]},
        {"calls": ["d"]},
    )
    assert read(path, "passed") == [(("a",), True), (("b",), False)]
    assert len(read(path)) == 4
