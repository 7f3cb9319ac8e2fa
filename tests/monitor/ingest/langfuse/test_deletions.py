"""Which start times are listed for deletions and when, and how long a trace must have been gone to be erased."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sidejudge.integrations.langfuse.observations import Window
from sidejudge.integrations.langfuse.probe import LangfuseServer
from sidejudge.integrations.store.pulled import Taken
from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.monitor.ingest.langfuse import deletions
from sidejudge.monitor.ingest.langfuse.deletions import DeletedTraces

SECOND = 10**9
START_NS = 1_795_000_000 * SECOND
LATER_NS = START_NS + 10_000 * SECOND


SERVER = LangfuseServer(
    base_url="http://langfuse", version=None, project_id="p", project_name="p", observations_v2=True, scores_v3=True,
    legacy_reads=False,
)  # fmt: skip


class Scene:
    """Traces that were read, in a real store; ``there`` are those that Langfuse still has."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, *, days: int = 1) -> None:
        self.store = Store(folder / "state.sqlite")
        self.now_ns = LATER_NS
        self.listed: list[tuple[float, float]] = []
        self.there: set[str] = set()
        self.unlisted: set[str] = set()
        self.made: dict[str, int] = {}
        patch.setattr(deletions, "rows_of", self.rows_of)
        patch.setattr(deletions, "project_of", self.project_of)
        patch.setattr(deletions, "anything_before", self.anything_before)
        self.deleted = DeletedTraces(
            langfuse=None, store=self.store, pages=self.pages, clock_ns=lambda: self.now_ns,
            oldest_ns=days * 86_400 * SECOND, newest_ns=1_800 * SECOND,
        )  # fmt: skip

    async def take(self, *seconds: float) -> None:
        for second in seconds:
            name, at_ns = f"{len(self.made) + 1:032x}", START_NS + int(second * SECOND)
            self.made[name] = at_ns
            self.there.add(name)
            await self.store.pulled.put([Taken(trace_id=name, last_ns=at_ns, reason=None, spans=frozenset())])
            await self.store.finish(FinishedTrace(
                trace_id=bytes.fromhex(name), service="shop", reason="scored", completion="root_ended", revision=1,
                details={"name": "a"}, closed_ns=at_ns, verdicts=(),
            ))  # fmt: skip

    async def pages(self, _: Any, window: Window) -> AsyncIterator[Sequence[dict[str, str]]]:
        self.listed.append(((window.from_ns - START_NS) / SECOND, (window.to_ns - START_NS) / SECOND))
        yield [
            {"traceId": name}
            for name in sorted(self.there - self.unlisted)
            if window.from_ns <= self.made[name] < window.to_ns
        ]

    async def rows_of(self, _: Any, __: Any, trace_id: str) -> list[str]:
        return [trace_id] if trace_id in self.there else []

    async def project_of(self, _: Any) -> tuple[str, str]:
        return "p", "p"

    async def anything_before(self, _: Any, at_ns: int, **__: Any) -> bool:
        return any(self.made[name] < at_ns for name in self.there)

    async def look(self, after_s: float = 120) -> int:
        erased = await self.deleted.look(SERVER)
        self.now_ns += int(after_s * SECOND)
        return erased

    def held(self) -> list[int]:
        return [int(name, 16) for name in self.made if self.store.details(bytes.fromhex(name)) is not None]


@pytest.fixture
def scene(tmp_path, monkeypatch):
    made = Scene(tmp_path, monkeypatch)
    yield made
    made.store.close()


async def test_ten_minutes_are_listed_every_two_minutes_and_then_from_the_beginning_again(scene):
    await scene.take(0, 300, 700, 2_000)
    await scene.look(119.999)
    await scene.look(0.001)  # not due yet
    assert scene.listed == [(0, 600)]
    for _ in range(2):
        await scene.look()
    assert scene.listed == [(0, 600), (700, 1_300), (2_000, 2_600)]
    await scene.look(119)  # there are no more
    await scene.look(1)
    assert len(scene.listed) == 3, "it waits as long before it begins again"
    await scene.look()
    assert scene.listed[3:] == [(0, 600)]


async def test_nothing_is_listed_that_may_still_be_written_or_is_not_held_any_more(scene):
    await scene.take(0, 8_100, 8_300)  # half an hour ago is 8200
    await scene.look()
    await scene.look(0)
    assert scene.listed == [(0, 600), (8_100, 8_320)]
    scene.now_ns = START_NS + (86_400 + 8_100 + 1) * SECOND
    scene.listed.clear()
    for _ in range(3):
        await scene.look()
    assert scene.listed == [(8_300, 8_900)]
    scene.listed.clear()
    scene.deleted.since_ns = START_NS + 8_301 * SECOND
    for _ in range(3):
        await scene.look()
    assert scene.listed == []


@pytest.mark.parametrize(("starts", "to"), [((0, 100, 200, 300), 200), ((0, 0, 0, 0), 1e-9)])
async def test_of_many_traces_those_are_looked_for_whose_start_times_are_known(scene, monkeypatch, starts, to):
    monkeypatch.setattr(deletions, "_MOST_LISTED", 3)
    await scene.take(*starts)
    await scene.look()
    assert scene.listed == [(0, pytest.approx(to))]


async def test_a_trace_is_erased_that_was_gone_twice_ten_minutes_apart(scene):
    await scene.take(0, 1, 2)
    scene.there -= {f"{1:032x}", f"{2:032x}"}
    scene.unlisted = {f"{3:032x}"}  # the listing lags; it is there by its id
    for _ in range(5):
        assert await scene.look(130) == 0
    assert scene.held() == [1, 2, 3]
    scene.there.add(f"{2:032x}")  # a replica had not shown it
    assert await scene.look() == 1
    assert scene.held() == [2, 3]
    for _ in range(12):
        assert await scene.look() == 0
    assert scene.held() == [2, 3]


@pytest.mark.parametrize(
    ("days", "hidden", "held"),
    [
        (28.9, [1, 2, 3], [4]),  # every plan shows as much
        (29.1, [1, 2, 3], [1, 2, 3, 4]),  # a plan shows the last 30 days, or Langfuse keeps as many
        (29.1, [2, 3], [1, 4]),  # older ones are shown, so these were deleted
        (29.1, [1, 3], [1, 2, 4]),  # whether the first was deleted cannot be known
    ],
)
async def test_what_a_plan_or_a_retention_hides_is_not_erased(tmp_path, monkeypatch, days, hidden, held):
    scene = Scene(tmp_path, monkeypatch, days=90)
    await scene.take(0, 1, 2, 3)
    scene.there -= {f"{number:032x}" for number in hidden}
    scene.now_ns = START_NS + int(days * 86_400) * SECOND
    for _ in range(7):
        await scene.look(130)
    assert scene.held() == held
    scene.store.close()
