"""Documents: a verdict, and a trace with its verdicts, as JSON for the store and the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypedDict

from sidejudge.scoring.trace.span import Completion, Json

FAILING: Final = ("fail", "blocker")
"""Ratings of a score that fails its verdict, or blocks it."""


class ScoreJudgeDocument(TypedDict, total=False):
    """The judge of a score, and the score's share of the calls' cost. ``votes`` and ``dissent`` are for panels."""

    model: str
    prompt_version: str
    cost_usd: float
    cached: bool
    flags: list[str]
    call_ids: list[str]
    votes: list[dict[str, Json]]
    dissent: float


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

    judge: str
    cause: str
    why: str
    rate: float
    judge_before: str | None
    passed_before: bool | None
    composite_before: float | None
    unanswered: bool


class VerdictJudgeDocument(TypedDict, total=False):
    """The judges' part in a verdict; null and 0 where none was asked."""

    model: str | None
    prompt_version: str | None
    cost_usd: float
    calls: int
    input_tokens: int
    output_tokens: int
    call_ids: list[str]


class VerdictDocument(TypedDict, total=False):
    """One case under one rubric; see ``Verdict``. Rubrics add fields of their own, and older versions wrote fewer.

    A store adds ``closed_ns``, when the trace was closed in ns since the epoch, ``cluster``, the trace's session or
    user, ``slices``, its values of ``alerts.slices``, ``name`` of the trace and ``input_beginning``; a monitor that
    knows the trace's page adds ``trace_url``.
    """

    case_id: str
    trace_id: str | None
    task: str | None
    rubric: str
    rubric_version: str
    composite: float | None
    composite_norm: float | None
    coverage: float
    state: str
    passed: bool | None
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
    cost_usd: float | None
    created_at: str
    cascade: EscalationDocument
    closed_ns: int
    cluster: str | None
    slices: Mapping[str, str]
    name: str | None
    input_beginning: str
    trace_url: str


class UnmetRoute(TypedDict):
    """A route for other traces, with its condition that does not hold."""

    route: str
    unmet: str


class SamplingDocument(TypedDict, total=False):
    """How a trace was drawn. ``randomness`` and ``threshold`` (hex) are all that is kept of one that was not."""

    probability: float | None
    rule: str | None
    selection: str
    judged_share: float
    load_rate: float
    upstream: float
    over_budget: list[str]
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
    kind: str
    reason: str | None
    why: str
    completion: Completion
    revision: int
    closed_ns: int
    first_ns: int
    last_ns: int
    service: str | None
    environment: str | None
    name: str | None
    session_id: str | None
    user: str | None
    release: str | None
    prompt: str | None
    slices: Mapping[str, str]
    model: str | None
    session: str
    cluster: str | None
    turns: int
    traces: list[str]
    spans: int
    dialects: list[str]
    complete: bool
    missing_parents: int
    damaged_chunks: int
    left_out: int
    waiting_chunks: int
    waits_for: str
    content_captured: bool
    capture_switch: str | None
    answered: bool
    agents: int
    tools: int
    tool_calls: Mapping[str, Sequence[int]]
    calls: list[str]
    agents_called: list[str]
    input_beginning: str
    output_beginning: str
    reported: list[dict[str, Json]]
    reference: str | None
    read_again_at: str
    belated: LateReferenceDocument
    sampling: SamplingDocument
    route: str
    rubrics: list[str]
    scenario: str | None
    routes: list[UnmetRoute]
    excluded: str
    error: str
    effort: dict[str, float]
    figures: FiguresDocument
    backfill: str
    verdicts: list[VerdictDocument]
    trace_url: str
