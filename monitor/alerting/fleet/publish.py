"""Selects the slices of this monitor's verdicts to publish: changed ones whose minute is over, or all as it ends."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from sidejudge.monitor.alerting.details import WatchedWindow, limited_shares
from sidejudge.monitor.alerting.observation import First, Key, Observation, SliceFirst
from sidejudge.monitor.alerting.windows import HeldObservation, Windows
from sidejudge.scoring.status.metric_status import APPLICATION, MetricLimit

from .slices import (
    MOST_AHEAD,
    KeySlice,
    bounded,
    bounded_slices,
    decoded,
    encoded,
    end_ns,
    first_of,
    key_slice,
    slice_of,
)
from .windows import divided, values_body

MOST: Final = 60
"""Slices that are published at once; the rest in the next round."""


class SlicePublisher:
    """Watches what comes into this process's windows. ``rubric_version`` is that of a rubric in force.

    A slice is published again when a revision changes it, as long as the windows hold all of it: verdicts dropped for
    age or for lack of memory stay as published. ``figures`` are windows of the application's figures, ``limits`` the
    metrics whose values are published beside the sums.
    """

    def __init__(
        self, windows: Windows, watched: Mapping[str, WatchedWindow], rubric_version: Callable[[str], str | None],
        *, figures: Windows | None = None, limits: Sequence[MetricLimit] = (),
    ) -> None:  # fmt: skip
        self._kinds, self._limits = [windows] if figures is None else [windows, figures], limits
        self._windows, self._watched, self._version = windows, watched, rubric_version
        self._changed: set[int] = set()
        self._under_way: set[int] = set()
        self._former: dict[int, bytes] = {}
        self._published: dict[int, float] = {}
        self._firsts: dict[int, dict[Key, Counter[First]]] = {}
        self._sliced: dict[int, dict[Key, Counter[SliceFirst]]] = {}
        self._next = 0

    def touched(self, at_ns: int) -> None:
        """Note that a verdict of this time comes, changes or goes."""
        self._changed.add(slice_of(at_ns))

    def seen(self, key: Key, seen: Observation) -> None:
        """Take in a verdict that a window has taken in. A first is never put into a slice that is published."""
        self.touched(seen.at_ns)
        watched = self._watched.get(key.rubric)
        first = first_of(seen, scenario=watched is not None and watched.workflow)
        if first is not None:
            number = max(slice_of(seen.at_ns), self._next)
            self._changed.add(number)
            self._firsts.setdefault(number, {}).setdefault(key, Counter())[first] += 1
            sliced = self._sliced.setdefault(number, {}).setdefault(key, Counter())
            sliced.update(SliceFirst(by, value, first.passed, first.weight) for by, value in seen.slices.items())
            sliced.update(limited_shares(seen, watched or WatchedWindow()))

    async def known(self, bodies: Mapping[int, bytes], now_ns: int) -> None:
        """These were published by an earlier run of this monitor; their firsts were counted then.

        Those that differ from what is known now are published again: that run ended before it had published all. One
        with more verdicts than are known stays as it is: an older backup of the store was put in its place.
        """
        self._next = max(self._next, *(number + 1 for number in bodies), 0)
        self._published |= dict.fromkeys(bodies, 0.0)
        whole_since_ns = now_ns - min(windows.reach_ns for windows in self._kinds)
        wanted = {number for number in bodies if number in self._changed and end_ns(number - 1) >= whole_since_ns}
        held = Counter(
            (slice_of(each.at_ns), key)
            for windows in self._kinds for key in windows.keys() for each in windows.members(key, now_ns)  # noqa: SIM118  # not a dict
        )  # fmt: skip
        found = await asyncio.to_thread(lambda: {number: self._parts_of(bodies[number]) for number in wanted})
        for number, parts in found.items():
            if parts is None:
                continue
            self._firsts[number] = {key: part.firsts for key, part in parts.items()}
            self._sliced[number] = {key: part.sliced for key, part in parts.items()}
            if all(part.sums.n("members") <= held[number, key] for key, part in parts.items()):
                self._former[number] = bodies[number]
        self._changed -= bodies.keys() - self._former.keys()

    def _parts_of(self, body: bytes) -> dict[Key, KeySlice] | None:
        """The parts of a body; None for one that cannot be read, or of other versions of rubrics than in force."""
        try:
            parts = list(decoded(divided(body)[0]))
        except ValueError:
            return None
        if any(version != self._version(key.rubric) for key, version, _ in parts):
            return None
        return {key: part for key, _, part in parts}

    def versions(self, rubrics: Iterable[str]) -> dict[str, str]:
        """The versions in force of these rubrics."""
        return {rubric: version for rubric in rubrics if (version := self._version(rubric)) is not None}

    async def due(self, now_ns: int, *, ends: bool = False) -> dict[int, bytes]:
        """The slices to publish, the oldest first; call ``published`` once that is committed.

        ``ends``: nothing more comes, so the running minute and all that waits are due as well.
        """
        self._changed |= self._under_way  # of a round that was cut off
        if self._next > (latest := slice_of(now_ns) + MOST_AHEAD) + 1:
            # The clock was set back. Firsts do not wait until it is as late again: what it dated ahead is not read.
            self._next = max((number + 1 for number in self._published if number <= latest), default=0)
        over = sorted(number for number in self._changed if ends or end_ns(number) < now_ns)
        numbers = over if ends else over[:MOST]
        wanted, members = set(numbers), dict[int, dict[Key, list[HeldObservation]]]()
        if not wanted:
            return {}
        whole_since_ns = 0
        for windows in self._kinds:
            for key in windows.keys():  # noqa: SIM118  # not a dict
                for held in windows.members(key, now_ns):
                    if (number := slice_of(held.at_ns)) in wanted:
                        members.setdefault(number, {}).setdefault(key, []).append(held)
                whole_since_ns = max(whole_since_ns, windows.whole_since(key))
        # What is no longer whole here stays as it was published.
        numbers = [number for number in numbers if end_ns(number - 1) >= whole_since_ns or number >= self._next]
        self._changed -= wanted  # what comes from here on is published in the next round
        self._under_way = {*numbers}
        parts = {number: members.get(number, {}) for number in numbers}
        self._next = max(self._next, *(number + 1 for number in numbers), 0)
        made = await asyncio.to_thread(lambda: {number: self._body(number, of) for number, of in parts.items()})
        return {number: body for number, body in made.items() if body != self._former.pop(number, None)}

    def published(self, numbers: Sequence[int], held: Mapping[int, float], now_ns: int, reach_ns: int) -> None:
        """Note that these are committed; drop the firsts that no window reaches any more.

        ``held`` are this monitor's slices in the database, and when each was written. Missing ones, and those that were
        written before they were last seen there, are published again: the database was set up anew, or restored from a
        backup.
        """
        self._under_way.clear()
        known = {**self._published, **dict.fromkeys(numbers, 0.0)}
        within = {number: at for number, at in known.items() if end_ns(number) > now_ns - reach_ns}
        self._published = {number: held[number] for number, at in within.items() if held.get(number, -1.0) >= at}
        self._changed |= within.keys() - self._published.keys()
        for number in [number for number in self._firsts if end_ns(number) <= now_ns - reach_ns]:
            del self._firsts[number]
            self._sliced.pop(number, None)

    def _body(self, number: int, members: Mapping[Key, Sequence[HeldObservation]]) -> bytes:
        firsts = self._firsts.get(number, {})
        parts = {key: key_slice(of) for key, of in members.items() if key.rubric != APPLICATION}
        for key, of in firsts.items():
            parts.setdefault(key, KeySlice()).firsts = bounded(of)
            parts[key].sliced = bounded_slices(self._sliced.get(number, {}).get(key, Counter()))
        versions = self.versions(key.rubric for key in parts)
        return encoded(parts, versions) + values_body(number, members, self._limits, versions)
