"""Counters by version: a new deployment gets its label however many came before, and no flood replaces all series."""

from __future__ import annotations

import logging

import pytest

from sidejudge.integrations.prometheus import families as f
from sidejudge.integrations.prometheus.application_metrics import IDLE_S, JUDGED_IDLE_S, MOST_JUDGED, VersionMetrics
from sidejudge.integrations.prometheus.collect import MetricValues

FAMILIES = (f.APPLICATION_TRACES, f.VERSION_WEIGHT, f.VERSION_FAILED_WEIGHT, f.VERSION_WEIGHT_SQUARED)
SHOP, DESK = ("shop", "live"), ("desk", "live")


class Counted:
    """Counters at a time that a test sets."""

    def __init__(self, cap: int) -> None:
        self.now = 0.0
        self.values = MetricValues(FAMILIES)
        self.metrics = VersionMetrics(self.values, label_cap=cap, clock_s=lambda: self.now)

    def trace(self, version: str | None, where: tuple[str, str] = SHOP) -> None:
        self.metrics.trace(where, version, 1.0)

    def verdict(self, version: str | None, rubric: str = "qa", weight: float = 1.0, *, passed: bool = True) -> None:
        self.metrics.verdict(SHOP, rubric, version, weight=weight, passed=passed)

    def verdicts(self, family: f.Family = f.VERSION_WEIGHT) -> dict[tuple[str, str], float]:
        samples = self.values.metric(family).samples
        return {(each.labels["rubric"], each.labels["version"]): each.value for each in samples}

    def traces(self) -> dict[tuple[str, str], float]:
        samples = self.values.metric(f.APPLICATION_TRACES).samples
        return {(each.labels["service"], each.labels["version"]): each.value for each in samples}


def test_every_deployment_of_a_year_gets_its_label() -> None:
    counted = Counted(cap=3)
    for number in range(200):
        counted.now += 2 * IDLE_S
        counted.trace(f"1.{number}")
        counted.trace(f"1.{number}")
    assert counted.traces() == {("shop", f"1.{number}"): 2.0 for number in (197, 198, 199)}


def test_a_version_that_is_seen_keeps_its_series_whatever_comes() -> None:
    counted = Counted(cap=2)
    for number in range(50):
        counted.now += IDLE_S / 2
        counted.trace("steady")
        counted.trace(f"new {number}")
    assert counted.traces()["shop", "steady"] == 50.0


def test_a_flood_of_versions_makes_few_series(caplog: pytest.LogCaptureFixture) -> None:
    counted, made = Counted(cap=5), set()
    with caplog.at_level(logging.WARNING, "sidejudge.metrics"):
        for number in range(10_000):
            counted.now += 3 * IDLE_S / 10_000
            counted.trace(f"flood {number}")
            if number % 5 == 0:
                made |= set(counted.traces())
    assert len(made - {("shop", "__other__")}) <= 3 * 5
    assert len(counted.traces()) <= 6
    assert [record.message.count("metrics.label_cap") for record in caplog.records] == [1]


def test_what_has_room_is_kept_however_long_ago_it_was_seen() -> None:
    counted = Counted(cap=2)
    counted.trace("1")
    counted.now = 100 * IDLE_S
    counted.trace("2")
    assert set(counted.traces()) == {("shop", "1"), ("shop", "2")}


def test_a_version_that_is_forgotten_ends_at_all_services_and_begins_anew() -> None:
    counted = Counted(cap=1)
    counted.trace("1", SHOP)
    counted.trace("1", DESK)
    counted.now = IDLE_S
    counted.trace("2", DESK)
    assert counted.traces() == {("desk", "2"): 1.0}
    counted.trace("1", SHOP)
    assert counted.traces() == {("desk", "2"): 1.0, ("shop", "__other__"): 1.0}
    counted.now = 2 * IDLE_S
    counted.trace("1", SHOP)
    assert counted.traces() == {("shop", "1"): 1.0, ("shop", "__other__"): 1.0}


def test_few_versions_of_many_services_give_way_too() -> None:
    counted = Counted(cap=2)
    for number in range(8):
        counted.trace("1", (f"service {number}", "live"))
    counted.trace("2", SHOP)
    assert counted.traces()["shop", "__other__"] == 1.0
    counted.now = IDLE_S
    counted.trace("2", SHOP)
    assert counted.traces()["shop", "2"] == 1.0
    assert len(counted.traces()) == 9


def test_a_trace_that_names_no_version_or_poses_as_the_rest_is_counted() -> None:
    counted = Counted(cap=2)
    for version in (None, "", "\n", "__other__"):
        counted.trace(version)
    assert counted.traces() == {("shop", "unknown"): 3.0, ("shop", "__other__"): 1.0}


def test_verdicts_weigh_by_version_and_all_series_of_one_begin_together() -> None:
    counted = Counted(cap=9)
    counted.verdict("1", weight=2.0)
    counted.verdict("1", weight=4.0, passed=False)
    counted.verdict(None, "text")
    assert counted.verdicts() == {("qa", "1"): 6.0, ("text", "unknown"): 1.0}
    assert counted.verdicts(f.VERSION_FAILED_WEIGHT) == {("qa", "1"): 4.0, ("text", "unknown"): 0.0}
    assert counted.verdicts(f.VERSION_WEIGHT_SQUARED) == {("qa", "1"): 20.0, ("text", "unknown"): 1.0}


def test_the_few_versions_that_were_judged_last_are_kept_apart_with_all_their_rubrics() -> None:
    counted = Counted(cap=50)
    for number in range(MOST_JUDGED + 1):
        for rubric in ("qa", "text"):
            counted.verdict(str(number), rubric)
    assert counted.verdicts()["qa", "__other__"] == counted.verdicts()["text", "__other__"] == 1.0
    counted.now = JUDGED_IDLE_S
    counted.verdict("9")
    for family in FAMILIES[1:]:
        versions = {version for _, version in counted.verdicts(family)}
        assert versions == {*map(str, range(1, MOST_JUDGED)), "9", "__other__"}


def test_a_version_without_a_label_for_its_traces_has_none_for_its_verdicts() -> None:
    counted = Counted(cap=1)
    counted.verdict("1")
    counted.verdict("2")
    assert set(counted.verdicts()) == {("qa", "1"), ("qa", "__other__")}
    counted.now = IDLE_S
    counted.trace("2")
    assert set(counted.verdicts()) == {("qa", "__other__")}
    counted.verdict("2")
    assert set(counted.verdicts()) == {("qa", "2"), ("qa", "__other__")}
