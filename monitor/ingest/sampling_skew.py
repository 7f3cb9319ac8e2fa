"""Sampling skew: whether the random bits of trace ids are as random as sampling presumes.

The trap (research of 2026, simulated with the Python SDK's rule): a legacy head sampler upstream keeps the *low* ids;
of what it lets through at 1 % a threshold of ours at 10 % keeps 7.7 %, of what it lets through at 0.1 %, nothing at
all, without any error. The same happens with ids that count upwards, or end in zeros.

Per service, over the traces seen, two questions: do the leading four bits fill their sixteen bins evenly, and does the
share of traces that reach the base rate's threshold fit that rate? Evidence is kept in numbers that may be looked at
at any time (``scoring.statistics.evidence``), so the false-alarm rate is one number: at most ``FALSE_ALARM`` for each
service and generation of ``GENERATION`` traces. An alarm stands until a whole generation has passed without one.

A sampler upstream that states its threshold (``ot=th``) keeps the high ids by design and is honoured: what is stated on
traces of a service leaves that service's generation without an opinion. Requests whose spans may state their randomness
themselves (``ot=rv``) are not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from sidejudge.integrations.otlp.wire.tracestate import NEVER, probability
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.statistics.evidence import against_rate, against_uniform
from sidejudge.scoring.status.snapshots import Anomaly, AnomalyKind

from .outcomes import counted_as

FALSE_ALARM: Final = 1e-6
"""The chance of an alarm in a generation of a service whose ids are uniformly random."""
GENERATION: Final = 50_000
"""Traces of a service after which it is looked at afresh."""
_ALARM: Final = math.log(2 / FALSE_ALARM)
"""Two questions share the false-alarm rate."""
_EXPECTED: Final = -math.log(FALSE_ALARM)
"""Traces that reach the base rate's threshold, of as many as are seen, before their absence means anything."""
_BINS: Final = 16


@dataclass(slots=True)
class _Seen:
    bins: list[int] = field(default_factory=lambda: [0] * _BINS)
    reached: int = 0
    stated: bool = False
    n: int = 0
    alarmed: str | None = None
    """What alarmed in the last whole generation, if anything did."""


class SamplingSkew:
    """Counts traces by their leading random bits. ``base`` is the base rate's threshold, in [0, 2**56]."""

    def __init__(self, base: int, *, generation: int = GENERATION) -> None:
        self._rate = probability(base)
        self._floor = base.to_bytes(7, "big") if base < NEVER else b"\xff" * 8
        self._generation = max(generation, math.ceil(4 * _EXPECTED / self._rate)) if self._rate else generation
        self._seen: dict[str, _Seen] = {}

    def observe(self, service: str | None, trace_ids: Collection[bytes], *, stated: bool = False) -> None:
        """Traces that were not known before. ``stated``: a sampler upstream states its threshold on them."""
        name = counted_as(service, self._seen)
        seen = self._seen.setdefault(name, _Seen())
        seen.stated |= stated
        seen.n += len(trace_ids)
        bins, floor = seen.bins, self._floor
        for trace_id in trace_ids:
            bins[trace_id[9] >> 4] += 1
            if trace_id[9:] >= floor:
                seen.reached += 1
        if seen.n >= self._generation:
            self._seen[name] = _Seen(alarmed=self._alarm(seen))

    def _alarm(self, seen: _Seen) -> str | None:
        """What does not fit, in words: the share of drawn traces where that is evidence enough, else the ranges."""
        # A statement upstream is only found on traces that are kept: until one could have been there is no opinion.
        if seen.stated or not (seen.reached or seen.n * self._rate >= _EXPECTED):
            return None
        if against_rate(seen.reached, seen.n, self._rate) >= _ALARM:
            return (
                f"{seen.reached} of {seen.n} traces reach the base rate's threshold, "
                f"where {self._rate * seen.n:.4g} are expected"
            )
        if against_uniform(seen.bins) >= _ALARM:
            return (
                f"of {_BINS} equal ranges of ids one holds {max(seen.bins)} of {seen.n} traces, "
                f"where {seen.n / _BINS:.4g} are expected"
            )
        return None

    @property
    def anomalies(self) -> Iterator[Anomaly]:
        """The anomalies that are detected now, one per service."""
        for service, seen in self._seen.items():
            if (found := self._alarm(seen) or seen.alarmed) is not None:
                yield Anomaly(
                    kind=AnomalyKind.SKEWED_SAMPLING, service=service,
                    cause=f"trace ids of {label(service)!r} are not uniformly random: {found}; a sampler upstream may "
                    "have drawn by the same bits already, or a caller of the application chooses ids",
                    remedy="set sampling.randomness: hashed, or let the sampler upstream state its probability "
                    "(OpenTelemetry's ProbabilitySampler writes ot=th); against chosen ids, set "
                    "sampling.randomness_key too",
                )  # fmt: skip
