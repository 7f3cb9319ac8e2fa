"""The windows of the fleet: slices of all monitors, added up by service, environment and rubric, and values of metrics.

Sums are exact, so that a window holds what one monitor with all the traffic would hold, however it was divided and in
whatever order the slices came. Edges lie between slices: a window that reaches back until it holds enough may hold up
to one minute's verdicts too many. A monitor that has left stays in the windows until its slices are too old.

Percentiles cannot be added, so each monitor publishes the values themselves beside its slices, each with weight,
session and time. The leader's windows then hold what one monitor with all the traffic would hold, to the nanosecond,
and the same code finds the same estimate. A body is the slices and behind them the values, each compressed for itself:
a monitor of a version that knows no values reads the first part and passes over the rest.
"""

from __future__ import annotations

import bisect
import json
import math
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from sidejudge.monitor.alerting.cascade_sums import CascadeSums
from sidejudge.monitor.alerting.details import Details, WatchedWindow
from sidejudge.monitor.alerting.limited_windows import LimitedWindows
from sidejudge.monitor.alerting.metric_watch import MetricWatch
from sidejudge.monitor.alerting.observation import First, Key, Observation, SliceFirst
from sidejudge.monitor.alerting.windows import HeldObservation, Windows
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.statistics.estimate import Estimate, MeanEstimate, MeanSums, from_sums, mean_from_sums
from sidejudge.scoring.statistics.interval import missing_band
from sidejudge.scoring.statistics.sequence import ConfidenceSequence
from sidejudge.scoring.statistics.sums import ExactSums
from sidejudge.scoring.statistics.two_phase import LEAST_DRAWN, corrected
from sidejudge.scoring.status.metric_status import APPLICATION, MetricLimit
from sidejudge.scoring.status.service_status import OTHER, ServiceStatus
from sidejudge.scoring.status.status import Behind, Drops, Policy, appraise

from .slices import (
    BEHIND,
    BEHIND_PASSED,
    MOST_BYTES,
    SLICE_NS,
    WAITING,
    KeySlice,
    decoded,
    decoded_waiting,
    digest,
    end_ns,
)

MAX_KEYS: Final = 20_000
"""Services under rubrics that are kept apart; the rest share the service ``__other__``."""

InForce: TypeAlias = Callable[[str, str | None], bool]
"""Whether verdicts by this version of a rubric count."""


class _Held(NamedTuple):
    """A slice of a monitor as received, with the places of its keys and the number of its decided verdicts."""

    body: bytes
    places: Mapping[Key, Key]
    decided: int


class _KeyWindow:
    """One key's slices, all monitors added up, and their sum. What is at ``floor`` or before it has left."""

    __slots__ = ("floor", "numbers", "slices", "whole")

    def __init__(self) -> None:
        self.slices: dict[int, KeySlice] = {}
        self.numbers: list[int] = []
        self.whole = KeySlice()
        self.floor = -1

    def move(self, number: int, part: KeySlice, times: int) -> None:
        if number <= self.floor:
            return
        if number not in self.slices:
            self.slices[number] = KeySlice()
            bisect.insort(self.numbers, number)
        self.slices[number].merge(part, times)
        self.whole.merge(part, times)

    def drop_oldest(self) -> None:
        self.floor = self.numbers.pop(0)
        self.whole.merge(self.slices.pop(self.floor), -1)

    def enough_without_oldest(self, enough: float) -> bool:
        part = self.slices[self.numbers[0]].sums
        weight = self.whole.sums.total("weight") - part.total("weight")
        squared = self.whole.sums.total("squared_weight") - part.total("squared_weight")
        return squared > 0 and weight / squared * weight >= enough


