"""Committed results come in; windows, the watch and the schedule learn of their verdicts.

When something of each service last came is remembered too, for it explains missing verdicts. Of the time before the
process's start nothing is known: for an hour after a start the cause of an older silence is *unknown*.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.evaluate.cascade_learning import CascadeLearning
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.ingest.outcomes import NAME_LENGTH, EndReason
from sidejudge.scoring.result.result import Failed, is_behind
from sidejudge.scoring.status.service_status import OTHER, SilenceCause
from sidejudge.scoring.status.status import NONE_BEHIND, Behind
from sidejudge.scoring.trace.time_units import HOUR_NS, MINUTE_NS
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.verdict import Verdict

from .fleet.publish import SlicePublisher
from .observation import Key, Observation, observe, observe_figures, observe_stored, observe_stored_figures
from .schedule import EvaluationSchedule
from .windows import Windows

log = logging.getLogger("sidejudge.alerting")
_Row = TypeVar("_Row")
_TURN_S: Final = 0.02
"""How long others wait while a start reads verdicts."""
_LEAST_WEIGHT: Final = 1 - 1e-9
"""Of a probability of 1, but for rounding."""


class VerdictObserver:
    """Passes verdicts on to alerting. ``committed`` is a listener of the commit.

    Verdicts by another version than that of ``rubrics``, or by a rubric that was removed, stay out of the windows and
    of the watch, because pass ratios of versions are not comparable.
    """

    def __init__(
        self, schedule: EvaluationSchedule, rubrics: Mapping[str, Rubric], *, figures: Windows,
        cascade_learning: CascadeLearning, published: SlicePublisher | None,
    ) -> None:  # fmt: skip
        self._schedule, self._rubrics, self._figures = schedule, rubrics, figures
        self._store, self._windows, self._watch = schedule.store, schedule.windows, schedule.watch
        self._cascade_learning, self._published = cascade_learning, published

    def _in_force(self, rubric: str, version: object) -> bool:
        known = self._rubrics.get(rubric)
        return known is not None and known.version == version and self._watch.is_in_force(rubric, version)

    def committed(self, result: TraceResult) -> None:
        """Put new and changed verdicts into their windows, and take out what is withdrawn."""
        for rubric in result.withdrawn:
            self._touched(result.trace_id.hex(), rubric)
            self._windows.withdraw(result.trace_id.hex(), rubric)
        cluster = result.details.get("cluster")
        cluster = str(cluster) if cluster is not None else None
        slices = result.details.get("slices")
        for verdict in result.changed:
            key, seen = observe(verdict, result.place_ns, cluster, slices)
            if not self._in_force(verdict.rubric, verdict.rubric_version):
                continue
            if seen.at_ns > result.ended_ns - self._windows.reach_ns:
                self._add(key, seen)
            self._watch.learn(key, seen)
        if self._follows_figures and (figures := observe_figures(result)) is not None:
            key, seen = figures
            if seen.at_ns > result.ended_ns - self._figures.reach_ns:
                self._add_figures(key, seen)
            self._watch.metrics.learn(key, seen)
        if result.lag_s is not None:
            self._schedule.lagged(result.ended_ns, result.lag_s)

    async def restore(self, now_ns: int) -> None:
        """Fill the windows again, and let the watch learn what was judged after it was last remembered.

        Without what it remembered that is all the store holds, which may take half a minute: others have their turns.
        Two kinds of verdicts stay out of the windows: those that a wrong clock dated more than a window's length
        ahead, and those by judges that a rubric no longer has.
        """
        self._schedule.restore()
        await self._restore_figures(now_ns)
        begin_ns, known_ns = now_ns - self._windows.reach_ns, self._watch.cursor_ns
        ahead_ns = now_ns + self._windows.window_ns
        since_ns = min(begin_ns, known_ns or begin_ns)
        needed = self._needed(since_ns, begin_ns, now_ns) if known_ns and self._published is None else None
        stored = self._store.verdicts_since(since_ns, needed)
        async for stated, key, seen in _in_turns(_intact(stored, observe_stored)):
            if not self._in_force(key.rubric, stated.get("rubric_version")):
                continue
            if seen.at_ns < self._watch.begun_ns.get(key.rubric, 0):
                continue
            if begin_ns < seen.at_ns <= ahead_ns:
                self._add(key, seen)
            if seen.at_ns > known_ns:
                self._watch.learn(key, seen)

    def _needed(
        self, since_ns: int, begin_ns: int, now_ns: int
    ) -> Callable[[object, object, object, int], bool] | None:
        """Which verdicts a start reads: a day of them may be many times what windows hold, and each takes 0.3 ms.

        None: all, for more than the windows and the watch learns from them, or a row is not what was written.
        """
        if self._cascade_learning.section.agreement is not None:
            return None
        known_ns, ahead_ns = self._watch.cursor_ns, now_ns + self._windows.window_ns
        whole = {limit.rubric for limit in self._watch.declared.metrics}  # few verdicts may have the value

        def rows() -> Iterator[tuple[Key, int, float | None]]:
            for service, environment, rubric, version, at_ns, passed, probability in self._store.weights_since(
                since_ns
            ):
                counts_ns = max(begin_ns + 1, self._watch.begun_ns.get(rubric, 0))
                if rubric in whole or not counts_ns <= at_ns <= ahead_ns or not self._in_force(rubric, version):
                    continue
                weight = None
                if passed is not None and isinstance(probability, float | int) and probability > 0:
                    weight = 1 / probability
                yield Key.of(service, environment, rubric), at_ns, weight

        try:
            begins = self._windows.begins(rows(), now_ns)
        except (StoreError, TypeError):
            return None

        def needed(service: object, environment: object, rubric: object, at_ns: int) -> bool:
            key = Key.of(service, environment, rubric)
            return at_ns > known_ns or key.rubric in whole or at_ns >= begins.get(key, at_ns + 1)

        return needed

    @property
    def _follows_figures(self) -> bool:
        """Whether anybody asks for the application's figures: limits, here or elsewhere in the fleet."""
        return bool(self._watch.declared.metrics) or self._published is not None

    async def _restore_figures(self, now_ns: int) -> None:
        if not self._follows_figures:
            return
        begin_ns, known_ns = now_ns - self._figures.reach_ns, self._watch.metrics.cursor_ns
        ahead_ns = now_ns + self._figures.window_ns
        stored = self._store.figures_since(min(begin_ns, known_ns or begin_ns))
        async for _, key, seen in _in_turns(_intact(stored, observe_stored_figures)):
            if begin_ns < seen.at_ns <= ahead_ns:
                self._add_figures(key, seen)
            if seen.at_ns > known_ns:
                self._watch.metrics.learn(key, seen)

    def _add_figures(self, key: Key, seen: Observation) -> None:
        if self._figures.add(key, seen) and self._published is not None and self._watch.declared.metrics:
            self._published.touched(seen.at_ns)

    def _add(self, key: Key, seen: Observation) -> None:
        self._touched(seen.identity, key.rubric)
        if seen.cascade is not None and seen.revision == 1:
            self._cascade_learning.take(key.rubric, seen.passed, seen.cascade)
        if self._windows.add(key, seen) and self._published is not None:
            self._published.seen(key, seen)

    def _touched(self, identity: str, rubric: str) -> None:
        """The verdict that stood until now goes."""
        if self._published is not None and (at_ns := self._windows.time_of(identity, rubric)) is not None:
            self._published.touched(at_ns)


