"""Sample: what the aggregates of a run need of one verdict of ``answer``, read from the verdict's JSON.

The verdict's contract is enough: ``composite``, ``passed`` and ``scores``; what only the verdict's ``answer`` holds
(``timed_out``, the two token counts) is read there, else from the details of the metric that shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sidejudge.scoring.lexical.label import label
from sidejudge.scoring.result.result import Failed

from .verdict_fields import VerdictLineError, number, scores, truth
from .verdict_line import read_verdict

METRICS = (
    "accuracy_score", "faithfulness_score", "latency_e2e_ms", "latency_model_ms", "total_tokens",
    "token_efficiency_ratio",
)  # fmt: skip
_GRADES = METRICS[:2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One judged answer; ``None``: not known. ``sample_score`` is the composite, in [0, 1]; latencies are in ms.

    ``ungraded`` is why there is no grade, though there is an answer to grade; ``None`` when there is one.
    """

    sample_score: float | None
    passed: bool | None
    accuracy_score: float | None
    faithfulness_score: float | None
    ungraded: str | None
    latency_e2e_ms: float | None
    latency_model_ms: float | None
    timed_out: bool
    input_tokens: float | None
    output_tokens: float | None
    total_tokens: float | None
    token_efficiency_ratio: float | None


def read_sample(verdict: Mapping[str, object]) -> Sample:
    """The sample of a verdict; ``VerdictLineError`` names the field that is not what a verdict has there."""
    lines = scores(verdict)
    values = {name: number(lines.get(name, {}), "value", least=0, name=f"scores.{name}.value") for name in METRICS}
    for name in _GRADES:
        if values[name] not in (None, 0, 1, 2):
            raise VerdictLineError(f"scores.{name}.value: is not 0, 1 or 2")
    composite = number(verdict, "composite", least=0)
    if composite is not None and composite > 1:
        raise VerdictLineError(f"composite: is {composite:g}, outside [0, 1]")
    latency, tokens = (_object(lines.get(name, {}).get("details")) for name in ("latency_e2e_ms", "total_tokens"))
    stated = {**latency, **tokens, **_object(verdict.get("answer"))}
    return Sample(
        sample_score=composite,
        passed=truth(verdict, "passed"),
        accuracy_score=values["accuracy_score"],
        faithfulness_score=values["faithfulness_score"],
        ungraded=_ungraded(lines),
        latency_e2e_ms=values["latency_e2e_ms"],
        latency_model_ms=values["latency_model_ms"],
        timed_out=stated.get("timed_out") is True,
        input_tokens=number(stated, "input_tokens", least=0),
        output_tokens=number(stated, "output_tokens", least=0),
        total_tokens=values["total_tokens"],
        token_efficiency_ratio=values["token_efficiency_ratio"],
    )


def sample_of_any(verdict: Mapping[str, object]) -> Sample:
    """The sample of a verdict by any other rubric: composite and decision, and whether an evaluator failed."""
    line = read_verdict(verdict)
    failed = next(((name, each) for name, each in line.scores.items() if each.status == Failed.status), None)
    return Sample(
        sample_score=line.composite, passed=line.passed,
        ungraded=None if failed is None else f"{failed[0]} failed: {label(failed[1].reason or 'no reason', 200)}",
        accuracy_score=None, faithfulness_score=None, latency_e2e_ms=None, latency_model_ms=None, timed_out=False,
        input_tokens=None, output_tokens=None, total_tokens=None, token_efficiency_ratio=None,
    )  # fmt: skip


def _ungraded(lines: Mapping[str, Mapping[str, object]]) -> str | None:
    for name in _GRADES:
        line = lines.get(name, {})
        if line.get("value") is None and line.get("status") != "not_applicable":
            return f"{name} {line.get('status') or 'is absent'}: {label(str(line.get('reason') or 'no reason'), 200)}"
    return None


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
