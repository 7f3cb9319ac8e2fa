"""Sample: what the aggregates of a run need of one verdict of ``answer``, read from the verdict's JSON.

The verdict's contract is enough: ``composite``, ``passed`` and ``scores``; what only the verdict's ``answer`` tells
(``timed_out``, the two token counts) is read there, else from the details of the metric that shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scoring.label import label

METRICS = (
    "accuracy_score", "faithfulness_score", "latency_e2e_ms", "latency_model_ms", "total_tokens",
    "token_efficiency_ratio",
)  # fmt: skip
_GRADES = METRICS[:2]
_MOST = 1e15
"""No latency and no number of tokens is larger; sums of such values are exact and finite."""


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
    """The sample of a verdict; ``ValueError`` names the field that is not what a verdict has there."""
    scores = _scores(verdict)
    values = {name: _number(scores.get(name, {}).get("value"), name) for name in METRICS}
    for name in _GRADES:
        if values[name] not in (None, 0, 1, 2):
            raise ValueError(f"{name} is not 0, 1 or 2")
    passed = verdict.get("passed")
    if passed is not None and not isinstance(passed, bool):
        raise ValueError("passed is neither true, false nor null")
    composite = _number(verdict.get("composite"), "composite")
    if composite is not None and composite > 1:
        raise ValueError("composite is not in [0, 1]")
    stated = _object(verdict.get("answer"))
    latency, tokens = (_object(scores.get(name, {}).get("details")) for name in ("latency_e2e_ms", "total_tokens"))
    return Sample(
        sample_score=composite,
        passed=passed,
        accuracy_score=values["accuracy_score"],
        faithfulness_score=values["faithfulness_score"],
        ungraded=_ungraded(scores),
        latency_e2e_ms=values["latency_e2e_ms"],
        latency_model_ms=values["latency_model_ms"],
        timed_out=stated.get("timed_out", latency.get("timed_out")) is True,
        input_tokens=_number(stated.get("input_tokens", tokens.get("input_tokens")), "input_tokens"),
        output_tokens=_number(stated.get("output_tokens", tokens.get("output_tokens")), "output_tokens"),
        total_tokens=values["total_tokens"],
        token_efficiency_ratio=values["token_efficiency_ratio"],
    )


def _scores(verdict: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    lines = verdict.get("scores")
    if not isinstance(lines, list) or not all(isinstance(line, Mapping) for line in lines):
        raise ValueError("scores is not a list of objects")
    return {str(line.get("metric")): line for line in lines}


def _ungraded(scores: Mapping[str, Mapping[str, object]]) -> str | None:
    for name in _GRADES:
        line = scores.get(name, {})
        if line.get("value") is None and line.get("status") != "not_applicable":
            return f"{name} {line.get('status') or 'is absent'}: {label(str(line.get('reason') or 'no reason'), 200)}"
    return None


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object, field: str) -> float | None:
    """A number from 0 on; whole numbers are numbers here, truth values are not."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        raise ValueError(f"{field} is not a number from 0 to {_MOST:g}")
    return value
