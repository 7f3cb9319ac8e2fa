"""A pipeline on a real store, with what it reported, at a time that stands still."""

from __future__ import annotations

from sidejudge.integrations.otlp.wire.request import ChunkOrigin, split
from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.monitor.config.model import RouteSection
from sidejudge.monitor.config.sampling import SamplingSection
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.monitor.evaluate.judge_queue import DeferredTraces, JudgedShares, JudgeQueue
from sidejudge.monitor.evaluate.pipeline import Pipeline, one_by_one
from sidejudge.monitor.evaluate.stages import EvaluationStages
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.sampler import Sampler
from sidejudge.monitor.route.router import Router
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.verdict.rubric import Criterion, Rubric
from tests.otlp_requests import HIGH, S, request, span, trace

NOW = 1_790_000_000_000_000_000
ORIGIN = ChunkOrigin("shop", None, 0)


def rubric(name: str, measure) -> Rubric:
    metric = Metric(id="m", title="t", meaning="m", formula="f", source="s", measure=measure)
    return Rubric(
        id=name, title=name, source="s", formula="f", criteria=(Criterion(metric=metric, weight=1.0),), pass_mark=0.5
    )


class PipelineBench:
    """The parts that a pipeline ties together. ``attributes`` are those of a trace's only span."""

    def __init__(self, path, evaluator: Evaluator, routes, room=4, sampling=None, attributes=None, **bounds):
        self.now, self.reported, self.store, self.attributes = NOW, [], Store(path), attributes or {}
        stages = EvaluationStages(
            archive=self.store, sampler=Sampler(SamplingSection(**{"rate": 1.0, **(sampling or {})})),
            router=Router([RouteSection.model_validate(route) for route in routes], {}),
            evaluator=evaluator, reference_keys=("expected_outcome",),
        )  # fmt: skip
        deferred = DeferredTraces(**{"max_waiting": 1000, "max_wait_ns": 3600 * 10**9, **bounds})
        vectorless = DeferredTraces(**{"max_waiting": 1000, "max_wait_ns": 3600 * 10**9, **bounds}, in_turn=True)
        self.judge_queue = JudgeQueue(
            stages=stages, deferred=deferred, without_vectors=vectorless, clock_ns=self.clock, capacity=room,
            shares=JudgedShares(self.store.kept.room("judged_shares"), clock_ns=self.clock),
        )  # fmt: skip
        self.pipeline = Pipeline(
            stages=stages, judge_queue=self.judge_queue, commit=one_by_one(self.commit), clock_ns=self.clock,
            listeners=[self.reported.append],
        )  # fmt: skip

    def clock(self):
        return self.now

    async def commit(self, ending):
        await self.store.finish(FinishedTrace(
            trace_id=ending.trace_id, service=ending.service, reason=ending.reason.value, closed_ns=ending.ended_ns,
            completion=ending.completion, revision=ending.revision, details=ending.details, chunks=ending.chunks,
            verdicts=[verdict.to_json() for verdict in ending.verdicts],
        ))  # fmt: skip

    async def close(self, number, *spans: S, tail=HIGH, name="step", **closing):
        """Store a trace's spans (a root by default) and let it wait to be judged."""
        sent = spans or (S(trace_id=trace(number, tail), span_id=span(1), name=name, attributes=self.attributes),)
        await self.store.append(split(request(sent), lambda _: ORIGIN).chunks, self.now)
        self.wait(number, tail=tail, **closing)

    def wait(self, number, *, tail=HIGH, revision=1, completion="root_ended", size=0):
        self.pipeline.waiting.append(
            Closing(trace_id=trace(number, tail), completion=completion, revision=revision, origin=ORIGIN, size=size)
        )

    def waiting(self):
        return [closing.trace_id for closing in self.pipeline.waiting]
