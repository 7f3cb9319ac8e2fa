"""The verdicts of the last window, an hour by default, per service, environment and rubric, and their estimates.

Windows slide exactly: a verdict counts from its time until ``window_ns`` later, to the nanosecond, or longer where
there are few. A revision replaces what it revises, wherever that stands. Sums are kept as verdicts come and go, in
exact arithmetic, so a window that has run for months equals one computed afresh. Memory is bounded in verdicts and in
keys.
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from sidejudge.scoring.statistics.agreement import Confusion
from sidejudge.scoring.statistics.estimate import Estimate, check_weight, from_sums
from sidejudge.scoring.statistics.interval import missing_band
from sidejudge.scoring.statistics.sequence import ConfidenceSequence
from sidejudge.scoring.statistics.sums import ExactSum
from sidejudge.scoring.statistics.two_phase import LEAST_DRAWN, corrected
from sidejudge.scoring.status.service_status import OTHER, ServiceStatus
from sidejudge.scoring.status.status import Drops, Policy, appraise
from sidejudge.scoring.verdict.escalation import Escalation

from .cascade_sums import CascadeSums
from .observation import Key, Observation

MOST_VERDICTS: Final = 20_000
"""Verdicts that the windows of a process hold."""


class HeldObservation(NamedTuple):
    """One observation as a window keeps it: names of metrics shared, values packed. That halves its memory."""

    at_ns: int
    passed: bool | None
    weight: float
    forced: bool
    judge_failed: bool
    blockers: tuple[str, ...]
    revision: int
    composite: float | None
    metrics: tuple[str, ...]
    values: array[float]
    cascade: Escalation | None
    cluster: str | None
    unasked: bool = False


class _Mean:
    """A weighted mean from which values can be removed: Σ w·x / Σ w."""

    __slots__ = ("n", "product", "weight")

    def __init__(self) -> None:
        self.n, self.product, self.weight = 0, ExactSum(), ExactSum()

    def move(self, value: float, weight: float, sign: int) -> None:
        self.n += sign
        self.product.add(value * weight, sign)
        self.weight.add(weight, sign)

    @property
    def value(self) -> float:
        return self.product.value / self.weight.value


class _Window:
    """The sums over one key's observations, and their order in time."""

    __slots__ = (
        "alone", "cascade", "clusters", "composite", "expiry", "failed_weight", "failures", "forced", "incomplete",
        "incomplete_weight", "judge_failed", "latest_ns", "members", "metrics", "n", "names", "since_ns",
        "squared_weight", "stretch", "unasked_weight", "weight",
    )  # fmt: skip

    def __init__(self) -> None:
        self.since_ns = 0
        self.members: dict[str, HeldObservation] = {}
        self.names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.expiry: list[tuple[int, str]] = []
        self.n = self.failures = self.incomplete = self.judge_failed = self.forced = 0
        self.weight, self.failed_weight, self.squared_weight = ExactSum(), ExactSum(), ExactSum()
        self.incomplete_weight, self.unasked_weight = ExactSum(), ExactSum()
        self.cascade: CascadeSums | None = None
        self.alone = self.latest_ns = 0
        self.clusters: dict[str, int] = {}
        self.composite = _Mean()
        self.metrics: dict[str, _Mean] = {}
        self.stretch: tuple[int, _Window] | None = None
        """The sums since a time, as long as they are requested."""

    def insert(self, seen: Observation) -> None:
        if not self.members:
            self.names.clear()
        names = tuple(seen.metrics)
        held = HeldObservation(
            seen.at_ns, seen.passed, seen.weight, seen.selection == "forced", seen.judge_failed,
            self.names.setdefault(seen.blockers, seen.blockers), seen.revision, seen.composite,
            self.names.setdefault(names, names), array("d", seen.metrics.values()), seen.cascade, seen.cluster,
            seen.unasked,
        )  # fmt: skip
        self.move(held, 1)
        self.members[seen.identity] = held
        heapq.heappush(self.expiry, (seen.at_ns, seen.identity))

    def remove(self, identity: str) -> None:
        self.move(self.members.pop(identity), -1)
        # Removed observations leave their place in the queue; it is rebuilt before the dead outnumber the living.
        if len(self.expiry) > 2 * len(self.members) + 64:
            self.expiry = [(held.at_ns, identity) for identity, held in self.members.items()]
            heapq.heapify(self.expiry)

    def oldest(self) -> tuple[int, str] | None:
        """Time and identity of the oldest member."""
        while self.expiry:
            at_ns, identity = self.expiry[0]
            held = self.members.get(identity)
            if held is not None and held.at_ns == at_ns:
                return at_ns, identity
            heapq.heappop(self.expiry)
        return None

    def move(self, seen: HeldObservation, sign: int) -> None:
        if self.stretch is not None and seen.at_ns >= self.stretch[0]:
            self.stretch[1].move(seen, sign)
        self.forced += sign * seen.forced
        self.judge_failed += sign * seen.judge_failed
        if seen.passed is None:
            self.incomplete += sign
            self.incomplete_weight.add(seen.weight, sign)
            if seen.unasked:
                self.unasked_weight.add(seen.weight, sign)
        else:
            self.n += sign
            self.failures += sign * (not seen.passed)
            self.weight.add(seen.weight, sign)
            self.squared_weight.add(seen.weight * seen.weight, sign)
            if not seen.passed:
                self.failed_weight.add(seen.weight, sign)
            self._belongs(seen.cluster, sign)
        if seen.cascade is not None:
            self.cascade = self.cascade or CascadeSums()
            self.cascade.move(seen.passed, seen.weight, seen.cascade, sign)
        if seen.composite is not None:
            self.composite.move(seen.composite, seen.weight, sign)
        for name, value in zip(seen.metrics, seen.values, strict=True):
            mean = self.metrics.get(name)
            if mean is None:
                mean = self.metrics[name] = _Mean()
            mean.move(value, seen.weight, sign)
            if mean.n == 0:
                del self.metrics[name]

    def _belongs(self, cluster: str | None, sign: int) -> None:
        if cluster is None:
            self.alone += sign
            return
        held = self.clusters.get(cluster, 0) + sign
        if held:
            self.clusters[cluster] = held
        else:
            del self.clusters[cluster]

    def since(self, since_ns: int) -> _Window:
        """The sums over what came since then. They follow the window: to add them up anew takes 25 µs a verdict."""
        if self.stretch is None or self.stretch[0] != since_ns:
            found = _Window()
            for held in self.members.values():
                if held.at_ns >= since_ns:
                    found.move(held, 1)
            self.stretch = since_ns, found
        return self.stretch[1]

    @property
    def means(self) -> dict[str, float]:
        """The weighted mean of each metric, over the verdicts that scored it."""
        return {name: self.metrics[name].value for name in sorted(self.metrics)}

    def enough_without(self, identity: str, enough: float) -> bool:
        """Whether the window without this member has at least this effective sample size."""
        seen = self.members[identity]
        weight, squared = self.weight.value, self.squared_weight.value
        if seen.passed is not None:
            weight, squared = weight - seen.weight, squared - seen.weight * seen.weight
        return squared > 0 and weight / squared * weight >= enough


