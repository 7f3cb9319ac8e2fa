"""Replay: past verdicts are watched as a monitor watches them, and the cost of judging them is added up.

Verdicts come, in order of time, from a store, from a file of verdicts (JSON Lines), or from a history.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import TypeAlias, cast

from sidejudge.integrations.history.reading import history_records
from sidejudge.integrations.jsonl import line as json_line
from sidejudge.integrations.store.archive import latest_verdict_ns, read_verdicts
from sidejudge.monitor.alerting.details import Details, WatchedWindow, details
from sidejudge.monitor.alerting.limited_windows import LimitedWindows
from sidejudge.monitor.alerting.metric_watch import MetricWatch
from sidejudge.monitor.alerting.observation import Key, Observation, observe_stored
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.monitor.offline.engine import Engine, Here
from sidejudge.monitor.offline.score.case_lines import NumberedLine, json_of, lines, loaded
from sidejudge.monitor.offline.score.chunks import chunks
from sidejudge.scoring.alerts.condition import Observed
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.event import Incident, Incidents
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.runs.tally import MAX_NAMES
from sidejudge.scoring.runs.verdict_line import VerdictLineError, read_verdict
from sidejudge.scoring.statistics.sums import FirstFew
from sidejudge.scoring.status.snapshots import JudgeSnapshot, Spending
from sidejudge.scoring.status.status import Status
from sidejudge.scoring.trace.time_units import DAY_NS
from sidejudge.scoring.verdict.documents import VerdictDocument

Seen = tuple[Key, Observation, VerdictDocument]


class StoredPast:
    """The verdicts in a monitor's store; the monitor may run. Raises ``StoreUnavailable``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.latest_ns = latest_verdict_ns(path)

    def since(self, begin_ns: int) -> Iterator[Seen]:
        yield from _seen(read_verdicts(self._path, begin_ns))


class FiledPast:
    """The verdicts in a file, in any order. Memory only holds the time of each line and where it begins.

    ``complain`` gets one line of text for each line that is no verdict, or has no time;
    ``bad_lines`` counts them. ``progress`` gets the bytes read. ``engine`` is where lines are checked; None: here.
    """

    def __init__(
        self, path: Path, complain: Callable[[str], None], progress: Callable[[int], None], engine: Engine | None = None
    ) -> None:
        self._path = path
        self.bad_lines = 0
        found: list[tuple[int, int]] = []
        with path.open("rb", buffering=1 << 20) as file:
            for placed in (engine or Here()).map(_placed, chunks(lines(file), most=1024)):
                self.bad_lines += len(placed.problems)
                for problem in placed.problems:
                    complain(problem)
                found += placed.found
                progress(placed.read)
        found.sort()
        self._at = array("q", (at_ns for at_ns, _ in found))
        self._place = array("q", (place for _, place in found))
        self.latest_ns = self._at[-1] if found else None

    def since(self, begin_ns: int) -> Iterator[Seen]:
        with self._path.open("rb") as file:
            for at_ns, place in zip(self._at, self._place, strict=True):
                if at_ns >= begin_ns:
                    file.seek(place)
                    yield from _seen([cast("VerdictDocument", loaded(file.readline()))])


class HistoryPast:
    """The verdicts that ``sinks.parquet`` has written; some days of them are held in memory.

    ``complain`` gets one line of text for each row that is no verdict. Raises ``HistoryError``.
    """

    def __init__(self, path: str, complain: Callable[[str], None]) -> None:
        self._path = path
        self.bad_lines = 0
        self.latest_ns: int | None = None
        for number, verdict in enumerate(history_records(path, "verdicts", complain=complain), 1):
            try:
                self.latest_ns = max(self.latest_ns or 0, _checked(loaded(json_line(verdict))))
            except VerdictLineError as error:
                self.bad_lines += 1
                complain(f"row {number}: {error}")

    def since(self, begin_ns: int) -> Iterator[Seen]:
        held: list[tuple[int, VerdictDocument]] = []
        done_ns = begin_ns
        for at_ns, verdict in self._placed(begin_ns):
            held.append((at_ns, verdict))
            if at_ns >= done_ns + 3 * DAY_NS:
                done_ns = at_ns - 2 * DAY_NS  # each folder holds one day, so no older verdict follows
                held.sort(key=itemgetter(0))
                end = bisect_left(held, done_ns, key=itemgetter(0))
                yield from _seen(each for _, each in held[:end])
                held = held[end:]
        held.sort(key=itemgetter(0))
        yield from _seen(each for _, each in held)

    def _placed(self, begin_ns: int) -> Iterator[tuple[int, VerdictDocument]]:
        day = datetime.fromtimestamp(max(0, begin_ns) / 1e9, UTC).date().isoformat()
        for verdict in history_records(self._path, "verdicts", day):
            with suppress(VerdictLineError):  # counted when the history was opened
                if (at_ns := _checked(loaded(json_line(verdict)))) >= begin_ns:
                    yield at_ns, verdict


