"""A verdict as scores of Langfuse: each number, truth value or state is one score.

Ids are derived from a score's subject, so that a score sent twice replaces itself, and no id is ever on two traces (the
first trace would keep it). Up to 4.16 Langfuse merges metadata key by key: a revision sends every key, null where it
has no value, so that no value of an earlier one remains. Of a trace's first verdict nothing can remain; a session may
have had others under its id. The metadata of the pass always hold the values of all metrics, for comparison with
people's labels, whichever scores are written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypedDict

from sidejudge.scoring.lexical.shown_text import label, seen
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.result.result import (
    MATCHING,
    Bands,
    Failed,
    Judgement,
    Scored,
    Unavailable,
    lowest_steps,
    observation_of,
)
from sidejudge.scoring.trace.loop_guard import own_trace_id
from sidejudge.scoring.trace.reported import number
from sidejudge.scoring.verdict.rubric import Rubric, all_criteria
from sidejudge.scoring.verdict.score import composite_name, pass_name, score_name, state_name
from sidejudge.scoring.verdict.verdict import Score, State, Verdict

from .declared_scores import COUNTED, NOT_COUNTED, STEP, DataType, ScoreSelection, names_of, type_of
from .normalise import span_id

WITHDRAWN: Final = "withdrawn"
METRICS: Final = "metrics"
"""Key of the metadata that holds the metrics of a verdict, as the text of a JSON object: id → [value, rating]."""
WRITTEN: Final = "written"
"""Key of the metadata with the time of a writing, by which each of several writers recognises the shown one."""
EXPLANATION: Final = "explanation"
"""Key of the metadata that holds the address of the monitor's page on the trace."""
MAX_COMMENT: Final = 1000
"""Characters of a comment: a reason may quote a trace."""


class ScoreOfLangfuse(TypedDict, total=False):
    """A score of a trace, of an observation in it, or of a session, as Langfuse takes it."""

    id: str
    traceId: str
    sessionId: str
    observationId: str
    name: str
    value: float | str
    dataType: DataType
    comment: str | None
    environment: str | None
    metadata: dict[str, object]
    timestamp: str
    configId: str


def score_id(trace_id: str, name: str, *, observation_id: str = "") -> str:
    """The id of a score: the same for the same score of the same trace, on any machine, in any revision.

    >>> score_id("36524d221566b94755e27265a6220988", "qa_score")
    'sj-4c527823f69580023793b687cc4a8dd6'
    """
    stated = f"{trace_id}\x00{observation_id}\x00{name}"
    return f"sj-{hashlib.sha256(stated.encode()).hexdigest()[:32]}"


def scores_of(
    verdict: Verdict,
    rubric: Rubric,
    which: ScoreSelection = "all",
    *,
    judge_traces: bool = False,
    link_base: str | None = None,
) -> Iterator[ScoreOfLangfuse]:
    """The bodies of a verdict's scores, without timestamp and config. A metric without a value has no score.

    ``judge_traces``: the monitor sends traces of its own about its judging; scores of a judge name theirs.
    ``link_base`` is the address of the monitor's pages, where scores of traces link to their explanation.
    """
    names = names_of(rubric, which)
    page = f"{link_base.rstrip('/')}/traces/{verdict.trace_id}" if link_base and verdict.trace_id else None
    for body in _every_score(verdict, rubric, judge_traces=judge_traces):
        if body["name"] in names:
            yield body if page is None else _linked(body, page)


def _linked(body: ScoreOfLangfuse, page: str) -> ScoreOfLangfuse:
    comment = body.get("comment")
    return {
        **body,
        "comment": f"{comment}\n{page}" if comment else page,
        "metadata": {**body["metadata"], EXPLANATION: page},
    }


