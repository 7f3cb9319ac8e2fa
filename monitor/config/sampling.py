"""Section ``sampling``: which share of the traces is judged."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, field_validator

from .match import MatchSection
from .section import GIVEN_AS_LIST, Section
from .values import Rate

FIXED_RATE: Final = 0.01
"""The base rate where none is given and it cannot follow the traffic."""


class SamplingRuleSection(Section):
    """A sampling rule: traces that match are kept at ``rate``.

    A rule on service and environment alone takes the place of the base rate (the first that matches). Any other rule
    needs the whole trace, and can only keep more than the base rate would.
    """

    name: str = Field(min_length=1, description="name of the rule, shown in a trace's explanation")
    match: MatchSection = Field(description="which traces it is for")
    rate: Rate = Field(description="share of the traces to keep, in (0, 1]")


class SamplingSection(Section):
    """Which share of the traces is judged. Consistent by trace id; the weight travels with the verdict.

    Without ``rate``, ``rules`` and ``sessions`` all traces up to ``traces_per_hour`` are judged, and beyond it a share.
    """

    rate: Rate | None = Field(
        default=None,
        description="base rate, share of all traces, in (0, 1]. Without it every trace is judged up to "
        "`traces_per_hour`; where `rules` or `sessions` are set it is 0.01",
    )
    traces_per_hour: int = Field(
        default=1000,
        ge=1,
        description="without `rate`, `rules` and `sessions`: beyond so many traces an hour a share of them is judged, "
        "this number divided by the traces of the last hour, each with its true probability",
    )
    randomness: Literal["trace_id", "hashed"] = Field(
        default="trace_id",
        description="what decides: `trace_id`: its last 56 bits, or `ot=rv`, as OpenTelemetry specifies; `hashed`: a "
        "hash of it, for ids that are not uniformly random or that a sampler upstream has already drawn by "
        "(costs a hash a trace, and the agreement with other samplers)",
    )
    rules: Annotated[tuple[SamplingRuleSection, ...], GIVEN_AS_LIST] = Field(
        default=(),
        description="exceptions from the base rate, in order; what the largest rate of all could keep is held until "
        "its trace is whole, whatever its service, so a rule of rate 1 has all spans committed for a while",
    )

    @property
    def fixed_rate(self) -> float:
        """The base rate where it does not follow the traffic."""
        return FIXED_RATE if self.rate is None else self.rate

    @field_validator("rules")
    @classmethod
    def _named_once(cls, rules: tuple[SamplingRuleSection, ...]) -> tuple[SamplingRuleSection, ...]:
        names = [rule.name for rule in rules]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two rules are named {twice!r}; a trace's explanation needs one name for each")
        return rules
