"""Metric watch: the status of continuous metrics under their limits, from values as they come and looks when due.

Methods for pass rates apply to limits too (``scoring.status.metric_status``): each limit of each service is followed
value by value by a change detector and a confidence sequence, and shares the budget of false alarms with the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.statistics.arrivals import Arrivals
from sidejudge.scoring.statistics.cusum import Cusum
from sidejudge.scoring.statistics.design_effect import DesignEffect
from sidejudge.scoring.statistics.drop_level import DropLevel
from sidejudge.scoring.statistics.quantile import Measured
from sidejudge.scoring.statistics.sequence import ConfidenceSequence
from sidejudge.scoring.status.hysteresis import ALARMS, HysteresisState, Look, step
from sidejudge.scoring.status.metric_status import (
    APPLICATION,
    Level,
    MetricEstimate,
    MetricEvidence,
    MetricLimit,
    MetricStatus,
    appraise_metric,
    keeps_to,
    lies_beyond,
    metric_estimate,
    metric_ruled_out,
    mildest_metric,
)
from sidejudge.scoring.status.status import WAITS, WORST_FIRST, Appraisal, Status
from sidejudge.scoring.trace.span import JsonRecord

from .limited_windows import LimitedWindows
from .observation import Key, Observation
from .windows import HeldObservation

_MOST: Final = 2_000
"""Limits of services that are followed."""
MEMORY: Final = "metric/"
_CURSOR: Final = "metric cursor"
_NOTHING_KNOWN: Final = Look(status=Status.INSUFFICIENT_DATA, with_margin=Status.INSUFFICIENT_DATA)
Place: TypeAlias = tuple[int, Key]
"""The number of a limit and the key of a window."""


class MetricLook(NamedTuple):
    """The estimate of a window, the status of the moment, and that with the margin of a recovery.

    ``fallen``: for levels below which it fell, the estimate from the values since.
    """

    estimate: MetricEstimate | None
    moment: Appraisal
    better: Status
    fallen: Mapping[Level, MetricEstimate]


Estimates: TypeAlias = Mapping[Place, MetricLook]

NO_ESTIMATES: Final[Estimates] = MappingProxyType({})


class _Followed:
    """One limit in one place under one ``version`` of its rubric, from value to value and from look to look."""

    __slots__ = ("arrivals", "cusums", "design", "drop", "held", "is_open", "last", "sequences", "version")

    def __init__(self, limit: MetricLimit, declared: Declaration, version: str) -> None:
        self.version = version
        self.cusums: dict[Level, Cusum] = {level: Cusum() for level, _ in limit.levels}
        self.sequences: dict[Level, ConfidenceSequence] = {
            level: declared.sequence_at((limit.threshold(bound),)) for level, bound in limit.levels
        }
        self.drop: DropLevel | None = None
        """Whether what came after a fall was noticed proves that it is critical; None where nothing is critical."""
        if limit.critical is not None:
            self.drop = declared.metric_drop_level(limit.threshold(limit.critical))
        self.design, self.arrivals = DesignEffect(), Arrivals()
        self.held: HysteresisState | None = None
        self.is_open = False
        """Whether most traces have no answer, on which the status depends."""
        self.last: tuple[MetricEstimate | None, Appraisal] | None = None

    @property
    def fell_ns(self) -> int | None:
        """When the values fell, by estimate, while a detector is alarmed; otherwise None."""
        return next((each.since_ns for each in self.cusums.values() if each.alarmed), None)

    def fallen(self, level: Level) -> tuple[float | None, int | None]:
        """The mean of ``kept`` since a fall that this level reports, and when it fell; None while there is none."""
        if self.drop is not None and level == "critical":
            return (self.drop.pass_ratio, self.fell_ns) if self.drop.below else (None, None)
        cusum = self.cusums[level]
        return (cusum.pass_ratio, cusum.since_ns) if cusum.alarmed else (None, None)

    def to_json(self) -> dict[str, object]:
        return {
            "version": self.version, "cusums": {level: cusum.to_json() for level, cusum in self.cusums.items()},
            "sequences": {level: sequence.to_json() for level, sequence in self.sequences.items()},
            "drop": self.drop.to_json() if self.drop else None,
            "design": self.design.to_json(), "arrivals": self.arrivals.to_json(),
            "held": self.held.to_json() if self.held else None,
        }  # fmt: skip

    def restore(self, record: JsonRecord) -> None:
        if record.get("version", self.version) != self.version:
            return
        for level, cusum in self.cusums.items():
            if level in record["cusums"]:
                cusum.restore(record["cusums"][level])
                self.sequences[level].restore(record["sequences"][level])
        if self.drop is not None and record.get("drop") is not None:
            self.drop.restore(record["drop"])
        self.design.restore(record["design"])
        if "arrivals" in record:
            self.arrivals.restore(record["arrivals"])
        self.held = HysteresisState.of_json(record["held"]) if record["held"] else None


class MetricWatch:
    """Statuses of all limits of a declaration.

    ``windows`` are those of the verdicts (None: no metric is limited), ``figures`` those of the application's figures.
    A metric whose values usually come often enough at this hour, and do not now, is not known by older ones.
    ``known_until``: up to when all values are known at a time, both in ns.
    ``budgeted_with`` is the number of limits and pass rates that share the budget of false alarms. ``version`` is that
    of a rubric in force: another one begins with nothing against it.
    """

    def __init__(
        self, declared: Declaration, *, windows: LimitedWindows | None, figures: LimitedWindows | None
    ) -> None:
        self.declared, self.limits = declared, declared.metrics if windows is not None else ()
        self.cursor_ns = 0
        self.budgeted_with: Callable[[], int] = lambda: max(1, self.series)
        self.version: Callable[[str], str] = lambda _rubric: ""
        self.known_until: Callable[[int], int] = lambda now_ns: now_ns
        self._windows, self._figures = windows, figures
        self._followed: dict[Place, _Followed] = {}
        self.series = 0
        """The number of followed limits of services, each level counted."""

    def learn(self, key: Key, seen: Observation) -> None:
        """Take in the values of a verdict, or of the application's figures; a revision moves windows alone."""
        if seen.revision != 1:
            return
        if key.rubric == APPLICATION:
            self.cursor_ns = max(self.cursor_ns, seen.at_ns)
        windows = self._of_kind(key)
        if windows is None:
            return
        for number, limit in self._of(key):
            value = seen.metrics.get(limit.measure)
            followed = self._follow((number, key)) if value is not None else None
            if value is None or followed is None:
                continue
            # What belongs together is asked once, at the lowest level, which most values pass.
            lowest = limit.kept(value, list(limit.levels)[-1][1])
            worth = followed.design.add(seen.cluster, passed=lowest, weight=seen.weight, at_ns=seen.at_ns)
            followed.arrivals.add(seen.at_ns)
            if followed.drop is not None and limit.critical is not None:
                most = limit.kept(value, limit.critical)
                followed.drop.add(passed=most, weight=seen.weight, worth=worth, at_ns=seen.at_ns)
            per_window = windows.of(limit).pace(key) / followed.design.value
            for level, bound in limit.levels:
                kept = limit.kept(value, bound)
                chart = self.declared.metric_chart(limit.threshold(bound), per_window, self.budgeted_with())
                stated: dict[str, Any] = {
                    "passed": kept, "weight": seen.weight, "at_ns": seen.at_ns, "worth": worth,
                }  # fmt: skip
                followed.cusums[level].add(chart, **stated)
                followed.sequences[level].add(**stated)
            if followed.drop is not None:
                followed.drop.noticed(alarmed=followed.fell_ns is not None)

    def measured(self, now_ns: int) -> Callable[[], Estimates]:
        """The estimates of the windows at ``now_ns``, to be computed in whatever thread; the state is taken now."""
        jobs = []
        for key in self._keys():
            for number, limit in self._of(key):
                place = number, key
                held = self._members(place, now_ns)
                jobs.append((number, limit, key, self._evidence(place), self._drawn(place), held))
        series = self.budgeted_with()
        return lambda: {
            (number, key): self._estimated(limit, held, evidence, drawn, series)
            for number, limit, key, evidence, drawn, held in jobs
        }

    def _members(self, place: Place, now_ns: int) -> list[HeldObservation]:
        """What the window of a limit holds: nothing where its values no longer come."""
        (number, key), followed = place, self._known(place)
        windows = self._of_kind(key)
        if windows is None:
            return []
        values = windows.of(self.limits[number])
        if followed is not None and values is not windows:
            values.design[key] = followed.design.value
            if followed.arrivals.is_silent(self.known_until(now_ns), values.window_ns):
                return []
            values.usual[key] = followed.arrivals.least(now_ns - values.window_ns, now_ns)
        return values.members(key, now_ns)

    def look(
        self, found: Estimates, now_ns: int, waiting: Mapping[Key, float] = MappingProxyType({})
    ) -> list[MetricStatus]:
        """One look: statuses change, and all are returned. ``waiting`` traces have no answer, and count both ways."""
        for gone in self._followed.keys() - found.keys():
            del self._followed[gone]
        self.series = sum(len(followed.cusums) for followed in self._followed.values())
        for place, seen in found.items():
            followed, limit = self._follow(place), self.limits[place[0]]
            if followed is not None:
                followed.arrivals.no_later(now_ns)
                look = Look(
                    status=seen.moment.status, with_margin=seen.better, empty=seen.estimate is None,
                    undecided=seen.moment.undecided, ruled_out=metric_ruled_out(limit, seen.estimate),
                    is_below=lies_beyond(limit, seen.estimate, [*limit.levels][-1][1]),
                )  # fmt: skip
                waits = waiting.get(place[1], 0.0)
                mildest = mildest_metric(limit, seen.estimate, waits)
                moment = seen.moment if mildest is None else replace(seen.moment, reason=seen.moment.reason + WAITS)
                if mildest in ALARMS and look.status in ALARMS:
                    mildest = max(mildest, look.status, key=WORST_FIRST.index)
                    look = replace(look, status=mildest, with_margin=Status.CRITICAL, ruled_out=None)
                    mildest = None
                if mildest is None or followed.held is None:
                    look = look if mildest is None else _NOTHING_KNOWN
                    followed.held = step(followed.held, look, now_ns, self.declared.rule)
                weight = seen.estimate.weight_sum if seen.estimate is not None else 0.0
                followed.is_open = mildest is not None and waits > weight
                followed.last = _shown(limit, seen, followed.held.status), moment
        return list(self.statuses())

    def statuses(self) -> Iterator[MetricStatus]:
        """The statuses of the last look; a limit of which no value was seen has none."""
        for (number, key), followed in sorted(self._followed.items()):
            if followed.last is None or followed.held is None or self._known((number, key)) is None:
                continue
            estimate, moment = followed.last
            held = followed.held
            status = held.status
            if status is Status.HEALTHY and followed.is_open:
                status = Status.INSUFFICIENT_DATA
            if status is not moment.status:
                moment = Appraisal(status, f"still {status.value.replace('_', ' ')}; now {moment.reason}")
            yield MetricStatus(
                service=key.service, environment=key.environment, limit=self.limits[number], estimate=estimate,
                appraisal=moment, since_ns=held.since_ns,
            )  # fmt: skip

    def to_memory(self) -> dict[str, str]:
        """What a restart needs, as JSON by name. A limit that is changed begins anew."""
        kept = {self._name(place): json.dumps(followed.to_json()) for place, followed in self._followed.items()}
        return {**kept, _CURSOR: str(self.cursor_ns)} if self.limits else {}

    def restore(self, kept: Mapping[str, str]) -> None:
        """Go on from what ``to_memory`` returned. What this configuration does not limit is dropped."""
        self.cursor_ns = int(kept.get(_CURSOR, "0"))
        for name, record in kept.items():
            if name.startswith(MEMORY):
                *place, identity = json.loads(name.removeprefix(MEMORY))
                key = Key(*place)
                for number, limit in self._of(key):
                    followed = self._follow((number, key)) if _identity(limit) == identity else None
                    if followed is not None:
                        followed.restore(json.loads(record))
                        if (windows := self._of_kind(key)) is not None and limit in windows.own:
                            windows.own[limit].design[key] = followed.design.value

    def begin_anew(self, rubrics: Collection[str]) -> None:
        """Hold nothing that these rubrics have shown against what comes."""
        for place in [place for place in self._followed if place[1].rubric in rubrics]:
            limit, key = self.limits[place[0]], place[1]
            self._followed[place] = _Followed(limit, self.declared, self.version(key.rubric))
            if (windows := self._of_kind(key)) is not None and limit in windows.own:
                windows.own[limit].design.pop(key, None)

    def _keys(self) -> Iterator[Key]:
        for windows in (self._windows, self._figures):
            if self.limits and windows is not None:
                yield from windows.keys()

    def _of_kind(self, key: Key) -> LimitedWindows | None:
        """The windows that hold a key."""
        return self._figures if key.rubric == APPLICATION else self._windows

    def _name(self, place: Place) -> str:
        number, key = place
        return MEMORY + json.dumps([*key, _identity(self.limits[number])])

    def _of(self, key: Key) -> Iterator[tuple[int, MetricLimit]]:
        for number, limit in enumerate(self.limits):
            if limit.rubric == key.rubric and limit.concerns(key.service):
                yield number, limit

    def _follow(self, place: Place) -> _Followed | None:
        followed = self._known(place)
        if followed is None and (place in self._followed or len(self._followed) < _MOST):
            followed = _Followed(self.limits[place[0]], self.declared, self.version(place[1].rubric))
            self.series += len(followed.cusums) if place not in self._followed else 0
            self._followed[place] = followed
        return followed

    def _known(self, place: Place) -> _Followed | None:
        """What is known of a limit under the version in force of its rubric."""
        followed = self._followed.get(place)
        return followed if followed is not None and followed.version == self.version(place[1].rubric) else None

    def _drawn(self, place: Place) -> tuple[float, float]:
        """The design effect, and the largest weight so far."""
        followed = self._known(place)
        if followed is None:
            return 1.0, 0.0
        return followed.design.value, max(each.largest_weight for each in followed.sequences.values())

    def _evidence(self, place: Place) -> dict[Level, tuple[MetricEvidence, int | None]]:
        """The evidence on each level, and since when it fell."""
        followed = self._known(place)
        if followed is None:
            return {}
        found: dict[Level, tuple[MetricEvidence, int | None]] = {}
        for level, sequence in followed.sequences.items():
            since, since_ns = followed.fallen(level)
            evidence = MetricEvidence(since=since, sequence=sequence.evidence(sequence.levels[0]))
            found[level] = evidence, since_ns
        return found

    def _estimated(
        self, limit: MetricLimit, held: Sequence[HeldObservation],
        known: Mapping[Level, tuple[MetricEvidence, int | None]], drawn: tuple[float, float], series: int,
    ) -> MetricLook:  # fmt: skip
        estimate = metric_estimate(limit, _values(limit, held), *drawn)
        fallen = {
            level: found
            for level, (_, since_ns) in known.items()
            if since_ns is not None and (found := _since_fall(limit, held, drawn, since_ns)) is not None
        }
        evidence = {level: replace(each, fallen=fallen.get(level)) for level, (each, _) in known.items()}
        policy, margin = self.declared.policy, self.declared.rule.recovery_margin
        moment = appraise_metric(limit, estimate, policy, evidence, series=series)
        better = appraise_metric(limit, estimate, policy, evidence, series=series, margin=margin).status
        if policy.mode == "adaptive":
            # The detectors forget a change that the window still shows: nothing is better while both bounds say no.
            bound = replace(policy, mode="bound")
            better = min(
                better, appraise_metric(limit, estimate, bound, {}, margin=margin).status, key=WORST_FIRST.index
            )
        return MetricLook(estimate, moment, better, fallen)


