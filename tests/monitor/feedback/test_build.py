"""The task that exchanges labels, reviews and failing traces with people: when it does what."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from sidejudge.integrations.langfuse.probe import probe
from sidejudge.monitor.config.langfuse import LangfuseSink
from sidejudge.monitor.feedback.build import LangfuseFeedback
from sidejudge.scoring.rubrics import RUBRICS
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, Mode

DAY_NS = 24 * 3600 * 10**9


async def test_after_the_clock_was_set_back_labels_are_read_at_once(bench):
    bench.fake.mode = Mode.NEW
    access = {"base_url": bench.fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
    scores_out = SimpleNamespace(langfuse=bench.langfuse, server=await probe(bench.langfuse))
    clock = SimpleNamespace(now_ns=bench.now_ns)  # the requests go by another, as they do in a monitor
    parts = replace(bench.feedback_parts(scores_out, qa=RUBRICS["qa"]), clock_ns=lambda: clock.now_ns)
    feedback = LangfuseFeedback(LangfuseSink.model_validate(access), parts)

    async def reads() -> bool:
        before = len(bench.fake.requests)
        await feedback._tick()
        return len(bench.fake.requests) > before

    assert await reads()
    assert not await reads()
    clock.now_ns -= DAY_NS
    assert await reads()
    assert not await reads()
    clock.now_ns += DAY_NS
    assert await reads()
