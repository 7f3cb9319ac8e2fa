"""Trace document: what is known of a trace as JSON, with its verdicts, as it is stored, answered and explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from sidejudge.scoring.trace.span import Completion

from .verdict_document import VerdictDocument


class UnmetRoute(TypedDict):
    """A route that is for other traces, and its condition that does not hold."""

    route: str
    unmet: str


class SamplingDocument(TypedDict, total=False):
    """How a trace was drawn. ``randomness`` and ``threshold`` (hex) are of one that was not, and that left no more."""

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
    """A reference that came after the verdict, and the progress of the re-evaluation."""

    since: str
    attempts: int
    reason: str | None
    given_up: bool
    next_attempt: str | None


class FiguresDocument(TypedDict):
    """What a run took; see ``RunFigures``."""

    values: Mapping[str, float]
    models: Mapping[str, Sequence[float]]
    version: str | None


class TraceDocument(TypedDict, total=False):
    """A trace or a session, ended or open; the fields are there as far as it came.

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
