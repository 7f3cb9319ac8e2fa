"""Sampler: consistent probability sampling in two passes, with the inclusion probability that is true.

**The rule** (opentelemetry-specification, trace/tracestate-probability-sampling.md). A trace has 56 random bits R. A
rate p stands for the rejection threshold T = 2**56 x (1 - p), and a trace is kept iff R >= T. As R belongs to the
trace, every process and every rule decides alike, and what a small rate keeps a larger one keeps too. An upstream
sampler's threshold T_s (``ot=th``) multiplies in by the equalizing form, T = max(T_s, T_d): we keep at most p_d of
*all* traffic. T_s is believed as far as ``upstream_trust.py`` says, which is not at all without a declaration: then
``ot=rv`` is ignored too. Thresholds have their full 56 bits here (SDKs write 4 hexadecimal digits); the probability is
always computed from the threshold, never from the configured rate.

**Two passes.** Rules that match on service and environment only are *strata*: the first that matches the trace
replaces the base rate. Rules that look at content (name, tags, metadata, level, latency) can only be matched once the
trace is whole. The first pass, before a span is decoded, keeps what the largest rate of all could keep, whatever the
span's service: a trace may run through several services, and one whose spans were drawn at different rates would look
complete and not be. The second pass decides on the whole trace: what its stratum's own rate keeps is a *random*
selection; what only a matching content rule keeps is *forced*; the rest is sampled out. The price: a rule of rate 1
for one service has the spans of all services committed until their traces are whole.

**The probability recorded** is max(p_base, p of the matching content rules), whichever way the trace came in: with
one R, it is in iff R >= min(T_base, T_rule). Weighing each kept trace by its inverse (Horvitz–Thompson) is then
unbiased, although errors are over-represented: a kept error weighs 1, a kept success 1/p_base. Recording p_base for a
*random* selection of a trace that also matched a rule would count errors that happen to have a large R a hundredfold,
while the others still weigh 1. An estimate that uses *random* selections only must weigh by
``Decision.base_probability`` instead, for that is the chance of being selected at random.

**The third pass** asks what a judge's budget can pay for (``Decision.thinned``): of what was drawn with probability p
and needs a judge, a share q, on the same R: kept iff R >= T(p·q). q is known before the trace's R is looked at, so p·q
is the true probability, and weighing by its inverse stays unbiased however q moves with time and load.

An upstream sampler without ``th`` (all of those seen in practice), or one that nobody declared, leaves its probability
unknown: every probability here is conditional on what reached us. The widespread ``TraceIdRatioBased`` of SDKs keeps
the *low* trace ids: below a rate of 1/256 none of them reaches a threshold of ours, and nothing is kept, silently.
``sampling_skew.py`` looks out for that.

**Hashed randomness** (``sampling.randomness: hashed``) is the way out: R is a hash of the whole trace id, uniform
whatever the ids look like and independent of every sampler upstream, whose stated probability then *multiplies*:
p = p_s x p_d. It costs a hash a trace and resource, one a span of what is drawn, and the agreement with other samplers:
what a Collector draws at 5 % and what we draw at 5 % are then different traces, and ``ot=rv`` is not looked at.

**Chosen ids.** An SDK that continues a trace takes over the id that the caller sent. A caller who knows R can so have
all traces drawn, or none. With ``sampling.randomness_key`` the hash has a secret key, and nobody else knows R: a chosen
id is drawn with the probability that is recorded, like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from sidejudge.integrations.otlp.wire.tracestate import NEVER, probability, random_bits, threshold
from sidejudge.monitor.config.sampling import SamplingRuleSection, SamplingSection
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.trace.record import record
from sidejudge.scoring.verdict.verdict import Selection

from .upstream_trust import UpstreamTrust


@record(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether a whole trace is evaluated, and how likely that was.

    ``probability`` in (0, 1] is the chance of being kept in either way, and None when not kept; ``base_probability`` in
    [0, 1] that of being selected at random. ``rule`` names what granted it: a stratum, a content rule, or None (the
    base rate). ``randomness`` is the trace's, 56 bits: what decided. ``upstream`` in (0, 1] is the probability that
    a sampler upstream states and that is independent of it; both probabilities hold it as a factor.
    ``thinned_upstream``: a sampler upstream is believed to have drawn it with a probability below 1.
    """

    kept: bool
    probability: float | None
    base_probability: float
    selection: Selection
    randomness: int
    rule: str | None = None
    upstream: float = 1.0
    thinned_upstream: bool = False

    def thinned(self, share: float) -> float | None:
        """The third pass: only ``share`` in [0, 1] of the kept traces can be paid for.

        The probability of being kept by all passes, or None when this one does not keep it. Nested like the others: a
        trace that a small share keeps a larger one keeps too.
        """
        if self.probability is None:
            return None
        limit = threshold(min(1.0, self.probability / self.upstream) * share)
        return probability(limit) * self.upstream if self.randomness >= limit and limit < NEVER else None


