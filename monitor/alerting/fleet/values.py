"""Values of limited metrics: each monitor publishes its own beside its slices, the leader watches those of all.

Percentiles cannot be added, so the values themselves are published, each with weight, session and time. The
leader's windows then hold what one monitor with all the traffic would hold, to the nanosecond, and the same code finds
the same estimate. A body is the slices and behind them the values, each compressed for itself: a monitor of a version
that knows no values reads the first part and passes over the rest.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from sidejudge.monitor.alerting.build import windows_of
from sidejudge.monitor.alerting.metric_watch import MetricWatch
from sidejudge.monitor.alerting.observation import Key, Observation
from sidejudge.monitor.alerting.windows import WindowContents, Windows
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.metric_status import APPLICATION, MetricLimit

from .slices import MOST_BYTES, SLICE_NS, digest
from .windows import InForce

MOST_VALUES: Final = 100_000
"""Traces whose figures the leader holds, and verdicts as many; beyond that the fullest window lets go of its oldest."""
Measured: TypeAlias = tuple[Key, Observation]


def values_body(
    number: int, members: Mapping[Key, Sequence[WindowContents]], limits: Sequence[MetricLimit],
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


def _row(number: int, seen: WindowContents, names: Sequence[str]) -> list[float | str | None]:
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

    def __init__(self, declared: Declaration, in_force: InForce, *, most: int = MOST_VALUES) -> None:
        self._verdicts, self._figures = windows_of(declared, most), windows_of(declared, most, figures=True)
        self.metrics = MetricWatch(declared, windows=self._verdicts, figures=self._figures)
        self._in_force = in_force
        self._held: dict[tuple[str, int], list[str]] = {}
        self._unlearned: dict[tuple[str, int], list[Measured]] = {}
        self._enough = max((limit.needed(declared.policy.min_samples) for limit in declared.metrics), default=0.0)

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
        held = [windows.decided(key) for windows in (self._verdicts, self._figures) for key in windows.keys()]  # noqa: SIM118  # not a dict
        return not held or min(held) < self._enough

    def _of_kind(self, rubric: str) -> Windows:
        return self._figures if rubric == APPLICATION else self._verdicts
