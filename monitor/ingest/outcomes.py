"""Outcomes: every trace that was seen ends with exactly one reason, and seen = open + ended holds at any moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidejudge.scoring.status.service_status import OTHER, UNKNOWN_SERVICE

_SERVICES: Final = 1_000
"""Services that are counted separately; those beyond are counted together."""
NAME_LENGTH: Final = 200
"""Characters of a service's name that count; the rest is cut."""


def counted_as(service: str | None, known: Collection[str]) -> str:
    """The name that a service is counted by: senders choose names, so neither number nor length is unbounded."""
    name = (service or UNKNOWN_SERVICE)[:NAME_LENGTH]
    return name if name in known or len(known) < _SERVICES else OTHER


class EndReason(StrEnum):
    """How a trace ended."""

    SCORED = "scored"
    """At least one rubric reached a verdict, passed or not."""
    SAMPLED_OUT = "sampled_out"
    """Not drawn, in the first pass or in the second."""
    NO_RUBRIC = "no_rubric"
    """No route selects it."""
    NOT_A_RUN = "not_a_run"
    """No span of it is a model's, an agent's or a tool's, so that nothing can be judged: a health check, plain HTTP."""
    EXCLUDED = "excluded"
    """It is evaluation traffic (a judge's, or one of Langfuse's own environments), or its route has no rubrics."""
    INCOMPLETE = "incomplete"
    """It was cut short, and the rubrics cannot be evaluated on what arrived."""
    UNAVAILABLE = "unavailable"
    """Rubrics ran, but their inputs are missing."""
    NO_CONTENT = "no_content"
    """Its telemetry carries no message contents."""
    JUDGE_FAILED = "judge_failed"
    """A judge was asked and failed, or could not be asked for too long."""
    OVER_BUDGET = "over_budget"
    """Its rubrics need a judge, and the judge's budget did not reach for it: not drawn in the third pass."""
    SHED = "shed"
    """It was given up: under load, or because no span of it fits the limits of a trace."""
    HANDED_OVER = "handed_over"
    """The process ended before it was evaluated, and another monitor took it; that one evaluates and counts it."""
    LATE = "late"
    """Spans of a trace that had ended so long ago that its others are gone: its verdict stands."""
    UNDECODABLE = "undecodable"
    """Its bytes could not be read. A request that cannot be read at all counts as one trace."""
    DELETED = "deleted"
    """Nothing of it was there any more: it was listed in Langfuse and gone before it was read, or it was forgotten."""
    CRASHED = "crashed"
    """The process ended again and again while it was being judged; it is not tried any more."""
    ERROR = "error"
    """Evaluating it failed for a reason of our own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """``seen == open + sum(ended.values())``. ``revisions`` are endings of traces that had ended, judged or not."""

    seen: int
    open: int
    ended: Mapping[EndReason, int]
    revisions: int


class TraceOutcomes:
    """Counts traces seen, open and ended, per service and reason. Not thread-safe: it lives on the event loop.

    Sampled-out traces are counted once per trace id though their spans come in many requests, and so are those that are
    excluded as they come in. Their ids are remembered for a while (see ``RecentIds``). A trace whose spans lie further
    apart than that is counted again, as a trace of its own: ``sampled_out`` (and ``seen`` with it) is an upper bound
    that is exact for traces shorter than this memory.
    """

    def __init__(
        self, *, remembered: int = 50_000, on_ended: Callable[[str, EndReason, int], None] | None = None,
        on_kept: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self._seen = self._closed = 0
        self._ended: Counter[tuple[str, EndReason]] = Counter()
        self._services: set[str] = set()
        self._revisions = 0
        self._sampled_out = RecentIds(remembered)
        self._excluded = RecentIds(remembered)
        self._on_ended, self._on_kept = on_ended, on_kept

    def kept(self, services: Iterable[str | None]) -> None:
        """Note that spans of these services have come and are kept."""
        if self._on_kept is not None:
            for service in services:
                self._on_kept(self._name(service))

    def seen(self, count: int = 1) -> None:
        """``count`` traces that were not known before have begun; each is open until ``ended`` is called for it."""
        if count < 0:
            raise ValueError(f"a number of traces is not negative, got {count}")
        self._seen += count

    def ended(self, service: str | None, reason: EndReason, count: int = 1, *, revision: int = 1) -> None:
        """``count`` open traces have ended. A later revision of a trace changes nothing but the count of revisions."""
        if revision > 1:
            self._revisions += count
            return
        if count > self.open:
            raise ValueError(
                f"{count} traces ended, but only {self.open} are open: each must be seen first, and end once"
            )
        self._closed += count
        name = self._name(service)
        self._ended[name, reason] += count
        if self._on_ended is not None and count:
            self._on_ended(name, reason, count)

    def _name(self, service: str | None) -> str:
        name = counted_as(service, self._services)
        self._services.add(name)
        return name

    def sampled_out(self, service: str | None, trace_ids: AbstractSet[bytes]) -> AbstractSet[bytes]:
        """Count the traces among these that are not known yet as seen and sampled out; return them."""
        return self._at_once(service, self._sampled_out.learn(trace_ids), EndReason.SAMPLED_OUT)

    def excluded(self, service: str | None, trace_ids: AbstractSet[bytes]) -> AbstractSet[bytes]:
        """Count those whose spans are not even kept, because they are an evaluator's own."""
        return self._at_once(service, self._excluded.learn(trace_ids), EndReason.EXCLUDED)

    def _at_once(self, service: str | None, fresh: AbstractSet[bytes], reason: EndReason) -> AbstractSet[bytes]:
        if fresh:
            self.seen(len(fresh))
            self.ended(service, reason, len(fresh))
        return fresh

    def has_sampled_out(self, trace_id: bytes) -> bool:
        """Whether this trace was counted as sampled out lately; False may also mean that it was long ago."""
        return trace_id in self._sampled_out

    def has_excluded(self, trace_id: bytes) -> bool:
        """Whether this trace was recently counted as excluded on arrival."""
        return trace_id in self._excluded

    @property
    def open(self) -> int:
        """Traces that were seen and have not ended."""
        return self._seen - self._closed

    def balance(self) -> Balance:
        ended: Counter[EndReason] = Counter()
        for (_, reason), count in self._ended.items():
            ended[reason] += count
        return Balance(seen=self._seen, open=self.open, ended=dict(ended), revisions=self._revisions)


class RecentIds:
    """Ids in two generations of at most ``remembered`` each.

    When the young one is full it becomes the old one, and the old one is forgotten. An id is thus remembered for at
    least the next ``remembered`` distinct ids. Its cost is about 100 bytes an id, 200 in the two generations.
    """

    def __init__(self, remembered: int) -> None:
        self._remembered = remembered
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._young or trace_id in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def learn(self, trace_ids: AbstractSet[bytes]) -> AbstractSet[bytes]:
        """Remember these; return the new ones."""
        fresh = trace_ids
        if not (self._young.isdisjoint(trace_ids) and self._old.isdisjoint(trace_ids)):
            fresh = trace_ids - self._young - self._old
        if fresh:
            if len(self._young) + len(fresh) > self._remembered:
                self._old, self._young = self._young, set()
            # One request may hold more ids than a generation; what is beyond it is not remembered.
            room = self._remembered - len(self._young)
            self._young.update(fresh if len(fresh) <= room else list(fresh)[:room])
        return fresh
