"""Upstream trust: how far the thresholds that traces state (``ot=th``) are believed.

SDKs of OpenTelemetry take the trace state of a span from the headers of an incoming request. So any caller of the
application may state any threshold: ``th:fffffffffff`` claims to represent 1.8e13 traces. A claim is therefore believed
only where the configuration names the upstream sampler (``sampling.trust_upstream``), and then:

- no further than the declared floor, the least probability with which that sampler keeps a trace. So an author can make
a trace count for 1/floor traces, and not for more;
- no further than that the trace holds ``max_share`` of what the latest traces of its service count for together. One
  claim among traces that claim nothing would else hold the whole window. Of a service's first traces, fewer than
  1/max_share, the floor alone holds: so few hold larger shares whatever they claim;
- only while the claims fit what arrives: what a threshold T kept has randomness evenly above T. Claims that do not fit
are reported and still believed, because a caller who can raise the alarm must not decide how others are weighed.

The weight that is cut off biases estimates towards traces that claim less, at most by its share of the claimed weight.
It is counted, and an anomaly names that share.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from sidejudge.integrations.otlp.wire.tracestate import NEVER, incoming_threshold, probability, randomness, threshold
from sidejudge.monitor.config.sampling import TrustedUpstreamSection
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.statistics.evidence import against_uniform
from sidejudge.scoring.status.snapshots import Anomaly, AnomalyKind

from .outcomes import counted_as

Disbelief: TypeAlias = Literal["undeclared", "contradicted", "below_floor", "share", "unsigned"]
"""Why a claim is not believed: nobody is trusted; the trace's own randomness does not reach it; it is below the floor;
the trace would hold too much of its service; a handover is not signed with a key that is known."""
WHY: Final[tuple[Disbelief, ...]] = ("undeclared", "contradicted", "below_floor", "share", "unsigned")
LATEST: Final = 500
"""Traces of a service that count; older ones fade."""
FALSE_ALARM: Final = 1e-6
"""The chance that honest claims of a service ever look as if they did not fit."""
_ANOMALOUS_TRACES: Final = 5.0
_ANOMALOUS_SHARE: Final = 0.01
"""Least number of disbelieved traces among the latest, and their least share, for an anomaly."""
_LEFT_OUT: Final = 0.05
_SETTLED: Final = 0.6 * LATEST
"""Share of the claimed weight that is left out, from which on there is one, and after how many traces: shares are large
among few."""
_REMEMBERED: Final = 10_000
_CLAIMS: Final = 8
"""Most distinct thresholds of a service that are checked separately; the others are checked together."""
_BINS: Final = 16
_GENERATION: Final = 50_000


@dataclass(slots=True)
class _Service:
    """The claims of the latest traces of a service, fading. Weights are in traces without a claim."""

    traces: float = 0.0
    disbelieved: float = 0.0
    claimed: float = 0.0
    believed: float = 0.0
    why: Disbelief = "undeclared"
    fits: dict[int, list[int]] = field(default_factory=dict)


class UpstreamTrust:
    """Decides on the claims of traces. ``trusted`` None: nobody is believed. Used by one thread at a time."""

    def __init__(self, trusted: TrustedUpstreamSection | None, *, independent: bool) -> None:
        """``independent``: sampling here does not depend on sampling upstream, so probabilities multiply."""
        self.trusted, self._independent = trusted, independent
        self.disbelieved: Counter[Disbelief] = Counter()
        self.begun_by_callers = 0
        """Traces whose uppermost span has a parent in another process that did not arrive: a caller chose their ids."""
        self._services: dict[str, _Service] = {}
        self._known: OrderedDict[bytes, int] = OrderedDict()

    def believed(
        self, service: str | None, trace_id: bytes, states: Collection[str], *, own: int, admission: int
    ) -> int:
        """The threshold upstream that counts for a trace, in [0, 2**56); 0 where nothing is claimed or believed.

        Args:
            service: The service of the trace.
            trace_id: Its id; asked again for the same trace, the answer is the same.
            states: The trace states of its spans.
            own: The threshold that it is drawn at here.
            admission: The threshold that every trace which comes here has reached.
        """
        claims = [claim for state in states if (claim := incoming_threshold(state))]
        known = self._known.get(trace_id)
        if known is not None:
            return known
        seen = self._service(service)
        if not claims:
            return 0
        bits = min(randomness(trace_id, state) for state in states)
        found, why = self._weighed(seen, bits, claims, own, admission)
        if why is not None:
            self._disbelieve(seen, why)
        self._known[trace_id] = found
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found

    def kept(self, service: str | None, believed: int, *, own: int) -> None:
        """A trace is kept, and counts by the threshold that was believed."""
        seen = self._service(service)
        seen.traces += 1 - seen.traces / LATEST
        seen.disbelieved -= seen.disbelieved / LATEST
        seen.claimed += self._weight(believed, own) - seen.claimed / LATEST
        seen.believed += self._weight(believed, own) - seen.believed / LATEST

    def unsigned(self, service: str | None) -> None:
        """Note a handover without a known signature; it is treated as an application's request."""
        self._disbelieve(self._service(service), "unsigned")

    def _weighed(
        self, seen: _Service, bits: int, claims: Collection[int], own: int, admission: int
    ) -> tuple[int, Disbelief | None]:
        if self.trusted is None:
            return 0, "undeclared"
        claim = max((each for each in claims if bits >= each), default=0)
        if not claim:
            return 0, "contradicted"
        self._compare(seen, claim, bits, claim if self._independent else max(claim, admission))
        bounded, share = min(claim, threshold(self.trusted.floor)), self.trusted.max_share
        most = max(1.0, share / (1 - share) * seen.believed)
        if seen.traces >= 1 / share and self._weight(bounded, own) > most:
            found = threshold((1.0 if self._independent else probability(own)) / most)
            found = max(1, found)  # 1: it was drawn upstream
            seen.claimed += self._weight(bounded, own) - self._weight(found, own)
            return found, "share"
        return bounded, "below_floor" if bounded < claim else None

    def _weight(self, upstream: int, own: int) -> float:
        """For how many traces that claim nothing a trace counts by this threshold upstream."""
        if self._independent:
            return 1.0 / probability(upstream)
        return probability(own) / probability(max(own, upstream)) if own < NEVER else 1.0

    def _compare(self, seen: _Service, claim: int, bits: int, least: int) -> None:
        bins = seen.fits.get(claim)
        if bins is None:
            bins = seen.fits.setdefault(claim if len(seen.fits) < _CLAIMS else 0, [0] * _BINS)
        if sum(bins) >= _GENERATION:
            bins[:] = [0] * _BINS
        bins[(bits - least) * _BINS // (NEVER - least) if bits >= least else 0] += 1

    def _disbelieve(self, seen: _Service, why: Disbelief) -> None:
        self.disbelieved[why] += 1
        if why != "share":  # those are reported by what is left out
            seen.disbelieved += 1
            seen.why = why

    def _service(self, service: str | None) -> _Service:
        return self._services.setdefault(counted_as(service, self._services), _Service())

    @property
    def anomalies(self) -> Iterator[Anomaly]:
        """What is claimed now and not believed, or does not fit what arrives, by service."""
        for service, seen in list(self._services.items()):
            left_out = max(0.0, 1 - seen.believed / seen.claimed) if seen.claimed > 0 else 0.0
            if seen.disbelieved >= max(_ANOMALOUS_TRACES, _ANOMALOUS_SHARE * seen.traces):
                yield Anomaly(
                    kind=AnomalyKind.DISBELIEVED_CLAIMS, service=service,
                    cause=f"{seen.disbelieved:.0f} of the latest {max(seen.traces, seen.disbelieved):.0f} traces of "
                    f"{label(service)!r} claim to stand for more traces than is believed: {_WORDS[seen.why]}",
                    remedy=_REMEDIES[seen.why],
                )  # fmt: skip
            elif left_out >= _LEFT_OUT and seen.traces >= _SETTLED:
                yield Anomaly(
                    kind=AnomalyKind.DISBELIEVED_CLAIMS, service=service,
                    cause=f"single traces of {label(service)!r} would hold more of it than "
                    f"sampling.trust_upstream.max_share: {left_out:.0%} of the weight that its traces claim is left "
                    "out, and its pass ratio may be off by as much",
                    remedy="let the sampler upstream keep more of what it keeps least of, or raise max_share",
                )  # fmt: skip
            elif self._does_not_fit(seen):
                yield Anomaly(
                    kind=AnomalyKind.DISBELIEVED_CLAIMS, service=service,
                    cause=f"traces of {label(service)!r} state thresholds upstream (ot=th) that the randomness of "
                    "their ids does not fit: they were not drawn at these",
                    remedy="look for who sends a tracestate of his own to the application, and let nothing but your "
                    "sampler write one; without sampling.trust_upstream none counts",
                )  # fmt: skip

    @staticmethod
    def _does_not_fit(seen: _Service) -> bool:
        alarm = math.log(max(1, len(seen.fits)) / FALSE_ALARM)
        return any(against_uniform(bins) >= alarm for bins in seen.fits.values())


_WORDS: Final[dict[Disbelief, str]] = {
    "undeclared": "their trace state has ot=th, and the configuration names no sampler upstream",
    "contradicted": "their own randomness does not reach the ot=th that they state",
    "below_floor": "their ot=th is below sampling.trust_upstream.floor",
    "unsigned": "they are marked as handed over, without a signature of a key that is known",
}
_FROM_OUTSIDE: Final = "where no sampler of yours writes it, callers of the application send it, and it counts nothing"
_REMEDIES: Final[dict[Disbelief, str]] = {
    "undeclared": f"set sampling.trust_upstream.floor where a Collector of yours samples; {_FROM_OUTSIDE}",
    "contradicted": f"let the sampler upstream write ot=rv where it does not draw by trace id; {_FROM_OUTSIDE}",
    "below_floor": f"lower the floor to the least rate of the sampler upstream; {_FROM_OUTSIDE}",
    "unsigned": "give both monitors the same sampling.handover_key; where none hands over, an application sends them",
}