async def _in_turns(rows: Iterable[_Row]) -> AsyncIterator[_Row]:
    """The rows; after every few of them whatever waits for the event loop has its turn."""
    until_s = time.monotonic() + _TURN_S
    for row in rows:
        if time.monotonic() >= until_s:
            await asyncio.sleep(0)
            until_s = time.monotonic() + _TURN_S
        yield row


def _intact(
    rows: Iterable[_Row], observed: Callable[[_Row], tuple[Key, Observation] | None]
) -> Iterator[tuple[_Row, Key, Observation]]:
    """Rows of the store with what is observed of them. An invalid row is left out and counted.

    A byte that changed in a name or a number of a row leaves it readable, and must not keep a monitor from starting.
    """
    left_out = 0
    for row in rows:
        try:
            found = observed(row)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            left_out += 1
            continue
        if found is not None and found[1].weight < _LEAST_WEIGHT:
            left_out += 1
        elif found is not None:
            yield row, *found
    if left_out:
        log.warning("rows of the store are not what was written, and count nowhere", extra={"rows": left_out})


_AFTER_NS: Final = MINUTE_NS
"""What came within a minute of the last verdict may be of the same traces."""
_LISTENED_NS: Final = HOUR_NS
"""Of a service that sends, something comes within this time."""
_SERVICES: Final = 1_000
_KEYS: Final = 1_000
"""Services, and keys, as many as have a window: whoever sends spans may make up names."""
_SLOW_NS: Final = 10 * 10**9
"""A judge that takes longer is slow."""
_EVER: Final = 1 << 63
_ANSWERS: Final = 10
"""Fewer answers do not show what a judge makes of the rest."""


