"""Section ``sampling``: which share of the traces is judged."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from sidejudge.integrations.otlp.wire.tracestate import PUBLIC_HASH_KEY, secret_hash_key

from .match import MatchSection
from .section import GIVEN_AS_LIST, Rate, Section

FIXED_RATE: Final = 0.01
"""The base rate where none is given and it cannot follow the traffic."""


class SamplingRuleSection(Section):
    """A sampling rule: traces that match are kept at ``rate``.

    A rule on service and environment alone takes the place of the base rate (the first that matches). Any other rule
    needs the whole trace, and can only keep more than the base rate would.
    """

    name: str = Field(min_length=1)
    """name of the rule, shown in a trace's explanation"""
    match: MatchSection
    """which traces it is for"""
    rate: Rate
    """share of the traces to keep, in (0, 1]"""


class TrustedUpstreamSection(Section):
    """A sampler before this monitor, of whose thresholds (``ot=th`` in the trace state) a trace's weight follows.

    Set it where your Collector or SDK samples and writes them. Any caller of an application can write one too: with
    this section such a trace counts for ``1/floor`` traces at most.
    """

    floor: Rate
    """the lowest share of traces that it keeps, in (0, 1]: a lower claim counts as this one"""
    max_share: float = Field(default=0.1, ge=0.01, lt=1)
    """the largest share of the weight of its service's latest traces that one trace may claim, in [0.01, 1)"""


class SamplingSection(Section):
    """Which share of the traces is judged. Consistent by trace id; the weight travels with the verdict.

    Without ``rate``, ``rules`` and ``sessions`` all traces up to ``traces_per_hour`` are judged, and beyond it a share.
    """

    rate: Rate | None = Field(
        default=None,
        description="base rate, share of all traces, in (0, 1]. Without it every trace is judged up to "
        f"`traces_per_hour`; where `rules` or `sessions` are set it is {FIXED_RATE:g}",
    )
    traces_per_hour: int = Field(default=1000, ge=1)
    """without `rate`, `rules` and `sessions`: all traces up to this number an hour are judged; beyond it a share, this
    number divided by the traces of the last hour, each with its true probability
    """
    randomness: Literal["trace_id", "hashed"] = "trace_id"
    """what decides: `trace_id`: its last 56 bits, as OpenTelemetry specifies, or `ot=rv` where `trust_upstream` is set;
    `hashed`: a hash of it, for ids that are not uniformly random or that a sampler upstream has already drawn by (costs
    a hash a trace, and the agreement with other samplers)"""
    randomness_key: SecretStr | None = Field(default=None, min_length=16)
    """with `hashed`, a secret, as `${NAME}`, that keys the hash: without it callers of the application, who choose
    trace ids by the header `traceparent`, can choose which of their traces are judged; the same in all monitors that
    spans of one trace may come to; keys the draw of `sessions` too"""
    trust_upstream: TrustedUpstreamSection | None = None
    """the sampler before this monitor; without it no trace state changes a weight or a draw, because any caller of the
    application can choose it (`off` is the same)
    """
    handover_key: SecretStr | None = Field(default=None, min_length=16)
    """a secret, as `${NAME}`, shared by monitors that hand traces over to each other by `drain.to`: a handover without
    its signature counts as an application's request; `peers` exchange keys by themselves
    """
    rules: Annotated[tuple[SamplingRuleSection, ...], GIVEN_AS_LIST] = ()
    """exceptions from the base rate, in order; traces that the largest rate of all could keep are held until they are
    whole, for any service, so that a rule of rate 1 commits all spans for a while
    """

    @field_validator("trust_upstream", mode="before")
    @classmethod
    def _off(cls, stated: object) -> object:
        return None if stated is False or stated == "off" else stated

    @model_validator(mode="after")
    def _keyed_hash(self) -> SamplingSection:
        if self.randomness_key is not None and self.randomness != "hashed":
            raise ValueError("randomness_key keys a hash of the trace id: set randomness: hashed with it")
        return self

    @property
    def hash_key(self) -> bytes:
        """The key for hashing trace ids before they decide; empty if the id itself decides."""
        if self.randomness_key is not None:
            return secret_hash_key(self.randomness_key.get_secret_value())
        return PUBLIC_HASH_KEY if self.randomness == "hashed" else b""

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