class Sampler:
    """Decides by the ``sampling`` section of the configuration."""

    def __init__(self, config: SamplingSection, *, whatever: bool = False) -> None:
        """``whatever``: the first pass keeps everything, because something other than a rule needs whole traces."""
        self.hash_key: Final = config.hash_key
        self.trust: Final = UpstreamTrust(config.trust_upstream, independent=bool(self.hash_key))
        """Which of the traces' own sampling statements are believed."""
        self._whatever = whatever
        self.adaptive: Final = config.rate is None and not config.rules and not whatever
        """Whether the base rate follows the traffic (``load_shedding.py``): then every trace passes here.

        Rules and sessions are drawn from what the base rate leaves, so with them it is fixed.
        """
        self.base: Final = 0 if self.adaptive else threshold(config.fixed_rate)
        self._strata = [(rule, threshold(rule.rate)) for rule in config.rules if not rule.match.needs_content]
        self._content = [(rule, threshold(rule.rate)) for rule in config.rules if rule.match.needs_content]
        granted = [self.base, *(granted for _, granted in (*self._strata, *self._content))]
        self.admission: Final = 0 if whatever else min(granted)
        """The threshold of the first pass: no rule could keep a trace below it. One for all spans of a trace."""

    def admits(self, trace_id: bytes) -> bool:
        """The first pass, for a trace of whose spans nothing is known: whether any rule could keep it."""
        return random_bits(trace_id, self.hash_key) >= self.admission

    def may_keep(self, trace_id: bytes, may_match: Callable[[SamplingRuleSection], bool]) -> bool:
        """Between the passes: whether the second may keep it. ``may_match`` returns whether a rule may still match."""
        if self._whatever:
            return True
        bits = random_bits(trace_id, self.hash_key)
        granted = [granted for rule, granted in (*self._strata, *self._content) if may_match(rule)]
        return bits >= min((self.base, *granted))

    def decide(self, case: Case, admission: int, trace_id: bytes, trace_states: Iterable[str] = ()) -> Decision:
        """The second pass, on the whole trace.

        ``admission`` is the threshold of the first pass when the trace came in, whatever the configuration is now.
        ``trace_states`` are those of the trace's spans: of several randomness values the smallest counts, of
        several upstream thresholds the largest (the least probable span), for a decision must hold for the whole trace.
        """
        states = {state for state in trace_states if state}
        bits = random_bits(trace_id, self.hash_key, states if self.trust.trusted else ())
        own, stratum = self._stratum(case)
        own = max(own, admission)
        stated = self.trust.believed(case.service, trace_id, states, own=own, admission=admission)
        upstream = probability(stated) if self.hash_key else 1.0
        gate = admission if self.hash_key else max(admission, stated)
        base = max(own, gate)
        lowest, forcing = base, None
        if self._content:
            matching = [(granted, rule.name) for rule, granted in self._content if rule.match.matches(case)]
            forced, forcing = min(matching, default=(NEVER, None))
            lowest = min(base, max(forced, gate))
        kept = bits >= lowest
        if kept:
            self.trust.kept(case.service, stated, own=own)
        at_random = bits >= base or not kept
        by_base = probability(base) * upstream
        by_any = by_base if lowest == base else probability(lowest) * upstream
        return Decision(
            kept=kept,
            probability=by_any if kept else None,
            base_probability=by_base,
            selection="random" if at_random else "forced",
            randomness=bits,
            rule=stratum if at_random else forcing,
            upstream=upstream,
            thinned_upstream=stated > 0,
        )

    def _stratum(self, case: Case) -> tuple[int, str | None]:
        for rule, granted in self._strata:
            if rule.match.matches(case):
                return granted, rule.name
        return self.base, None