class Windows:
    """All windows of this process.

    With ``longest_ns`` a window reaches further back than ``window_ns``, at most so far, until it holds ``enough``
    effective verdicts: an hour where there is traffic, a day where there is little. ``design`` holds design effects of
    keys; a key that is not in it has none. ``usual`` holds how many verdicts usually come in ``window_ns`` at this hour
    at least: where that is enough, fewer are a silence, which older verdicts must not hide.

    Where the clock is set back, what has left a window does not return, and what is then dated more than ``window_ns``
    ahead leaves too: it would count for as long as the clock was ahead. Beyond ``max_verdicts`` (about 1 kB each) the
    fullest window lets go of its oldest (``shortened`` counts them). Beyond ``max_keys`` the key that has been empty
    longest is forgotten; if none is empty, new keys share the service ``__other__``.
    """

    def __init__(
        self, window_ns: int, *, longest_ns: int = 0, enough: float = 0.0, max_verdicts: int = MOST_VERDICTS,
        max_keys: int = 1_000,
    ) -> None:  # fmt: skip
        if window_ns <= 0 or max_verdicts <= 0 or max_keys <= 0:
            raise ValueError(
                f"a window needs a positive length and positive limits, got {window_ns}, {max_verdicts}, {max_keys}"
            )
        self.window_ns, self.reach_ns = window_ns, max(window_ns, longest_ns)
        self.design: dict[Key, float] = {}
        self.usual: dict[Key, float] = {}
        self.shortened = 0
        self._enough = enough
        self._max_verdicts, self._max_keys = max_verdicts, max_keys
        self._windows: dict[Key, _Window] = {}
        self._where: dict[tuple[str, str], Key] = {}
        # Keys by how many verdicts their windows hold: to look at all windows would cost each verdict a thousand steps.
        self._by_size: dict[int, dict[Key, None]] = {}
        self._largest = 0  # at most so many

    def __len__(self) -> int:
        """Verdicts held, over all windows."""
        return len(self._where)

    def add(self, key: Key, seen: Observation) -> bool:
        """Take in a verdict; whether it counts (an older revision than the one held does not)."""
        check_weight(seen.weight)
        place = (seen.identity, key.rubric)
        former = self._where.get(place)
        if former is not None:
            if self._windows[former].members[seen.identity].revision > seen.revision:
                return False
            self._drop(former, self._windows[former], seen.identity)
        key = self._room_for(key)
        if (window := self._windows.get(key)) is None:
            window = self._windows[key] = _Window()
        window.insert(seen)
        self._sized(key, len(window.members) - 1, len(window.members))
        self._where[place] = key
        if self.reach_ns > self.window_ns:
            self._at(key, seen.at_ns)  # what is refilled after a restart never holds more than it did
        while len(self._where) > self._max_verdicts:
            self._shorten()
        return True

    def begins(self, rows: Iterable[tuple[Key, int, float | None]], now_ns: int) -> dict[Key, int]:
        """Since when the verdicts of each key are needed to fill its window again: older ones would leave at once.

        Args:
            rows: Of each verdict the key, the time and the weight, newest first; None: it does not make enough.
            now_ns: The present.
        """
        times: dict[Key, array[int]] = {}
        needed: dict[Key, int] = {}
        sums: dict[Key, tuple[float, float]] = {}
        for key, at_ns, weight in rows:
            times.setdefault(key, array("q")).append(at_ns)
            total, squared = sums.get(key, (0.0, 0.0))
            # Some more than are enough: the times by which they count may be earlier by moments.
            least = 1.25 * self._enough * self.design.get(key, 1.0)
            if at_ns > now_ns - self.window_ns or total * total < least * squared or not total:
                needed[key] = len(times[key])
            if weight is not None:
                sums[key] = total + weight, squared + weight * weight
        # The fullest windows are cut to one length.
        longest = bisect_right(
            range(1, self._max_verdicts + 1), self._max_verdicts,
            key=lambda most: sum(min(n, most) for n in needed.values()),
        )  # fmt: skip
        return {key: times[key][min(n, longest) - 1] for key, n in needed.items() if longest}

    def withdraw(self, identity: str, rubric: str) -> bool:
        """Remove the verdict on a trace by a rubric that no longer judges it; return whether there was one."""
        key = self._where.get((identity, rubric))
        if key is None:
            return False
        self._drop(key, self._windows[key], identity)
        return True

    def forget(self, rubric: str) -> None:
        """Drop all verdicts by a rubric, because another version is not comparable."""
        for key, window in list(self._windows.items()):
            if key.rubric == rubric:
                for identity in list(window.members):
                    self._drop(key, window, identity)

    def remove_rubric(self, rubric: str) -> None:
        """Remove a rubric that is gone: its verdicts, and the keys that had some."""
        self.forget(rubric)
        for key in [key for key in self._windows if key.rubric == rubric]:
            self._remove(key)

    def keys(self) -> list[Key]:
        """Every key that has had a verdict, also when its window is empty by now, in alphabetical order."""
        return sorted(self._windows)

    def _estimate(self, key: Key, window: _Window | None, begins: int = 1) -> Estimate | None:
        """The pass ratio and its bounds; None where no verdict in the window passed or failed.

        Behind a cascade of judges it is the ratio that the strongest would have found, once enough were drawn.
        """
        plain = self._as_delivered(key, window, begins)
        if window is None or plain is None or window.cascade is None:
            return plain
        return corrected(plain, window.cascade.drawn_sums, least=LEAST_DRAWN) or plain

    def _as_delivered(self, key: Key, window: _Window | None, begins: int = 1) -> Estimate | None:
        if window is None:
            return None
        return from_sums(
            n=window.n,
            failures=window.failures,
            weight=window.weight.value,
            failed_weight=window.failed_weight.value,
            squared_weight=window.squared_weight.value,
            clusters=window.alone + len(window.clusters) if window.clusters else None,
            design_effect=self.design.get(key, 1.0),
            begins=begins,
        )

    def status(
        self, key: Key, now_ns: int, policy: Policy, sequence: ConfidenceSequence | None = None,
        drops: Drops | None = None, *, since_ns: int | None = None,
    ) -> ServiceStatus:  # fmt: skip
        """The status of this key at ``now_ns``; mode ``adaptive`` decides by ``sequence`` and ``drops`` as well.

        ``since_ns``: the window begins at that moment, where it lies within the window. It was chosen among all
        failures in the window, which the bounds allow for.
        """
        window, begins = self._as_of(key, now_ns), 1
        reach_ns = self._reach(window, now_ns)
        if window is not None and window.stretch is not None and window.stretch[0] <= now_ns - reach_ns:
            window.stretch = None  # that is the window itself by now
        if window is not None and since_ns is not None and now_ns - reach_ns < since_ns < now_ns:
            window, begins, reach_ns = window.since(since_ns), window.failures, now_ns - since_ns
        estimate, cascade = self._estimate(key, window, begins), None
        if window is not None and window.cascade is not None:
            cascade = window.cascade.snapshot(self._as_delivered(key, window))
        incomplete, judge_failed = (window.incomplete, window.judge_failed) if window else (0, 0)
        return ServiceStatus(
            service=key.service, environment=key.environment, rubric=key.rubric, estimate=estimate,
            appraisal=appraise(
                estimate, policy, sequence, drops, incomplete=incomplete, judge_failed=judge_failed
            ),
            incomplete=incomplete, judge_failed=judge_failed,
            forced=window.forced if window else 0,
            composite_mean=window.composite.value if window and window.composite.n else None,
            metric_means=window.means if window else {},
            missing=None if window is None else missing_band(
                weight=window.weight.value, failed_weight=window.failed_weight.value,
                missing_weight=window.incomplete_weight.value,
            ),
            thresholds=policy.thresholds, cascade=cascade, reach_ns=reach_ns,
            waiting=window.unasked_weight.value if window else 0.0,
        )  # fmt: skip

    def unasked(self) -> dict[Key, float]:
        """How many traces stand for those in each window that an outage kept from an answer, where there are any."""
        found = {key: window.unasked_weight.value for key, window in self._windows.items()}
        return {key: weight for key, weight in found.items() if weight > 0}

    def know(self, key: Key) -> None:
        """Hold an empty window of a key that had verdicts once."""
        key = self._room_for(key)
        if key not in self._windows:
            self._windows[key] = _Window()
            self._sized(key, None, 0)

    def _reach(self, window: _Window | None, now_ns: int) -> int:
        """How far back the window reaches now: to its oldest verdict, and to ``window_ns`` at least."""
        oldest = window.oldest() if window is not None else None
        return self.window_ns if oldest is None else max(self.window_ns, now_ns - oldest[0])

    def decided(self, key: Key) -> int:
        """How many verdicts that passed or failed the key's window held when it was last looked at."""
        window = self._windows.get(key)
        return window.n if window is not None else 0

    def pace(self, key: Key) -> float:
        """Verdicts that passed or failed in the time of ``window_ns``, by the key's window when it was looked at."""
        window = self._windows.get(key)
        oldest = window.oldest() if window is not None else None
        if window is None or oldest is None:
            return 0.0
        return window.n * min(1.0, self.window_ns / max(1, window.latest_ns - oldest[0]))

    def members(self, key: Key, now_ns: int) -> list[HeldObservation]:
        """The observations in the key's window at ``now_ns``; the list is the caller's."""
        window = self._as_of(key, now_ns)
        return [] if window is None else list(window.members.values())

    def both(self, one: Key, other: Key, now_ns: int) -> Confusion:
        """Traces with a decided verdict in both windows: by the first (rows) and the second (columns), fails first."""
        counts = [[0, 0], [0, 0]]
        mine, theirs = self._as_of(one, now_ns), self._as_of(other, now_ns)
        for identity, held in mine.members.items() if mine is not None and theirs is not None else ():
            beside = theirs.members.get(identity) if theirs is not None else None
            if beside is not None and held.passed is not None and beside.passed is not None:
                counts[held.passed][beside.passed] += 1
        return Confusion(counts=((counts[0][0], counts[0][1]), (counts[1][0], counts[1][1])))

    def _as_of(self, key: Key, now_ns: int) -> _Window | None:
        """The window of a key at the time of the clock. After the clock was set back, what is dated ahead goes."""
        window, ahead_ns = self._windows.get(key), now_ns + self.window_ns
        if window is not None and window.latest_ns > ahead_ns:
            for identity in [identity for identity, held in window.members.items() if held.at_ns > ahead_ns]:
                self._drop(key, window, identity)
            window.latest_ns = now_ns
        return self._at(key, now_ns)

    def _at(self, key: Key, now_ns: int) -> _Window | None:
        window = self._windows.get(key)
        if window is not None:
            window.latest_ns = max(window.latest_ns, now_ns)
            enough = self._enough * self.design.get(key, 1.0)
            if self.usual.get(key, 0.0) >= enough:
                enough = 0.0
            while (oldest := window.oldest()) is not None and oldest[0] <= now_ns - self.window_ns:
                if enough and oldest[0] > now_ns - self.reach_ns and not window.enough_without(oldest[1], enough):
                    break
                self._evict(key, window, oldest)
        return window

    def time_of(self, identity: str, rubric: str) -> int | None:
        """When the verdict on a trace by a rubric counts from, in ns; None where no window holds one."""
        key = self._where.get((identity, rubric))
        return None if key is None else self._windows[key].members[identity].at_ns

    def whole_since(self, key: Key) -> int:
        """The time since which the key's window holds every verdict, in ns."""
        window = self._windows.get(key)
        return window.since_ns if window is not None else 0

    def _evict(self, key: Key, window: _Window, oldest: tuple[int, str]) -> None:
        window.since_ns = max(window.since_ns, oldest[0])
        self._drop(key, window, oldest[1])

    def _drop(self, key: Key, window: _Window, identity: str) -> None:
        window.remove(identity)
        del self._where[identity, key.rubric]
        self._sized(key, len(window.members) + 1, len(window.members))

    def _sized(self, key: Key, before: int | None, after: int | None) -> None:
        """A window holds another number of verdicts; None: there was, or is, no window."""
        if before is not None and (alike := self._by_size.get(before)) is not None:
            alike.pop(key, None)
            if not alike:
                del self._by_size[before]
        if after is not None:
            self._by_size.setdefault(after, {})[key] = None
            self._largest = max(self._largest, after)

    def _remove(self, empty: Key) -> None:
        del self._windows[empty]
        self._sized(empty, 0, None)

    def _shorten(self) -> None:
        while self._largest not in self._by_size:
            self._largest -= 1  # never more steps than verdicts came
        key = next(iter(self._by_size[self._largest]))
        window = self._windows[key]
        oldest = window.oldest()
        if oldest is not None:
            self._evict(key, window, oldest)
            self.shortened += 1

    def _room_for(self, key: Key) -> Key:
        if key in self._windows or len(self._windows) < self._max_keys:
            return key
        empty = next(iter(self._by_size.get(0, ())), None)
        if empty is None:
            return Key(OTHER, OTHER, key.rubric)
        self._remove(empty)
        return key
