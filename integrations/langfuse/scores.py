"""A verdict as scores of Langfuse: each number, truth value or state is one score.

Ids are derived from what a score is of, so whatever is sent twice replaces itself, and no id ever stands on two traces
(there the first trace would keep it). Langfuse merges metadata key by key: every key is always sent, null where it has
no value, so that no value of an earlier revision remains.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

from scoring.lexical.label import label
from scoring.metrics.metric import Metric
from scoring.result.result import Judgement, Scored
from scoring.verdict.rubric import Rubric
from scoring.verdict.score_name import composite_name, pass_name, score_name, state_name
from scoring.verdict.verdict import Score, State, Verdict

DataType: TypeAlias = Literal["NUMERIC", "BOOLEAN", "CATEGORICAL"]
MAX_COMMENT: Final = 1000
"""Characters of a comment: a reason may quote a trace."""
_YES_OR_NO: Final = "pass or fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The definition of a score by its name: its type, its range or its categories, and what it means."""

    name: str
    data_type: DataType
    description: str
    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] = ()

    def allows(self, value: float | str) -> bool:
        """Whether a value lies within what is declared; Langfuse drops others without a word."""
        if isinstance(value, str):
            return value in self.categories
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


def declared(rubric: Rubric) -> Iterator[Declared]:
    """Every score that a verdict of a rubric may have."""
    yield Declared(
        name=composite_name(rubric.id), data_type="NUMERIC", description=f"{rubric.title}: {rubric.formula}",
        low=0.0, high=rubric.scale,
    )  # fmt: skip
    yield Declared(name=pass_name(rubric.id), data_type="BOOLEAN", description=f"{rubric.title}: whether it passes")
    yield Declared(
        name=state_name(rubric.id), data_type="CATEGORICAL",
        description=f"{rubric.title}: whether there is a verdict, and whether it counts",
        categories=tuple(state.value for state in State),
    )  # fmt: skip
    for criterion in (*rubric.criteria, *rubric.opt_in):
        metric = criterion.metric
        yield Declared(
            name=score_name(rubric.id, metric),
            data_type=_type(metric),
            description=f"{metric.title}: {metric.meaning}",
            low=metric.bounds[0] if _type(metric) == "NUMERIC" else None,
            high=metric.bounds[1] if _type(metric) == "NUMERIC" else None,
        )


def score_id(trace_id: str, name: str, *, observation_id: str = "") -> str:
    """The id of a score: the same for the same score of the same trace, on any machine, in any revision.

    >>> score_id("36524d221566b94755e27265a6220988", "qa_score")
    'sj-4c527823f69580023793b687cc4a8dd6'
    """
    stated = f"{trace_id}\x00{observation_id}\x00{name}"
    return f"sj-{hashlib.sha256(stated.encode()).hexdigest()[:32]}"


def scores_of(verdict: Verdict, rubric: Rubric) -> Iterator[dict[str, Any]]:
    """The bodies of a verdict's scores, without timestamp and config. A metric without a value has no score."""
    if verdict.trace_id is None and verdict.session_id is None:
        return
    by_id = {c.metric.id: c.metric for c in (*rubric.criteria, *rubric.opt_in)}
    whole = _metadata(verdict, judged=verdict.judgements, rating=verdict.rating)
    if verdict.composite is not None:
        yield _body(
            verdict, composite_name(rubric.id), "NUMERIC", verdict.composite, reason=verdict.reason, metadata=whole
        )
    if verdict.passed is not None:
        yield _body(
            verdict, pass_name(rubric.id), "BOOLEAN", float(verdict.passed), reason=verdict.reason, metadata=whole
        )
    yield _body(
        verdict, state_name(rubric.id), "CATEGORICAL", verdict.state.value, reason=verdict.reason, metadata=whole
    )
    for score in verdict.scores:
        metric = by_id.get(score.metric)
        if isinstance(score.result, Scored) and metric is not None:
            yield _metric_body(verdict, rubric, metric, score, score.result)


def _metric_body(verdict: Verdict, rubric: Rubric, metric: Metric, score: Score, result: Scored) -> dict[str, Any]:
    metadata = _metadata(
        verdict, judged=result.judgements, rating=score.rating, method=result.method.value, weight=score.weight
    )
    kind = _type(metric)
    if kind == "BOOLEAN" and result.value not in (0.0, 1.0):
        kind = "NUMERIC"  # a share of several answers; as a truth value it would be refused
    return _body(verdict, score_name(rubric.id, metric), kind, result.value, reason=result.reason, metadata=metadata)


def _body(
    verdict: Verdict, name: str, data_type: DataType, value: float | str, *, reason: str, metadata: Mapping[str, Any]
) -> dict[str, Any]:
    # A conversation that was judged as one has no trace; its score is the session's.
    subject, of = ("traceId", verdict.trace_id) if verdict.trace_id else ("sessionId", verdict.session_id or "")
    return {
        "id": score_id(of, name),
        subject: of,
        "name": name,
        "value": value,
        "dataType": data_type,
        "comment": label(reason, MAX_COMMENT) or None,
        "environment": environment(verdict.environment),
        "metadata": dict(metadata),
    }


def _metadata(
    verdict: Verdict,
    *,
    judged: tuple[Judgement, ...],
    rating: str | None,
    method: str | None = None,
    weight: float | None = None,
) -> dict[str, Any]:
    first = judged[0] if judged else None
    return {
        "method": method,
        "rating": rating,
        "weight": weight,
        "state": verdict.state.value,
        "coverage": verdict.coverage,
        "revision": verdict.revision,
        "rubric_version": verdict.rubric_version,
        "sampling_probability": verdict.sampling_probability,
        "selection": verdict.selection,
        "judge": first.model if first else None,
        "prompt_hash": first.prompt_version if first else None,
        "flags": ",".join(dict.fromkeys(flag for judgement in judged for flag in judgement.flags)) or None,
    }


def _type(metric: Metric) -> DataType:
    return "BOOLEAN" if metric.unit == _YES_OR_NO else "NUMERIC"


def environment(name: str | None) -> str | None:
    """The environment as Langfuse would write it; None for one that it would not keep, which becomes its default.

    >>> environment("Production"), environment("langfuse-eval"), environment("a b")
    ('production', None, None)
    """
    stated = (name or "").lower()
    fits = 0 < len(stated) <= 40 and stated.isascii() and all(c.isalnum() or c in "-_" for c in stated)
    return stated if fits and not stated.startswith("langfuse") else None


def timestamp(at_ns: int) -> str:
    """Nanoseconds since the epoch as Langfuse writes times: to the millisecond, in UTC.

    >>> timestamp(1_700_000_000_123_999_999)
    '2023-11-14T22:13:20.123Z'
    """
    seconds, rest = divmod(at_ns, 10**9)
    at = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 10**6 * 1000)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