class FleetWindows:
    """The windows of all monitors together; ``now_ns`` must not run backwards between calls of ``advance``.

    ``in_force``: whether verdicts by a rubric's version count; a pass ratio is of one version.
    """

    def __init__(
        self, window_ns: int, *, longest_ns: int = 0, enough: float = 0.0, max_keys: int = MAX_KEYS,
        in_force: InForce = lambda _, __: True,
    ) -> None:  # fmt: skip
        self.window_ns, self.reach_ns = window_ns, max(window_ns, longest_ns)
        self.design: dict[Key, float] = {}
        self.usual: dict[Key, float] = {}
        self._enough, self._max_keys, self._in_force = enough, max_keys, in_force
        self._windows: dict[Key, _KeyWindow] = {}
        self._held: dict[tuple[str, int], _Held] = {}
        self._now_ns = 0
        self._waiting: dict[tuple[str, str], tuple[int, Mapping[Key, float]]] = {}
        self._waits: dict[str, dict[Key, float]] = {}

    def put_waiting(self, monitor: str, name: str, at_ns: int, body: bytes) -> None:
        """Take in what waits for an answer at a monitor, as of this time. Raises ``ValueError``: it is nothing such.

        ``name`` is ``WAITING``, ``BEHIND`` or ``BEHIND_PASSED``.
        """
        found = {key: weight for key, by, weight in decoded_waiting(body) if self._in_force(key.rubric, by)}
        self._waiting[monitor, name] = at_ns, found

    def waiting(self, key: Key, _now_ns: int) -> float:
        """How many traces stand for those of a key that wait for an answer, by the latest ``advance``.

        What waits at a monitor that is gone counts for as long as its last verdicts do.
        """
        return self._waits.get(WAITING, {}).get(key, 0.0)

    def behind(self, key: Key, _now_ns: int, _since_ns: int) -> Behind:
        """The same of all that waits behind slow judges: nobody states since when."""
        traces = self._waits.get(BEHIND, {}).get(key, 0.0)
        return Behind(traces, min(traces, self._waits.get(BEHIND_PASSED, {}).get(key, 0.0)))

    def put(self, monitor: str, number: int, body: bytes) -> dict[Key, Counter[First | SliceFirst]]:
        """Take in a monitor's slice, in place of an earlier state of the same.

        Returns:
            Its firsts, and the slices that they are in, by the keys under which they stand.

        Raises:
            ValueError: it is no slice.
        """
        parts = [(key, part) for key, version, part in decoded(body) if self._in_force(key.rubric, version)]
        former = self._held.pop((monitor, number), None)
        if former is not None:
            for key, _, part in decoded(former.body):
                window = self._windows.get(former.places[key]) if key in former.places else None
                if window is not None:
                    window.move(number, part, -1)
        places: dict[Key, Key] = {}
        for key, part in parts:
            places[key] = self._place(key)
            self._windows.setdefault(places[key], _KeyWindow()).move(number, part, 1)
        decided = sum(part.sums.n("n") for _, part in parts)
        self._held[monitor, number] = _Held(body, places, decided)
        firsts: dict[Key, Counter[First | SliceFirst]] = {}
        for key, part in parts:
            found = firsts.setdefault(places[key], Counter())
            found.update(dict[First | SliceFirst, int](chain(part.firsts.items(), part.sliced.items())))
        return firsts

    def _place(self, key: Key) -> Key:
        if key in self._windows or len(self._windows) < self._max_keys:
            return key
        empty = next((each for each, window in self._windows.items() if not window.numbers), None)
        if empty is None:
            return Key(OTHER, OTHER, key.rubric)
        del self._windows[empty]
        return key

    def advance(self, now_ns: int) -> None:
        """Drop slices that are too old."""
        self._now_ns = now_ns
        self._waiting = {place: each for place, each in self._waiting.items() if each[0] > now_ns - self.window_ns}
        self._waits = {}
        for (_, name), (_, weights) in self._waiting.items():
            waits = self._waits.setdefault(name, {})
            for key, weight in weights.items():
                waits[key] = waits.get(key, 0.0) + weight
        for key, window in self._windows.items():
            enough = self._enough * self.design.get(key, 1.0)
            if self.usual.get(key, 0.0) >= enough:
                enough = 0.0
            while window.numbers and end_ns(window.numbers[0]) <= now_ns - self.window_ns:
                young = end_ns(window.numbers[0]) > now_ns - self.reach_ns
                if enough and young and not window.enough_without_oldest(enough):
                    break
                window.drop_oldest()
        for monitor, number in [place for place in self._held if end_ns(place[1]) <= now_ns - self.reach_ns]:
            del self._held[monitor, number]

    def wants_more(self, number: int) -> bool:
        """Whether some window would reach back to a slice as old as this one."""
        since_ns = self._now_ns - end_ns(number)
        if since_ns < self.window_ns:
            return True
        return since_ns < self.reach_ns and any(
            each.floor < number and not self._is_enough(key, each) for key, each in self._windows.items()
        )

    def _is_enough(self, key: Key, window: _KeyWindow) -> bool:
        found = self._plain(key, window.whole)
        return found is not None and found.effective_n >= self._enough

    def shares(self, now_ns: int) -> Counter[str]:
        """Verdicts that passed or failed within the window, by monitor."""
        found: Counter[str] = Counter()
        for (monitor, number), held in self._held.items():
            if end_ns(number) > now_ns - self.window_ns:
                found[monitor] += held.decided
        return found

    def know(self, key: Key) -> None:
        """Hold an empty window of a key that had verdicts once."""
        self._windows.setdefault(self._place(key), _KeyWindow())

    def leave_unknown(self, known: Collection[str]) -> None:
        """Forget keys of other rubrics than these that had no verdict for a window's length.

        Whether such a rubric is silent or was removed, the leader cannot know.
        """
        since_ns = self._now_ns - self.window_ns
        for key in [key for key in self._windows if key.rubric not in known]:
            numbers = self._windows[key].numbers
            if not numbers or end_ns(numbers[-1]) <= since_ns:
                del self._windows[key]

    def _reach(self, window: _KeyWindow | None) -> int:
        """How far back the verdicts of a window may lie."""
        if window is None or not window.numbers:
            return self.window_ns
        return max(self.window_ns, self._now_ns - end_ns(window.numbers[0] - 1))

    def keys(self) -> list[Key]:
        """Every key that has had a verdict, in alphabetical order."""
        return sorted(self._windows)

    def pace(self, key: Key) -> float:
        """Verdicts that passed or failed in the time of ``window_ns``."""
        window = self._windows.get(key)
        if window is None or not window.numbers:
            return 0.0
        span_ns = max(1, self._now_ns - end_ns(window.numbers[0] - 1))
        return window.whole.sums.n("n") * min(1.0, self.window_ns / span_ns)

    def _estimate(self, key: Key, whole: KeySlice, begins: int = 1) -> Estimate | None:
        plain = self._plain(key, whole, begins)
        cascade = CascadeSums.read(whole.sums)
        if plain is None or cascade is None:
            return plain
        return corrected(plain, cascade.drawn_sums, least=LEAST_DRAWN) or plain

    def status(
        self, key: Key, now_ns: int, policy: Policy, sequence: ConfidenceSequence | None = None,
        drops: Drops | None = None, *, since_ns: int | None = None,
    ) -> ServiceStatus:  # fmt: skip
        """The status of this key by the numbers of the latest ``advance``; ``now_ns`` is that moment.

        ``since_ns``: as ``Windows`` has it, from the slice on in which that moment is.
        """
        whole, begins, reach_ns = self._whole(key), 1, self._reach(self._windows.get(key))
        if since_ns is not None and now_ns - reach_ns < since_ns < now_ns:
            whole, begins, reach_ns = self._since(key, since_ns), whole.sums.n("failures"), now_ns - since_ns
        estimate = self._estimate(key, whole, begins)
        sums, plain, cascade = whole.sums, self._plain(key, whole), CascadeSums.read(whole.sums)
        incomplete, judge_failed = sums.n("incomplete"), sums.n("judge_failed")
        return ServiceStatus(
            service=key.service, environment=key.environment, rubric=key.rubric, estimate=estimate,
            appraisal=appraise(
                estimate, policy, sequence, drops, incomplete=incomplete, judge_failed=judge_failed
            ),
            incomplete=incomplete, judge_failed=judge_failed, forced=sums.n("forced"),
            composite_mean=_mean(sums, "composite"),
            metric_means={
                name: mean for name in sums.names("metric/")
                if "/" not in name and (mean := _mean(sums, f"metric/{name}")) is not None
            },
            missing=missing_band(
                weight=sums.total("weight"), failed_weight=sums.total("failed_weight"),
                missing_weight=sums.total("incomplete_weight"),
            ),
            thresholds=policy.thresholds, cascade=cascade.snapshot(plain) if cascade is not None else None,
            reach_ns=reach_ns, waiting=sums.total("unasked_weight"),
        )  # fmt: skip

    def _since(self, key: Key, since_ns: int) -> KeySlice:
        found, window = KeySlice(), self._windows.get(key)
        for number, part in window.slices.items() if window is not None else ():
            if end_ns(number) > since_ns:
                found.merge(part)
        return found

    def details(self, key: Key, watched: WatchedWindow) -> Details:
        """What the key's verdicts show beside the pass ratio."""
        sums, effect = self._whole(key).sums, self.design.get(key, 1.0)
        means = {name: _mean_estimate(sums, f"metric/{name}", effect) for name in watched.on_average}
        members, judge_failed = sums.n("members"), sums.n("judge_failed")
        blocked = {
            metric: from_sums(
                n=sums.n("n"), failures=sums.n(f"blocked/{metric}"), weight=sums.total("weight"),
                failed_weight=sums.total(f"blocked/{metric}/weight"), squared_weight=sums.total("squared_weight"),
                design_effect=effect,
            )
            for metric in watched.blocking
        }  # fmt: skip
        return Details(
            blocked={metric: found for metric, found in blocked.items() if found is not None},
            means={name: mean for name, mean in means.items() if mean is not None},
            violating=self._share(sums, "checked/", design_effect=effect) if watched.workflow else None,
            keeping=self._share(sums, "kept/", design_effect=effect) if watched.workflow else None,
            judge_failed=from_sums(
                n=members, failures=judge_failed, weight=members, failed_weight=judge_failed, squared_weight=members
            ),
        )  # fmt: skip

    def _whole(self, key: Key) -> KeySlice:
        window = self._windows.get(key)
        return window.whole if window is not None else KeySlice()

    def _plain(self, key: Key, whole: KeySlice, begins: int = 1) -> Estimate | None:
        return self._share(
            whole.sums, "", clusters=whole.sums.n("alone") + len(whole.clusters) if whole.clusters else None,
            design_effect=self.design.get(key, 1.0), begins=begins,
        )  # fmt: skip

    def _share(
        self, sums: ExactSums, prefix: str, *, clusters: int | None = None, design_effect: float = 1.0, begins: int = 1
    ) -> Estimate | None:
        return from_sums(
            n=sums.n(f"{prefix}n"), failures=sums.n(f"{prefix}failures"), weight=sums.total(f"{prefix}weight"),
            failed_weight=sums.total(f"{prefix}failed_weight"), squared_weight=sums.total(f"{prefix}squared_weight"),
            clusters=clusters, design_effect=design_effect, begins=begins,
        )  # fmt: skip