Past: TypeAlias = StoredPast | FiledPast | HistoryPast
"""A source of past verdicts, the oldest first. ``latest_ns`` is the time of the latest verdict; None without any."""


@dataclass(slots=True)
class _Placed:
    """The times of the verdicts on some lines, and where each line begins in the file."""

    read: int
    found: list[tuple[int, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def _placed(chunk: Sequence[NumberedLine]) -> _Placed:
    placed = _Placed(chunk[-1].read)
    for line in chunk:
        try:
            placed.found.append((_checked(json_of(line, VerdictLineError)), line.read - len(line.text or b"")))
        except VerdictLineError as error:
            placed.problems.append(f"line {line.number}: {error}")
    return placed


def _seen(verdicts: Iterable[VerdictDocument]) -> Iterator[Seen]:
    for verdict in verdicts:
        yield *observe_stored(verdict), verdict


def _checked(stated: object) -> int:
    """The time of a verdict, in ns since the epoch. ``VerdictLineError`` for an invalid one, or one without a time."""
    read_verdict(stated)
    verdict = cast("VerdictDocument", stated)  # read_verdict has checked that it is a map
    for name in ("service", "environment", "created_at", "sampling_probability", "composite_norm", "passed"):
        if name not in verdict:
            raise VerdictLineError(f"{name}: is missing")
    try:
        _, seen = observe_stored(verdict)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if _zoned(str(verdict["created_at"])):
            raise VerdictLineError(f"scores: cannot be read ({type(error).__name__})") from None
        fault = "created_at: is no time with its zone; write it as 2026-11-30T12:00:00Z"
        raise VerdictLineError(fault) from None
    return seen.at_ns


def _zoned(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


HOUR_S = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """The cost of judging, as verdicts state it: ``judged`` of ``verdicts`` state a cost.

    ``paid_usd`` is the sum over the sampled traces. ``whole_usd`` estimates, by inverse probability weighting, the cost
    of judging all traces; ``at_rate_usd`` is that times the base rate ``rate``, without the traces that rules keep.
    ``dearest_hour_usd`` and ``dearest_day_usd`` (UTC) are the largest sums paid in an hour and in a day. All amounts
    are ``None`` where no verdict states a cost.
    """

    verdicts: int
    judged: int
    models: tuple[str, ...]
    rate: float
    paid_usd: float | None
    whole_usd: float | None
    at_rate_usd: float | None
    dearest_hour_usd: float | None
    dearest_day_usd: float | None


@dataclass(slots=True, kw_only=True)
class Costs:
    """Adds up what verdicts cost, hour by hour. ``hour_usd`` and ``day_usd`` are the configured budgets."""

    rate: float
    hour_usd: float | None = None
    day_usd: float | None = None
    _verdicts: int = 0
    _costs: list[float] = field(default_factory=list)
    _whole: list[float] = field(default_factory=list)
    _hours: dict[int, float] = field(default_factory=dict)
    _models: dict[str, None] = field(default_factory=dict)

    def add(self, verdict: VerdictDocument, at_ns: int, *, counted: bool) -> None:
        """Add a verdict. One before the period (not ``counted``) counts only towards the budgets."""
        judge = verdict.get("judge") or {}
        usd = float(judge.get("cost_usd") or 0.0)
        hour = at_ns // 10**9 // HOUR_S
        self._hours[hour] = self._hours.get(hour, 0.0) + usd
        if not counted:
            return
        self._verdicts += 1
        if usd > 0:
            self._costs.append(usd)
            self._whole.append(usd / float(verdict["sampling_probability"]))
            self._models[str(judge.get("model") or "unknown")] = None

    def snapshot(self, now_ns: int) -> JudgeSnapshot:
        """The judge's spending, for the budget condition. The judge counts as reachable: nothing is known of it."""
        hour = now_ns // 10**9 // HOUR_S
        day = hour - hour % 24
        return JudgeSnapshot(
            name="", models=(), outage=None, shares={}, under_way=0, waiting=0,
            spending=(
                Spending(period="hour", spent_usd=self._hours.get(hour, 0.0), limit_usd=self.hour_usd),
                Spending(
                    period="day", spent_usd=sum(self._hours.get(each, 0.0) for each in range(day, hour + 1)),
                    limit_usd=self.day_usd,
                ),
            ),
        )  # fmt: skip

    def reported(self, begin_ns: int) -> Judging:
        """The total from ``begin_ns`` on."""
        known = bool(self._costs)
        whole = math.fsum(self._whole)
        first = begin_ns // 10**9 // HOUR_S
        hours = {hour: usd for hour, usd in self._hours.items() if hour >= first}
        days: dict[int, float] = {}
        for hour, usd in hours.items():
            days[hour // 24] = days.get(hour // 24, 0.0) + usd
        return Judging(
            verdicts=self._verdicts, judged=len(self._costs), models=tuple(self._models), rate=self.rate,
            paid_usd=math.fsum(self._costs) if known else None, whole_usd=whole if known else None,
            at_rate_usd=whole * self.rate if known else None,
            dearest_hour_usd=max(hours.values(), default=None) if known else None,
            dearest_day_usd=max(days.values(), default=None) if known else None,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedCourse:
    """The share of ``looks`` at which each status was in force for one key, since its first verdict."""

    key: Key
    verdicts: int
    looks: int
    shares: Mapping[Status, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The alerts that would have been raised from ``begin_ns`` to ``end_ns``, in ns since the epoch.

    ``versions`` are the first of the verdicts' versions by rubric, in the order in which they came.
    """

    begin_ns: int
    end_ns: int
    incidents: Sequence[Incident]
    courses: Sequence[ReplayedCourse]
    judging: Judging
    versions: Mapping[str, Sequence[str]]


class Replay:
    """Replays verdicts under a declaration. Events arise as in a monitor; none is delivered."""

    def __init__(self, declared: Declaration, watched: Mapping[str, WatchedWindow], costs: Costs) -> None:
        self._watched, self._costs = watched, costs
        self._windows = LimitedWindows(declared)
        self._metrics = MetricWatch(declared, windows=self._windows, figures=None)
        self._watch = Watch(declared, self._windows, watched, metrics=self._metrics)
        self._look_ns = declared.look_ns
        self._acceptable = {name: each.on_average for name, each in watched.items()}
        self._details: dict[Key, tuple[int, Details]] = {}
        self._grown: set[Key] = set()
        self._incidents = Incidents()
        self._looks: dict[Key, dict[Status, int]] = {}
        self._verdicts: dict[Key, int] = {}
        self._versions: dict[str, FirstFew[str]] = {}

    @staticmethod
    def warm_up_ns(declared: Declaration) -> int:
        """How long before the period verdicts are needed, in ns: one window, and the looks before a status changes."""
        return declared.reach_ns + declared.rule.looks * declared.look_ns

    def play(
        self,
        past: Iterable[Seen],
        begin_ns: int,
        end_ns: int,
        progress: Callable[[int], None] = lambda _: None,
    ) -> Replayed:
        """Look from ``begin_ns`` less the warm-up until ``end_ns``; ``progress`` gets the number of looks so far.

        ``past`` is in order of time. A verdict out of order counts as one that came with the verdict before it.
        """
        now_ns = begin_ns - self.warm_up_ns(self._watch.declared)
        done = 0

        def look_until(until_ns: int) -> None:
            nonlocal now_ns, done
            while now_ns + self._look_ns <= until_ns:
                now_ns += self._look_ns
                self._look(now_ns, counted=now_ns > begin_ns)
                progress(done := done + 1)

        for key, seen, verdict in past:
            look_until(min(seen.at_ns, end_ns))
            if seen.at_ns > end_ns:
                break
            self._take(key, seen, verdict, counted=seen.at_ns > begin_ns)
        look_until(end_ns)
        reported = [each for each in self._incidents.reported() if each.ended_ns is None or each.ended_ns > begin_ns]
        return Replayed(
            begin_ns=begin_ns, end_ns=end_ns, incidents=reported, courses=list(self._courses()),
            judging=self._costs.reported(begin_ns), versions={name: [*each] for name, each in self._versions.items()},
        )  # fmt: skip

    def _take(self, key: Key, seen: Observation, verdict: VerdictDocument, *, counted: bool) -> None:
        self._windows.add(key, seen)
        self._watch.learn(key, seen)
        self._costs.add(verdict, seen.at_ns, counted=counted)
        self._grown.add(key)
        self._versions.setdefault(key.rubric, FirstFew(MAX_NAMES)).keep(label(str(verdict.get("rubric_version"))))
        self._verdicts[key] = self._verdicts.get(key, 0) + counted

    def _look(self, now_ns: int, *, counted: bool) -> None:
        found = {key: self._details_of(key, now_ns) for key in self._windows.keys()}  # noqa: SIM118 - not a dict
        self._grown.clear()
        facts = Observed(now_ns=now_ns, judge=self._costs.snapshot(now_ns))
        for event in self._watch.look(facts, found, self._acceptable, self._metrics.measured(now_ns)()):
            self._incidents.add(event)
        if counted:
            for key, status in self._watch.statuses():
                looks = self._looks.setdefault(key, {})
                looks[status] = looks.get(status, 0) + 1

    def _details_of(self, key: Key, now_ns: int) -> Details:
        """The details of a key, computed again only where its window has changed."""
        members = self._windows.members(key, now_ns)
        known = self._details.get(key)
        if known is None or key in self._grown or known[0] != len(members):
            known = self._details[key] = (
                len(members),
                details(members, self._watched.get(key.rubric, WatchedWindow()), self._windows.design.get(key, 1.0)),
            )
        return known[1]

    def _courses(self) -> Iterable[ReplayedCourse]:
        for key, looks in sorted(self._looks.items()):
            many = sum(looks.values())
            shares = {status: looks.get(status, 0) / many for status in Status}
            yield ReplayedCourse(key=key, verdicts=self._verdicts.get(key, 0), looks=many, shares=shares)
