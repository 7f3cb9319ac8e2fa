"""``export rules|dashboards|mixin`` write what Prometheus, Grafana and jsonnet load, as configured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml
from click.testing import CliRunner

from sidejudge.dashboards.generated import FOLDER
from sidejudge.monitor.cli.export import export


def run(*arguments: str) -> str:
    done = CliRunner().invoke(export, arguments, env={"SIDEJUDGE_CONFIG": None})
    assert done.exit_code == 0, done.output
    return done.output


def test_the_rules_of_the_defaults_are_those_of_the_repository():
    assert run("rules") == (FOLDER / "rules" / "sidejudge.rules.yaml").read_text()
    assert run("rules", "--form", "operator") == (FOLDER / "rules" / "prometheusrule.yaml").read_text()
    assert run("rules", "--form", "inhibit") == (FOLDER / "rules" / "inhibit_rules.yaml").read_text()


def test_the_rules_follow_the_configuration(tmp_path: Path):
    path = tmp_path / "c.yaml"
    path.write_text("alerts: {mode: bound, window: 2h, min_samples: 77, hysteresis: {needed: 3, looks: 5}}")
    stated = run("rules", "--config", str(path), "--runbooks", "https://example.org/r/")
    assert ":increase2h >= 77" in stated
    assert "[4m30s]" in stated
    assert "runbook_url: https://example.org/r/pass-rate-critical\n" in stated


def test_links_to_runbooks_are_the_configurations_unless_the_command_names_others(tmp_path: Path):
    path = tmp_path / "c.yaml"
    path.write_text("alerts: {links: {runbooks: 'https://example.org/r/{runbook}.md'}}")
    assert "runbook_url: https://example.org/r/spool-large.md\n" in run("rules", "--config", str(path))
    other = run("rules", "--config", str(path), "--runbooks", "https://example.net/help/alert")
    assert "runbook_url: https://example.net/help/alert/spool-large\n" in other
    refused = CliRunner().invoke(export, ["rules", "--runbooks", "https://example.net/{name}"])
    assert refused.exit_code != 0
    assert "{runbook}" in str(refused.exception) + refused.output


def test_dashboards_are_written_into_a_folder(tmp_path: Path):
    written = run("dashboards", "--to", str(tmp_path / "new")).split()
    assert len([name for name in written if name.endswith(".json")]) == 5
    assert all(Path(name).read_text() for name in written)
    assert yaml.safe_load((tmp_path / "new" / "configmap.yaml").read_text())["kind"] == "ConfigMap"


def test_dashboards_ask_for_what_the_rules_of_the_same_configuration_record(tmp_path: Path):
    path = tmp_path / "c.yaml"
    path.write_text(
        "alerts: {mode: bound, window: 2h, min_samples: 77, thresholds: {warning: 0.9}, "
        "hysteresis: {needed: 3, looks: 5}}"
    )
    recorded = set(re.findall(r"record: (\S+)", run("rules", "--config", str(path))))
    for command in ("dashboards", "mixin"):
        run(command, "--config", str(path), "--to", str(tmp_path / command))
        boards = [json.loads(file.read_text()) for file in (tmp_path / command).glob("sidejudge-*.json")]
        requested = set(re.findall(r"\w+(?::\w+)+", " ".join(_expressions(boards))))
        assert len(boards) == 5
        assert len([name for name in requested if name.endswith("2h")]) > 5
        assert requested <= recorded
        text = json.dumps(boards)
        assert "over the last 2h" in text
        assert "after 3 of 5 looks" in text
        assert "Below 77 the status is unknown" in text
        assert '{"value": 0.9, "color": "green"}' in text


def _expressions(boards):
    return [target["expr"] for board in boards for panel in board["panels"] for target in panel.get("targets", ())]


def test_the_dashboards_of_the_defaults_are_those_of_the_repository(tmp_path: Path):
    run("dashboards", "--to", str(tmp_path))
    there = FOLDER / "grafana"
    for file in (there / "json").iterdir():
        assert (tmp_path / file.name).read_text() == file.read_text()
    assert (tmp_path / "configmap.yaml").read_text() == (there / "configmap.yaml").read_text()
    assert (tmp_path / "provider.yaml").read_text() == (there / "provisioning" / "dashboards.yaml").read_text()
    assert (tmp_path / "datasource.yaml").read_text() == (there / "provisioning" / "datasource.yaml").read_text()


def test_a_mixin_imports_only_what_lies_beside_it(tmp_path: Path):
    run("mixin", "--to", str(tmp_path))
    text = (tmp_path / "mixin.libsonnet").read_text()
    imported = re.findall(r"import '([^']+)'", text)
    assert len(imported) == 6
    for name in imported:
        assert json.loads((tmp_path / name).read_text())


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(export, ["dashboards", "--to", str(tmp_path / "file" / "below")])
    assert done.exit_code != 0
    assert "cannot write" in str(done.exception)
