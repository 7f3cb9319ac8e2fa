"""Response schemas of verdicts, traces, and refused requests.

Also the JSON Schemas of sidejudge's inputs and outputs, from the declarations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, TypeAlias, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from sidejudge.integrations.cases.fields import case_schema
from sidejudge.monitor.config.summary import json_schema
from sidejudge.scoring.scenario.reading import scenario_schema
from sidejudge.scoring.verdict.documents import NS, TRACE_URL, TraceDocument
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


class ScoreJudgementBody(BaseModel):
    """The judge of a score, and the score's share of what its calls cost. Absent where no judge took part."""

    model: str = ""
    prompt_version: str = ""
    cost_usd: float = 0.0
    cached: bool = Field(default=False, description="whether the answer was known from an earlier call")
    flags: list[str] = []
    call_ids: list[str] = []
    votes: list[dict[str, object]] = Field(default=[], description="of a panel, one for each member")
    dissent: float | None = Field(default=None, description="of a panel: the share of its votes that differ")


class VerdictJudgementBody(BaseModel):
    """The judges' part in a verdict; null and 0 where none was asked."""

    model: str | None
    prompt_version: str | None
    cost_usd: float
    calls: int
    input_tokens: int
    output_tokens: int
    call_ids: list[str] = []


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
    judge: ScoreJudgementBody | None = None


class VerdictBody(BaseModel):
    """One trace under one rubric, as in a verdict file. Rubrics may add fields of their own."""

    model_config = ConfigDict(extra="allow")
    case_id: str
    trace_id: str | None
    task: str | None
    rubric: str
    rubric_version: str
    composite: float | None = Field(description="the weighted mean, on the rubric's scale")
    composite_norm: float | None = Field(description="the same in [0, 1]")
    coverage: Ratio
    state: State
    passed: bool | None = Field(description="null: neither passed nor failed")
    rating: str | None
    blockers: list[str]
    pass_mark: float | None
    reason: str
    reason_parts: ReasonParts = None
    scores: list[ScoreBody]
    judge: VerdictJudgementBody
    service: str | None
    environment: str | None
    session_id: str | None
    selection: Selection
    revision: Annotated[int, Field(ge=1)]
    sampling_probability: Annotated[float, Field(gt=0, le=1)]
    cost_usd: float | None = Field(description="what the judged run cost; null: unknown")
    created_at: datetime
    cascade: EscalationBody | None = Field(default=None, description="absent without a cascade of judges")
    trace_url: str | None = Field(default=None, description=TRACE_URL)


class StoredVerdictBody(VerdictBody):
    """A verdict with what a monitor's store knows of its trace."""

    closed_ns: int | None = Field(default=None, description=f"when the trace ended, {NS}")
    name: str | None = Field(default=None, description="of the trace, in some lists")
    cluster: str | None = Field(default=None, description="a digest of the session or the user; see alerts.cluster")
    slices: dict[str, str] | None = Field(default=None, description="its values of `alerts.slices`")
    input_beginning: str | None = Field(default=None, description="for callers who may see contents, in some lists")


class VerdictsBody(ResponseBody):
    """A page of verdicts, newest first."""

    verdicts: list[StoredVerdictBody]
    next_cursor: str | None = Field(description="give it as `cursor` for the next page; null: this was the last")


class DrawBody(BaseModel):
    """How a trace was drawn; of one that was not, its ``randomness`` and the ``threshold`` (hex)."""

    probability: float | None = None
    rule: str | None = Field(default=None, description="the rule of `sampling.rules` that chose it")
    selection: str | None = None
    judged_share: float | None = Field(default=None, description="the share that the judge's budget reached for")
    load_rate: float | None = Field(default=None, description="the rate that the load left")
    upstream: float | None = Field(default=None, description="the probability that arrived with the trace")
    over_budget: list[str] = Field(default=[], description="rubrics that the budget did not reach for")
    randomness: str | None = None
    threshold: str | None = None


class UnmetRouteBody(BaseModel):
    """A route that is for other traces."""

    route: str
    unmet: str = Field(description="its condition that does not hold")


class PendingReferenceBody(BaseModel):
    """A reference that came after the verdict, and the progress of the re-evaluation."""

    since: str
    attempts: int
    reason: str | None
    given_up: bool
    next_attempt: str | None


class RunFiguresBody(BaseModel):
    """What the run took: by name, and by model."""

    values: dict[str, float]
    models: dict[str, list[float]]
    version: str | None


def _trace_body() -> type[BaseModel]:
    """The schema of ``TraceDocument``: its fields, null where they are absent, with the texts beside their types."""
    fields = get_type_hints(TraceDocument, include_extras=True)
    texts = {name: next(iter(getattr(kind, "__metadata__", ())), None) for name, kind in fields.items()}
    texts["case"] = "what was read of it; null for callers who may not see contents, and once it is gone"
    fields |= {
        "completion": str, "reported": list[dict[str, object]], "belated": PendingReferenceBody, "sampling": DrawBody,
        "routes": list[UnmetRouteBody], "figures": RunFiguresBody, "case": dict[str, object],
    }  # fmt: skip
    fields |= {name: (kind | None, Field(default=None, description=texts[name])) for name, kind in fields.items()}
    fields |= {
        "trace_id": (str, ...), "reason": (str | None, Field(description=texts["reason"])),
        "verdicts": (list[StoredVerdictBody], []),
    }  # fmt: skip
    meaning = "What happened to a trace or a session, and why. Fields of later stages may be absent."
    return create_model("TraceBody", __doc__=meaning, __config__=ConfigDict(extra="allow"), **fields)


TraceBody = _trace_body()


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
