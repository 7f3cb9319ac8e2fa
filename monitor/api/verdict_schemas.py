"""Response schemas of verdicts, of traces, and of a request that was refused."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from sidejudge.scoring.verdict.escalation import EscalationCause
from sidejudge.scoring.verdict.verdict import Selection, State

from .response_body import Ratio, ResponseBody


class EscalationBody(BaseModel):
    """How far a verdict went through a cascade of judges."""

    judge: str = Field(description="the judge whose answers count")
    cause: EscalationCause = Field(description="why a stronger judge was asked; `sure`: it was not")
    why: str = Field(description="the doubt; empty without one")
    rate: Ratio = Field(description="share of the verdicts without doubt that are drawn")
    judge_before: str | None
    passed_before: bool | None = Field(description="the result that the judge before it gave")
    composite_before: float | None
    unanswered: bool = Field(description="whether a stronger judge was asked and gave no answer")


class NumberPart(BaseModel):
    """A number of a reason."""

    number: str


class NamePart(BaseModel):
    """A name of the application's parts in a reason: a tool, an agent, a model, an argument, an exception."""

    name: str


ReasonParts: TypeAlias = Annotated[
    list[str | NumberPart | NamePart | None] | None,
    Field(
        description="the reason in its parts without contents: texts are sidejudge's words, null stands for content; "
        "absent: its parts are not known"
    ),
]


class ScoreBody(BaseModel):
    """One metric's line in a verdict; ``value`` is null unless ``status`` is ``scored``."""

    model_config = ConfigDict(extra="allow")
    metric: str
    value: float | None
    weight: float
    rating: str | None
    status: str
    method: str | None
    reason: str
    reason_parts: ReasonParts = None
    details: dict[str, object] = {}


class VerdictBody(BaseModel):
    """One trace under one rubric, as in a verdict file. Rubrics may add fields of their own."""

    model_config = ConfigDict(extra="allow")
    case_id: str
    trace_id: str | None
    rubric: str
    rubric_version: str
    composite: float | None
    coverage: Ratio
    state: State
    passed: bool | None = Field(description="null: neither passed nor failed")
    rating: str | None
    blockers: list[str]
    pass_mark: float | None
    reason: str
    reason_parts: ReasonParts = None
    scores: list[ScoreBody]
    service: str | None
    environment: str | None
    selection: Selection
    revision: Annotated[int, Field(ge=1)]
    sampling_probability: Annotated[float, Field(gt=0, le=1)]
    cost_usd: float | None = Field(default=None, description="what the judged call cost; null: unknown")
    created_at: datetime
    cascade: EscalationBody | None = Field(default=None, description="absent without a cascade of judges")
    trace_url: str | None = Field(default=None, description="the trace's page, where it is kept; absent: not known")


class VerdictsBody(ResponseBody):
    """A page of verdicts, newest first."""

    verdicts: list[VerdictBody]
    next_cursor: str | None = Field(description="give it as `cursor` for the next page; null: this was the last")


class TraceBody(BaseModel):
    """What happened to a trace and why. ``reason`` is null while it is open; more fields explain it."""

    model_config = ConfigDict(extra="allow")
    trace_id: str
    reason: str | None
    verdicts: list[VerdictBody] = []
    trace_url: str | None = Field(default=None, description="the trace's page, where it is kept; absent: not known")


class JudgeCallsBody(BaseModel):
    """Calls to judges about one trace."""

    off: str | None = Field(description="why none are kept, and what would have them kept; null: they are")
    calls: list[dict[str, object]] = Field(
        description="each with its prompt (`messages`), raw answers (`exchanges`), what was read (`questions`) and cost"
    )


class VerdictSummaryBody(BaseModel):
    """A verdict in short."""

    rubric: str
    passed: bool | None = Field(description="null: neither passed nor failed")
    state: State
    composite: float | None
    reason: str | None = Field(
        default=None, description="its beginning, without quotations where contents are not shown"
    )


class TraceSummaryBody(BaseModel):
    """A trace that has ended: how, why, and its verdicts in short."""

    model_config = ConfigDict(extra="allow")
    trace_id: str
    closed_ns: int = Field(description="when it ended, ns since the epoch")
    reason: str
    service: str | None
    name: str | None = None
    revision: int
    why: str = Field(description="why it ended so, in one line")
    verdicts: list[VerdictSummaryBody] = []


class TracesBody(ResponseBody):
    """A page of traces that have ended, newest first. Traces of which nothing was kept are counted, not listed."""

    traces: list[TraceSummaryBody]
    next_cursor: str | None = Field(description="give it as `cursor` for the next page; null: this was the last")


class ProblemBody(ResponseBody):
    """The fault of a request, and its remedy."""

    error: str
    remedy: str
