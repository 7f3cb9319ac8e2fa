"""Spans that come late into a Langfuse that is read, within what it lists again: they make a revision."""

from __future__ import annotations

from tests.fakes.langfuse.observations import observations_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY
from tests.monitor.revise.conftest import MINUTE_NS


async def test_spans_that_come_within_the_look_back_revise_the_verdict(opened, fake):
    keys = {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
    source = {"langfuse": {**keys, "requests_per_minute": 100_000, "look_back": "30m"}}
    scene = await opened(sources=source, references=[], routes=[{"rubrics": ["run_health"]}])

    async def polled() -> None:
        for _ in range(4):
            scene.now_ns += 20 * 10**9
            await scene.monitor.pull.poll()

    rows = scene.arrive_in_langfuse(most=0)
    parents = {row["parentObservationId"] for row in rows}
    late = next(row for row in rows if row["parentObservationId"] and row["id"] not in parents)
    observations_of(fake).put(*(row for row in rows if row is not late))
    await polled()
    await scene.until(lambda: bool(scene.verdicts()))
    before = (await scene.story())["spans"]
    scene.now_ns += 25 * MINUTE_NS
    scene.monitor.assembler.due(scene.now_ns)  # it forgets what it need not know any more
    observations_of(fake).put(late)
    await polled()
    await scene.until(lambda: scene.verdict()["revision"] == 2)
    assert (await scene.story())["spans"] == before + 1
