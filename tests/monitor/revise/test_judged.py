"""A reference that comes late where a judge is needed to say what it changes."""

from __future__ import annotations

import asyncio
from typing import Any

from sidejudge.integrations.otlp.wire.chunk import ChunkOrigin
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.revise.schedule import AGAIN_AFTER_S
from tests.fakes.judge import judges
from tests.fakes.openai import Provider, error
from tests.monitor.revise.conftest import MINUTE_NS
from tests.needs import LITELLM
from tests.waiting import until

pytestmark = LITELLM.mark


def judged_by(provider: Provider) -> dict[str, Any]:
    judge = {
        "model": "openai/gpt-4.1-mini-2025-04-14", "api_base": provider.url, "api_key": "sk-none", "retries": 0,
        "timeout": "5s", "max_wait": "10m",
    }  # fmt: skip
    return {"routes": [{"rubrics": ["answer"]}], "evaluators": {"judge": judge}}


async def test_while_the_judge_is_away_the_verdict_stands_and_once_it_is_back_it_is_revised(opened):
    with Provider(judges()) as provider:
        scene = await opened(**judged_by(provider))
        await scene.judge()
        first = scene.verdict()
        await scene.pass_by(hours=26)
        scene.expect("what it should have said")
        requested = len(provider.seen)
        provider.standing = error(503, "overloaded")
        await scene.look(rounds=1)
        async with asyncio.timeout(60):
            while (await scene.story())["belated"]["reason"] is None:
                await scene.go_on(1)
                await asyncio.sleep(0.02)
        assert (await scene.story())["belated"]["reason"] == "judge_failed"
        assert scene.verdict() == first
        assert len(provider.seen) > requested
        scene.now_ns += AGAIN_AFTER_S[0] * 10**9
        await scene.go_on(1)  # it is before the judge again, and nothing of that survives
        await scene.restart()
        assert scene.verdict() == first
        provider.standing = judges()
        async with asyncio.timeout(60):
            while scene.verdict()["revision"] == 1:
                scene.now_ns += AGAIN_AFTER_S[0] * 10**9
                await scene.go_on(1)
                await asyncio.sleep(0.02)
        assert (scene.verdict()["revision"], scene.verdict()["passed"]) != (1, first["passed"])
        assert scene.verdict()["sampling_probability"] == first["sampling_probability"]
        assert "belated" not in await scene.story()


async def test_a_late_reference_waits_for_embeddings_as_long_as_a_trace_does(opened):
    embedding = {"remote": True, "model": "openai/text-embedding-3-small", "api_key": "sk-none", "max_wait": "3h"}
    with Provider(judges()) as provider:
        judged = judged_by(provider)
        judged["evaluators"]["embedding"] = {**embedding, "api_base": provider.url}
        scene = await opened(**judged)
        queue = scene.monitor.revisions._rejudging._pipeline.judge_queue
        closing = Closing(trace_id=b"t" * 16, completion="root_ended", revision=2, origin=ChunkOrigin(None, None, 0))
        for line, minutes in ((queue.deferred, 10), (queue.without_vectors, 180)):
            line.park(closing, line.place(0))
            assert not list(line.overdue(minutes * MINUTE_NS - 1))
            assert list(line.overdue(minutes * MINUTE_NS))


async def test_a_verdict_whose_spans_go_while_the_judge_is_asked_once_more_is_revised(opened):
    with Provider(judges()) as provider:
        scene = await opened(**judged_by(provider))
        await scene.judge()
        provider.standing, asked = judges(delay_s=1), len(provider.seen)
        scene.now_ns += 9 * MINUTE_NS  # they are held for ten minutes
        scene.expect("what it should have said")
        assert await scene.monitor.references.refresh() == 1
        await until(lambda: len(provider.seen) > asked)
        scene.now_ns += 2 * MINUTE_NS
        await scene.monitor.retention.purge()
        assert not scene.monitor.store.chunks(scene.id_of(1))
        await until(lambda: (scene.monitor.store.details(scene.id_of(1)) or {"revision": None})["revision"] != 1)
        story = await scene.story()
        assert (story["revision"], story["reason"], story["reference"]) == (2, "scored", "dataset golden")
        assert scene.verdict()["judge"]["model"].startswith("openai/")
        assert scene.monitor.outcomes.balance().revisions == 1
