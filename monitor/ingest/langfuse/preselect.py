"""Preselection: which traces need not be read at all, as their listings show.

It leaves out only what the sampler would leave out with certainty once the trace is whole: the same threshold on the
same randomness, and of rules on content those that a listing can refuse (name, tags, level, environment). What it
cannot decide it lets by, and the sampler decides. So the probabilities that verdicts carry stay true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sidejudge.integrations.raw import RawSpan
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.ingest.sampler import Sampler, SamplingRule
from sidejudge.scoring.trace.loop_guard import evaluator_traffic, is_own

from .listed_trace import ListedTrace

_UNKNOWN: Final[Mapping[str, object]] = {
    "service": (),
    "task": (),
    "metadata": {},
    "asked": (),
    "feedback": None,
    "latency_ms": None,
}
"""Conditions that a listing cannot answer, in the form in which they hold for everything."""


def at_sight(sampler: Sampler, trace_id: bytes, sighting: ListedTrace) -> EndReason | None:
    """Why a trace will not be read, as soon as anything of it was seen; None when it may be."""
    if excluded(sighting):
        return EndReason.EXCLUDED
    return None if sampler.admits(trace_id) else EndReason.SAMPLED_OUT


def once_settled(sampler: Sampler, trace_id: bytes, sighting: ListedTrace) -> EndReason | None:
    """The same when all of its listing is there, so that rules on content can be matched."""
    if excluded(sighting):
        return EndReason.EXCLUDED

    def matches(rule: SamplingRule) -> bool:
        return not isinstance(rule.match, MatchSection) or may_match(rule.match, sighting)

    return None if sampler.may_keep(trace_id, matches) else EndReason.SAMPLED_OUT


def may_match(match: MatchSection, sighting: ListedTrace) -> bool:
    """Whether a condition may hold for the trace, as far as its listing shows."""
    return match.model_copy(update=_UNKNOWN).matches(sighting.case())


def excluded(sighting: ListedTrace) -> bool:
    """Whether a trace is evaluation itself: of Langfuse's judges, of ours, or of an experiment."""
    seen = sighting.environments or {None}
    return any(evaluator_traffic(None, environment, tags=sighting.tags) is not None for environment in seen)


def all_own(spans: Sequence[RawSpan]) -> bool:
    """Whether nothing of a trace is an application's."""
    return all(
        is_own(service=service if isinstance(service := span.resource.get("service.name"), str) else None,
               scope=span.scope_name)
        for span in spans
    )  # fmt: skip
