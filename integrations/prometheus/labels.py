"""Label values: the configuration's own, and values from traces, which are cleaned, cut and limited in number."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from sidejudge.scoring.alerts.condition import Condition
from sidejudge.scoring.lexical.shown_text import MAX_LENGTH, clean
from sidejudge.scoring.status.metric_status import MetricLimit
from sidejudge.scoring.status.service_status import OTHER
from sidejudge.scoring.status.status import Thresholds
from sidejudge.scoring.verdict.rubric import Rubric

log = logging.getLogger("sidejudge.metrics")


class LabelCap:
    """The first ``cap`` distinct values of one label, kept for good; all later ones are ``__other__``.

    Values that the configuration names (``known``) do not count towards the cap. The first value that does
    not fit is logged, once, with what to do about it.
    """

    def __init__(self, label: str, cap: int, known: Iterable[str] = ()) -> None:
        if cap < 1:
            raise ValueError(f"the cap of label {label!r} must be at least 1, got {cap}")
        self._label, self._cap = label, cap
        self._known = {value: clean(value) for value in known}
        self._values = set(self._known.values())
        self._room = cap
        self._warned = False

    def know(self, values: Iterable[str]) -> None:
        """Add further values of the configuration; they do not count towards the cap."""
        self._known |= {value: clean(value) for value in values}
        self._values |= set(self._known.values())

    def holds(self, value: str | None, unknown: str) -> bool:
        """Whether ``bound`` has a place for this value already."""
        return (clean(value or unknown) or unknown) in self._values

    def bound(self, value: str | None, unknown: str) -> str:
        """The label value for ``value``; ``unknown`` when there is none."""
        raw = value or unknown
        known = self._known.get(raw)
        if known is not None:
            return known
        text = clean(raw) or unknown
        if text in self._values or text == OTHER:
            return text
        if self._room:
            self._room -= 1
            self._values.add(text)
            if len(raw) <= MAX_LENGTH:
                self._known[raw] = text
            return text
        if not self._warned:
            self._warned = True
            log.warning(
                "label %s has more than %d values; %r and all later ones are counted as %s. "
                "Raise metrics.label_cap, or give fewer names",
                self._label, self._cap, text, OTHER,
            )  # fmt: skip
        return OTHER


PER_CAP: Final = 4
"""Combinations of several labels that are kept apart, per value that one label may have."""


class Combinations:
    """The first ``PER_CAP`` × ``cap`` combinations of label values; later ones are not admitted."""

    def __init__(self, cap: int) -> None:
        self._held: set[tuple[str, ...]] = set()
        self._most = PER_CAP * cap

    def admits(self, *values: str) -> bool:
        """Whether a combination is among the first ones; a new one is kept if there is room."""
        if len(self._held) < self._most:
            self._held.add(values)
        return values in self._held


K = TypeVar("K", bound=Hashable)


class Recent(Generic[K]):
    """At most ``most`` keys. A new one takes the place of the one not seen for longest, if that is ``idle_s`` ago.

    Where all were seen since, the new one finds no room: whoever sends ever new keys replaces at most ``most`` of
    them in ``idle_s`` seconds, and none that is in use.

    Args:
        most: How many keys are kept.
        idle_s: Seconds without a sight after which a key may be forgotten. It is kept while there is room.
        clock_s: Seconds that never go back.
        forgotten: Called with each key that is forgotten.
    """

    def __init__(
        self, most: int, *, idle_s: float, clock_s: Callable[[], float], forgotten: Callable[[K], None]
    ) -> None:
        self._most, self._idle_s, self._clock_s, self._forgotten = most, idle_s, clock_s, forgotten
        self._seen: OrderedDict[K, float] = OrderedDict()

    def admits(self, key: K) -> bool:
        """Whether there is room for this key; it counts as seen now."""
        now = self._clock_s()
        if key not in self._seen and len(self._seen) >= self._most:
            oldest = next(iter(self._seen))
            if now - self._seen[oldest] < self._idle_s:
                return False
            self.forget(oldest)
        self._seen[key] = now
        self._seen.move_to_end(key)
        return True

    def forget(self, key: K) -> None:
        """Make room."""
        if self._seen.pop(key, None) is not None:
            self._forgotten(key)

    def __iter__(self) -> Iterator[K]:
        return iter(tuple(self._seen))


SELECTIONS = ("random", "forced")
INCOMPLETE = ("unavailable", "error", "not_applicable")
IGNORED = ("duplicate", "late", "own", "too_large", "shed")
IGNORED_LOGS = ("untraced", "plain", "late", "own", "too_large")
SIGNALS = ("traces", "logs", "metrics", "other")
CLASSES = ("2xx", "3xx", "4xx", "5xx")
REFUSED = (400, 401, 404, 405, 413, 415, 429, 503)
"""Every status that the receiver answers an export with, besides 200."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownJudge:
    """Label values known before any event: the models, why requests may fail, flags and shapes of answers."""

    models: Iterable[str]
    failures: Iterable[str]
    flags: Iterable[str]
    shapes: Iterable[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLabels:
    """Label values that the configuration defines before any event.

    ``rubrics`` are those that a route can reach, ``rubrics_of`` names those that can judge a service (None: all);
    ``ended_reasons`` why traces end, ``rejected_reasons`` why spans are refused; ``destinations`` why each may refuse.
    ``forward_failures`` and ``forward_unjudged`` are why what goes on may fail; none where nothing goes on.
    ``pull_failures`` are why reading traces may end early; none where none are read. ``revision_failures`` are why a
    verdict may stand though its reference changed; none where none is looked for. ``forced``: a rule of sampling may
    keep what the base rate does not.
    """

    rubrics: Sequence[Rubric]
    ended_reasons: Sequence[str]
    rejected_reasons: Sequence[str] = ()
    destinations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    forward_failures: Sequence[str] = ()
    forward_unjudged: Sequence[str] = ()
    forward_ends: Sequence[str] = ()
    forward_unkept: Sequence[str] = ()
    pull_failures: Sequence[str] = ()
    revision_failures: Sequence[str] = ()
    violations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rubrics_of: Callable[[str], Collection[str]] | None = None
    forced: bool = True
    thresholds: Thresholds = field(default_factory=Thresholds)
    own_thresholds: Mapping[str, Thresholds] = field(default_factory=dict)
    conditions: Sequence[Condition] = ()
    limits: Sequence[MetricLimit] = ()
    judge: KnownJudge | None = None
    version: str = "unknown"
    revision: str = "unknown"
    python: str = "unknown"
    fingerprint: str = "unknown"
