"""A trace that ends the process while it is judged is given up after some restarts, alone."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.evaluate.pipeline import InterruptedTraces
from sidejudge.monitor.evaluate.stages import EvaluationStages
from sidejudge.monitor.runtime.app import Monitor
from tests.forked import FORKS
from tests.otlp_requests import S, request, span, trace


def live(path: str, poison: bytes, body: bytes | None) -> None:
    """What one life of the process does. A trace kills it, as a fault of a library that the trace runs into would."""
    whole = EvaluationStages.open_all

    def open_all(self, closings):
        if any(closing.trace_id == poison and closing.give_up is None for closing in closings):
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(self, closings)

    EvaluationStages.open_all = open_all

    async def main() -> None:
        monitor = Monitor(Config.model_validate({"store": {"path": path}, "sampling": {"rate": 1.0}}))
        if body is None:
            monitor.intake.restore()
        else:
            await monitor.intake.consume(body)
        monitor.pipeline.waiting.extend(monitor.assembler.drain(monitor.clock_ns()))
        await monitor.pipeline.drain()
        monitor.store.close()

    asyncio.run(main())


def life(store: Path, poison: bytes, body: bytes | None = None) -> int | None:
    """One life of a process of its own; how it ended."""
    process = FORKS.Process(target=live, args=(str(store), poison, body))
    process.start()
    process.join(100)
    process.kill()
    return process.exitcode


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize(("size", "deaths"), [(3_000_000, 2), (100, 4)], ids=["large", "small"])
def test_a_restart_ends_the_trace_that_ended_the_process_and_no_other_is_given_up(tmp_path, size, deaths):
    store, poison = tmp_path / "s.sqlite", trace(3)
    texts = {n: "x" * size if n == 3 else "x" for n in range(1, 7)}
    body = request(S(trace_id=trace(n), span_id=span(1), attributes={"text": text}) for n, text in texts.items())
    for death in range(deaths):
        assert life(store, poison, None if death else body) == -signal.SIGKILL
    assert life(store, poison) == 0
    opened = Store(store)
    reasons = {n: opened.details(trace(n))["reason"] for n in range(1, 7)}
    judging = opened.fact("judging")
    opened.close()
    assert {n for n, reason in reasons.items() if reason == "crashed"} == {3}
    assert judging == {}, "what has ended is on nobody's account"


async def test_what_has_ended_is_not_counted_however_the_process_ends_after_it(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    interrupted = InterruptedTraces(store)
    await interrupted.begin([trace(1), trace(2)])
    interrupted.ended([trace(1), trace(2)])
    await interrupted.begin([trace(3)])
    again = InterruptedTraces(store)
    assert [again.times(trace(n)) for n in (1, 2, 3)] == [0, 0, 1]
    again.ended([trace(3)])
    await again.rest()
    assert InterruptedTraces(store).times(trace(3)) == 0
    store.close()


async def test_interruptions_add_up_over_restarts_though_others_are_judged_meanwhile(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    for restart in range(3):
        interrupted = InterruptedTraces(store)
        assert interrupted.times(trace(1)) == restart
        await interrupted.begin([trace(9)])
        interrupted.ended([trace(9)])
        await asyncio.sleep(0)
        await interrupted.begin([trace(1)])
    store.close()
