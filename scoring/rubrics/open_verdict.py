"""Open verdict: a verdict without anything that people or models wrote, for readers without rights to contents.

It keeps the outline of reasons, and of details the numbers and the names of the application's parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from sidejudge.scoring.result.reason import GAP, REASON_PARTS, outline
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.jsontext import objects
from sidejudge.scoring.verdict.documents import TraceDocument

_FIGURE = 10**9
"""A number from this size on may be personal, such as a card number."""
_NAMING = frozenset(
    (rubric.id, metric.id) for rubric in RUBRICS.values() for metric in rubric.metrics if metric.details_name_parts
)
_OPEN = frozenset({
    "case_id", "trace_id", "trace_url", "task", "rubric", "rubric_version", "state", "rating", "blockers", "judge",
    "service", "environment", "session_id", "selection", "created_at", "closed_ns", "metric", "status", "method",
    "cascade",
})  # fmt: skip
"""Fields, besides numbers, that are shown unchanged: none of them is content."""
_QUOTING = frozenset({"input_beginning", "output_beginning", "reported"})
"""Details of a trace that are contents as a whole."""


def open_verdict(verdict: Mapping[str, object]) -> dict[str, object]:
    """A verdict in its JSON form without contents.

    Returns:
        The same fields; ``reason`` and ``details`` hold only what is ours. ``withheld`` names the shortened fields of
        the verdict or of a score; it is absent where nothing was left out.
    """
    rubric, listed = verdict.get("rubric"), objects(verdict.get("scores"))
    scores = [_opened(each, named=(rubric, each.get("metric")) in _NAMING) for each in listed]
    return {**_opened(verdict, named=False), "scores": scores}


def open_details(details: TraceDocument) -> TraceDocument:
    """The details of a trace without contents: of an error its type alone, for what failed may quote."""
    shown: dict[str, object] = {key: value for key, value in details.items() if key not in _QUOTING}
    if error := details.get("error"):
        shown["error"] = f"{error.partition(':')[0]}: {GAP}"
    return cast("TraceDocument", shown)


def _opened(fields: Mapping[str, object], *, named: bool) -> dict[str, object]:
    shown: dict[str, object] = {}
    withheld: list[str] = []
    reason = outline(fields)
    for name, value in fields.items():
        if name == "reason":
            shown[name] = reason.shown()
        elif name == REASON_PARTS:
            shown[name] = reason.to_json()
        elif name == "details" and isinstance(value, Mapping):
            shown[name] = dict(value) if named else {key: each for key, each in value.items() if _is_figure(each)}
        elif name in _OPEN or _is_figure(value):
            shown[name] = value
        elif name == "scores":
            continue
        if shown.get(name) != value:
            withheld.append(name)
    return {**shown, "withheld": withheld} if withheld else shown


def _is_figure(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(type(each) is int and abs(each) < 10_000 for each in value)  # numbers of turns
    return value is None or (isinstance(value, bool | int | float) and abs(value) < _FIGURE)
