"""Tracked: the state of one service under one rubric from verdict to verdict: its detectors and its usual ratio.

``Watch`` holds one for each; a plan simulates with one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from sidejudge.scoring.alerts.condition import VIOLATION, BeyondLimit
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.statistics.arrivals import Arrivals
from sidejudge.scoring.statistics.baseline import RECENT, Anchor, Baseline, UsualByHour
from sidejudge.scoring.statistics.cusum import Chart, Cusum
from sidejudge.scoring.statistics.design_effect import DesignEffect
from sidejudge.scoring.statistics.evidence import Together
from sidejudge.scoring.statistics.serial_dependence import SerialDependence
from sidejudge.scoring.status.hysteresis import HysteresisState
from sidejudge.scoring.status.service_status import SilenceCause, StatusChange
from sidejudge.scoring.status.status import Drops
from sidejudge.scoring.trace.span import JsonRecord

from .observation import First, SliceFirst
from .sliced import SlicedTraffic

_PARTS: Final = (
    "cusum", "collapse", "slide", "drift", "drop", "design", "serial", "baseline", "keeping", "recent", "anchor",
    "by_hour", "arrivals",
)  # fmt: skip


_HIGHEST: Final = 1e9
"""A score above the limit of every chart, which caps it with the next verdict."""


class ChartPace(NamedTuple):
    """A service's effective verdicts in the time of a window, and the number of services that share a budget."""

    per_window: float
    series: int