def _mean(sums: ExactSums, name: str) -> float | None:
    return sums.total(f"{name}/product") / sums.total(f"{name}/weight") if sums.n(name) else None


def _mean_estimate(sums: ExactSums, name: str, design_effect: float) -> MeanEstimate | None:
    return mean_from_sums(
        MeanSums(
            n=sums.n(name), weight=sums.exact(f"{name}/weight"), squared_weight=sums.exact(f"{name}/squared_weight"),
            product=sums.exact(f"{name}/product"), squared_product=sums.exact(f"{name}/squared_product"),
            squared_square=sums.exact(f"{name}/squared_square"),
        ),
        design_effect,
    )  # fmt: skip


MOST_VALUES: Final = 100_000
"""Traces whose figures the leader holds, and verdicts as many; beyond that the fullest window lets go of its oldest."""
Measured: TypeAlias = tuple[Key, Observation]


def values_body(
    number: int, members: Mapping[Key, Sequence[HeldObservation]], limits: Sequence[MetricLimit],
    versions: Mapping[str, str],
) -> bytes:  # fmt: skip
    """The values of limited metrics in a slice's observations; empty without any."""
    stated = []
    for key, held in sorted(members.items()):
        limited = {limit.measure for limit in limits if limit.rubric == key.rubric and limit.concerns(key.service)}
        names = sorted(limited & {name for each in held for name in each.metrics})
        if names:
            found = (_row(number, each, names) for each in held)
            rows = sorted((row for row in found if any(value is not None for value in row[3:])), key=str)
            stated.append([*key, versions.get(key.rubric), names, rows])
    return zlib.compress(json.dumps(stated, separators=(",", ":")).encode(), 6) if stated else b""


