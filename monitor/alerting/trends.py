"""The pass ratio of each service over its last windows, read when a page asks for it.

It is read from the store, and beyond the store's retention from the history of ``sinks.parquet``.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from sidejudge.integrations.store.bounded_read import first_verdict, read_first, read_trends
from sidejudge.integrations.store.errors import StoreError
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.trend import Stretch, Trend, VerdictSums, pooled
from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS

from .observation import Key

log = logging.getLogger("sidejudge.parquet")

_KEPT_S: Final = 600.0
"""How long a reading stays valid: old verdicts change only by erasure or late references."""
_MOST: Final = 16
"""Readings that are kept."""


class _Reading(NamedTuple):
    at_s: float
    since_ns: int
    found: Sequence[Stretch]


class ArchivedTrends:
    """Reads the history at ``path``, one reading at a time, for stretches that begin before ``kept_since`` of now."""

    def __init__(self, path: str, kept_since: Callable[[int], int]) -> None:
        self._path, self._kept_since = path, kept_since
        self._kept: dict[tuple[int, int], _Reading] = {}
        self._one = threading.Lock()
        self._out = False

    def whole(self, stored: Sequence[Stretch], *, until_ns: int, step_ns: int, steps: int) -> Sequence[Stretch]:
        """The store's stretches, and the history's for times that the store no longer keeps. May block for long.

        While the history cannot be read, only the store's are returned; the first failure is logged.
        """
        since_ns = until_ns - steps * step_ns
        old = min(steps, -(-(self._kept_since(until_ns) - since_ns) // step_ns))
        if old <= 0:
            return stored
        with self._one:
            archived = self._archived(since_ns, step_ns, old)
        if archived is None:
            return stored
        return [*archived, *(each for each in stored if each.number >= old)]

    def _archived(self, since_ns: int, step_ns: int, old: int) -> Sequence[Stretch] | None:
        now_s = time.monotonic()
        known = self._kept.get((step_ns, old))
        if known is not None and now_s - known.at_s < _KEPT_S and since_ns - known.since_ns <= step_ns // 20:
            return known.found
        try:
            found = _read(self._path, since_ns, step_ns, old)
        except (ImportError, OSError, ValueError) as error:
            if not self._out:
                cause = f"{type(error).__name__}: {str(error)[:300]}"
                log.warning("the history cannot be read; trends end with the store", extra={"cause": cause})
            self._out = True
            return None if known is None else known.found
        self._out = False
        self._kept[step_ns, old] = _Reading(time.monotonic(), since_ns, found)
        for key in list(self._kept)[: max(0, len(self._kept) - _MOST)]:
            del self._kept[key]
        return found


def _read(path: str, since_ns: int, step_ns: int, old: int) -> Sequence[Stretch]:
    from sidejudge.integrations.history.in_force import history_trends  # noqa: PLC0415  # pyarrow, as below
    from sidejudge.integrations.history.place import Place  # noqa: PLC0415  # pyarrow only where it is configured

    until_ns = since_ns + old * step_ns
    return history_trends(Place(path), since_ns=since_ns, until_ns=until_ns, step_ns=step_ns)


STEPS = 24
"""Stretches of a trend: windows, or parts of them while the store holds fewer."""
_SPANS_NS = {"1h": HOUR_NS, "6h": 6 * HOUR_NS, "1d": DAY_NS}
"""Default periods of a service's page, the shortest first."""
_REST = 50
"""After a reading of t seconds there is none for 50 t: at most 2 % of one processor, for any number of readers."""
_LEAST_REST_S = 5.0
_ENOUGH = 5
_TOGETHER: Final = (1, 2, 3, 4, 6, 8, 12)
"""How many stretches are looked at as one, where each alone has too few verdicts."""


