"""What boards show of the alerts that fire, asked of the real PromQL: of what is chosen, ranked, with its runbook."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sidejudge.dashboards.grafana.files import dashboards
from sidejudge.scoring.alerts.declaration import Declaration
from tests.needs import PROMTOOL

BOARDS: dict[str, Any] = {name: json.loads(text) for name, text in dashboards(Declaration()).items()}
TABLE = next(panel for panel in BOARDS["sidejudge-overview.json"]["panels"] if panel["title"] == "Alerts that fire")
SHOP = {"job": "sidejudge", "service": "shop", "environment": "prod", "rubric": "qa"}
FIRING = [
    {"alertname": "SidejudgePassRateCritical", "severity": "critical", **SHOP},
    {"alertname": "SidejudgePassRateChange", "severity": "warning", **SHOP, "service": "search"},
    {"alertname": "SidejudgeScenarioDrift", "severity": "info", **SHOP},
    {"alertname": "SidejudgeMonitorDown", "severity": "warning", "job": "sidejudge"},
    {"alertname": "SidejudgeMonitorAbsent", "severity": "warning"},
]


def found(expr: str, tmp_path: Path, **chosen: str) -> dict[str, tuple[float, str]]:
    """Rank and runbook of each alert that the expression answers, with these variables chosen and all of the others."""
    asked = re.sub(r"\$(\w+)", lambda name: chosen.get(name[1], ".*"), expr)
    fired = [{**each, "alertstate": "firing"} for each in FIRING]
    fired.append({**fired[0], "alertstate": "pending", "alertname": "SidejudgeBlockerRate"})
    fired.append({"alertname": "Watchdog", "alertstate": "firing", "severity": "critical"})
    series = [
        {"series": "ALERTS{" + ",".join(f'{name}="{value}"' for name, value in each.items()) + "}", "values": "1x5"}
        for each in fired
    ]
    test = {"input_series": series, "interval": "1m", "promql_expr_test": [{"expr": asked, "eval_time": "2m"}]}
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [], "tests": [test]}))
    done = subprocess.run([PROMTOOL.path(), "test", "rules", str(file)], capture_output=True, text=True, check=False)
    # It was told to expect nothing, so that it says what there is.
    said = (done.stdout + done.stderr).partition("got:")[2]
    answered = re.findall(r"Labels:\{([^}]*)\} Value:([\d.E+]+)|\{([^}]*)\} ([\d.E+]+)", said)
    rows: dict[str, tuple[float, str]] = {}
    for first, number, second, other in answered:
        labels = dict(re.findall(r'(\w+)="([^"]*)"', first or second))
        rows[labels["alertname"]] = (float(number or other), labels.get("runbook", ""))
    return rows


def test_the_worst_have_the_highest_rank_and_each_has_its_runbook(tmp_path: Path) -> None:
    assert found(TABLE["targets"][0]["expr"], tmp_path) == {
        "SidejudgePassRateCritical": (3, "pass-rate-critical"),
        "SidejudgePassRateChange": (2, "pass-rate-change"),
        "SidejudgeMonitorDown": (2, "monitor-down"),
        "SidejudgeMonitorAbsent": (2, "monitor-absent"),
        "SidejudgeScenarioDrift": (1, "scenario-drift"),
    }


def test_alerts_of_other_services_are_left_out_and_those_of_no_service_are_not(tmp_path: Path) -> None:
    shown = found(TABLE["targets"][0]["expr"], tmp_path, service="(shop|cart)", job="sidejudge")
    assert shown.keys() == {each["alertname"] for each in FIRING} - {"SidejudgePassRateChange"}


@pytest.mark.parametrize("name", list(BOARDS))
def test_marks_on_a_board_are_of_what_is_chosen_there(name: str, tmp_path: Path) -> None:
    board = BOARDS[name]
    (expr,) = [each["expr"] for each in board["annotations"]["list"] if each["name"] == "Alerts"]
    variables = {each["name"] for each in board["templating"]["list"]}
    assert set(re.findall(r"\$(\w+)", expr)) == variables & {
        "cluster", "namespace", "job", "service", "environment", "rubric",
    }  # fmt: skip
    shown = found(expr, tmp_path, service="search").keys()
    assert "SidejudgeScenarioDrift" not in shown
    assert ("SidejudgePassRateCritical" in shown) == ("service" not in variables)


@pytest.mark.parametrize(("title", "column"), [("Alerts that fire", "Severity"), ("Where everything stands", "Status")])
def test_tables_begin_with_the_worst_and_say_it_in_words(title: str, column: str) -> None:
    (table,) = [panel for panel in BOARDS["sidejudge-overview.json"]["panels"] if panel["title"] == title]
    assert table["options"]["sortBy"] == [{"displayName": column, "desc": True}]
    (words,) = [
        each["properties"][0]["value"][0]["options"]
        for each in table["fieldConfig"]["overrides"]
        if each["matcher"]["options"] == column
    ]
    worst = max(words, key=int)
    assert (words[worst]["text"], words[worst]["color"]) == ("critical", "red")
    assert (
        column
        in next(each for each in table["transformations"] if each["id"] == "organize")["options"][
            "renameByName"
        ].values()
    )