def _row(number: int, seen: HeldObservation, names: Sequence[str]) -> list[float | str | None]:
    values = dict(zip(seen.metrics, seen.values, strict=True))
    cluster = None if seen.cluster is None else digest(seen.cluster)
    return [seen.at_ns - number * SLICE_NS, seen.weight, cluster, *map(values.get, names)]


def divided(body: bytes) -> tuple[bytes, bytes]:
    """The slices of a body, and its values. Raises ``ValueError`` for what is no body."""
    opened = zlib.decompressobj()
    try:
        opened.decompress(body, MOST_BYTES)
    except zlib.error as error:
        raise ValueError(f"not a slice of verdicts: {error}") from error
    values = opened.unused_data
    return body[: len(body) - len(values)], values


def values_of(body: bytes, number: int) -> Iterator[tuple[str | None, Measured]]:
    """Rubric version, key and values of what ``values_body`` wrote; ``ValueError`` for what it did not."""
    if not body:
        return
    opened = zlib.decompressobj()
    try:
        stated = json.loads(opened.decompress(body, MOST_BYTES))
        for service, environment, rubric, version, names, rows in stated:
            key = Key(str(service), str(environment), str(rubric))
            for at, weight, cluster, *values in rows:
                metrics = {
                    str(name): float(value) for name, value in zip(names, values, strict=True) if value is not None
                }
                yield version, (key, _observation(number, at, float(weight), cluster, metrics))
    except (zlib.error, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"not values of metrics: {error}") from error