@dataclass
class Trends:
    """The trends of all services, at most a little old. While the store cannot be read, the last ones known.

    ``design`` holds the design effects of services, as their windows have them.
    """

    path: Path
    window_ns: int
    declared: Declaration
    _: KW_ONLY
    design: Mapping[Key, float] = field(default_factory=dict)
    archive: ArchivedTrends | None = None
    clock_s: Callable[[], float] = time.monotonic
    _known: Mapping[Key, Trend] = field(default_factory=dict, init=False)
    _due_s: float = field(default=0.0, init=False)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def at(self, now_ns: int) -> Mapping[Key, Trend]:
        """The trend of each service, environment and rubric that had a verdict in the last ``STEPS`` windows.

        While the store holds less than half of that, the trend begins with its first verdict, a window ago at least.
        """
        async with self._reading:
            began = self.clock_s()
            if began >= self._due_s:
                with suppress(StoreError):
                    self._known = await asyncio.to_thread(self._read, now_ns)
                ended = self.clock_s()
                self._due_s = ended + max(_LEAST_REST_S, _REST * (ended - began))
            return self._known

    async def fitting(self, key: Key, now_ns: int) -> str:
        """The shortest of ``_SPANS_NS`` that holds all verdicts of a service, a day at most. Raises ``StoreError``."""
        spans = list(_SPANS_NS.items())
        first_ns = await asyncio.to_thread(
            lambda: first_verdict(
                self.path, service=key.service, environment=key.environment, rubric=key.rubric,
                since_ns=now_ns - spans[-1][1],
            )
        )  # fmt: skip
        age_ns = spans[-1][1] if first_ns is None else now_ns - first_ns
        return next((name for name, span_ns in spans if age_ns < span_ns), spans[-1][0])

    async def over(self, key: Key, now_ns: int, span_ns: int) -> Trend | None:
        """The trend of one service over the last ``span_ns``, read now; None where there is no verdict.

        A stretch needs few verdicts here: whoever looks closely sees how wide its bounds are. Raises ``StoreError``.
        """
        step_ns = max(1, span_ns // STEPS)
        found = await asyncio.to_thread(self._stretches, now_ns, step_ns, key.rubric)
        stretches = [each for each in found if _key(each) == key]
        return _trend(stretches, now_ns, step_ns, [_ENOUGH], self.design.get(key, 1.0)) if stretches else None

    def _read(self, now_ns: int) -> dict[Key, Trend]:
        whole_ns = STEPS * self.window_ns
        since_ns = max(0, now_ns - whole_ns)
        first_ns = since_ns if self.archive else read_first(self.path, since_ns)
        windows = (now_ns - (now_ns if first_ns is None else first_ns)) // self.window_ns + 1
        windows = windows if windows <= STEPS // 2 else STEPS
        step_ns = max(1, windows * self.window_ns // STEPS)
        stretches = self._stretches(now_ns, step_ns)
        by_key: dict[Key, list[Stretch]] = {}
        for each in stretches:
            by_key.setdefault(_key(each), []).append(each)
        asked = {key: [self.declared.policy_of(key.rubric).min_samples] if windows == STEPS else [] for key in by_key}
        return {
            key: _trend(of, now_ns, step_ns, [*asked[key], _ENOUGH], self.design.get(key, 1.0))
            for key, of in by_key.items()
        }

    def _stretches(self, now_ns: int, step_ns: int, rubric: str | None = None) -> Sequence[Stretch]:
        stored = read_trends(self.path, until_ns=now_ns, step_ns=step_ns, steps=STEPS, rubric=rubric)
        if self.archive is None:
            return stored
        return self.archive.whole(stored, until_ns=now_ns, step_ns=step_ns, steps=STEPS)


def _trend(
    stretches: Sequence[Stretch], now_ns: int, step_ns: int, enough: Sequence[float], design_effect: float
) -> Trend:
    """The trend in the shortest legible stretches; ``enough`` is lowered where none are."""
    tried = [
        _pooled(stretches, now_ns, step_ns, least, each, design_effect=design_effect)
        for least in enough
        for each in _TOGETHER
    ]
    return next((each for each in tried if each.legible), tried[0])


def _pooled(
    stretches: Sequence[Stretch], now_ns: int, step_ns: int, enough: float, together: int, *, design_effect: float
) -> Trend:
    found: dict[int, list[Stretch]] = {number: [] for number in range(STEPS // together)}
    for each in stretches:
        found[each.number // together].append(each)
    return Trend(
        until_ns=now_ns, step_ns=step_ns * together, enough=enough,
        estimates=tuple(pooled([each.sums for each in of], design_effect) for of in found.values()),
        changes=tuple(dict.fromkeys(each // together for each in _changes(stretches))),
        unanswered=sum(each.sums.unanswered + each.sums.unreached for each in stretches),
        mostly_open=frozenset(number for number, of in found.items() if _mostly_open([each.sums for each in of])),
    )  # fmt: skip


def _mostly_open(sums: Sequence[VerdictSums]) -> bool:
    return sum(each.open_weight for each in sums) > sum(each.weight for each in sums)


def _changes(stretches: Sequence[Stretch]) -> Iterator[int]:
    """The stretches in which another version of the rubric begins."""
    ordered = sorted(stretches, key=lambda each: each.number)
    for before, here in pairwise(each for each in ordered if each.versions):
        if here.versions - before.versions:
            yield here.number


def _key(stretch: Stretch) -> Key:
    return Key.of(stretch.sums.service, stretch.sums.environment, stretch.sums.rubric)
