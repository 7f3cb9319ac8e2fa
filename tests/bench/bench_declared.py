"""What declared rubrics cost: ten checks a case, a CEL condition, a start with a thousand metrics, a file.

    python tests/bench/bench_declared.py

CPU time of one thread, best of many laps, so that other work on the machine matters little. A lap is as many cases as a
monitor judges together, each of them new: nothing that an earlier lap derived of it is used again.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from sidejudge.monitor.config import load
from sidejudge.monitor.config.rubrics import configured
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.declared.cel import compile_cel
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.trace.span import ToolCall
from sidejudge.scoring.verdict.rubric import Rubric

LAPS, CASES = 100, 64
CHECKS: list[dict[str, Any]] = [
    {"contains": "parcel"}, {"icontains-any": ["thank", "sorry", "welcome"]}, {"not-icontains-any": ["guarantee"]},
    {"regex": r"https?://docs\."}, {"word-count": {"max": 200}}, {"length": {"min": 5}}, {"latency": "3s"},
    {"tool-called": "lookup_order"}, {"max-tool-errors": 0}, {"starts-with": "Dear"},
]  # fmt: skip
DOCS = re.compile(r"https?://docs\.")
CEL = "!tools.exists(t, t.name == 'refund') || tools.exists(t, t.name == 'lookup_order')"
TEXT = "Dear customer, thank you: your parcel is on its way. See https://docs.example.com/parcels for more. " * 4


def case(number: int) -> Case:
    calls = (ToolCall(name="lookup_order", arguments={"id": number}), ToolCall(name="refund", arguments={"amount": 20}))
    return Case(case_id=str(number), model_output=TEXT, input="Where is it?", latency_e2e_ms=900.0, tools_used=calls)


def microseconds(work: Callable[[Case], object]) -> float:
    """CPU time a case in µs, the best lap."""
    best = float("inf")
    for _ in range(LAPS):
        cases = [case(number) for number in range(CASES)]
        began = time.process_time_ns()
        for each in cases:
            work(each)
        best = min(best, (time.process_time_ns() - began) / CASES / 1000)
    return best


def declared(folder: Path, metrics: Sequence[dict[str, Any]]) -> Rubric:
    path = folder / "sidejudge.yaml"
    path.write_text(yaml.safe_dump({"rubrics": {"own": {"metrics": list(metrics)}}}))
    return configured(load(path, {}))["own"]


def in_python(declared: Rubric) -> Rubric:
    """The same rubric, bands and weights included, with its ten rules as anybody would write them in Python."""
    rules: list[Callable[[Case], bool]] = [
        lambda c: "parcel" in c.model_output,
        lambda c: any(each in c.model_output.casefold() for each in ("thank", "sorry", "welcome")),
        lambda c: "guarantee" not in c.model_output.casefold(),
        lambda c: DOCS.search(c.model_output) is not None,
        lambda c: len(c.model_output.split()) <= 200,
        lambda c: len(c.model_output) >= 5,
        lambda c: c.latency_e2e_ms <= 3000,
        lambda c: any(call.name == "lookup_order" for call in c.tools_used),
        lambda c: not any(call.error for call in c.tools_used),
        lambda c: c.model_output.startswith("Dear"),
    ]

    criteria = [
        replace(criterion, metric=replace(criterion.metric, measure=measured(rule)))
        for criterion, rule in zip(declared.criteria, rules, strict=True)
    ]
    return replace(declared, criteria=tuple(criteria))


def measured(rule: Callable[[Case], bool]) -> Callable[[Case], Scored]:
    return lambda each: Scored(value=float(rule(each)))


def judged(rubric: Rubric) -> Callable[[Case], object]:
    return lambda each: score(each, rubric, created_at="2026-01-01T00:00:00Z")


def thousand(folder: Path) -> float:
    """Seconds of CPU time from a file with a thousand metrics of every kind to a configuration."""
    kinds = [*({"check": each} for each in CHECKS), {"cel": CEL}, {"ask": "Is {{output}} polite, number %d?"}]
    metrics = [
        {"id": f"m{n}", **json.loads(json.dumps(kinds[n % len(kinds)]).replace("%d", str(n)))} for n in range(1000)
    ]
    path = folder / "thousand.yaml"
    path.write_text(yaml.safe_dump({"rubrics": {"own": {"metrics": metrics}}}))
    began = time.process_time()
    load(path, {})
    return time.process_time() - began


def main() -> int:
    """Print each figure beside its bound."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rubric = declared(folder, [{"id": f"m{n}", "check": check} for n, check in enumerate(CHECKS)])
        ten = microseconds(lambda each: [metric.measure(each) for metric in rubric.metrics])
        file, python = microseconds(judged(rubric)), microseconds(judged(in_python(rubric)))
        rows = [
            ("ten checks, a case", ten, "µs", 60.0),
            ("a CEL condition over two tool calls", microseconds(compile_cel(CEL).measure), "µs", 10.0),
            ("a CEL condition over the answer", microseconds(compile_cel("size(output) > 10").measure), "µs", 10.0),
            ("a thousand metrics, read and compiled", thousand(folder), "s", 2.0),
            ("ten checks of a file, verdict included", file, "µs", None),
            ("the same ten in Python", python, "µs", None),
            ("the file beside Python", file / python, "times", 1.2),
        ]
    for what, value, unit, bound in rows:
        beside = "" if bound is None else f"   bound {bound:g} {unit}"
        print(f"{what:<42}{value:>9.2f} {unit}{beside}")  # noqa: T201  # a program for people
    return 0


if __name__ == "__main__":
    sys.exit(main())
