"""The chart's rules and boards are those of the configuration: what ``sidejudge export`` writes for the same alerts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from sidejudge.monitor.cli.export import export
from tests.helm.engine import Refused
from tests.helm.generate import CHART

ALERTS: list[dict[str, Any]] = [
    {},
    {"window": "90m", "look": "45s", "min_samples": 55, "min_failures": 1},
    {"mode": "bound", "window": "30m", "hysteresis": {"needed": 3, "looks": 5, "hold": "2h"}},
    {"mode": "bound", "window": "1d", "look": "500ms", "hysteresis": {"needed": 1, "looks": 1, "hold": "0s"}},
    {"mode": "point", "window": "6h", "look": "2m", "limits": {"lasting": "0s", "keep": "1h30m"}},
    {"mode": "sequence", "window": "1.5h", "limits": {"lasting": "7m", "keep": "0s"}, "change": {"severity": "info"}},
    {"mode": "bound", "corrected": "rogan_gladen", "window": "72h", "thresholds": {"warning": 0.9, "critical": 0.6}},
    {"mode": "point", "corrected": "rogan_gladen", "window": "47m", "thresholds": {"warning": 0.5, "critical": 0.25}},
    {"links": {"runbooks": "https://sidejudge.example.org/help/alert/"}},
    {"links": {"runbooks": "https://git.example.org/runbooks/{runbook}.md"}, "change": {"severity": "critical"}},
]  # fmt: skip


def exported(alerts: dict[str, Any], folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rules, and the boards by file name."""
    file = folder / "sidejudge.yaml"
    labels = {"langfuse": {"base_url": "https://l.example", "public_key": "p", "secret_key": "s", "annotations": {}}}
    file.write_text(yaml.safe_dump({"alerts": alerts, "sinks": labels if "corrected" in alerts else {}}))
    for arguments in (["rules"], ["dashboards", "--to", str(folder / "boards")]):
        done = CliRunner().invoke(export, [*arguments, "--config", str(file)])
        assert done.exit_code == 0, done.output
        if arguments == ["rules"]:
            rules = yaml.safe_load(done.stdout)
    return rules, {path.name: json.loads(path.read_text()) for path in (folder / "boards").glob("*.json")}


def made(engine, values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    rendered = engine.render(CHART, values)
    boards = [each["data"] for each in rendered.all("ConfigMap") if "-dashboard-" in each["metadata"]["name"]]
    rules = rendered.one("PrometheusRule", "rel-sidejudge-rules")["spec"]
    return rules, {name: json.loads(text) for data in boards for name, text in data.items()}


@pytest.mark.parametrize("alerts", ALERTS, ids=str)
def test_rules_and_boards_are_what_the_command_writes(engine, tmp_path, alerts):
    rules, boards = exported(alerts, tmp_path)
    for values in ({"config": {"alerts": alerts}}, {"gateway": {"enabled": False}, "monitoring": {"alerts": alerts}}):
        found_rules, found_boards = made(engine, values)
        assert len(found_rules["groups"]) == len(rules["groups"])
        for found, wanted in zip(found_rules["groups"], rules["groups"], strict=True):
            assert {**found, "rules": None} == {**wanted, "rules": None}
            for one, other in zip(found["rules"], wanted["rules"], strict=True):
                assert one == other
        assert found_boards == boards


def test_runbooks_lie_behind_the_ingress_unless_somebody_names_another_place(engine):
    shown = {
        "ingress": {"enabled": True, "hosts": ["sidejudge.example.org"], "tls": [{"hosts": ["sidejudge.example.org"]}]}
    }
    rules, _ = made(engine, shown)
    links = {
        each["annotations"]["runbook_url"] for group in rules["groups"] for each in group["rules"] if "alert" in each
    }
    assert "https://sidejudge.example.org/help/alert/pass-rate-critical" in links
    config = yaml.safe_load(engine.render(CHART, shown).configuration["sidejudge.yaml"])
    assert config["alerts"]["links"]["runbooks"] == "https://sidejudge.example.org/help/alert", "notices too"
    named = {**shown, "config": {"alerts": {"links": {"runbooks": "https://other.example.org"}}}}
    assert "https://other.example.org/pass-rate-critical" in str(made(engine, named)[0])


def test_a_reference_that_rules_cannot_follow_is_refused_and_elsewhere_let_through(engine):
    alerts = {"window": "${WINDOW}"}
    with pytest.raises(Refused, match=r"monitoring\.alerts"):
        engine.render(CHART, {"config": {"alerts": alerts}})
    for more in ({"alerts": {"window": "2h"}}, {"rules": {"enabled": False}, "dashboards": {"enabled": False}}):
        assert engine.render(CHART, {"config": {"alerts": alerts}, "monitoring": more}).objects
