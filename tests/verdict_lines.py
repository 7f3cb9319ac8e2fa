"""Verdict lines as a verdict file holds them, and files of lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from sidejudge.scoring.rubrics import RUBRICS


def metric_line(metric: str, value: float | None, status: str = "scored", reason: str = "", **details: object) -> dict:
    return {"metric": metric, "value": value, "weight": 0.1, "status": status, "reason": reason, "details": details}


def verdict_line(case_id: str, rubric: str = "qa", composite: float | None = 0.9, **changes: object) -> dict:
    """A valid verdict of one case; what is not said is as a batch would write it."""
    known = RUBRICS.get(rubric)
    mark = known.pass_mark if known else 0.8
    return {
        "case_id": case_id, "trace_id": None, "rubric": rubric, "rubric_version": f"{rubric}@00000000",
        "composite": composite, "composite_norm": composite, "state": "valid", "blockers": [],
        "passed": None in (composite, mark) or composite >= mark, "pass_mark": mark, "scores": [],
        "revision": 1, "sampling_probability": 1.0, "cost_usd": None, **changes,
    }  # fmt: skip


def invalid_line(
    case_id: str, rubric: str = "qa", blocker: str = "response_structure_compliance", **changes: object
) -> dict:
    """A verdict that a blocker made invalid."""
    scores = [metric_line(blocker, 0.0)]
    return verdict_line(
        case_id, rubric, None, state="invalid", passed=False, blockers=[blocker], scores=scores, **changes
    )


def json_lines(path: Path, lines: Iterable[object]) -> Path:
    """A file of JSON Lines; a text stands in it as it is."""
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path
