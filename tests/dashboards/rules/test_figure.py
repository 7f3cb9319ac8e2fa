"""What an alert of Prometheus states: the figure that the process shows, and which processes and judges it is about."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sidejudge.dashboards.rules.groups import rule_file, rules
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.status import Policy
from tests.dashboards.rules.scenario import needed
from tests.needs import PROMTOOL

RULES: list[dict[str, Any]] = [rule for group in rules(Declaration())["groups"] for rule in group["rules"]]
SITE = {"job": "sidejudge"}
WHO = {"service": 'sh"op', "environment": "prod", "rubric": "qa"}
A, B = ({"instance": f"10.0.0.{n}:8790", "pod": f"gateway-{n}"} for n in (1, 2))


def series(name: str, value: str, /, **labels: str) -> dict[str, str]:
    inner = ",".join(f"{key}={json.dumps(each)}" for key, each in labels.items())
    return {"series": f"{name}{{{inner}}}", "values": value}


def shown(pod: dict[str, str], ratio: float, status: str) -> list[dict[str, str]]:
    """What a process exports of one window."""
    return [
        series("sidejudge_pass_ratio", f"{ratio}x60", **SITE, **pod, **WHO),
        series("sidejudge_pass_lower_ratio", f"{ratio - 0.05}x60", **SITE, **pod, **WHO),
        series("sidejudge_pass_upper_ratio", f"{ratio + 0.05}x60", **SITE, **pod, **WHO),
        *(
            series("sidejudge_status", f"{int(each == status)}x60", **SITE, **pod, **WHO, status=each)
            for each in ("healthy", "warning", "critical", "insufficient_data")
        ),
    ]


def stated(folder: Path, alert: str, given: list[dict[str, str]], at: str = "30m") -> str:
    """What the firing alert says; promtool shows it beside the empty text that it was told to expect."""
    asked = [{"eval_time": at, "alertname": alert, "exp_alerts": [{}]}]
    return promtool(folder, given, asked).partition("got:")[2]


def promtool(folder: Path, given: list[dict[str, str]], asked: list[dict[str, Any]]) -> str:
    """What promtool states of these alerts, under the rules that they need: all together take ten times as long."""
    under = needed(RULES, {each["alertname"] for each in asked})
    (folder / "rules.yaml").write_text(json.dumps({"groups": [{"name": "all", "rules": under}]}))
    test = {"interval": "1m", "input_series": given, "alert_rule_test": asked}
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    (folder / "test.yaml").write_text(json.dumps(document))
    done = subprocess.run(
        [PROMTOOL.path(), "test", "rules", str(folder / "test.yaml")], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def fires(alert: str, folder: Path, *, critical: int, warning: int, minutes: range) -> set[int]:
    """The minutes at which it fires, of a process that reports *critical*, then *warning*, for so many minutes each."""
    given = [series("sidejudge_pass_ratio", "0.5x120", **SITE, **A, **WHO)]
    parts = {"critical": (1, 0, 0), "warning": (0, 1, 0), "healthy": (0, 0, 1), "insufficient_data": (0, 0, 0)}
    lengths = critical, warning, 120 - critical - warning
    for status, values in parts.items():
        course = " ".join(f"{value}x{n - 1}" for value, n in zip(values, lengths, strict=True) if n)
        given.append(series("sidejudge_status", course, **SITE, **A, **WHO, status=status))
    asked = [{"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": []} for minute in minutes]
    said = promtool(folder, given, asked)
    return {int(hours or 0) * 60 + int(of or 0) for hours, of in re.findall(r"time: (?:(\d+)h)?(?:(\d+)m)?", said)}


@pytest.mark.parametrize("status", ["critical", "warning"])
def test_the_figure_is_that_of_the_process_that_reports_the_status_with_its_bounds(status: str, tmp_path: Path) -> None:
    alert = f"SidejudgePassRate{status.capitalize()}"
    # Another process has seen too little to say anything, and found none that passed.
    text = stated(tmp_path, alert, [*shown(A, 0.5785, status), *shown(B, 0.0, "insufficient_data")])
    assert "57.85% of the traffic passes qa on sh" in text
    assert ", at least 52.85%, at most 62.85% (with 95 % confidence)." in text


def test_a_figure_whose_bounds_are_not_known_claims_no_confidence(tmp_path: Path) -> None:
    given = [each for each in shown(A, 0.5785, "critical") if "er_ratio" not in each["series"]]
    assert "(prod). Users are served badly now" in stated(tmp_path, "SidejudgePassRateCritical", given)


def test_nothing_is_stated_of_a_service_that_is_healthy(tmp_path: Path) -> None:
    assert "57.85%" not in stated(tmp_path, "SidejudgePassRateCritical", shown(A, 0.5785, "healthy"))


def test_refused_requests_name_the_processes_that_refuse(tmp_path: Path) -> None:
    given = [
        series("sidejudge_requests_refused_total", "0+1x60", **SITE, **A, code="413"),
        series("sidejudge_requests_refused_total", "0x60", **SITE, **B, code="413"),
    ]
    text = stated(tmp_path, "SidejudgeRequestsRefused", given)
    assert "15 requests were answered with 413, over 15m: 15 by 10.0.0.1:8790;" in text
    assert "10.0.0.2" not in text


def test_an_unreachable_judge_is_named_with_the_process_that_cannot_ask_it(tmp_path: Path) -> None:
    given = [
        series("sidejudge_judge_breaker_state", f"{int((pod is A) != (state == 'closed'))}x60", **SITE, **pod,
               model="openai/m", state=state)
        for pod in (A, B)
        for state in ("closed", "open")
    ]  # fmt: skip
    text = stated(tmp_path, "SidejudgeJudgeUnreachable", given)
    assert "openai/m in 10.0.0.1:8790;" in text
    assert "10.0.0.2" not in text


def test_where_promql_decides_itself_the_figure_is_what_it_records() -> None:
    text = rule_file(Declaration(policy=Policy(mode="bound")))
    assert "ratio_reported" not in text
    assert "sidejudge_pass:ratio_lower95_1h{service=%q" in text
