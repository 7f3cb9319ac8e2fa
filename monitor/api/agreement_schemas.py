"""Agreement schemas: the parts of the API's JSON about the agreement of verdicts with people's labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from sidejudge.scoring.runs.calibrated import Calibrated

from .response_body import Count, Counts, Instant, Ratio, ResponseBody, Text


def _written(measured: Sequence[Calibrated]) -> list[dict[str, object]]:
    return [each.to_json() for each in measured]


class CorrectedBody(ResponseBody):
    """A pass ratio corrected for the judge's errors on labelled traces, with its two-sided 95 % interval."""

    pass_ratio: Ratio = Field(validation_alias="rate")
    lower: Ratio
    upper: Ratio


class QueueBody(ResponseBody):
    """The annotation queue that verdicts in doubt are put into."""

    name: str
    reason: Text = Field(description="why nothing is put in now; empty when something may be")
    put: Counts = Field(description="what was put in since start, by why it is in doubt")
    left_out: Count = Field(description="what was not of late, for the hour's number was reached")


class AgreementBody(ResponseBody):
    """The labels that people give, and how far our verdicts agree with them."""

    source: str = Field(description="where people's labels are read")
    reason: Text = Field(description="why they cannot be read now; empty when they can")
    read_until: Instant | None = Field(
        validation_alias="read_s", description="until when they have been read; null: never"
    )
    measured: Annotated[list[dict[str, object]], BeforeValidator(_written)] = Field(
        description="by rubric and metric (`pass`: the verdict), as `sidejudge calibrate --format json` prints it"
    )
    passed_over: Counts = Field(description="labels of the time last read that are no evidence of agreement, by why")
    corrections: Counts = Field(description="answers with a verdict that people corrected, by rubric")
    corrected_passes: Counts = Field(description="those of them that we had passed")
    queue: QueueBody | None = Field(description="null: no verdict is put before people")
