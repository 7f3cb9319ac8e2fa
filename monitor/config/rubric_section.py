"""The section of the configuration on one rubric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from sidejudge.scoring.metrics.trajectory_selection import Budget
from sidejudge.scoring.trace.span import Json

from .rubric_schema import MAX_METRICS, METRIC_SCHEMA
from .section import GIVEN_AS_LIST, JsonMap, JudgeNames, Section, Share


class TrajectorySection(Section):
    """What a run may take of the judge by the rubric `trajectory`: tokens of prompts, all requests together."""

    share: Share = Field(default=0.10, gt=0.0, description="share of the tokens that the run holds")
    least_tokens: int = Field(default=20_000, ge=8_000, description="what a run may take however short it is")
    most_tokens: int = Field(default=200_000, ge=8_000, description="what a run may take however long it is")
    request_tokens: int = Field(
        default=20_000,
        ge=8_000,
        description="tokens of one prompt; below the judge's context, with room for the answer",
    )

    @model_validator(mode="after")
    def _fit_together(self) -> TrajectorySection:
        if self.least_tokens > self.most_tokens:
            raise ValueError("least_tokens is above most_tokens; lower it, or raise most_tokens")
        return self

    @property
    def budget(self) -> Budget:
        """The same as the rubric takes it."""
        return Budget(share=self.share, least=self.least_tokens, most=self.most_tokens, request=self.request_tokens)


class RubricSection(Section):
    """A rubric of your own (with `metrics` or `extends`), or changes to one that ships; each has its own version."""

    title: str | None = Field(default=None, min_length=1, description="what people read above it")
    extends: str | None = Field(
        default=None,
        description="the rubric whose metrics it has as well; what is not given a weight shares what is left",
    )
    judges: Literal["traces", "sessions", "spans"] | None = Field(
        default=None,
        description="what it judges: whole traces, conversations, or each matching span of a trace (default: traces "
        "or sessions, as it is routed)",
    )
    spans: JsonMap | None = Field(
        default=None,
        description="with `judges: spans`: which ones, by `kind` (llm, tool, …) and `name`, and what counts: `take: "
        "mean` or `lowest`",
    )
    metrics: Annotated[tuple[JsonMap, ...], GIVEN_AS_LIST] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_METRICS,
        description="its metrics, each with `id`, one of `check`, `cel`, `ask`, `python`, `reported` or `use`, and "
        "`weight`, `good`, `acceptable`, `blocker`, `prerequisite` (see RUBRICS.md)",
        json_schema_extra={"items": METRIC_SCHEMA},
    )

    pass_mark: float | None = Field(
        default=None, ge=0.0, description="composite from which a case passes, on the rubric's scale"
    )
    min_coverage: Share | None = Field(
        default=None, description="share of the weight that must be scored for a composite to exist, in [0, 1]"
    )
    judge: JudgeNames | None = Field(
        default=None,
        description="the judge that answers for its metrics: a name of `evaluators.judges`, or `default`, the judge of "
        "`evaluators.judge` (default: that of the rubric that it extends, else `default`). Several, the cheapest "
        "first, are a cascade (`evaluators.cascade`)",
    )
    metric_judges: Mapping[str, JudgeNames] = Field(
        default_factory=dict, description="the same for single metrics, by metric id"
    )
    judge_config: JsonMap | None = Field(
        default=None,
        description="`agent` only: `metrics` (a list of `{metric, weight}`; null: the eight defaults), "
        "`pass_threshold` (75), the judge's `model` and `provider`",
    )

    trajectory: TrajectorySection | None = Field(
        default=None, description="`trajectory` only: what a run may take of the judge"
    )

    @field_validator("judge_config")
    @classmethod
    def _can_be_used(cls, given: dict[str, Json] | None) -> dict[str, Json] | None:
        from sidejudge.scoring.metrics.judge_config import JudgeConfigError, parse_judge_config  # noqa: PLC0415  # only where given

        try:
            if given is not None:
                parse_judge_config(given)
        except JudgeConfigError as error:
            raise ValueError("; ".join(error.problems)) from None
        return given