def _every_score(verdict: Verdict, rubric: Rubric, *, judge_traces: bool) -> Iterator[ScoreOfLangfuse]:
    if verdict.trace_id is None and verdict.session_id is None:
        return
    by_id = {c.metric.id: c.metric for c in all_criteria(rubric)}
    own = own_trace_id(verdict.trace_id or verdict.case_id) if judge_traces else None
    whole = _metadata(verdict, judged=verdict.judgements, rating=verdict.rating, own=own, of=verdict.scores)
    values = _kept({METRICS: _metrics(verdict)}, verdict)
    if verdict.composite is not None:
        stated = composite_comment(verdict)
        yield _body(verdict, composite_name(rubric.id), "NUMERIC", verdict.composite, reason=stated, metadata=whole)
    if verdict.passed is not None:
        yield _body(
            verdict, pass_name(rubric.id), "BOOLEAN", float(verdict.passed), reason=pass_comment(verdict, rubric),
            metadata={**whole, **values},
        )  # fmt: skip
    counts = NOT_COUNTED if verdict.state is State.INCOMPLETE else COUNTED
    yield _body(
        verdict, state_name(rubric.id), "CATEGORICAL", counts, reason=_state_comment(verdict),
        metadata={**whole, **values},
    )  # fmt: skip
    for score in verdict.scores:
        metric = by_id.get(score.metric)
        if isinstance(score.result, Scored) and metric is not None:
            yield _metric_body(verdict, rubric, metric, score, score.result, own=own)
            yield from _step_bodies(verdict, rubric, metric, score.result)


_KEPT: Final[tuple[Literal["id", "traceId", "sessionId", "observationId", "name"], ...]] = (
    "id", "traceId", "sessionId", "observationId", "name",
)  # fmt: skip
"""The fields of a score that stay when it is withdrawn."""


def withdrawn(body: ScoreOfLangfuse) -> ScoreOfLangfuse:
    """The value of a score until its deletion, which shows that it no longer counts."""
    kept: ScoreOfLangfuse = {}
    for key in _KEPT:
        if held := body.get(key):
            kept[key] = held
    return {
        **kept, "value": WITHDRAWN, "dataType": "CATEGORICAL", "environment": body.get("environment"),
        "comment": "the verdict was revised; this score is deleted in a few minutes", "metadata": {"state": WITHDRAWN},
    }  # fmt: skip


def pass_comment(verdict: Verdict, rubric: Rubric) -> str:
    """Why a verdict passes or does not: ``0.90 ≥ 0.87; all good``."""
    if not verdict.passed or verdict.composite is None:
        return verdict.reason
    rated = {c.metric.id: c.metric.bands for c in all_criteria(rubric)}
    less = [
        f"{score.metric} {score.result.value:.4g} {score.rating}"
        for score in verdict.scores
        if isinstance(score.result, Scored) and not _is_best(score, rated.get(score.metric))
    ]
    mark = verdict.pass_mark
    composite = _apart(verdict.composite, mark)
    stated = composite if mark is None else f"{composite} ≥ {_apart(mark, verdict.composite)}"
    return "; ".join(filter(None, (stated, ", ".join(less) or "all good", verdict.reason)))


def composite_comment(verdict: Verdict) -> str:
    """The parts of the composite: each weighed metric with its value."""
    return ", ".join(
        f"{score.metric} {score.result.value:.4g}"
        for score in verdict.scores
        if score.weight and isinstance(score.result, Scored)
    )


def _state_comment(verdict: Verdict) -> str:
    """The state with its cause; the pass has the reasons of a failure."""
    if verdict.state is State.INCOMPLETE:
        return f"{verdict.state}: {verdict.reason}"
    missing = [
        f"{score.metric} {score.result.status}: {score.result.reason}"
        for score in verdict.scores
        if isinstance(score.result, Unavailable | Failed)
    ]
    what = ", ".join(verdict.blockers) if verdict.blockers else "; ".join(missing)
    return f"{verdict.state}: {what}" if what else str(verdict.state)


def _is_best(score: Score, bands: Bands | None) -> bool:
    return bands is None or score.rating == bands.steps[0][0]


def _apart(value: float, other: float | None) -> str:
    """A number to two decimals, or to as many as distinguish it from another."""
    short = f"{value:.2f}"
    return f"{value:.6g}" if other is not None and short == f"{other:.2f}" and value != other else short


def _metrics(verdict: Verdict) -> str | None:
    found = {
        score.metric: [score.result.value, score.rating] for score in verdict.scores if isinstance(score.result, Scored)
    }
    return json.dumps(found, separators=(",", ":")) if found else None


def metric_of(metadata: Mapping[str, object], metric: str) -> tuple[float, str | None] | None:
    """(value, rating) of a metric in the metadata of a pass that was read back; None where it is not there."""
    held = metadata.get(METRICS)
    if isinstance(held, str):
        try:
            held = json.loads(held)
        except (ValueError, RecursionError):
            return None
    found = held.get(metric) if isinstance(held, Mapping) else None
    if not isinstance(found, list) or len(found) != 2 or (value := finite(found[0])) is None:
        return None
    return value, found[1] if isinstance(found[1], str) else None


