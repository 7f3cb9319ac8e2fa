"""Consistency: the spread of the scores of several runs on one input (seed 000, Layer 2; rubrics §7)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.metric import guarded
from sidejudge.scoring.metrics.settle import carried, least_certain
from sidejudge.scoring.questions.question import PendingMetrics, Question, Reply, Steps
from sidejudge.scoring.result.reason import Reason, cut, own, together
from sidejudge.scoring.result.result import Failed, Result, Scored, Unavailable

from .rubric import Rubric
from .verdict import State, reach_verdict

MAX_RUNS = 100
"""Most runs of one case that are scored."""
_LEAST_RUNS = 2
_SHOWN = 5


def consistency_of(scores: Sequence[float]) -> float:
    """1 − (population standard deviation / mean), floored at 0. If every score is 0: 1, consistently wrong.

    >>> round(consistency_of([0.91, 0.90, 0.88]), 3)
    0.986
    """
    mean = statistics.fmean(scores)
    return max(0.0, 1.0 - statistics.pstdev(scores) / mean) if mean else 1.0


def consistency(rubrics: Mapping[str, Rubric], otherwise: Callable[[Case], Steps]) -> Callable[[Case], Steps]:
    """The measure: each run is scored by the rubric of the case's task, ``otherwise`` by this measure.

    Each run is judged with the questions of its own rubric. A run whose composite is invalid counts 0; one
    that cannot be scored leaves no value.
    """

    def measure(case: Case) -> Steps:
        runs = [replace(case, model_output=run, repeats=None) for run in (case.model_output, *(case.repeats or ()))]
        if len(runs) < _LEAST_RUNS:
            return Unavailable(Reason("repeats: fewer than two runs of the same input"))
        if len(runs) > MAX_RUNS:
            return Unavailable(Reason("repeats: more than {most} runs", most=MAX_RUNS))
        if case.expected_outcome is None:
            return Unavailable(Reason("no expected_outcome to score runs against"))
        rubric = rubrics.get(case.task or "")
        scored = yield from (_by_measure(runs, otherwise) if rubric is None else _by_rubric(runs, rubric))
        missing = [(at, one) for at, one in enumerate(scored, 1) if not isinstance(one, Scored)]
        if missing:
            at, result = next(((at, one) for at, one in missing if isinstance(one, Failed)), missing[0])
            stated = Reason("run {at} has no score: {why}", at=at, why=cut(result.reason, 500))
            return Failed(stated) if isinstance(result, Failed) else Unavailable(stated)
        by = "answer_correctness" if rubric is None else rubric.id
        return _reported([one for one in scored if isinstance(one, Scored)], by)

    return measure


def _reported(scored: Sequence[Scored], by: str) -> Scored:
    scores = [one.value for one in scored]
    return Scored(
        value=consistency_of(scores),
        method=least_certain(one.method for one in scored),
        reason=Reason(
            "{n} runs by {by}: {scores}",
            n=len(scores),
            by=own(by),
            scores=together((Reason("{score:.3f}", score=score) for score in scores[:_SHOWN]), ", "),
        )
        + Reason(" …" if len(scores) > _SHOWN else ""),
        details={"scores": scores, "by": by},
        judgements=carried(scored),
    )


_Rounds = Generator[tuple[Question, ...], Sequence[Reply], list[Result]]


def _by_measure(runs: Sequence[Case], measure: Callable[[Case], Steps]) -> _Rounds:
    results = yield from PendingMetrics({at: guarded(measure(run)) for at, run in enumerate(runs)}).rounds()
    return [results[at] for at in range(len(runs))]


def _by_rubric(runs: Sequence[Case], rubric: Rubric) -> _Rounds:
    evaluation = PendingMetrics(
        {(at, c.metric.id): c.metric.start(run) for at, run in enumerate(runs) for c in rubric.criteria}
    )
    results = yield from evaluation.rounds()
    return [
        _composite(rubric, run, {c.metric.id: results[at, c.metric.id] for c in rubric.criteria})
        for at, run in enumerate(runs)
    ]


def _composite(rubric: Rubric, run: Case, results: Mapping[str, Result]) -> Result:
    verdict = reach_verdict(rubric, run, results, created_at="")
    parts = [result for result in results.values() if isinstance(result, Scored)]
    if verdict.state is State.INVALID or verdict.composite_norm is not None:
        return Scored(
            value=verdict.composite_norm or 0.0,
            method=least_certain(one.method for one in parts),
            judgements=carried(parts),
        )
    failed = any(isinstance(result, Failed) for result in results.values())
    return Failed(verdict.reason) if failed else Unavailable(verdict.reason or "incomplete")