def _observation(number: int, at: int, weight: float, cluster: str | None, metrics: Mapping[str, float]) -> Observation:
    if not 0 < at <= SLICE_NS or weight <= 0 or not all(map(math.isfinite, (weight, *metrics.values()))):
        raise ValueError(f"a value at {at} with weight {weight}")
    return Observation(
        identity="", at_ns=number * SLICE_NS + int(at), passed=True, weight=weight, cluster=cluster, metrics=metrics
    )


class FleetValues:
    """The values of all monitors in windows, and the watch of their limits."""

    def __init__(self, declared: Declaration, in_force: InForce) -> None:
        self._verdicts = LimitedWindows(declared, MOST_VALUES)
        self._figures = LimitedWindows(declared, MOST_VALUES)
        self.metrics = MetricWatch(declared, windows=self._verdicts, figures=self._figures)
        self._in_force = in_force
        self._held: dict[tuple[str, int], list[str]] = {}
        self._unlearned: dict[tuple[str, int], list[Measured]] = {}
        self._least = declared.policy.min_samples

    def put(self, monitor: str, number: int, body: bytes, *, first: bool) -> None:
        """Take in a monitor's values of a slice, in place of an earlier state. Raises ``ValueError``, and takes none.

        ``first``: nobody has followed them yet, so they are followed once the slice is complete.
        """
        found = [each for version, each in values_of(body, number) if self._in_force(each[0].rubric, version)]
        for place, rubric in enumerate(self._held.pop((monitor, number), ())):
            self._of_kind(rubric).withdraw(f"{monitor}/{number}/{place}", rubric)
        for place, (key, seen) in enumerate(found):
            self._of_kind(key.rubric).add(key, replace(seen, identity=f"{monitor}/{number}/{place}"))
        if found:
            self._held[monitor, number] = [key.rubric for key, _ in found]
        if first or (monitor, number) in self._unlearned:
            self._unlearned[monitor, number] = found

    def advance(self, complete: int, oldest: int) -> None:
        """Follow the values of slices up to ``complete``, in their order; let go of what is older than ``oldest``."""
        ready = [place for place in self._unlearned if place[1] <= complete]
        values = [each for place in ready for each in self._unlearned.pop(place)]
        for key, seen in sorted(values, key=lambda each: each[1].at_ns):
            self.metrics.learn(key, seen)
        for place in [place for place in self._held if place[1] < oldest]:
            del self._held[place]

    def wants_more(self) -> bool:
        """Whether older values may still be needed to reach enough."""
        if not self.metrics.limits:
            return False
        too_few = [
            values.decided(key) < limit.needed(self._least)
            for windows in (self._verdicts, self._figures)
            for limit, values in windows.own.items()
            for key in values.keys()  # noqa: SIM118  # not a dict
        ]
        return not too_few or any(too_few)

    def _of_kind(self, rubric: str) -> Windows:
        return self._figures if rubric == APPLICATION else self._verdicts