def finite(stated: object) -> float | None:
    """A number of JSON that a score can have; None for anything else.

    >>> finite(1), finite(True), finite(10**400), finite(float("nan")), finite("1")
    (1.0, 1.0, None, None, None)
    """
    return number(stated)[0] if isinstance(stated, int | float) else None


def _metric_body(
    verdict: Verdict, rubric: Rubric, metric: Metric, score: Score, result: Scored, *, own: str | None
) -> ScoreOfLangfuse:
    metadata = _metadata(
        verdict, judged=result.judgements, rating=score.rating, method=result.method.value, weight=score.weight,
        own=own, of=(score,),
    )  # fmt: skip
    kind = type_of(metric)
    if kind == "BOOLEAN" and result.value not in (0.0, 1.0):
        kind = "NUMERIC"  # a share of several answers; as a truth value it would be refused
    stated = result.reason or (f"{result.value:.4g}, {score.rating}" if score.rating else "")
    return _body(verdict, score_name(rubric.id, metric), kind, result.value, reason=stated, metadata=metadata)


def _step_bodies(verdict: Verdict, rubric: Rubric, metric: Metric, result: Scored) -> Iterator[ScoreOfLangfuse]:
    """Scores of the lowest steps, on their observations."""
    if not verdict.trace_id:
        return
    name = f"{score_name(rubric.id, metric)}{STEP}"
    for step, value in lowest_steps(result.details).items():
        observed = observation_of(result.details, step)
        if observed != step and span_id(observed) != step:
            continue  # its id was redacted
        rating = None if metric.bands is None else metric.bands.rating(value)
        metadata = _kept(
            {"rating": rating, "revision": verdict.revision, "rubric_version": verdict.rubric_version}, verdict
        )
        rated = f"{value:.4g}, {rating}" if rating else f"{value:.4g}"
        stated = f"{metric.title}: {rated}; one of {result.details[MATCHING]} steps"
        yield _body(verdict, name, "NUMERIC", value, reason=stated, metadata=metadata, observation_id=observed)


def _body(
    verdict: Verdict,
    name: str,
    data_type: DataType,
    value: float | str,
    *,
    reason: str,
    metadata: Mapping[str, object],
    observation_id: str = "",
) -> ScoreOfLangfuse:
    # A conversation that was judged as one has no trace; its score is the session's.
    of = verdict.trace_id or verdict.session_id or ""
    subject: ScoreOfLangfuse = {"traceId": of} if verdict.trace_id else {"sessionId": of}
    if observation_id:
        subject["observationId"] = observation_id
    return {
        "id": score_id(of, name, observation_id=observation_id),
        **subject,
        "name": name,
        "value": value,
        "dataType": data_type,
        "comment": label(seen(reason), MAX_COMMENT) or None,
        "environment": environment(verdict.environment),
        "metadata": dict(metadata),
    }


def _metadata(
    verdict: Verdict,
    *,
    judged: tuple[Judgement, ...],
    rating: str | None,
    own: str | None,
    of: Sequence[Score],
    method: str | None = None,
    weight: float | None = None,
) -> dict[str, object]:
    first = judged[0] if judged else None
    stated = {
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
        "prompt": _stated(of, "prompt"),
        "prompt_label": _stated(of, "prompt_label"),
        "judge_trace_id": own if judged else None,
        "flags": ",".join(dict.fromkeys(flag for judgement in judged for flag in judgement.flags)) or None,
    }
    return _kept(stated, verdict)


def _stated(scores: Sequence[Score], detail: str) -> str | None:
    """A detail of the scores, each value once: ``prompt`` is a prompt with its version, as ``tone v3``."""
    found = (each.result.details.get(detail) for each in scores if isinstance(each.result, Scored))
    return ",".join(dict.fromkeys(str(each) for each in found if each)) or None


def _kept(metadata: Mapping[str, object], verdict: Verdict) -> dict[str, object]:
    """Without nulls, where no earlier revision can have left a value that they are to clear."""
    perhaps = verdict.revision > 1 or not verdict.trace_id
    return {key: value for key, value in metadata.items() if value is not None or perhaps}


def environment(name: str | None) -> str | None:
    """The environment as Langfuse would write it; None for one that it would not keep, which becomes its default.

    >>> environment("Production"), environment("langfuse-eval"), environment("a b")
    ('production', None, None)
    """
    stated = (name or "").lower()
    fits = 0 < len(stated) <= 40 and stated.isascii() and all(c.isalnum() or c in "-_" for c in stated)
    return stated if fits and not stated.startswith("langfuse") else None
