"""Agreement schemas: the parts of the API's JSON about the agreement of verdicts with people's labels."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from scoring.lexical.label import label
from scoring.statistics.rogan_gladen import Corrected
from scoring.status.agreement_snapshot import AgreementSnapshot, AnnotationQueueSnapshot

Ratio = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


class CorrectedBody(BaseModel):
    """A pass ratio corrected for the judge's errors on labelled traces, with its two-sided 95 % interval."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    pass_ratio: Ratio
    lower: Ratio
    upper: Ratio

    @classmethod
    def of(cls, found: Corrected) -> CorrectedBody:
        return cls(pass_ratio=found.rate, lower=found.lower, upper=found.upper)


class QueueBody(BaseModel):
    """The annotation queue that verdicts in doubt are put into."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    reason: str = Field(description="why nothing is put in now; empty when something may be")
    put: dict[str, int] = Field(description="what was put in since start, by why it is in doubt")
    left_out: Count = Field(description="what was not of late, for the hour's number was reached")

    @classmethod
    def of(cls, queue: AnnotationQueueSnapshot) -> QueueBody:
        return cls(name=queue.name, reason=label(queue.reason, 300), put=dict(queue.put), left_out=queue.left_out)


class AgreementBody(BaseModel):
    """The labels that people give, and how far our verdicts agree with them."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    source: str = Field(description="where people's labels are read")
    reason: str = Field(description="why they cannot be read now; empty when they can")
    read_until: datetime | None = Field(description="until when they have been read; null: never")
    measured: list[dict[str, Any]] = Field(
        description="by rubric and metric (`pass`: the verdict), as `sidejudge calibrate --format json` prints it"
    )
    passed_over: dict[str, int] = Field(
        description="labels of the time last read that are no evidence of agreement, by why"
    )
    corrections: dict[str, int] = Field(description="answers with a verdict that people corrected, by rubric")
    corrected_passes: dict[str, int] = Field(description="those of them that we had passed")
    queue: QueueBody | None = Field(description="null: no verdict is put before people")

    @classmethod
    def of(cls, agreement: AgreementSnapshot) -> AgreementBody:
        read_s = agreement.read_s
        return cls(
            source=agreement.source, reason=label(agreement.reason, 300),
            read_until=None if read_s is None else datetime.fromtimestamp(read_s, UTC),
            measured=[each.to_json() for each in agreement.measured], passed_over=dict(agreement.passed_over),
            corrections=dict(agreement.corrections), corrected_passes=dict(agreement.corrected_passes),
            queue=QueueBody.of(agreement.queue) if agreement.queue else None,
        )  # fmt: skip
