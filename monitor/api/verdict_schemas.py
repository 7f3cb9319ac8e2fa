"""Response schemas of verdicts, traces, and refused requests.

Also the JSON Schemas of sidejudge's inputs and outputs, from the declarations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from sidejudge.integrations.cases.fields import case_schema
from sidejudge.monitor.config.summary import json_schema
from sidejudge.scoring.scenario.reading import scenario_schema
from sidejudge.scoring.verdict import documents
from sidejudge.scoring.verdict.documents import NS, TRACE_URL
from sidejudge.scoring.verdict.escalation import EscalationCause
from sidejudge.scoring.verdict.verdict import Selection, State

from .response_body import Ratio, ResponseBody, body_of


class OpenBody(BaseModel):
    """A body that may hold more than is declared."""

    model_config = ConfigDict(extra="allow", defer_build=True)


@body_of(documents.EscalationDocument)
class EscalationBody(BaseModel):
    """How far a verdict went through a cascade of judges."""

    cause: EscalationCause
    rate: Ratio


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


@body_of(documents.ScoreJudgeDocument)
class ScoreJudgementBody(BaseModel):
    """The judge of a score, and the score's share of what its calls cost. Absent where no judge took part."""

    model: str = ""
    prompt_version: str = ""
    cost_usd: float = 0.0
    cached: bool = False
    flags: list[str] = []
    call_ids: list[str] = []
    votes: list[dict[str, object]] = []
    dissent: float | None = None


@body_of(documents.VerdictJudgeDocument)
class VerdictJudgementBody(BaseModel):
    """The judges' part in a verdict; null and 0 where none was asked."""

    call_ids: list[str] = []


@body_of(documents.ScoreDocument)
class ScoreBody(OpenBody):
    """One metric's line in a verdict; ``value`` is null unless ``status`` is ``scored``."""

    reason_parts: ReasonParts = None
    details: dict[str, object] = {}
    judge: ScoreJudgementBody | None = None


@body_of(documents.WrittenVerdict)
class VerdictBody(OpenBody):
    """One trace under one rubric, as in a verdict file. Rubrics may add fields of their own."""

    coverage: Ratio
    state: State
    reason_parts: ReasonParts = None
    scores: list[ScoreBody]
    judge: VerdictJudgementBody
    selection: Selection
    revision: Annotated[int, Field(ge=1)]
    sampling_probability: Annotated[float, Field(gt=0, le=1)]
    created_at: datetime
    cascade: EscalationBody | None = None
    trace_url: str | None = None


@body_of(documents.VerdictDocument, less=tuple(VerdictBody.model_fields), sparse=True)
class StoredVerdictBody(VerdictBody):
    """A verdict with what a monitor's store knows of its trace."""


class VerdictsBody(ResponseBody):
    """A page of verdicts, newest first."""

    verdicts: list[StoredVerdictBody]
    next_cursor: str | None = Field(description="give it as `cursor` for the next page; null: this was the last")


@body_of(documents.SamplingDocument, sparse=True)
class DrawBody(BaseModel):
    """How a trace was drawn; of one that was not, its ``randomness`` and the ``threshold`` (hex)."""

    over_budget: list[str] = []


@body_of(documents.UnmetRoute)
class UnmetRouteBody(BaseModel):
    """A route that is for other traces."""


@body_of(documents.LateReferenceDocument)
class PendingReferenceBody(BaseModel):
    """A reference that came after the verdict, and the progress of the re-evaluation."""


@body_of(documents.FiguresDocument)
class RunFiguresBody(BaseModel):
    """What the run took: by name, and by model."""


@body_of(documents.TraceDocument, sparse=True)
class TraceBody(OpenBody):
    """What happened to a trace or a session, and why. Fields of later stages may be absent."""

    trace_id: str
    reason: str | None
    completion: str | None = None
    reported: list[dict[str, object]] | None = None
    belated: PendingReferenceBody | None = None
    sampling: DrawBody | None = None
    routes: list[UnmetRouteBody] | None = None
    figures: RunFiguresBody | None = None
    verdicts: list[StoredVerdictBody] = []
    case: dict[str, object] | None = Field(
        default=None, description="what was read of it; null for callers who may not see contents, and once it is gone"
    )


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


class TraceSummaryBody(OpenBody):
    """A trace that has ended: how, why, and its verdicts in short."""

    trace_id: str
    kind: str | None = Field(default=None, description="`session`; absent: a trace")
    closed_ns: int = Field(description=f"when it ended, {NS}")
    reason: str
    service: str | None
    environment: str | None = None
    name: str | None = None
    session_id: str | None = None
    completion: str | None = Field(default=None, description="why it was closed")
    revision: int
    route: str | None = Field(default=None, description="the route that chose its rubrics")
    routes: list[UnmetRouteBody] | None = Field(default=None, description="where no route is for it: why not")
    excluded: str | None = Field(default=None, description="why it is never judged")
    error: str | None = None
    why: str = Field(description="why it ended so, in one line")
    trace_url: str | None = Field(default=None, description=TRACE_URL)
    verdicts: list[VerdictSummaryBody] = []


class TracesBody(ResponseBody):
    """A page of traces that have ended, newest first. Traces of which nothing was kept are counted, not listed."""

    traces: list[TraceSummaryBody]
    next_cursor: str | None = Field(description="give it as `cursor` for the next page; null: this was the last")


class ProblemBody(ResponseBody):
    """The fault of a request, and its remedy."""

    error: str
    remedy: str


def verdict_schema() -> dict[str, object]:
    """JSON Schema (draft 2020-12) of one line of a file of verdicts."""
    schema = VerdictBody.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "sidejudge verdict"}


SCHEMAS: Mapping[str, Callable[[], Mapping[str, object]]] = {
    "configuration": json_schema,
    "case": case_schema,
    "scenario": scenario_schema,
    "verdict": verdict_schema,
}
"""What has a schema, and what makes it."""


def schema_text(name: str) -> str:
    """A schema as indented JSON."""
    return json.dumps(SCHEMAS[name](), indent=2, ensure_ascii=False) + "\n"
