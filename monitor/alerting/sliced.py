"""Sliced traffic: verdicts with their slices come in; slices that are worse than the others go out.

A slice is a value in one of a few dimensions: a version, a tenant, a route. In each dimension the ``MOST_VALUES`` with
most traffic, or most evidence against them, are separate; all others form one slice. Released things (a version, a
prompt, a model) are compared with the others at the same time. Anything else is compared with the threshold, as a
service is: a tenant that was always a little worse than others is no news while it keeps to the promised level. All
slices of all services share one budget of false alarms.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.lifecycle import FORGET_NS
from sidejudge.scoring.statistics.baseline import Baseline
from sidejudge.scoring.statistics.cusum import Cusum
from sidejudge.scoring.statistics.estimate import Estimate, from_sums
from sidejudge.scoring.statistics.evidence import Together
from sidejudge.scoring.statistics.two_streams import TwoStreams
from sidejudge.scoring.status.service_status import OTHER, RELEASED, SliceStatus
from sidejudge.scoring.trace.span import JsonRecord
from sidejudge.scoring.trace.time_units import HOUR_NS

from .observation import SliceFirst

MOST_VALUES: Final = 16
"""Values of one dimension of a service that are kept apart."""
MOST_SLICES: Final = 500
"""Slices of all services of a process that are kept apart: 10 kB each at most, and as much to write at a look."""
SHOWN: Final = 5
"""Most slices of a service under a rubric that are shown: the worst, besides those with a present or recent alert."""
_CANDIDATES: Final = 100
"""Values that are counted and not kept apart yet."""
_SUSPICIOUS: Final = 5.0
"""A failure of a value counts as so many of its verdicts when values compete for a place."""
_AHEAD: Final = 1.5
_HALF_NS: Final = 12 * HOUR_NS
"""After this time a value's counts weigh half when values compete for a place."""
_STEPS: Final = 96
_GONE: Final = 8.0
"""A slice has ended when it had no verdicts for the time that this many usually take, while others had some."""

_Outcomes: TypeAlias = Counter[tuple[bool, float]]
"""How many verdicts passed or failed, by weight."""


class SlicePace(NamedTuple):
    """A service's verdicts in the time of a window, the number of slices that share a budget, and the design effect."""

    per_window: float
    series: int
    effect: float


class _Sums(NamedTuple):
    """Sums over verdicts: how many, how many failed, their weights, weights of failed ones, squared weights."""

    n: int = 0
    failures: int = 0
    weight: float = 0.0
    failed_weight: float = 0.0
    squared_weight: float = 0.0

    def plus(self, other: _Sums, sign: int = 1) -> _Sums:
        return _Sums(*(mine + sign * others for mine, others in zip(self, other, strict=True)))  # type: ignore[arg-type]  # ints stay ints

    def estimate(self, design_effect: float) -> Estimate | None:
        if self.n <= 0 or self.weight <= 0 or self.squared_weight <= 0:
            return None
        return from_sums(**self._asdict(), design_effect=design_effect)


class _Course:
    """The latest verdicts as sums over steps of time, the oldest first: ``_STEPS`` of them make the longest window."""

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps: deque[tuple[int, _Sums]] = deque()

    def add(self, outcomes: _Outcomes, step: int) -> None:
        sums = _sums(outcomes)
        if self.steps and self.steps[-1][0] >= step:
            last, held = self.steps.pop()
            self.steps.append((last, held.plus(sums)))
        else:
            self.steps.append((step, sums))

    def keep_to(self, step: int, ahead: int) -> None:
        """Drop what the longest window does not reach, and what is further ahead, of another clock or shorter steps."""
        while self.steps and self.steps[0][0] <= step - _STEPS:
            self.steps.popleft()
        while self.steps and self.steps[-1][0] > step + ahead:
            self.steps.pop()

    def since(self, step: int) -> _Sums:
        held = [sums for at, sums in self.steps if at >= step]
        return _Sums(*map(sum, zip(*held, strict=True))) if held else _Sums()

    def reach(self, step: int, enough: float, design_effect: float) -> int:
        """The step since which there are ``enough`` effective verdicts, or the oldest; no later than ``step``."""
        weight = squared = 0.0
        for at, sums in reversed(self.steps):
            weight, squared = weight + sums.weight, squared + sums.squared_weight
            if at <= step and squared > 0 and weight * weight >= enough * design_effect * squared:
                return at
        return min(step, self.steps[0][0]) if self.steps else step


