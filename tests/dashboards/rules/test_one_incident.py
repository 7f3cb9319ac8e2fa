"""One incident is one page: a real Alertmanager under our configuration, and what fires while a service recovers."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from sidejudge.dashboards.rules.alertmanager import alertmanager as configuration
from sidejudge.dashboards.rules.groups import alerts
from sidejudge.scoring.alerts.declaration import Declaration
from tests.alertmanager import alertmanager
from tests.dashboards.rules.test_figure import fires
from tests.fakes.receiver import FakeReceiver, receiving

SHOP = {"job": "sidejudge", "service": "shop", "environment": "prod"}
QUALITY = (
    ("PassRateChange", "warning"), ("ScenarioDrift", "info"), ("WorkflowViolationRate", "warning"),
    ("BlockerRate", "warning"), ("PassRateWarning", "warning"), ("PassRateCritical", "critical"),
    ("ErrorBudgetBurn", "critical"), ("PassRateSustained", "warning"),
)  # fmt: skip


def drop(rubric: str, since: datetime, *, over: bool = False, **more: str) -> list[dict[str, Any]]:
    """What a drop of one rubric fires, all at once: as Prometheus sends it, ``since`` when it fired.

    Alertmanager waits for no others of its group, nor for what explains it, where an alert began a while ago.
    """
    now = datetime.now(UTC)
    ends = now if over else now + timedelta(hours=1)
    return [
        {
            "labels": {**SHOP, "rubric": rubric, "alertname": f"Sidejudge{name}", "severity": severity, **more},
            "startsAt": since.isoformat(), "endsAt": ends.isoformat(),
        }
        for name, severity in QUALITY
    ]  # fmt: skip


def post(url: str, fired: list[dict[str, Any]]) -> None:
    httpx.post(f"{url}/api/v2/alerts", json=fired, timeout=10).raise_for_status()


def paged(hook: FakeReceiver, number: int) -> list[tuple[str, set[str]]]:
    """What arrived: whether it fires, and the names of the alerts in it. It waits for so many, and for more."""
    end = time.monotonic() + 20
    while len(hook.got) < number and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(2.5)  # two intervals in which nothing else may come
    return [
        (got.json["status"], {a["labels"]["alertname"].removeprefix("Sidejudge") for a in got.json["alerts"]})
        for got in hook.got
    ]


def test_a_drop_of_two_rubrics_is_one_page_and_its_end_is_one(tmp_path: Path) -> None:
    with receiving() as pager, receiving() as channel:
        config = yaml.safe_load(configuration(Declaration()))
        for receiver, hook in zip(config["receivers"][1:], (pager, channel), strict=True):
            receiver["webhook_configs"][0]["url"] = hook.url
        ours = config["route"]["routes"][0]
        assert (ours["group_wait"], ours["group_interval"]) == ("30s", "5m")
        ours |= {"group_wait": "3s", "group_interval": "1s"}
        with alertmanager(tmp_path, config=config) as manager:
            since = datetime.now(UTC)
            post(manager.url, [*drop("qa", since), *drop("run_health", since)])
            assert paged(pager, 1) == [("firing", {"PassRateCritical"})]
            assert channel.got == [], "what the page explains is not sent besides"
            # The same again is no news, and another service is another incident.
            post(manager.url, [*drop("qa", since), *drop("run_health", since)])
            assert len(paged(pager, 1)) == 1
            post(manager.url, [*drop("qa", since, over=True), *drop("run_health", since, over=True)])
            (end,) = paged(pager, 2)[1:]
            assert end[0] == "resolved"
            assert "PassRateCritical" in end[1]
            assert channel.got == []
            other = drop("qa", datetime.now(UTC), service="search")
            post(manager.url, [each for each in other if "Warning" in each["labels"]["alertname"]])
            assert paged(channel, 1) == [("firing", {"PassRateWarning"})]
            assert len(pager.got) == 2


def test_every_alert_has_a_receiver_by_its_severity_and_none_explains_itself() -> None:
    config = yaml.safe_load(configuration(Declaration()))
    routed = {route["matchers"][0] for route in config["route"]["routes"][0]["routes"]}
    assert routed == {'severity="critical"', 'severity="warning"'}
    names = {rule.name for rule in alerts(Declaration())}
    for rule in config["inhibit_rules"]:
        source = rule["source_matchers"][0].split('"')[1]
        targets = set(rule["target_matchers"][0].split('"')[1].split("|"))
        assert {source} | targets <= names
        assert source not in targets


@pytest.mark.parametrize("minutes", [0, 1, 5, 9])
def test_a_recovery_that_passes_through_warning_sends_no_warning(minutes: int, tmp_path: Path) -> None:
    """While the warning fires, so does what explains it: nothing is sent in the minute between two ends."""
    critical, warning = (
        fires(f"SidejudgePassRate{level}", tmp_path, critical=30, warning=minutes, minutes=range(20, 75))
        for level in ("Critical", "Warning")
    )
    assert critical
    assert warning <= critical
    assert max(critical) < 30 + minutes + 20, "the page ends soon after the status is better"
