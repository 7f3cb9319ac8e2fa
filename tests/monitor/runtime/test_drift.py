"""The watch over the judge in a monitor: what the judge is asked fills the sample, and what moved is an alert."""

from __future__ import annotations

import asyncio

from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.evaluate.judge.drift_watch import SPACING_NS
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.kinds import Supported
from sidejudge.scoring.statistics.judge_drift import LEAST
from sidejudge.scoring.trace.time_units import DAY_NS
from tests.fakes.judge import judges
from tests.fakes.openai import Provider
from tests.monitor.api.still import Still
from tests.needs import LITELLM

pytestmark = LITELLM.mark


def supported(score):
    return judges(lambda _, field: score if field == "score" else None)


async def test_a_judge_that_moved_raises_an_alert_that_names_what_moved(configured):
    with Provider(supported(1)) as provider:
        judge = {"model": "openai/gpt-4o-mini", "api_base": provider.url, "api_key": "sk-x", "retries": 0}
        s = Still(configured(evaluators={"judge": judge, "drift": {"prompts": LEAST, "error": 0.9}}))
        monitor = s.monitor
        async with asyncio.timeout(60):
            for number in range(LEAST):
                s.now += SPACING_NS
                case = Case(case_id=f"{number:032x}", model_output="", transcript=f"call {number}")
                await monitor.backends.judge.answer(case, [Supported(f"claim {number}")])
            await monitor.drift.round(monitor.backends.judge)
            provider.standing = supported(0)
            s.now += DAY_NS
            await monitor.drift.round(monitor.backends.judge)
            await monitor.schedule.look(s.now)
            alerts = (await s.get("/v1/alerts")).json()["alerts"]
            await monitor.backends.close()
        monitor.store.close()
    (alert,) = [each for each in alerts if "judge_drift" in str(each)]
    assert "of 10 past prompts 0 get a higher answer on fabrication_free_rate than at first and 10 a lower" in str(
        alert
    )


async def test_without_the_section_what_was_kept_is_deleted_at_the_next_start(started, configured):
    store = Store(configured().store.path)
    await store.kept.room("drift").change({"prompt/1": '{"trace_id": "", "taken_ns": 1}'})
    store.close()
    running = await started()
    assert running.monitor.store.kept.room("drift").all() == {}
