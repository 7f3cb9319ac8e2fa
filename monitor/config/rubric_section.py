"""The sections of the configuration on one rubric, and on the effort limits of ``run_health``.

The shape of a declared metric for editors: names of keys and checks; the rest is left to ``sidejudge check``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from importlib.resources import files
from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from sidejudge.scoring.metrics.trajectory_selection import Budget
from sidejudge.scoring.trace.span import Json

from .match import MatchSection
from .section import GIVEN_AS_LIST, JsonMap, JudgeNames, Section, Share
from .units import PositiveDuration

MAX_METRICS: Final = 2000
"""Metrics of one rubric."""
_CHECKS: Final = (
    "equals", "contains", "icontains", "contains-any", "icontains-any", "contains-all", "icontains-all", "starts-with",
    "ends-with", "regex", "word-count", "length", "is-json", "contains-json", "is-xml", "is-sql", "levenshtein",
    "rouge-n", "f-score", "bleu", "chrf", "similar", "latency", "cost", "tokens", "max-steps", "finish-reason",
    "tool-called", "tool-call-f1", "tool-sequence", "tool-args", "max-tool-errors", "pii", "language", "readability",
    "refusal",
)  # fmt: skip
CHECK_NAMES: Final = tuple(f"{negation}{name}" for name in _CHECKS for negation in ("", "not-"))
"""Names of all checks; a test holds them against the registry, which takes longer to import."""
METRIC_SCHEMA: Final[dict[str, Any]] = json.loads(
    files(__package__).joinpath("metric.schema.json").read_text(encoding="utf-8")
)
"""The schema of one metric."""
METRIC_SCHEMA["properties"]["check"]["anyOf"] = [
    {"enum": list(CHECK_NAMES)},
    {"type": "object", "maxProperties": 1, "properties": {name: {} for name in CHECK_NAMES}},
]


class TrajectorySection(Section):
    """The judge's budget for a run by the rubric `trajectory`: tokens of prompts, all requests together."""

    share: Share = Field(default=0.10, gt=0.0)
    """share of the tokens that the run holds"""
    least_tokens: int = Field(default=20_000, ge=8_000)
    """least budget, for a run of any length"""
    most_tokens: int = Field(default=200_000, ge=8_000)
    """largest budget, for a run of any length"""
    request_tokens: int = Field(default=20_000, ge=8_000)
    """tokens of one prompt; below the judge's context, with room for the answer"""

    @model_validator(mode="after")
    def _fit_together(self) -> TrajectorySection:
        if self.least_tokens > self.most_tokens:
            raise ValueError("least_tokens is above most_tokens; lower it, or raise most_tokens")
        return self

    @property
    def budget(self) -> Budget:
        """The same as the rubric takes it."""
        return Budget(share=self.share, least=self.least_tokens, most=self.most_tokens, request=self.request_tokens)


class BudgetSection(Section):
    """Limits on a run's effort. A run above any of them fails `run_health`."""

    match: MatchSection = MatchSection()
    """which runs it is for; without it: all"""
    cost_usd: float | None = Field(default=None, gt=0)
    """cost of all model calls, in US dollars"""
    tokens: int | None = Field(default=None, gt=0)
    """input and output tokens of all model calls"""
    steps: int | None = Field(default=None, gt=0)
    """agents, model calls, tool calls and retrievals"""
    duration: PositiveDuration | None = None
    """from the first start to the last end"""
    first_token: PositiveDuration | None = None
    """from the start of the first model call that reports it to its first token"""

    @model_validator(mode="after")
    def _limits_something(self) -> BudgetSection:
        if not self.limits:
            raise ValueError("limits nothing; set cost_usd, tokens, steps, duration or first_token")
        return self

    @cached_property
    def limits(self) -> Mapping[str, float]:
        """The limits by measure of effort (``scoring.metrics.run_effort``), in its unit."""
        stated = {
            "cost_usd": self.cost_usd, "tokens": self.tokens, "steps": self.steps,
            "duration_s": None if self.duration is None else self.duration.seconds,
            "first_token_s": None if self.first_token is None else self.first_token.seconds,
        }  # fmt: skip
        return {name: float(limit) for name, limit in stated.items() if limit is not None}


class LabelsSection(Section):
    """Labels of people, of which `examples: labels` shows some to the judge: those first that it got most wrong.

    A quarter of the cases, by their ids, teach; the labels of all others measure (`sidejudge calibrate`, agreement).
    """

    labels: str = Field(min_length=1)
    """file of labels (JSON Lines), as `sidejudge calibrate` takes it"""
    cases: str = Field(min_length=1)
    """file of the cases that were labelled (JSON Lines)"""
    verdicts: str | None = Field(default=None, min_length=1)
    """file of verdicts on them, which shows where the judge was wrong; not needed where each label states its
    `verdict`"""


class RubricSection(Section):
    """A rubric of your own (with `metrics` or `extends`), or changes to one that ships; each has its own version."""

    title: str | None = Field(default=None, min_length=1)
    """what people read above it"""
    extends: str | None = None
    """the rubric whose metrics it inherits; metrics without a weight share the rest"""
    judges: Literal["traces", "sessions", "spans"] | None = None
    """what it judges: whole traces, conversations, or each matching span of a trace (default: traces or sessions, as it
    is routed)"""
    spans: JsonMap | None = None
    """with `judges: spans`: which ones, by `kind` (llm, tool, …) and `name`, and what counts: `take: mean` or
    `lowest`"""
    metrics: Annotated[tuple[JsonMap, ...], GIVEN_AS_LIST] | None = Field(
        default=None, min_length=1, max_length=MAX_METRICS, json_schema_extra={"items": METRIC_SCHEMA}
    )
    """its metrics, each with `id`, one of `check`, `cel`, `ask`, `python`, `reported` or `use`, and `weight`, `good`,
    `acceptable`, `blocker`, `prerequisite` (see rubrics.md)"""

    pass_mark: float | None = Field(default=None, ge=0.0)
    """composite from which a case passes, on the rubric's scale"""
    min_coverage: Share | None = None
    """share of the weight that must be scored for a composite to exist, in [0, 1]"""
    judge: JudgeNames | None = None
    """the judge that answers for its metrics: a name of `evaluators.judges`, or `default`, the judge of
    `evaluators.judge` (default: that of the rubric that it extends, else `default`). Several, the cheapest first, are a
    cascade (`evaluators.cascade`)"""
    metric_judges: Mapping[str, JudgeNames] = Field(default_factory=dict)
    """the same for single metrics, by metric id"""
    judge_config: JsonMap | None = None
    """`agent` only: `metrics` (a list of `{metric, weight}`; null: the eight defaults), `pass_threshold` (75), the
    judge's `model` and `provider`"""

    labels: LabelsSection | None = None
    """labels of people, for questions with `examples: labels`"""
    trajectory: TrajectorySection | None = None
    """`trajectory` only: the judge's budget for a run"""

    @model_validator(mode="after")
    def _labels_are_of_its_own(self) -> RubricSection:
        if self.labels is not None and not any(each.get("examples") == "labels" for each in self.metrics or ()):
            raise ValueError("labels are read, and no metric has examples: labels; add it to a metric with ask")
        return self

    @field_validator("judge_config")
    @classmethod
    def _can_be_used(cls, given: dict[str, Json] | None) -> dict[str, Json] | None:
        from sidejudge.scoring.metrics.judge_metrics import JudgeConfigError, parse_judge_config  # noqa: PLC0415  # only where given

        try:
            if given is not None:
                parse_judge_config(given)
        except JudgeConfigError as error:
            raise ValueError("; ".join(error.problems)) from None
        return given