class _Slice:
    """What is known of one value of one dimension."""

    __slots__ = ("count", "course", "fall", "last_ns", "streams", "usual")

    def __init__(self, good: float, last_ns: int) -> None:
        self.course, self.usual, self.fall, self.streams = _Course(), Baseline(good), Cusum(), TwoStreams(good)
        self.count, self.last_ns = 0.0, last_ns

    @property
    def suspected(self) -> bool:
        return self.fall.alarmed or self.fall.score > 1 or self.streams.share > 0.2


class _Dimension:
    """The values of one dimension, and the course of all of them together."""

    __slots__ = ("candidates", "course", "values")

    def __init__(self) -> None:
        self.values: dict[str, _Slice] = {}
        self.course = _Course()
        self.candidates: dict[str, float] = {}

    def share(self, value: str) -> float:
        """The part of the traffic that has this value, as it was counted."""
        return self.values[value].count / max(1.0, math.fsum(each.count for each in self.values.values()))


class SlicedTraffic:
    """The slices of one service under one rubric."""

    __slots__ = ("_block", "_counted_ns", "_dimensions", "_raised", "_recent", "_rubric", "is_changed", "statuses")

    def __init__(self, rubric: str) -> None:
        self._rubric = rubric
        self._dimensions: dict[str, _Dimension] = {}
        self._block: Counter[SliceFirst] = Counter()
        self._counted_ns = 0
        self._raised: set[tuple[str, str]] = set()  # worse at the last look
        self._recent: dict[tuple[str, str], int] = {}  # and when that was last so, of what was worse within a day
        self.is_changed = True
        self.statuses: tuple[SliceStatus, ...] = ()

    @property
    def series(self) -> int:
        """How many slices are watched."""
        return sum(len(dimension.values) for dimension in self._dimensions.values())

    def add(self, slices: Mapping[str, str], *, passed: bool, weight: float) -> None:
        """Take in a verdict as it was first; it counts with the next look."""
        self.is_changed = True
        for by, value in slices.items():
            self._block[SliceFirst(by, value, passed, weight)] += 1

    def add_together(self, firsts: Mapping[SliceFirst, int]) -> None:
        """The same for many."""
        self.is_changed = True
        self._block.update(firsts)

    def look(self, declared: Declaration, pace: SlicePace, now_ns: int, *, room: int) -> None:
        """Take in the verdicts since the last look as one move, and put the slices to show into ``statuses``.

        Those are the slices whose alert is raised or just was, and ``SHOWN`` others at most, the worst first.

        Args:
            declared: what is watched, and its budget.
            pace: the service's traffic, and who shares the budget.
            now_ns: the time.
            room: how many further slices may be separate.
        """
        self._as_of(now_ns, declared)
        if self._block:
            self._take_block(declared, pace, now_ns, room)
            self.is_changed = True
        found = self._all(declared, pace, now_ns)
        shown = [each for each in found if each.estimate is not None and each.others is not None][:SHOWN]
        self.statuses = (
            *shown, *(each for each in found if each not in shown and (each.by, each.value) in self._recent),
        )  # fmt: skip
        worse = {(each.by, each.value) for each in found if each.worse}
        for by, value in self._raised - worse:
            if by in self._dimensions and (known := self._dimensions[by].values.get(value)) is not None:
                known.streams.over()
        self.is_changed |= worse != self._raised
        recent = {place: at_ns for place, at_ns in self._recent.items() if now_ns - at_ns < FORGET_NS}
        self._raised, self._recent = worse, recent | dict.fromkeys(worse, now_ns)

    def _as_of(self, now_ns: int, declared: Declaration) -> None:
        """Drop what is too old. After the clock was set back, what is dated more than a window ahead goes, too."""
        self._counted_ns = min(self._counted_ns, now_ns)
        step, ahead = (ns // _step_ns(declared) for ns in (now_ns, declared.window_ns))
        for dimension in self._dimensions.values():
            dimension.course.keep_to(step, ahead)
            for held in dimension.values.values():
                held.course.keep_to(step, ahead)
                held.last_ns = min(held.last_ns, now_ns)

    def _take_block(self, declared: Declaration, pace: SlicePace, now_ns: int, room: int) -> None:
        by_value: dict[str, dict[str, _Outcomes]] = {}
        for (by, value, passed, weight), n in self._block.items():
            by_value.setdefault(by, {}).setdefault(value, Counter())[passed, weight] += n
        self._block.clear()
        self._forget(now_ns)
        for by, values in by_value.items():
            if by in declared.slices:
                dimension = self._dimensions.setdefault(by, _Dimension())
                before = len(dimension.values)
                placed = self._placed(declared, dimension, values, now_ns, room)
                room -= len(dimension.values) - before
                self._take(declared, by, placed, pace, now_ns)

    def _take(
        self, declared: Declaration, by: str, values: Mapping[str, _Outcomes], pace: SlicePace, now_ns: int
    ) -> None:
        step, began_ns, dimension = now_ns // _step_ns(declared), now_ns - declared.look_ns, self._dimensions[by]
        whole: _Outcomes = sum(values.values(), Counter())
        dimension.course.add(whole, step)
        for value, part in values.items():
            known = dimension.values[value]
            known.course.add(part, step)
            known.last_ns = now_ns
            mine, verdicts = _together(part, pace.effect), dimension.share(value) * pace.per_window / pace.effect
            if by in RELEASED:
                limit = declared.slice_limit(verdicts, pace.series)
                known.streams.add(mine, _together(whole - part, pace.effect), limit, at_ns=began_ns)
            else:
                chart = declared.slice_chart(self._rubric, verdicts, pace.series, known.usual.lower)
                known.fall.add_together(chart, mine, at_ns=began_ns)
            known.usual.add_together(mine, at_ns=began_ns)

    def _placed(
        self, declared: Declaration, dimension: _Dimension, values: Mapping[str, _Outcomes], now_ns: int, room: int
    ) -> Mapping[str, _Outcomes]:
        """The outcomes by the values under which they count: those that have no place count together."""
        placed: dict[str, _Outcomes] = {}
        good, room = declared.good_and_bad(self._rubric)[0], room + len(dimension.values)

        def put(name: str, outcomes: _Outcomes) -> None:
            if name not in dimension.values:
                dimension.values[name] = _Slice(good, now_ns)
            dimension.values[name].count += _counted(outcomes)
            placed.setdefault(name, Counter()).update(outcomes)

        for value, outcomes in sorted(values.items()):
            has_place = self._has_place(dimension, value, _counted(outcomes), room - len(dimension.values))
            put(value if has_place else OTHER, outcomes)
        for lost in placed.keys() - dimension.values.keys():  # another of the same look took its place
            put(OTHER, placed.pop(lost))
        return placed

    def _has_place(self, dimension: _Dimension, value: str, count: float, room: int) -> bool:
        if value in dimension.values or (len(dimension.values) < MOST_VALUES and room > 0):
            return True
        candidates = dimension.candidates
        candidates[value] = candidates.get(value, 0.0) + count
        if len(candidates) > _CANDIDATES:
            del candidates[min(candidates, key=candidates.__getitem__)]
        held = {name: each.count for name, each in dimension.values.items() if name != OTHER and not each.suspected}
        least = min(held, key=held.__getitem__, default=None)
        if least is None or candidates.get(value, 0.0) <= _AHEAD * held[least]:
            return False
        del dimension.values[least]
        return True

    def _forget(self, now_ns: int) -> None:
        """Let older counts fade, and drop values that were not seen for long."""
        if not self._counted_ns:
            self._counted_ns = now_ns
        if now_ns - self._counted_ns < _HALF_NS:
            return
        self._counted_ns = now_ns
        for dimension in self._dimensions.values():
            for held in dimension.values.values():
                held.count /= 2
            dimension.candidates = {value: count / 2 for value, count in dimension.candidates.items() if count > 1}
            gone = [value for value, held in dimension.values.items() if now_ns - held.last_ns > 4 * _HALF_NS]
            for value in gone:
                del dimension.values[value]

    def _all(self, declared: Declaration, pace: SlicePace, now_ns: int) -> list[SliceStatus]:
        found = [
            self._status(declared, by, value, pace, now_ns)
            for by, dimension in self._dimensions.items()
            if by in declared.slices and len(dimension.values) > 1
            for value in dimension.values
        ]
        order = {by: place for place, by in enumerate(declared.slices)}
        found.sort(key=lambda each: (not each.worse, -each.share, order[each.by], each.value))
        return list(_apart(found))

    def _status(self, declared: Declaration, by: str, value: str, pace: SlicePace, now_ns: int) -> SliceStatus:
        dimension, length_ns = self._dimensions[by], _step_ns(declared)
        known = dimension.values[value]
        first = (now_ns - declared.window_ns) // length_ns + 1
        begin = known.course.reach(first, declared.policy.min_samples, pace.effect)
        mine = known.course.since(begin)
        estimate = mine.estimate(pace.effect)
        others = dimension.course.since(begin).plus(mine, -1).estimate(pace.effect)
        stands = (by, value) in self._raised  # what begins must lie further apart: near the threshold it would flap
        if by in RELEASED:
            share, since_ns = known.streams.share, known.streams.since_ns
            raised = known.streams.worse
        else:
            warning = declared.policy_of(self._rubric).thresholds.warning
            since = known.fall.pass_ratio
            verdicts = dimension.share(value) * pace.per_window / pace.effect
            chart = declared.slice_chart(self._rubric, verdicts, pace.series, known.usual.lower)
            share, since_ns = known.fall.score / known.fall.limit(chart), known.fall.since_ns
            begins = since is not None and round(since, 9) < warning and share >= 1
            raised = known.fall.alarmed and (stands or begins)
            raised = raised and (estimate is None or round(estimate.lower, 9) <= warning)
        last = known.last_ns // length_ns
        usual = mine.n / (max(1, last - begin + 1) * length_ns)
        gone = usual * (now_ns - known.last_ns) >= _GONE and dimension.course.since(last + 1).n > 0
        worse = False
        if raised and not gone and estimate is not None and others is not None:
            # What hit the whole service is no news of a part: its figure must lie apart from that of the others.
            worse = (estimate.pass_ratio if stands else estimate.one_sided.upper) < others.pass_ratio
        return SliceStatus(
            by=by, value=value, estimate=estimate, others=others, worse=worse, share=share, since_ns=since_ns
        )

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        return {
            "counted_ns": self._counted_ns, "block": [[*first, n] for first, n in self._block.items()],
            "raised": sorted(map(list, self._raised)),
            "recent": sorted([*place, at_ns] for place, at_ns in self._recent.items()),
            "dimensions": {
                by: {
                    "course": [[at, *sums] for at, sums in dimension.course.steps],
                    "values": {
                        value: {
                            "course": [[at, *sums] for at, sums in held.course.steps], "usual": held.usual.to_json(),
                            "fall": held.fall.to_json(), "streams": held.streams.to_json(), "count": held.count,
                            "last_ns": held.last_ns,
                        }
                        for value, held in dimension.values.items()
                    },
                }
                for by, dimension in self._dimensions.items()
            },
        }  # fmt: skip

    def restore(self, record: JsonRecord) -> None:
        """Restore the state that ``to_json`` wrote."""
        self._counted_ns = int(record["counted_ns"])
        self._block.update({SliceFirst(*first): n for *first, n in record["block"]})
        self._raised = {(by, value) for by, value in record["raised"]}
        self._recent = dict.fromkeys(self._raised, self._counted_ns)  # an older version stored no times
        self._recent |= {(by, value): int(at_ns) for by, value, at_ns in record.get("recent", ())}
        for by, dimension in record["dimensions"].items():
            known = self._dimensions[by] = _Dimension()
            known.course.steps.extend(_steps(dimension["course"]))
            for value, held in dimension["values"].items():
                one = known.values[value] = _Slice(0.5, int(held["last_ns"]))
                one.course.steps.extend(_steps(held["course"]))
                one.count = float(held["count"])
                for part in ("usual", "fall", "streams"):
                    getattr(one, part).restore(held[part])


def _apart(found: Iterable[SliceStatus]) -> Iterable[SliceStatus]:
    """Slices without those that are the same traffic under another name: a canary has its own version and prompt."""
    seen = set()
    for each in found:
        if each.estimate is None or each.others is None:
            yield each
            continue
        same = (each.estimate.n, each.estimate.failures, each.others.n, each.others.failures)
        if same in seen:
            yield replace(each, worse=False)
        else:
            yield each
        seen.add(same)


def _counted(outcomes: _Outcomes) -> float:
    """How much they count for a place: failures count more."""
    return math.fsum(n * (1.0 if passed else _SUSPICIOUS) for (passed, _), n in outcomes.items())


def _together(outcomes: _Outcomes, effect: float) -> list[Together]:
    return [Together(passed, weight, n, n / effect) for (passed, weight), n in sorted(outcomes.items()) if n > 0]


def _sums(outcomes: _Outcomes) -> _Sums:
    counted = [(n, passed, weight) for (passed, weight), n in outcomes.items()]
    return _Sums(
        n=sum(n for n, _, _ in counted), failures=sum(n for n, passed, _ in counted if not passed),
        weight=math.fsum(n * weight for n, _, weight in counted),
        failed_weight=math.fsum(n * weight for n, passed, weight in counted if not passed),
        squared_weight=math.fsum(n * weight * weight for n, _, weight in counted),
    )  # fmt: skip


def _step_ns(declared: Declaration) -> int:
    return max(1, max(declared.window_ns, declared.longest_ns) // _STEPS)


def _steps(stated: Iterable[Iterable[float]]) -> Iterable[tuple[int, _Sums]]:
    for at, n, failures, weight, failed_weight, squared in stated:
        yield int(at), _Sums(int(n), int(failures), weight, failed_weight, squared)
