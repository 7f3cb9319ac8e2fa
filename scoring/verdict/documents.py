"""Documents: a verdict, and a trace with its verdicts, as JSON for the store and the API.

A text beside the type of a field is what the API's schema says of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, TypedDict

from sidejudge.scoring.result.reason import Reason, outline
from sidejudge.scoring.result.result import Failed
from sidejudge.scoring.trace.span import Completion, Json

FAILING: Final = ("fail", "blocker")
"""Ratings of a score that fails its verdict, or blocks it."""
NS: Final = "ns since the epoch"
TRACE_URL: Final = "the trace's page, where it is kept; absent: not known"


class ScoreJudgeDocument(TypedDict, total=False):
    """The judge of a score, and the score's share of the calls' cost."""

    model: str
    prompt_version: str
    cost_usd: float
    cached: Annotated[bool, "whether the answer was known from an earlier call"]
    flags: list[str]
    call_ids: list[str]
    votes: Annotated[list[dict[str, Json]], "of a panel, one for each member"]
    dissent: Annotated[float, "of a panel: the share of its votes that differ"]


class ScoreDocument(TypedDict, total=False):
    """One metric's line; ``value`` is null unless ``status`` is ``scored``.

    ``reason_parts`` is the reason without contents (``Reason.to_json``), absent where its parts are unknown.
    """

    metric: str
    value: float | None
    weight: float
    rating: str | None
    status: str
    method: str | None
    reason: str
    reason_parts: list[Json]
    details: dict[str, Json]
    judge: ScoreJudgeDocument


class EscalationDocument(TypedDict, total=False):
    """How far a verdict went through a cascade of judges; see ``Escalation``."""

    judge: Annotated[str, "the judge whose answers count"]
    cause: Annotated[str, "why a stronger judge was asked; `sure`: it was not"]
    why: Annotated[str, "the doubt; empty without one"]
    rate: Annotated[float, "share of the verdicts without doubt that are drawn"]
    judge_before: str | None
    passed_before: Annotated[bool | None, "the result that the judge before it gave"]
    composite_before: float | None
    unanswered: Annotated[bool, "whether a stronger judge was asked and gave no answer"]


class VerdictJudgeDocument(TypedDict, total=False):
    """The judges' part in a verdict; null and 0 where none was asked."""

    model: str | None
    prompt_version: str | None
    cost_usd: float
    calls: int
    input_tokens: int
    output_tokens: int
    call_ids: list[str]


class WrittenVerdict(TypedDict, total=False):
    """One case under one rubric; see ``Verdict``. Rubrics add fields of their own, and older versions wrote fewer."""

    case_id: str
    trace_id: str | None
    task: str | None
    rubric: str
    rubric_version: str
    composite: Annotated[float | None, "the weighted mean, on the rubric's scale"]
    composite_norm: Annotated[float | None, "the same in [0, 1]"]
    coverage: float
    state: str
    passed: Annotated[bool | None, "null: neither passed nor failed"]
    rating: str | None
    blockers: list[str]
    pass_mark: float | None
    reason: str
    reason_parts: list[Json]
    scores: list[ScoreDocument]
    judge: VerdictJudgeDocument
    service: str | None
    environment: str | None
    session_id: str | None
    selection: str
    revision: int
    sampling_probability: float
    cost_usd: Annotated[float | None, "what the judged run cost; null: unknown"]
    created_at: str
    cascade: Annotated[EscalationDocument, "absent without a cascade of judges"]
    trace_url: Annotated[str, TRACE_URL]


class VerdictDocument(WrittenVerdict, total=False):
    """A verdict with what a store adds of its trace; a monitor that knows the trace's page adds ``trace_url``."""

    closed_ns: Annotated[int, f"when the trace ended, {NS}"]
    name: Annotated[str | None, "of the trace, in some lists"]
    cluster: Annotated[str | None, "a digest of the session or the user; see alerts.cluster"]
    slices: Annotated[Mapping[str, str], "its values of `alerts.slices`"]
    input_beginning: Annotated[str, "for callers who may see contents, in some lists"]


class UnmetRoute(TypedDict):
    """A route for other traces, with its condition that does not hold."""

    route: str
    unmet: Annotated[str, "its condition that does not hold"]


