"""Verdict: a rubric's result on a case, once all its metrics have results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.reason import reason_fields
from sidejudge.scoring.result.result import Judgement, Result
from sidejudge.scoring.trace.notebook import verdict_html
from sidejudge.scoring.trace.record import record

from .escalation import Escalation
from .outcome import OutcomeMemo, State, outcome
from .rubric import Rubric
from .score import Score, judgements_of, requested_of_judges

__all__ = ["Score", "Selection", "State", "Verdict", "reach_verdict"]

Selection: TypeAlias = Literal["random", "forced"]
"""Drawn by the base rate, or kept only by a rule on its content."""


@record(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One case under one rubric. ``composite`` is None when invalid or incomplete, ``passed`` is None when incomplete.

    ``coverage`` is the scored share of the applicable weight, in [0, 1]. ``sampling_probability`` is the chance that
    the case was drawn at all; an estimate weighs the verdict by its inverse. ``revision`` counts re-scores from 1.
    ``cost_usd`` is the cost of the judged call, not of its judgement. ``violations`` are the kinds of departure from
    the case's scenario, without repeats. ``cascade`` is its way through a cascade of judges, None without one.
    """

    case_id: str
    rubric: str
    rubric_version: str
    composite: float | None
    composite_norm: float | None
    coverage: float
    state: State
    passed: bool | None
    rating: str | None
    blockers: tuple[str, ...]
    pass_mark: float | None
    scores: tuple[Score, ...]
    sampling_probability: float
    created_at: str
    reason: str = ""
    task: str | None = None
    trace_id: str | None = None
    service: str | None = None
    environment: str | None = None
    session_id: str | None = None
    selection: Selection = "random"
    revision: int = 1
    cost_usd: float | None = None
    violations: tuple[str, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict)
    cascade: Escalation | None = None

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """Calls to judges for this verdict: those behind its values first, then those without a value."""
        return judgements_of(self.scores)

    def _repr_html_(self) -> str:
        return verdict_html(self.to_json())

    def to_dict(self) -> dict[str, object]:
        """The verdict in the documented format; another name of ``to_json``."""
        return self.to_json()

    def to_json(self) -> dict[str, object]:
        """The verdict in the documented format, ready for a JSON line."""
        return {
            "case_id": self.case_id, "trace_id": self.trace_id, "task": self.task,
            "rubric": self.rubric, "rubric_version": self.rubric_version,
            "composite": self.composite, "composite_norm": self.composite_norm, "coverage": self.coverage,
            "state": self.state._value_, "passed": self.passed, "rating": self.rating,
            "blockers": list(self.blockers), "pass_mark": self.pass_mark, **reason_fields(self.reason),
            "scores": [score.to_json() for score in self.scores],
            "judge": requested_of_judges(self.scores),
            "service": self.service, "environment": self.environment, "session_id": self.session_id,
            "selection": self.selection, "revision": self.revision,
            "sampling_probability": self.sampling_probability, "cost_usd": self.cost_usd,
            "created_at": self.created_at,
            **({"cascade": self.cascade.to_json()} if self.cascade is not None else {}),
            **self.extra,
        }  # fmt: skip


def reach_verdict(
    rubric: Rubric,
    case: Case,
    results: Mapping[str, Result],
    *,
    created_at: str,
    judgements: Mapping[str, tuple[Judgement, ...]] | None = None,
    selection: Selection = "random",
    revision: int = 1,
    memo: OutcomeMemo | None = None,
) -> Verdict:
    """Compute the verdict (``outcome``). ``results`` holds one result for each of the rubric's metrics.

    ``judgements`` are the calls to judges for each, also where its result does not show them. ``memo`` caches outcomes
    of repeated results.

    Order of the results is irrelevant; a better value never lowers the composite; a metric without a value lowers
    coverage (or, when not applicable, gives its weight to the others) and never the score.
    """
    reached = (outcome if memo is None else memo.outcome)(rubric, results, judgements or {})
    return Verdict(
        case_id=case.case_id,
        rubric=rubric.id,
        rubric_version=rubric.version,
        composite=reached.composite,
        composite_norm=reached.composite_norm,
        coverage=reached.coverage,
        state=reached.state,
        passed=reached.passed,
        rating=reached.rating,
        blockers=reached.blockers,
        pass_mark=rubric.pass_mark,
        scores=reached.scores,
        sampling_probability=case.sampling_probability,
        created_at=created_at,
        reason=reached.reason,
        task=case.task,
        trace_id=case.trace_id,
        service=case.service,
        environment=case.environment,
        session_id=case.session_id,
        selection=selection,
        revision=revision,
        cost_usd=case.cost_usd,
        violations=reached.violations,
        extra=rubric.detail(case, reached.composite, reached.results) if rubric.detail else {},
    )
