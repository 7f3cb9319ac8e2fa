"""Slices of traffic: one tenant that is served badly, a version that is worse, and what is neither."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from sidejudge.monitor.alerting.details import LIMITED_SHARE
from sidejudge.monitor.alerting.fleet.publish import SlicePublisher
from sidejudge.monitor.alerting.fleet.slices import (
    MOST_SLICED,
    SLICE_NS,
    KeySlice,
    bounded_slices,
    decoded,
    encoded,
    end_ns,
    slice_of,
)
from sidejudge.monitor.alerting.fleet.windows import FleetWindows
from sidejudge.monitor.alerting.limited_windows import LimitedWindows
from sidejudge.monitor.alerting.observation import First, Key, Observation, SliceFirst
from sidejudge.monitor.alerting.sliced import MOST_SLICES, MOST_VALUES, SHOWN, SlicedTraffic, SlicePace
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.scoring.alerts.condition import Observed
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.status.service_status import OTHER
from sidejudge.scoring.trace.time_units import HOUR_NS

KEY, MINUTE_NS, BEGIN_NS = Key("shop", "prod", "qa"), 60 * 10**9, 10**18
DECLARED = Declaration(slices=("version", "metadata.tenant", "name"))
TENANTS = ("acme", "globex", "initech", "umbrella", "hooli")


class Traffic:
    """Verdicts of one service, look by look, a few a minute."""

    def __init__(self, *, declared: Declaration = DECLARED, seed: int = 1, look: int = 10) -> None:
        self.declared, self.chance, self.look_min = declared, random.Random(seed), look
        self.now_ns, self.number, self.events = BEGIN_NS, 0, []
        self.windows = LimitedWindows(declared)
        self.begin()

    def begin(self) -> None:
        self.watch = Watch(self.declared, self.windows)

    def begin_again(self) -> Traffic:
        """As after a restart."""
        kept = json.loads(json.dumps(self.watch.to_memory()))
        self.begin()
        self.watch.restore(kept)
        return self

    def go_on(self, minutes: int, ratio, *, tenants=TENANTS, canary: float = 0.0, per_minute: int = 2, slices=None):
        for _ in range(minutes // self.look_min):
            self.now_ns += self.look_min * MINUTE_NS
            for _ in range(per_minute * self.look_min):
                self.number += 1
                own = slices(self.number) if slices else {
                    "metadata.tenant": self.chance.choice(tenants), "name": self.chance.choice(("chat", "search")),
                    "version": "1.1" if self.chance.random() < canary else "1.0",
                }  # fmt: skip
                seen = Observation(
                    identity=str(self.number), at_ns=self.now_ns, passed=self.chance.random() < ratio(own), slices=own
                )
                self.windows.add(KEY, seen)
                self.watch.learn(KEY, seen)
            self.events += self.watch.look(Observed(now_ns=self.now_ns), {}, {})
        return self

    def fired(self, *conditions: str) -> list:
        found = conditions or ("slice_worse", "version_worse")
        return [each for each in self.events if each.condition in found and each.transition is AlertTransition.FIRING]

    @property
    def slices(self):
        (status,) = self.watch.service_statuses(self.now_ns)
        return status.slices


@pytest.mark.parametrize("seed", range(2))
def test_one_bad_tenant_of_five_alarms_and_no_other_does(seed):
    played = Traffic(seed=seed).go_on(300, lambda _: 0.96)
    assert not played.fired()
    played.go_on(240, lambda own: 0.41 if own["metadata.tenant"] == "acme" else 0.96)
    (event,) = played.fired("slice_worse")
    assert event.labels == (*zip(("service", "environment", "rubric"), KEY, strict=True),
                            ("slice", "metadata.tenant"), ("value", "acme"))  # fmt: skip
    assert event.value < 0.85 < event.value + 0.5
    assert ("value", "acme") in event.labels
    assert "acme" not in event.stated
    assert "others 0.9" in event.stated
    assert not played.fired("version_worse")
    worst = played.slices[0]
    assert (worst.by, worst.value, worst.worse) == ("metadata.tenant", "acme", True)
    assert worst.estimate.pass_ratio < 0.85 < worst.others.pass_ratio
    played.go_on(900, lambda _: 0.96)
    assert played.events[-1].transition is AlertTransition.RESOLVED
    assert not any(each.worse for each in played.slices)


def test_a_bad_canary_alarms_as_a_version_and_is_over_once_it_is_rolled_back():
    played = Traffic().go_on(300, lambda _: 0.96)
    played.go_on(900, lambda own: 0.6 if own["version"] == "1.1" else 0.96, canary=0.1)
    (event,) = played.fired("version_worse")
    assert dict(event.labels)["value"] == "1.1"
    assert not played.fired("slice_worse")
    played.go_on(300, lambda _: 0.96)
    assert [each.transition for each in played.events if each.condition == "version_worse"][-1] is (
        AlertTransition.RESOLVED
    )


@pytest.mark.parametrize("by", ["version", "metadata.tenant"])
def test_what_was_worse_and_passes_as_the_others_do_again_is_no_news(by):
    chance = random.Random(1)

    def of(_number: int) -> dict[str, str]:
        return {by: chance.choice("abcdef")}

    played = Traffic(declared=Declaration(slices=(by,))).go_on(600, lambda _: 0.96, slices=of, per_minute=1)
    played.go_on(360, lambda own: 0.2 if own[by] == "c" else 0.96, slices=of, per_minute=1)
    played.begin_again().go_on(2400, lambda _: 0.96, slices=of, per_minute=1)
    turns = [each.transition for each in played.events if each.condition in {"version_worse", "slice_worse"}]
    assert turns == [AlertTransition.FIRING, AlertTransition.RESOLVED]


def test_the_end_of_an_alert_is_known_though_others_are_shown_before_it():
    chance = random.Random(2)

    def of(_number: int) -> dict[str, str]:
        return {"version": chance.choice("abcdefghijkl")}

    played = Traffic(declared=Declaration(slices=("version",)), look=5).go_on(600, lambda _: 0.9, slices=of)
    played.go_on(600, lambda own: 0.3 if own["version"] == "l" else 0.9, slices=of)
    played.begin_again().go_on(2000, lambda own: 1.0 if own["version"] == "l" else 0.9, slices=of)
    turns = [each.transition for each in played.events if dict(each.labels).get("value") == "l"]
    assert turns == [AlertTransition.FIRING, AlertTransition.RESOLVED]


def test_what_hits_all_parts_alike_is_no_news_of_any_of_them():
    played = Traffic().go_on(600, lambda _: 0.96, canary=0.3).go_on(300, lambda _: 0.3, canary=0.3)
    assert played.fired("pass_rate_critical")
    assert not played.fired("version_worse")
    assert all(each.muted for each in played.fired("slice_worse"))


def test_a_tenant_that_was_always_a_little_worse_and_is_served_as_promised_is_no_news():
    played = Traffic().go_on(1000, lambda own: 0.89 if own["metadata.tenant"] == "acme" else 0.98)
    assert not played.fired()


@pytest.mark.parametrize("seed", range(2))
def test_good_traffic_raises_nothing_and_shows_few(seed):
    played = Traffic(seed=seed).go_on(1000, lambda _: 0.9, canary=0.1)
    assert not played.fired()
    assert 0 < len(played.slices) <= SHOWN
    assert not any(each.worse for each in played.slices)


def test_one_canary_under_two_names_is_one_alert():
    declared = Declaration(slices=("version", "prompt"))

    def of(number: int) -> dict[str, str]:
        return {"version": "2", "prompt": "p2"} if number % 5 == 0 else {"version": "1", "prompt": "p1"}

    played = Traffic(declared=declared).go_on(900, lambda own: 0.5 if own["version"] == "2" else 0.97, slices=of)
    assert [dict(each.labels)["slice"] for each in played.fired()] == ["version"]


def test_a_hostile_number_of_values_takes_a_bounded_number_of_places_and_hides_no_bad_one():
    declared = Declaration(slices=("metadata.tenant",))

    def of(number: int) -> dict[str, str]:
        return {"metadata.tenant": "acme" if number % 4 == 0 else f"t{number}"}

    played = Traffic(declared=declared).go_on(300, lambda _: 0.97, slices=lambda n: {"metadata.tenant": f"t{n}"})
    played.go_on(600, lambda own: 0.3 if own["metadata.tenant"] == "acme" else 0.97, slices=of)
    (tracked,) = played.watch._tracked.values()
    assert tracked.sliced.series <= MOST_VALUES + 1 <= MOST_SLICES
    assert {dict(each.labels)["value"] for each in played.fired()} == {"acme"}
    assert OTHER in tracked.sliced.to_json()["dimensions"]["metadata.tenant"]["values"]


def test_a_value_that_loses_its_place_to_another_of_the_same_look_counts_with_the_others():
    sliced = SlicedTraffic("qa")
    few = {SliceFirst("version", f"{number:02d}", True, 1.0): 1 for number in range(MOST_VALUES)}
    sliced.add_together({**few, SliceFirst("version", "new", False, 1.0): 100})
    pace = SlicePace(effect=1.0, per_window=60.0, series=1)
    sliced.look(Declaration(slices=("version",)), pace, 60 * 10**9, room=MOST_SLICES)
    values = sliced.to_json()["dimensions"]["version"]["values"]
    n = {value: sum(sums[1] for sums in known["course"]) for value, known in values.items()}
    assert (n["new"], n[OTHER], sum(n.values())) == (100, 1, 100 + MOST_VALUES)


def test_a_restart_goes_on_with_what_was_known_of_slices():
    played = Traffic().go_on(300, lambda _: 0.96)
    played.go_on(30, lambda own: 0.3 if own["metadata.tenant"] == "acme" else 0.96)
    before = played.slices
    played.begin_again()
    played.events += played.watch.look(Observed(now_ns=played.now_ns), {}, {})
    assert [(each.by, each.value, each.share) for each in played.slices] == [
        (each.by, each.value, each.share) for each in before
    ]
    played.go_on(180, lambda own: 0.3 if own["metadata.tenant"] == "acme" else 0.96)
    assert {dict(each.labels)["value"] for each in played.fired("slice_worse")} == {"acme"}


@pytest.mark.parametrize("longest_h", [12, 24, 48])
def test_a_restart_with_another_longest_window_counts_no_verdict_for_longer(longest_h):
    of = [{"name": "chat"}, {"name": "search"}]
    played = Traffic().go_on(120, lambda _: 0.96, slices=lambda number: of[number % 2])
    played.declared = replace(DECLARED, longest_ns=longest_h * HOUR_NS)
    played.begin_again().go_on(300, lambda _: 0.96, slices=lambda number: of[number % 2])
    assert max(each.estimate.n + each.others.n for each in played.slices) <= 120, "those of the last hour"


@pytest.mark.parametrize("hours", [2, 8, 100])
def test_verdicts_of_a_clock_that_was_ahead_do_not_count_until_it_is_as_late_again(hours):
    of = [{"name": "chat"}, {"name": "search"}]
    played = Traffic().go_on(120, lambda own: 0.2 if own["name"] == "chat" else 0.96, slices=lambda n: of[n % 2])
    played.now_ns -= hours * HOUR_NS
    played.go_on(120, lambda _: 0.96, slices=lambda n: of[n % 2])
    (chat,) = (each for each in played.slices if each.value == "chat")
    assert chat.estimate.n + chat.others.n <= 120, "those of the last hour"
    assert chat.estimate.pass_ratio > 0.8
    played.go_on(240, lambda _: 0.96, slices=lambda n: of[1])
    assert [each.value for each in played.slices if each.worse] == []


def test_the_figure_of_the_others_is_theirs_where_a_part_has_ended():
    ratios = {"chat": 0.5, "search": 0.9}
    played = Traffic(look=30)
    for hours, present in ((10, ["chat", "search"]), (29, ["search"])):
        played.go_on(
            60 * hours, lambda own: ratios[own["name"]], slices=lambda n, of=present: {"name": of[n % len(of)]}
        )
    assert [each.value for each in played.slices if each.others is not None] == []


def test_without_dimensions_nothing_is_divided():
    played = Traffic(declared=Declaration(slices=())).go_on(60, lambda own: float(own["metadata.tenant"] != "acme"))
    assert played.slices == ()


def test_a_fleet_knows_of_slices_what_one_monitor_with_all_the_traffic_would():
    chance, one = random.Random(7), LimitedWindows(DECLARED)
    alone, leading = Watch(DECLARED, one), FleetWindows(DECLARED.window_ns, longest_ns=DECLARED.longest_ns, enough=30)
    leader, begin = Watch(DECLARED, leading), slice_of(BEGIN_NS)
    windows = [LimitedWindows(DECLARED) for _ in range(3)]
    publishers = [SlicePublisher(own, {}, lambda _: "1") for own in windows]
    for number in range(begin, begin + 170):
        for place in range(4):
            own = {"metadata.tenant": chance.choice(TENANTS), "version": "1"}
            passed = chance.random() < (0.2 if own["metadata.tenant"] == "acme" and number > begin + 60 else 0.97)
            seen = Observation(
                identity=f"{number}/{place}", at_ns=end_ns(number), passed=passed, slices=own,
                weight=chance.choice((1.0, 4.0)),
            )  # fmt: skip
            one.add(KEY, seen)
            alone.learn(KEY, seen)
            which = chance.randrange(3)
            windows[which].add(KEY, seen)
            publishers[which].seen(KEY, seen)
        found: Counter = Counter()
        for name, publisher in enumerate(publishers):
            for of, body in asyncio.run(publisher.due(end_ns(number) + 1)).items():
                for firsts in leading.put(f"m{name}", of, body).values():
                    found.update(firsts)
                publisher.published(
                    [of], dict.fromkeys(range(begin, number + 1), 0.0), end_ns(number), DECLARED.longest_ns
                )
        verdicts = {first: n for first, n in found.items() if isinstance(first, First)}
        leader.learn_together(KEY, verdicts, number * SLICE_NS, end_ns(number))
        sliced = {first: n for first, n in found.items() if isinstance(first, SliceFirst)}
        leader.learn_slices(KEY, sliced, number * SLICE_NS)
        leading.advance(end_ns(number))
        for watch in (alone, leader):
            watch.look(Observed(now_ns=end_ns(number)), {}, {})
    (mine,), (theirs,) = (watch.service_statuses(end_ns(number)) for watch in (alone, leader))
    known = [(each.by, each.value, each.worse, each.estimate.n, each.others.n) for each in mine.slices]
    assert known == [(each.by, each.value, each.worse, each.estimate.n, each.others.n) for each in theirs.slices]
    assert known[0][:3] == ("metadata.tenant", "acme", True)


def test_a_minute_of_many_values_is_published_bounded_and_loses_no_verdict():
    firsts = Counter({SliceFirst("metadata.tenant", f"t{n}", passed=True, weight=1.0): 1 for n in range(5_000)})
    firsts[SliceFirst("metadata.tenant", "acme", passed=False, weight=1.0)] = 40
    shares = {SliceFirst(LIMITED_SHARE, name, kept, 1.0): 1 for name in ("", "leak") for kept in (True, False)}
    firsts.update(shares)
    found = bounded_slices(firsts)
    assert len(found) <= MOST_SLICED + 1 + len(shares)
    assert found.total() == firsts.total()
    assert found[SliceFirst("metadata.tenant", "acme", passed=False, weight=1.0)] == 40
    assert shares.items() <= found.items()
    part = KeySlice(sliced=found)
    part.sums.count("members")
    ((_, _, read),) = decoded(encoded({KEY: part}, {}))
    assert read.sliced == found


def test_a_minute_of_many_weights_keeps_apart_what_blocks_and_what_versions_there_are():
    firsts = Counter(
        SliceFirst(by, value, passed=n % 7 != 0, weight=1 + n / 50)
        for n in range(300) for by, value in ((LIMITED_SHARE, "leak"), (LIMITED_SHARE, "tone"), ("version", "1"))
    )  # fmt: skip
    found = bounded_slices(firsts)
    assert len(found) <= MOST_SLICED
    for counted in (lambda _: 1.0, lambda first: first.weight):
        sums = [Counter(), Counter()]
        for of, each in zip(sums, (firsts, found), strict=True):
            for first, n in each.items():
                of[first.by, first.value, first.passed] += n * counted(first)
        assert sums[1] == pytest.approx(sums[0], rel=0.05)
