"""Cards of the scores that are computed over a run, as metrics have theirs: meaning, formula, weights, source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .final import MIN_COVERAGE, OPTION_A, OPTION_B

FINAL = "final"
"""What the scores of this page belong to, in the place of a rubric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScore:
    """A score of a run. ``weights`` are those of each formula that it has, by the formula's name and the part."""

    id: str
    title: str
    meaning: str
    formula: str
    undefined: str
    source: str
    unit: str = "ratio"
    bounds: tuple[float, float | None] = (0.0, 1.0)
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


RUN_SCORES = (
    RunScore(
        id="final_score",
        title="Final Score",
        meaning="One number for a model over the call tasks. Option A holds where there is a benchmark score, else B. "
        "A part's score is the mean over its cases, an invalid case counting 0 and an incomplete one not at all.",
        formula=f"Option A: {OPTION_A.formula}; Option B: {OPTION_B.formula}",
        undefined=f"less than {MIN_COVERAGE:.0%} of the weight is scored; down to there the other weights are "
        "renormalised",
        source="seed 000, Final Scoring; rubrics §7, §1.5",
        weights={f"Option {option.id}": option.weights for option in (OPTION_A, OPTION_B)},
    ),
    RunScore(
        id="cost_efficiency",
        title="Cost Efficiency",
        meaning="Final score per normalised dollar; models are ranked by it, the highest first, equal ones alike.",
        formula="final_score / (cost per 1000 calls / the cheapest model's cost per 1000 calls)",
        undefined="there is no final score, or the cost is unknown or 0",
        source="seed 000, Cost-Adjusted Ranking; rubrics §7",
    ),
)
"""The scores of a run, in the seed's order."""
