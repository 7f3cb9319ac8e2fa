"""An intake with all that it ties together, at a time that stands still."""

from __future__ import annotations

import pytest

from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.monitor.config.sampling import SamplingSection
from sidejudge.monitor.ingest.assembler import Assembler, AssemblyLimits
from sidejudge.monitor.ingest.intake import Intake
from sidejudge.monitor.ingest.outcomes import EndReason, TraceOutcomes
from sidejudge.monitor.ingest.sampler import Sampler


class Monitor:
    """The parts that an intake ties together, real ones, at a time that stands still."""

    def __init__(self, path, rate=0.5, rules=(), randomness="trace_id", **more):
        self.now = 1_000
        self.woken = 0
        self.store = more.pop("store", None) or Store(path)
        self.assembler = Assembler(more.pop("assembly", AssemblyLimits(grace_ns=2, idle_ns=30, late_ns=100)))
        self.outcomes = TraceOutcomes()
        sampling = SamplingSection(rate=rate, rules=tuple(rules), randomness=randomness)
        self.intake = Intake(
            sampler=Sampler(sampling), store=self.store, assembler=self.assembler, outcomes=self.outcomes,
            clock_ns=lambda: self.now, wake=self.wake, **more,
        )  # fmt: skip

    def wake(self):
        self.woken += 1

    def ended(self):
        return dict(self.outcomes.balance().ended)

    async def finish(self, closing):
        await self.store.finish(FinishedTrace(
            trace_id=closing.trace_id, service="shop", reason="scored", completion=closing.completion,
            revision=closing.revision, details={}, closed_ns=self.now,
        ))  # fmt: skip
        self.outcomes.ended("shop", EndReason.SCORED, revision=closing.revision)


@pytest.fixture
def monitor(tmp_path):
    made = []

    def make(**more):
        made.append(Monitor(tmp_path / "s.sqlite", **more))
        return made[-1]

    yield make
    for one in made:
        if isinstance(one.store, Store):
            one.store.close()