class LastReceived:
    """Takes the ends of traces, by service, what is still open, and what waits to be judged.

    Services are known by the first ``NAME_LENGTH`` characters of their names, as outcomes count them, and those beyond
    ``_SERVICES`` together: what came of one of these is not known.
    """

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns, self._started_ns = clock_ns, clock_ns()
        self._sampled_out: dict[str, int] = {}
        self._kept: dict[str, int] = {}
        self._open: dict[str, int] = {}

    def came(self, service: str) -> None:
        """Spans of a service have come that are in the sample as far as they show; their trace may be open for long."""
        self._came(self._open, service)

    def ended(self, service: str, reason: EndReason, count: int) -> None:
        """Traces of a service have ended for this reason."""
        if reason is EndReason.HANDED_OVER or not count:
            return
        self._came(self._sampled_out if reason is EndReason.SAMPLED_OUT else self._kept, service)

    def waits(self, service: str) -> None:
        """A trace of a service is in the sample and waits for an answer."""
        self._came(self._kept, service)

    def _came(self, known: dict[str, int], service: str) -> None:
        service = service[:NAME_LENGTH]
        known[service if service in known or len(known) < _SERVICES else OTHER] = self._clock_ns()

    def cause(self, service: str, since_ns: int) -> SilenceCause:
        """How far the service's traffic has got since a time, in ns since the epoch."""
        service, after_ns, now_ns = service[:NAME_LENGTH], since_ns + _AFTER_NS, self._clock_ns()
        self._started_ns = min(self._started_ns, now_ns)

        def since(known: dict[str, int], name: str) -> bool:
            return after_ns < known.get(name, 0) <= now_ns  # later ones are of before the clock was set back

        if since(self._kept, service):
            return SilenceCause.NONE_JUDGED
        if since(self._sampled_out, service):
            return SilenceCause.NONE_SAMPLED
        if since(self._open, service):
            return SilenceCause.NONE_JUDGED
        if any(service not in known and since(known, OTHER) for known in (self._kept, self._sampled_out, self._open)):
            return SilenceCause.UNKNOWN
        listened = since_ns >= self._started_ns or now_ns - self._started_ns >= _LISTENED_NS
        return SilenceCause.NO_SPANS if listened else SilenceCause.UNKNOWN


@dataclass(slots=True)
class _Minute:
    """Weights of a key's traces within a minute.

    ``asked`` came to wait for an answer. ``ended`` waited and no longer do: ``answered`` with a verdict, ``passed`` of
    these; ``late`` got none because too many waited. ``answers`` is how many were answered, ``undrawn`` the weight of
    those that a spent budget left out. ``plain``: whether some were decided without waiting.
    """

    at: int
    asked: float = 0.0
    ended: float = 0.0
    answers: int = 0
    answered: float = 0.0
    passed: float = 0.0
    late: float = 0.0
    undrawn: float = 0.0
    plain: bool = False