class Tracked:
    """The state of one service under one ``version`` of a ``rubric``, from verdict to verdict and from look to look."""

    __slots__ = (
        "anchor", "arrivals", "baseline", "by_hour", "cause", "collapse", "counted", "counted_ns", "cusum", "design",
        "drift", "drop", "held", "keeping", "recent", "rubric", "sequence", "serial", "shares", "sliced", "slide",
        "version",
    )  # fmt: skip

    def __init__(self, declared: Declaration, rubric: str, version: str = "") -> None:
        good = declared.good_and_bad(rubric)[0]
        self.rubric, self.version = rubric, version
        self.baseline, self.recent, self.anchor = Baseline(good), Baseline(good, RECENT), Anchor(good)
        self.cusum, self.collapse, self.slide, self.drift = Cusum(), Cusum(), Cusum(), Cusum()
        self.keeping = Baseline(declared.change.drift_good)
        self.drop = declared.new_drop_level(rubric)
        self.design, self.serial = DesignEffect(), SerialDependence()
        self.by_hour, self.arrivals = UsualByHour(), Arrivals()
        self.sliced = SlicedTraffic(rubric)
        self.shares: dict[str, Cusum] = {}  # of events with a limit
        self.counted: Counter[SliceFirst] = Counter()  # since the last look, for these
        self.counted_ns = 0
        self.held: HysteresisState | None = None
        self.cause: SilenceCause | None = None  # of the present silence
        self.sequence = declared.new_sequence(rubric) if declared.policy.mode == "adaptive" else None

    @property
    def effect(self) -> float:
        """The design effect: the larger of those of named clusters and of unnamed ones (serial dependence)."""
        return max(self.design.value, self.serial.value)

    @property
    def fell_ns(self) -> int | None:
        """When the pass ratio fell, by estimate, while a detector of drops is alarmed; otherwise None."""
        return next((each.since_ns for each in (self.cusum, self.collapse) if each.alarmed), None)

    @property
    def beyond(self) -> dict[str, BeyondLimit]:
        """The shares that are beyond their limit."""
        return {
            name: BeyondLimit(1 - cusum.pass_ratio, cusum.since_ns)
            for name, cusum in self.shares.items()
            if cusum.alarmed and cusum.pass_ratio is not None and cusum.since_ns is not None
        }

    def learn(
        self, declared: Declaration, pace: ChartPace, *, passed: bool, weight: float, at_ns: int, cluster: str | None,
        kept: bool | None,
    ) -> None:  # fmt: skip
        """Take in a verdict as it was first; ``kept``: whether the run keeps to its scenario, None: not checked."""
        unnamed = max(1.0, self.serial.value / self.design.value)
        worth = self.design.add(cluster, passed=passed, weight=weight, at_ns=at_ns) / unnamed
        if kept is not None:
            chart = self.drift_chart(declared, pace)
            self.drift.add(chart, passed=kept, weight=weight, at_ns=at_ns, worth=worth)
            self.keeping.add(passed=kept, weight=weight, worth=worth, at_ns=at_ns)
        if declared.policy.mode == "adaptive":
            self.by_hour.add(passed=passed, weight=weight, at_ns=at_ns, worth=worth)
            self.drop.add(passed=passed, weight=weight, worth=worth, at_ns=at_ns)
            for cusum, chart in (
                (self.collapse, declared.collapse_chart(self.rubric, *pace)),
                (self.slide, self.slide_chart(declared, pace)),
            ):
                cusum.add(chart, passed=passed, weight=weight, at_ns=at_ns, worth=worth)
        self.cusum.add(self.chart(declared, pace), passed=passed, weight=weight, at_ns=at_ns, worth=worth)
        self._noticed()
        self.serial.add(not passed)
        self.arrivals.add(at_ns)
        if self.sequence is not None:
            self.sequence.add(passed=passed, weight=weight, at_ns=at_ns, worth=worth)
        self.baseline.add(passed=passed, weight=weight, worth=worth, at_ns=at_ns)
        self.recent.add(passed=passed, weight=weight, worth=worth, at_ns=at_ns)
        self.anchor.add(passed=passed, weight=weight, at_ns=at_ns, worth=worth)

    def learn_together(
        self, declared: Declaration, pace: ChartPace, firsts: Mapping[First, int], begin_ns: int, end_ns: int, *,
        checked: bool,
    ) -> None:  # fmt: skip
        """Take in verdicts of this stretch of time, in an order that nobody knows; ``checked``: against a scenario."""
        alike: Counter[tuple[bool, float, str | None]] = Counter()
        kept: Counter[tuple[bool, float]] = Counter()
        for first, n in firsts.items():
            alike[first.passed, first.weight, first.cluster] += n
            if first.kept is not None:
                kept[first.kept, first.weight] += n
        unnamed = max(1.0, self.serial.value / self.design.value)
        group = [
            each._replace(worth=each.worth / unnamed)
            for each in self.design.add_together(
                (Together(passed, weight, n, n, cluster) for (passed, weight, cluster), n in alike.items()),
                at_ns=begin_ns,
            )
        ]
        if kept and checked:
            worth = sum(each.worth for each in group) / sum(each.n for each in group)
            runs = [Together(passed, weight, n, n * worth) for (passed, weight), n in sorted(kept.items())]
            self.drift.add_together(self.drift_chart(declared, pace), runs, at_ns=begin_ns)
            self.keeping.add_together(runs, at_ns=begin_ns)
        adaptive, known, collapsed = declared.policy.mode == "adaptive", self.drop.watches, 1.0
        if adaptive:
            for each in group:
                self.by_hour.add(passed=each.passed, weight=each.weight, at_ns=begin_ns, worth=each.worth)
            self.drop.add_together(group, at_ns=begin_ns)
            collapsed = self.collapse.add_together(declared.collapse_chart(self.rubric, *pace), group, at_ns=begin_ns)
            self.slide.add_together(self.slide_chart(declared, pace), group, at_ns=begin_ns)
        fell = self.cusum.add_together(self.chart(declared, pace), group, at_ns=begin_ns)
        self._noticed()
        if adaptive and self.drop.watches and not known:  # what of the group came after the alarm counts already
            spent = max((each for each in (fell, collapsed) if each < 1), default=1.0)
            self.drop.add_together(group, spent=spent, at_ns=begin_ns)
        self.serial.add(sum(each.n for each in group if not each.passed), sum(each.n for each in group))
        if self.sequence is not None:
            self.sequence.add_together(group, at_ns=end_ns)
        self.baseline.add_together(group, at_ns=begin_ns)
        self.recent.add_together(group, at_ns=begin_ns)
        self.anchor.add_together(group, at_ns=end_ns)
        self.arrivals.add(begin_ns, sum(each.n for each in group))

    def count(self, firsts: Iterable[SliceFirst] | Mapping[SliceFirst, int], at_ns: int) -> None:
        """Keep what verdicts that began at this time add to the shares with a limit until ``follow_shares``."""
        if not self.counted:
            self.counted_ns = at_ns
        self.counted.update(firsts)

    def follow_shares(self, declared: Declaration, pace: ChartPace) -> None:
        """Mode ``adaptive``: take what was counted into the shares with a limit, in an order that nobody knows."""
        effect, limits = self.effect, declared.limits
        groups: dict[str, list[Together]] = {}
        for (_, name, kept, weight), n in self.counted.items():
            groups.setdefault(name, []).append(Together(kept, weight, n, n / effect))
        self.counted.clear()
        violation, blocked = (
            declared.share_chart(each, *pace) for each in (limits.violation_ratio, limits.blocker_ratio)
        )
        for name, group in groups.items():
            chart = violation if name == VIOLATION else blocked
            self.shares.setdefault(name, Cusum()).add_together(chart, group, at_ns=self.counted_ns)

    def go_on_beyond(self, name: str, share: float, since_ns: int) -> None:
        """Hold a share that no chart has followed for beyond its limit, as an alert has it, until its chart is at 0."""
        known = {"score": _HIGHEST, "n": 0, "alarmed": True, "since_ns": since_ns, "weight": 1.0, "failed": share}
        self.shares[name] = Cusum()
        self.shares[name].restore({**self.cusum.to_json(), **known})

    def _noticed(self) -> None:
        """Pass the state of the change detectors on. An outage is no clustering."""
        self.drop.noticed(alarmed=self.cusum.alarmed or self.collapse.alarmed)
        if self.cusum.alarmed:
            self.serial.skip()

    def chart(self, declared: Declaration, pace: ChartPace) -> Chart:
        """The chart of a drop."""
        return declared.chart(self.rubric, *pace, self.by_hour.below(self.baseline.lower))

    def drift_chart(self, declared: Declaration, pace: ChartPace) -> Chart:
        """The chart of a drift from the scenario."""
        return declared.drift_chart(*pace, self.keeping.lower)

    def slide_chart(self, declared: Declaration, pace: ChartPace) -> Chart:
        """The chart of a decay."""
        return declared.slide_chart(self.rubric, *pace, self.by_hour.below(self.anchor.lower))

    def drops(self, series: int) -> Drops:
        """What the detectors report to a status."""
        return Drops(
            fall=self.cusum.pass_ratio if self.cusum.alarmed else None,
            collapse=self.drop.pass_ratio if self.drop.below else None,
            slide=self.anchor.present(self.recent) if self.slide.alarmed else None,
            series=series,
        )

    def change(self, declared: Declaration, pace: ChartPace) -> StatusChange:
        """The early warning: of a drop, or of a decay where only that, or rather that, is noticed."""
        drop = change_of(self.cusum, self.chart(declared, pace))
        if declared.policy.mode != "adaptive" or drop.alarmed:
            return drop
        decay = change_of(self.slide, self.slide_chart(declared, pace))
        return decay if decay.alarmed or decay.share > drop.share else drop

    def anew(self, declared: Declaration, version: str) -> Tracked:
        """What is known under another version of the rubric: when verdicts come, and nothing of how many pass."""
        found = Tracked(declared, self.rubric, version)
        found.arrivals, found.cause = self.arrivals, self.cause
        return found

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        return {
            "version": self.version,
            **{name: getattr(self, name).to_json() for name in _PARTS},
            "held": self.held.to_json() if self.held else None,
            "cause": self.cause,
            "shares": {name: cusum.to_json() for name, cusum in self.shares.items()},
            "sequence": self.sequence.to_json() if self.sequence else None,
        }

    def restore(self, record: JsonRecord) -> None:
        """Go on from what ``to_json`` wrote, in this version or an earlier one; what that lacks begins anew.

        Under another version of the rubric it is what is known then.
        """
        self.cause = SilenceCause(record["cause"]) if record.get("cause") else None
        same = record.get("version", self.version) == self.version
        for name in _PARTS if same else ("arrivals",):
            if name in record:
                getattr(self, name).restore(record[name])
        if not same:
            return
        if self.sequence is not None:  # another mode does not follow them, and an alarm of before is none of now
            for name, known in record.get("shares", {}).items():
                self.shares.setdefault(name, Cusum()).restore(known)
        self.held = HysteresisState.of_json(record["held"]) if record["held"] else None
        if self.sequence is not None and record["sequence"]:
            self.sequence.restore(record["sequence"])


def change_of(cusum: Cusum, chart: Chart) -> StatusChange:
    """A running chart as a status shows it."""
    return StatusChange(
        share=cusum.score / cusum.limit(chart), alarmed=cusum.alarmed, good=chart.good, bad=chart.bad,
        run_length=chart.run_length, since_ns=cusum.since_ns,
    )  # fmt: skip
