"""Parts: what everything shares that exchanges labels, reviews and failing traces with people through Langfuse."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.deliver.dispatcher import DeliveryCounters
from sidejudge.monitor.deliver.langfuse.sink import LangfuseScores
from sidejudge.monitor.fleet.fleet import Fleet, Quota
from sidejudge.scoring.checks.redaction import Redaction
from sidejudge.scoring.trace.time_units import MINUTE_NS
from sidejudge.scoring.verdict.rubric import Rubric

AGAIN_NS: Final = 10 * MINUTE_NS
"""Verdicts are looked at again for this long: one may be committed after others that were reached later."""
MOST_KNOWN: Final = 5_000
"""Objects that were put into a queue or a dataset and are remembered."""


def looked_from(looked_ns: int, now_ns: int, reach_ns: int) -> int:
    """From when on verdicts are looked at after a look: at most so far back, and from now where the clock was ahead."""
    return max(min(looked_ns, now_ns) - AGAIN_NS, now_ns - reach_ns)


def recent(times_ns: Iterable[int], now_ns: int, reach_ns: int) -> int:
    """How many of these times are at most so far back; what a clock that was ahead has dated is none of them."""
    return sum(0 <= now_ns - at < reach_ns for at in times_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackParts:
    """``scores_out`` has the connection and the server that answers; ``redaction`` is for contents that are sent.

    ``judges`` are those of each rubric, as verdicts name them.
    """

    scores_out: LangfuseScores
    store: Store
    rubrics: Mapping[str, Rubric]
    counters: DeliveryCounters
    redaction: Redaction
    clock_ns: Callable[[], int]
    fleet: Fleet | None = None
    judges: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def room(self, kind: str, most: int, within_s: float) -> Callable[[str], Awaitable[bool]] | None:
        """A function that asks other monitors whether one more item may be added; None if this monitor is alone."""
        return None if self.fleet is None else Quota(self.fleet, kind, most, within_s).room
