"""Test case: a case that was judged in, a test of a test set that asks for the same with the right outcome out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sidejudge.scoring.trace.span import Json

_KEPT = ("task", "input", "config", "evaluation_criteria_override", "name", "service", "environment")
"""What an agent is given again. What one run found and answered is left out."""
_MOST_METRICS = 10


def case_as_test(
    case: Mapping[str, Json], expected: Json, failing: Iterable[str], *, name: str | None = None
) -> dict[str, Json]:
    """A test as a line of a test set.

    Args:
        case: a case in its JSON form, with an ``input``.
        expected: the right outcome.
        failing: names of the metrics that failed.
        name: the test's id; None: made of the trace's.
    """
    trace_id = str(case.get("trace_id") or case.get("case_id") or "")
    metrics = list(dict.fromkeys(failing))[:_MOST_METRICS]
    found: dict[str, Json] = {"id": name or f"trace-{trace_id[:12]}"}
    found |= {key: value for key in _KEPT if (value := case.get(key)) not in (None, "", [], {})}
    found["expected"] = expected
    found["tags"] = ["regression", *metrics]
    found["metadata"] = {"trace_id": trace_id}
    return found


def failing_metrics_of(verdicts: Iterable[object]) -> list[str]:
    """The metrics that fail in verdicts in their JSON form, each once."""
    found: dict[str, None] = {}
    for verdict in verdicts:
        scores = verdict.get("scores") if isinstance(verdict, Mapping) else None
        for score in scores if isinstance(scores, list | tuple) else ():
            if isinstance(score, Mapping) and score.get("rating") in ("fail", "blocker"):
                found[str(score.get("metric"))] = None
    return list(found)