def _since_fall(
    limit: MetricLimit, held: Sequence[HeldObservation], drawn: tuple[float, float], since_ns: int
) -> MetricEstimate | None:
    """The estimate from the values since a moment, which was chosen among those of the window unless it is older."""
    since = [each for each in held if each.at_ns >= since_ns]
    return metric_estimate(limit, _values(limit, since), *drawn, begins=len(held) if len(since) < len(held) else 1)


def _shown(limit: MetricLimit, seen: MetricLook, status: Status) -> MetricEstimate | None:
    """An alarm on a fall with the values since, which raised it: the whole window would look healthy."""
    for level, bound in limit.levels:
        fallen = seen.fallen.get(level)
        if status.value == level and fallen is not None and not keeps_to(limit, fallen, bound):
            return fallen
    return seen.estimate


def _values(limit: MetricLimit, held: Sequence[HeldObservation]) -> list[Measured]:
    return [
        Measured(each.values[each.metrics.index(limit.measure)], each.weight, each.cluster)
        for each in held
        if limit.measure in each.metrics
    ]


def _identity(limit: MetricLimit) -> str:
    """The identity by which a limit is followed: a changed one begins anew."""
    return f"{limit.rubric}/{limit.name}/{'<' if limit.below else '>'}{limit.warning}/{limit.critical}"
