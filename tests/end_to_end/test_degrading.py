"""The whole chain, live: quality falls and recovers, a judge goes away, traffic stops; all who watch say the same.

One rehearsal is played, and what was seen of it is looked at by the tests.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path

import pytest

from sidejudge.dashboards.rules.recordings import STATUS
from sidejudge.scoring.alerts.condition import alert_name
from tests.end_to_end.degrading import A_TICK, ALERTS, CODES, Rehearsal, command, rehearsal
from tests.fakes.judge import judges
from tests.fakes.openai import error
from tests.needs import ALERTMANAGER, LITELLM, PROMETHEUS

pytestmark = [PROMETHEUS.mark, ALERTMANAGER.mark, LITELLM.mark, pytest.mark.timeout(400)]
LEVELS = ("pass_rate_warning", "pass_rate_critical")
UNREACHABLE = "SidejudgeJudgeUnreachable"


@dataclass(frozen=True, kw_only=True)
class Played:
    """The rehearsal, still running, and when (s) what was played."""

    live: Rehearsal
    judge_away_s: float
    judge_back_s: float
    falling_s: float
    over_s: float

    def in_promql(self, service: str) -> list[float]:
        """The status of a service as PromQL had it, each as often as it changed."""
        return [code for code, _ in groupby(self.live.course(STATUS, service, self.live.began_s, self.over_s))]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with rehearsal(tmp_path_factory.mktemp("rehearsal")) as live:
        live.until(lambda: live.stand(**dict.fromkeys(A_TICK, "healthy")), "not all are healthy")

        # What the judge's absence leaves of its window must be enough to go by until it is told: 20 of these.
        live.until(lambda: all(live.samples().get(service, 0) >= 70 for service in A_TICK), "the windows do not fill")

        judge_away_s = time.time()
        live.provider.standing = error(503, "overloaded")
        live.until(lambda: live.firing(UNREACHABLE), "PromQL does not tell that the judge is away")
        live.until(lambda: ("judge_unreachable", "firing") in about_the_judge(live), "nobody is told of it")
        live.until(lambda: (UNREACHABLE, "firing") in passed_on_about_the_judge(live), "Alertmanager tells nobody")
        judge_back_s = time.time()
        live.provider.standing = judges()
        live.until(lambda: ("judge_unreachable", "resolved") in about_the_judge(live), "it is not told that it is back")

        falling_s = time.time()
        for share, status, condition in ((0.24, "warning", LEVELS[0]), (0.40, "critical", LEVELS[1])):
            live.traffic.wrong |= {"shop": share, "bank": share}
            live.until(lambda status=status: live.stand(shop=status, bank=status), f"no {status}")
            live.until(
                lambda condition=condition: reported_everywhere(live, condition, "firing"), f"{status} is not told"
            )

        live.traffic.wrong |= {"shop": 0.05, "bank": None, "till": None}
        live.until(lambda: live.stand(shop="healthy", bank="no_data", till="no_data"), "no recovery")
        for condition in LEVELS:
            live.until(
                lambda condition=condition: reported_everywhere(live, condition, "resolved"), "no recovery is told"
            )
        live.until(lambda: live.firing("SidejudgePassRateUnknown", service="bank"), "silence is not told")
        yield Played(
            live=live, judge_away_s=judge_away_s, judge_back_s=judge_back_s, falling_s=falling_s, over_s=time.time()
        )


def reported_everywhere(live: Rehearsal, condition: str, turn: str) -> bool:
    """Whether the shop's alert was delivered by the monitor's webhook, and by Alertmanager for both who told it."""
    passed_on = (live.passed_on(by_prometheus=who, service="shop") for who in (True, False))
    return (condition, turn) in live.reported("shop") and all(
        (alert_name(condition), turn) in reported for reported in passed_on
    )


def about_the_judge(live: Rehearsal) -> list[tuple[str, str]]:
    alerts = [alert for got in list(live.hook.taken) for alert in got.json["alerts"]]
    return [(a["condition"], a["turn"]) for a in alerts if a["condition"].startswith("judge")]


def passed_on_about_the_judge(live: Rehearsal) -> list[tuple[str, str]]:
    return live.passed_on(by_prometheus=True, alertname=UNREACHABLE)


def test_a_service_that_degrades_is_healthy_then_warning_then_critical_and_recovers_in_process(played: Played) -> None:
    seen = [status for status in played.live.seen["shop"] if status != "insufficient_data"]
    begins, *later = played.live.seen["shop"]
    assert later.count("insufficient_data") <= (1 if begins == "insufficient_data" else 2), "undecided at each drop"
    assert "insufficient_data" not in later[later.index("critical") :], "what was proven stays known"
    assert seen[:3] == ["healthy", "warning", "critical"]
    assert seen[3:] in (["healthy"], ["warning", "healthy"])


def test_promql_says_the_same_in_the_same_order(played: Played) -> None:
    codes = played.in_promql("shop")
    later = codes[codes.index(0) :]
    assert later.count(-1) <= 2, "undecided at each drop"
    assert -1 not in later[later.index(2) :], "what was proven stays known"
    after = [code for code, _ in groupby(code for code in later if code != -1)]
    assert after[:3] == [CODES["healthy"], CODES["warning"], CODES["critical"]]
    assert after[3:] in ([0], [1, 0])


@pytest.mark.parametrize("source", ["webhook", "alertmanager", "prometheus"])
def test_each_who_is_told_is_told_of_both_levels_once_and_of_their_end(played: Played, source: str) -> None:
    live = played.live
    reported = {
        "webhook": lambda: [(alert_name(condition), turn) for condition, turn in live.reported("shop")],
        "alertmanager": lambda: live.passed_on(by_prometheus=False, service="shop"),
        "prometheus": lambda: live.passed_on(by_prometheus=True, service="shop"),
    }[source]()
    names = [alert_name(condition) for condition in LEVELS]
    levels = [each for each in reported if each[0] in names]
    assert levels[:2] == [(name, "firing") for name in names]
    assert sorted(levels[2:]) == sorted((name, "resolved") for name in names)


def test_the_page_says_how_bad_since_when_and_shows_the_worst_traces(played: Played) -> None:
    alerts = [alert for got in played.live.hook.taken for alert in got.json["alerts"]]
    page = next(a for a in alerts if (a["condition"], a["labels"].get("service")) == ("pass_rate_critical", "shop"))
    assert page["lower"] <= page["value"] <= page["upper"] < 0.70
    assert page["n"] >= 20
    assert played.falling_s < page["since_ns"] / 1e9 < played.over_s
    assert len(page["examples"]) == 3
    for example in page["examples"]:
        story = played.live.monitor.get(f"/v1/traces/{example['trace_id']}")
        assert [verdict["passed"] for verdict in story["verdicts"]] == [False]


def test_a_judge_that_is_away_makes_no_service_worse_and_raises_its_own_alert(played: Played) -> None:
    live = played.live
    away = (played.judge_away_s, played.judge_back_s)
    for service in A_TICK.keys() - {"desk"}:
        assert {*live.course(STATUS, service, *away)} == {CODES["healthy"]}
        assert live.course('sidejudge_status{status!="healthy"} == 1', service, *away) == []
    # What waits for the judge may decide otherwise.
    assert {*live.course(STATUS, "desk", *away)} <= {CODES["healthy"], CODES["insufficient_data"]}
    assert live.course('sidejudge_status{status=~"warning|critical"} == 1', "desk", *away) == []
    assert {*live.seen["desk"]} <= {"healthy", "insufficient_data"}, "nor later"
    assert live.seen["desk"][-1] == "healthy"
    assert about_the_judge(live) == [("judge_unreachable", "firing"), ("judge_unreachable", "resolved")]
    assert live.reported("desk") == []

    def waiting(begin_s: float) -> list[float]:
        (course,) = live.prometheus.course('sidejudge_queue_items{queue="judge"}', begin_s, time.time()).values()
        return course

    assert max(waiting(played.judge_away_s)) > 0

    def oldest_s() -> float:
        since = live.monitor.get("/v1/status")["judge"]["oldest_since"]
        return math.inf if since is None else datetime.fromisoformat(since).timestamp()

    live.until(lambda: oldest_s() > played.judge_back_s, "what waited is not judged although the judge is back")
    standing = next(s for s in live.monitor.get("/v1/status")["standings"] if s["service"] == "desk")
    assert (standing["judge_failed"], standing["incomplete"]) == (0, 0)


def test_silence_is_no_data_and_not_recovery(played: Played) -> None:
    live = played.live
    for service in ("bank", "till"):
        assert live.in_process()[service] == "no_data"
        assert live.in_promql()[service] == CODES["no_data"]
    assert [turn for condition, turn in live.reported("bank") if condition == "pass_rate_critical"] == [
        "firing",
        "unknown",
    ]
    assert "resolved" not in {turn for _, turn in live.reported("bank")}
    of_the_monitor = live.passed_on(by_prometheus=False, service="bank")
    assert (alert_name("pass_rate_critical"), "resolved") not in of_the_monitor
    board = {(a["labels"].get("service"), a["condition"]): a["stage"] for a in live.monitor.get("/v1/alerts")["alerts"]}
    assert board["bank", "pass_rate_critical"] == "unknown"
    assert not live.firing("SidejudgePassRateUnknown", service="till"), "it was well when it fell silent"
    assert live.reported("till") == []


def test_the_past_played_again_raises_what_was_raised(played: Played) -> None:
    live = played.live
    stated = json.loads(command("simulate", str(live.monitor.config), "--json", "--since", "1h"))
    again = {
        (alert["labels"]["service"], alert["condition"])
        for alert in stated["alerts"]
        if alert["condition"] in LEVELS and not alert["muted"]
    }
    assert again == {(service, condition) for service in ("shop", "bank") for condition in LEVELS}
    ended = {
        alert["labels"]["service"]: alert["ended_ns"] for alert in stated["alerts"] if alert["condition"] in LEVELS
    }
    assert ended["shop"] is not None
    assert ended["bank"] is None
    assert stated["judge"]["paid_usd"] > 0


def test_every_query_of_the_dashboards_of_this_configuration_answers(played: Played, tmp_path: Path) -> None:
    live = played.live
    command("export", "dashboards", "--to", str(tmp_path), "--config", str(live.monitor.config))
    requested = [
        target["expr"].replace("$__rate_interval", ALERTS["window"])
        for path in sorted(tmp_path.glob("*.json"))
        for panel in json.loads(path.read_text())["panels"]
        for target in panel.get("targets", ())
    ]
    assert len([expr for expr in requested if f"increase{ALERTS['window']}" in expr]) > 5, "they ask for this window"
    # A Prometheus without clusters has no such label: *all* matches none as well (allValue).
    chosen = re.compile(r"\$(cluster|namespace|job|instance|service|environment|rubric)\b")
    silent = [expr for expr in requested if not live.prometheus.query(chosen.sub(".*", expr).removesuffix(" > 0"))]
    # These rubrics have no blockers, none is run_health, no metric has a limit, and no Langfuse is configured in which
    # people label. The application names no version, and what its models cost.
    nothing_of = re.compile(
        r"blocked|agreement|labels|pass_corrected|corrections|sidejudge_(run|tool|limited|application_(cost|tokens))|version"
    )
    assert [expr for expr in silent if not nothing_of.search(expr)] == []
