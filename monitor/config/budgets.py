"""Budgets: what the runs of an application may take, as the configuration sets it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from pydantic import Field, model_validator

from .match import MatchSection
from .section import Section
from .units import PositiveDuration


class BudgetSection(Section):
    """What a run may take. A run above any of it fails `run_health`."""

    match: MatchSection = Field(default=MatchSection(), description="which runs it is for; without it: all")
    cost_usd: float | None = Field(default=None, gt=0, description="cost of all model calls, in US dollars")
    tokens: int | None = Field(default=None, gt=0, description="input and output tokens of all model calls")
    steps: int | None = Field(default=None, gt=0, description="agents, model calls, tool calls and retrievals")
    duration: PositiveDuration | None = Field(default=None, description="from the first start to the last end")
    first_token: PositiveDuration | None = Field(
        default=None, description="from the start of the first model call that reports it to its first token"
    )

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
