"""Failing item: a trace that failed in, an item of a dataset out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, cast

from sidejudge.integrations.langfuse.client import encoded
from sidejudge.integrations.langfuse.datasets import NewDatasetItem, item_id
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.checks.redaction import Redaction
from sidejudge.scoring.lexical.label import label
from sidejudge.scoring.runs.case_as_test import failing_metrics_of
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.verdict.verdict_document import VerdictDocument

MOST_BYTES: Final = 900_000
"""The largest item; Langfuse takes requests of 1 MiB."""
_MAX_REASON: Final = 1_000
_NESTED: Final = 64
"""Levels of a value that are looked into; what is deeper is left out."""


def failing_item(
    dataset: str, trace_id: str, case: Case, verdicts: Sequence[VerdictDocument], redaction: Redaction
) -> NewDatasetItem | None:
    """The item of a trace.

    Args:
        dataset: the dataset that it goes to.
        trace_id: the trace, in hex.
        case: what was judged.
        verdicts: its verdicts that fail, as JSON objects.
        redaction: what is replaced in contents and reasons.

    Returns:
        The item, with the answer that failed in its metadata; without the answer where both are too large together;
        None where the input alone is.
    """

    def clean(value: object, left: int = _NESTED) -> Json:
        if isinstance(value, str):
            return redaction.apply(_storable(value))[0]
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, Mapping):
            return {_storable(str(key)): clean(each, left - 1) for key, each in value.items()} if left else None
        if isinstance(value, list | tuple):
            return [clean(each, left - 1) for each in value] if left else None
        return cast("Json", value)

    about: dict[str, Json] = {
        "source": "sidejudge",
        "verdicts": {str(each["rubric"]): _about(each, redaction) for each in verdicts},
        **{key: value for key in ("service", "environment", "task") if (value := getattr(case, key)) is not None},
    }
    asked, right = clean(case.input), clean(case.expected_outcome)
    for more in ({"output": clean(case.model_output)}, {"output_left_out": "too large"}):
        item = NewDatasetItem(
            id=item_id(dataset, trace_id), input=asked, expected_output=right, metadata={**about, **more},
            source_trace_id=trace_id,
        )  # fmt: skip
        if len(encoded([item.input, item.expected_output, dict(item.metadata)])) <= MOST_BYTES:
            return item
    return None


def _storable(text: str) -> str:
    """The text without what PostgreSQL, where Langfuse keeps items, stores in no JSON: NUL, halves of surrogates."""
    return text.replace("\x00", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _about(verdict: VerdictDocument, redaction: Redaction) -> Json:
    """Why it failed."""
    return {
        "version": str(verdict.get("rubric_version", "")),
        "reason": redaction.apply(_storable(label(str(verdict.get("reason") or ""), _MAX_REASON)))[0],
        "composite": verdict.get("composite"),
        "metrics": list(failing_metrics_of([verdict])),
    }