class Awaited:
    """Traces that wait for a judge or embeddings, or got no answer, by what their verdicts would count for.

    Those that words decide are there meanwhile, and are not like the rest. What waits because of an outage may pass and
    may fail. What waits for longer than ``_SLOW_NS`` behind a judge that is merely slow, or waited too long there, is
    taken to be like what that judge answered within ``window_ns`` (``behind``); it does not count where nothing is
    decided by words. Before ``_ANSWERS`` are known it may pass and may fail as well.

    Those that a spent budget left without an answer count for ``window_ns``: none of their kind is in the sample.

    Args:
        out: Whether a judge or embeddings are out of reach now.
        window_ns: How long verdicts count.
    """

    def __init__(self, out: Callable[[], bool], window_ns: int = HOUR_NS) -> None:
        self._out, self._out_ns, self._window_ns = out, -1, window_ns
        self._minutes: dict[Key, dict[int, _Minute]] = {}
        self._cleared = 0  # the minute in which old ones were last removed
        self._since: dict[Key, dict[bytes, tuple[int, float]]] = {}
        self._keys: dict[bytes, tuple[Key, ...]] = {}

    def waits(self, trace_id: bytes, weights: Mapping[Key, float], now_ns: int) -> None:
        """A trace waits; ``weights`` is how many traces, or sessions, it stands for under each key."""
        if trace_id not in self._keys:
            self._keys[trace_id] = tuple(weights)
            for key, weight in weights.items():
                self._since.setdefault(key, {})[trace_id] = now_ns, weight
                self._minute(key, now_ns).asked += weight

    def committed(self, result: TraceResult) -> None:
        """A trace has ended, with an answer or without."""
        sampling = result.details.get("sampling", {})
        if sampling.get("judged_share") == 0 and (probability := sampling.get("probability")):
            for rubric in sampling.get("over_budget", ()):
                key = Key.of(result.service, result.details.get("environment"), rubric)
                self.unreached(key, 1 / probability, result.ended_ns)
        keys = self._keys.pop(result.trace_id, None)
        for key in keys or ():
            _, weight = self._since[key].pop(result.trace_id)
            self._minute(key, result.ended_ns).ended += weight
            if not self._since[key]:
                del self._since[key]
        if result.revision == 1 or keys is not None:
            for verdict in result.verdicts:
                self._decided(verdict, result.ended_ns, waited=keys is not None)

    def _decided(self, verdict: Verdict, at_ns: int, *, waited: bool) -> None:
        key = Key.of(verdict.service, verdict.environment, verdict.rubric)
        if key not in self._minutes:
            return  # nothing of it has waited lately
        minute, weight = self._minute(key, at_ns), 1.0 / verdict.sampling_probability
        if verdict.passed is None:
            failed = (score.result.reason for score in verdict.scores if isinstance(score.result, Failed))
            minute.late += weight * any(map(is_behind, failed))
        elif waited:
            minute.answers += 1
            minute.answered += weight
            minute.passed += weight * verdict.passed
        else:
            minute.plain = True

    def unreached(self, key: Key, weight: float, at_ns: int) -> None:
        """A spent budget left so many traces without an answer."""
        self._minute(key, at_ns).undrawn += weight

    def _minute(self, key: Key, at_ns: int) -> _Minute:
        """The sums of a key over a minute. Beyond ``_KEYS`` new keys count together."""
        minute = at_ns // MINUTE_NS
        if minute > self._cleared or minute * MINUTE_NS < self._cleared * MINUTE_NS - self._window_ns:
            self._cleared = minute
            for each, held in list(self._minutes.items()):
                self._minutes[each] = {at: sums for at, sums in held.items() if self._counts(at, at_ns)}
                if not self._minutes[each]:
                    del self._minutes[each]
        if key not in self._minutes and len(self._minutes) >= _KEYS:
            key = Key(OTHER, OTHER, key.rubric)
        return self._minutes.setdefault(key, {}).setdefault(minute, _Minute(minute))

    def restore(self, store: Store, now_ns: int, waited: Iterable[Key] = ()) -> None:
        """Count what a spent budget left without an answer before a restart.

        Of keys that ``waited`` then, words may have decided some.
        """
        for key in waited:
            self._minute(key, now_ns).plain = True
        for service, environment, rubric, weight, at_ns in store.unreached_since(now_ns - self._window_ns):
            if self._counts(at_ns // MINUTE_NS, now_ns):
                self.unreached(Key.of(service, environment, rubric), weight, at_ns)

    def _counts(self, minute: int, now_ns: int) -> bool:
        # As verdicts in their windows: those of before the clock was set back are dated later, and are there.
        return abs(now_ns - minute * MINUTE_NS) < self._window_ns

    def weights(self, now_ns: int) -> dict[Key, float]:
        """The weight of each key that has one."""
        found = {key: self.weight(key, now_ns) for key in {*self._since, *self._minutes}}
        return {key: weight for key, weight in found.items() if weight}

    def counts(self, now_ns: int) -> dict[Key, int]:
        """How many traces wait under each key, where any do."""
        found = {key: len(self._waiting(key, now_ns)) for key in self._since}
        return {key: number for key, number in found.items() if number}

    def _waiting(self, key: Key, now_ns: int) -> list[float]:
        until_ns = self._until_ns(now_ns)
        return [weight for since_ns, weight in self._since.get(key, {}).values() if since_ns <= until_ns]

    def _until_ns(self, now_ns: int) -> int:
        """What waits since then or earlier waited in an outage: while one lasts all, whatever its date."""
        is_out = self._out()
        self._out_ns = now_ns if is_out else min(self._out_ns, now_ns)
        return _EVER if is_out else self._out_ns

    def weight(self, key: Key, now_ns: int) -> float:
        """How many traces stand for all that may pass and may fail under a key."""
        minutes = self._within(key, now_ns)
        return (
            sum(self._waiting(key, now_ns))
            + sum(each.undrawn for each in minutes)
            + (0.0 if _shown(minutes) else self._unlike(key, minutes, now_ns))
        )

    def behind(self, key: Key, now_ns: int, since_ns: int = 0) -> Behind:
        """What waits, or waited too long, behind a slow judge under a key, of what came since a time, in ns.

        It is like what was answered since, or, where that is too little, within ``window_ns``.
        """
        minutes = self._within(key, now_ns)
        if not _shown(minutes):
            return NONE_BEHIND
        since = [each for each in minutes if each.at >= since_ns // MINUTE_NS]
        shown = since if _shown(since) else minutes
        missing = self._unlike(key, since, now_ns)
        return Behind(missing, missing * sum(each.passed for each in shown) / sum(each.answered for each in shown))

    def all_behind(self, now_ns: int) -> dict[Key, Behind]:
        """``behind`` of each key that has some."""
        found = {key: self.behind(key, now_ns) for key in self._minutes}
        return {key: behind for key, behind in found.items() if behind.traces}

    def _within(self, key: Key, now_ns: int) -> list[_Minute]:
        return [each for each in self._minutes.get(key, {}).values() if self._counts(each.at, now_ns)]

    def _unlike(self, key: Key, minutes: list[_Minute], now_ns: int) -> float:
        """The weight of traces that a slow judge has not answered; 0 where nothing else is decided by words."""
        if not any(each.plain for each in minutes):
            return 0.0
        until_ns, since = self._until_ns(now_ns), self._since.get(key, {}).values()
        # Some came after the moment that is looked at.
        waits = sum(w for at_ns, w in since if until_ns < at_ns and abs(now_ns - at_ns) >= _SLOW_NS)
        # Where what comes and what is answered keep pace, answers to what came before the window stand for what waits.
        more = sum(each.asked - each.ended for each in minutes) - sum(self._waiting(key, now_ns))
        return sum(each.late for each in minutes) + max(0.0, min(waits, more))


def _shown(minutes: list[_Minute]) -> bool:
    """Whether enough answers are known to show what a judge makes of the rest."""
    return sum(each.answers for each in minutes) >= _ANSWERS
