"""Grafana's own alerts are those of Prometheus: the same names, waits and expressions, and nothing is explained twice.

What Grafana reads of the file stands in ``rules_types.go`` of its provisioning (AGPL-3.0, grafana/grafana at 0085cf86):
the keys below. No Grafana is to be had here, so what it makes of a query is asked of Prometheus.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from sidejudge.dashboards.grafana.files import alert_rules
from sidejudge.dashboards.rules.groups import rules
from sidejudge.monitor.cli.export import export
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.status import Policy
from tests.needs import PROMTOOL

KEYS = {
    "uid", "title", "condition", "data", "noDataState", "execErrState", "for", "keepFiringFor", "annotations", "labels",
}  # fmt: skip
FUNCTIONS = {"humanize", "humanize1024", "humanizeDuration", "humanizePercentage", "humanizeTimestamp", "printf"}
"""Of the functions that templates of Grafana have, those that ours use."""
MODES = [Declaration(), Declaration(policy=Policy(mode="bound"))]
WHERE = 'service="shop",environment="prod",rubric="workflow",job="sidejudge"'


def provisioned(declared: Declaration) -> list[tuple[str, dict[str, Any]]]:
    stated = yaml.safe_load(alert_rules(declared, "https://monitor.example/help/alert", source="mine"))
    assert stated["apiVersion"] == 1
    return [(group["interval"], rule) for group in stated["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("declared", MODES, ids=["adaptive", "bound"])
def test_every_alert_is_there_with_its_waits_and_can_be_provisioned(declared: Declaration) -> None:
    known: list[Any] = [rule for group in rules(declared)["groups"] for rule in group["rules"] if "alert" in rule]  # type: ignore[attr-defined]  # JSON
    found = [rule for _, rule in provisioned(declared)]
    assert len(found) == len(known)
    for alert, rule in zip(known, found, strict=True):
        assert rule.keys() == KEYS
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", rule["uid"])
        assert rule["title"].split()[0] == alert["alert"]
        assert (rule["for"], rule["keepFiringFor"]) == (alert.get("for", "0s"), alert.get("keep_firing_for", "0s"))
        assert rule["labels"] == alert["labels"]
        assert alert["expr"] in rule["data"][0]["model"]["expr"]
        assert rule["data"][0]["datasourceUid"] == "mine"
        assert rule["annotations"]["runbook_url"].startswith("https://monitor.example/help/alert/")
        assert [query["refId"] for query in rule["data"]] == ["A", rule["condition"]]
    assert len({rule["uid"] for rule in found}) == len({rule["title"] for rule in found}) == len(found)


@pytest.mark.parametrize("declared", MODES, ids=["adaptive", "bound"])
def test_texts_use_only_what_templates_of_grafana_know(declared: Declaration) -> None:
    for _, rule in provisioned(declared):
        for inside in re.findall(r"\{\{(.*?)\}\}", " ".join(rule["annotations"].values())):
            assert not re.search(r"\bquery\b|\brange\b|\bwith\b|\$value\b", inside), rule["title"]
            assert re.fullmatch(r"\s*\$(labels\.\w+|values\.A\.Value)\s*(\|.*)?", inside), inside
            assert {piped.split()[0] for piped in inside.split("|")[1:]} <= FUNCTIONS, inside


def test_groups_are_evaluated_when_grafana_can() -> None:
    intervals = {every for every, _ in provisioned(Declaration(look_ns=15 * 10**9))}
    assert intervals == {"20s", "2m", "1m"}


def test_what_another_alert_explains_is_left_out_while_that_fires(tmp_path: Path) -> None:
    declared = Declaration(policy=Policy(mode="bound"))
    asked = {rule["title"]: rule["data"][0]["model"]["expr"] for _, rule in provisioned(declared)}
    code = "service_environment_rubric:sidejudge_status:code"
    ratio = "service_environment_rubric:sidejudge_pass:ratio_increase1h"
    status = {"series": f"{code}{{{WHERE}}}", "values": "2x20"}
    series = [status, {"series": f"{ratio}{{{WHERE}}}", "values": "0x20"}]
    critical = {
        "series": f'ALERTS{{alertname="SidejudgePassRateCritical",alertstate="firing",severity="critical",{WHERE}}}',
        "values": "_x10 1x10",
    }

    def answers(title: str, at: str, number: float | None) -> dict[str, Any]:
        sample = [] if number is None else [{"labels": f"{ratio}{{{WHERE}}}", "value": number}]
        return {"expr": asked[title], "eval_time": at, "exp_samples": sample}

    tests = [
        answers("SidejudgePassRateCritical", "5m", 0), answers("SidejudgePassRateCritical", "15m", 0),
        answers("SidejudgePassRateWarning", "5m", 0), answers("SidejudgePassRateWarning", "15m", None),
    ]  # fmt: skip
    every = [{"expr": f"count({expr}) < 0", "eval_time": "1m", "exp_samples": []} for expr in asked.values()]
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({
        "rule_files": [], "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": [*series, critical], "promql_expr_test": tests + every}],
    }))  # fmt: skip
    done = subprocess.run(
        [PROMTOOL.path(), "test", "rules", str(tmp_path / "test.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_prints_it_for_a_data_source(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("alerts: {links: {runbooks: 'https://example.org/r'}}")
    done = CliRunner().invoke(export, ["rules", "--form", "grafana", "--data-source", "abc", "--config", str(path)])
    assert done.exit_code == 0, done.output
    first = yaml.safe_load(done.output)["groups"][0]["rules"][0]
    assert first["data"][0]["datasourceUid"] == "abc"
    assert first["annotations"]["runbook_url"] == "https://example.org/r/pass-rate-critical"