class SamplingDocument(TypedDict, total=False):
    """How a trace was drawn. ``randomness`` and ``threshold`` (hex) are all that is kept of one that was not."""

    probability: float | None
    rule: Annotated[str | None, "the rule of `sampling.rules` that chose it"]
    selection: str
    judged_share: Annotated[float, "the share that the judge's budget reached for"]
    load_rate: Annotated[float, "the rate that the load left"]
    upstream: Annotated[float, "the probability that arrived with the trace"]
    over_budget: Annotated[list[str], "rubrics that the budget did not reach for"]
    randomness: str
    threshold: str


class LateReferenceDocument(TypedDict):
    """A reference that arrived after the verdict, and the progress of the re-evaluation."""

    since: str
    attempts: int
    reason: str | None
    given_up: bool
    next_attempt: str | None


class FiguresDocument(TypedDict):
    """The figures of a run; see ``RunFigures``."""

    values: Mapping[str, float]
    models: Mapping[str, Sequence[float]]
    version: str | None


class TraceDocument(TypedDict, total=False):
    """A trace or a session, ended or open; fields of later stages may be absent.

    ``reason`` is null while it is open. Times that end in ``_ns`` are ns since the epoch.
    """

    trace_id: str
    kind: Annotated[str, "`session`; absent: a trace"]
    reason: Annotated[str | None, "how it ended; null while it is open"]
    why: Annotated[str, "the same in one line, in lists"]
    completion: Annotated[Completion, "why it was closed"]
    revision: int
    closed_ns: Annotated[int, f"when it was closed, {NS}"]
    first_ns: Annotated[int, f"its first start, {NS}"]
    last_ns: Annotated[int, f"its last end, {NS}"]
    service: str | None
    environment: str | None
    name: str | None
    session_id: str | None
    user: Annotated[str | None, "a digest of the user's id"]
    release: str | None
    prompt: Annotated[str | None, "versions of the prompts that it was made with"]
    model: str | None
    slices: Annotated[Mapping[str, str], "its values of `alerts.slices`"]
    session: Annotated[str, "the session that it is a turn of"]
    cluster: Annotated[str | None, "a digest of the session or the user; see alerts.cluster"]
    turns: Annotated[int, "of a session"]
    traces: Annotated[list[str], "of a session, its turns"]
    spans: int
    dialects: Annotated[list[str], "the instrumentations of its spans"]
    complete: bool
    missing_parents: Annotated[int, "spans whose parent never came"]
    damaged_chunks: Annotated[int, "parts that could not be read"]
    left_out: Annotated[int, "spans beyond the limits of a trace"]
    waiting_chunks: int
    waits_for: Annotated[str, "`judge` while it waits for one, `embeddings` while it waits for these"]
    content_captured: bool
    capture_switch: Annotated[str | None, "what would have its contents captured"]
    answered: bool
    agents: Annotated[int, "agents that were called"]
    tools: Annotated[int, "tools that were called"]
    tool_calls: Annotated[Mapping[str, Sequence[int]], "by tool: calls, and failed ones"]
    calls: Annotated[list[str], "the tools in the order of the calls"]
    agents_called: list[str]
    input_beginning: Annotated[str, "200 characters, for callers who may see contents"]
    output_beginning: Annotated[str, "likewise"]
    reported: Annotated[
        list[dict[str, Json]], "likewise: what others reported with its spans, as far as its rubrics ask for it"
    ]
    reference: Annotated[str | None, "where its reference was found"]
    read_again_at: Annotated[str, "when its spans were read again from Langfuse"]
    belated: LateReferenceDocument
    sampling: SamplingDocument
    route: Annotated[str, "the route that chose its rubrics"]
    rubrics: list[str]
    scenario: str | None
    routes: Annotated[list[UnmetRoute], "where no route is for it: why not"]
    excluded: Annotated[str, "why it is never judged"]
    error: str
    effort: Annotated[dict[str, float], "what the run took, for run_health"]
    figures: FiguresDocument
    backfill: Annotated[str, "the backfill that judged it"]
    verdicts: list[VerdictDocument]
    trace_url: Annotated[str, TRACE_URL]


def failed_reasons(verdict: Mapping[str, object]) -> list[Reason]:
    """Why metrics that count failed, where a verdict in its JSON form neither passed nor failed; without contents."""
    scores: list[Mapping[str, object]] = verdict["scores"]  # type: ignore[assignment]  # a list by the verdict's format
    if verdict["passed"] is not None:
        return []
    return [outline(each) for each in scores if each["status"] == Failed.status and each["weight"]]
