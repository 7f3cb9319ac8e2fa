"""The dashboards are what Grafana can load, and name nothing that is not exported or recorded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.generated import FOLDER
from dashboards.grafana.forms import config_map, dashboards, data_source, provider
from dashboards.rules.forms import rules
from integrations.prometheus.families import FAMILIES, LABELS
from scoring.alerts.declaration import Declaration

BOARDS: list[dict[str, Any]] = [json.loads(text) for text in dashboards(Declaration()).values()]
RULES = [rule for group in rules(Declaration())["groups"] for rule in group["rules"]]
RECORDED = {rule["record"] for rule in RULES if "record" in rule}
EXPORTED = {
    family.name + part
    for family in FAMILIES
    for part in (("",) if family.kind != "histogram" else ("_bucket", "_count", "_sum"))
}
OURS = set(LABELS) | {"le", "job", "instance", "alertname", "alertstate", "severity"}
TARGET = {"cluster", "namespace", "job", "instance", "pod", "container", "endpoint", "node"}


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def check_names(expr: str) -> None:
    """Every series is exported or recorded, every label is declared."""
    bare = re.sub(r'"[^"]*"', '""', expr)
    for name in re.findall(r"(?<![\w:])(?:\w+:)?sidejudge_\w+(?::\w+)?|\w+:sidejudge_\w+:\w+", bare):
        assert name in EXPORTED | RECORDED, f"{name} in {expr}"
    families = {family.name: set(family.labels) for family in FAMILIES}
    for name, selected in re.findall(r"(sidejudge_\w+|\w+:\w+:\w+)\{([^}]*)\}", bare):
        for label in re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", selected):
            base = re.sub(r"_(bucket|count|sum)$", "", name)
            known = families.get(base, OURS) | TARGET | {"le"}
            assert label in known | (OURS if ":" in name else set()), f"{label} of {name}"
    for listed in re.findall(r"\b(?:by|without|on|ignoring) \(([^)]*)\)", bare):
        assert {label.strip() for label in listed.split(",")} <= OURS | TARGET | {"stage", "severity"}, listed


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board["uid"])
def test_a_dashboard_can_be_provisioned(board: dict[str, Any]) -> None:
    assert re.fullmatch(r"sidejudge-[a-z]{1,30}", board["uid"])
    assert board["editable"] is False
    assert "__inputs" not in board
    assert board["title"].startswith("sidejudge · ")
    assert board["description"].endswith(".")
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    titles = [panel["title"] for panel in board["panels"]]
    assert len(set(titles)) == len(titles)
    sources = [variable for variable in board["templating"]["list"] if variable["type"] == "datasource"]
    assert [(source["name"], source["label"]) for source in sources] == [("datasource", "Data source")]
    for variable in board["templating"]["list"]:
        assert variable["label"]
        if variable["type"] == "query":
            assert variable["refresh"] == 2
            check_names(variable["query"]["query"])


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board["uid"])
def test_every_panel_says_what_it_shows(board: dict[str, Any]) -> None:
    for panel in panels(board):
        assert panel["description"].endswith("."), panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["value"] is None
        assert panel["targets"], panel["title"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board["uid"])
def test_panels_do_not_overlap_and_fill_no_more_than_the_width(board: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board["uid"])
def test_every_query_names_what_is_there(board: dict[str, Any]) -> None:
    variables = {variable["name"] for variable in board["templating"]["list"]} | {"__rate_interval", "datasource"}
    for panel in panels(board):
        for target in panel["targets"]:
            expr = target["expr"]
            check_names(expr)
            assert set(re.findall(r"\$(\w+)", expr)) <= variables, expr
            if "ALERTS" not in expr:
                assert 'job=~"$job"' in expr, expr
            for counter in re.findall(r"sidejudge_\w+_total(?!\w)", expr):
                assert re.search(rf"rate\({counter}\b", expr), expr
            assert set(re.findall(r"\[([^\]]+)\]", expr)) <= {"$__rate_interval"}, expr


def test_every_rule_names_what_is_there() -> None:
    for rule in RULES:
        check_names(rule["expr"])


def test_what_a_rule_says_is_made_of_labels_that_its_alert_has() -> None:
    for rule in RULES:
        for label in re.findall(r"\$labels\.(\w+)", json.dumps(rule.get("annotations", {}))):
            assert label in OURS | TARGET, rule["alert"]


def test_links_lead_to_dashboards_that_exist() -> None:
    uids = {board["uid"] for board in BOARDS}
    assert {uid for board in BOARDS for uid in re.findall(r"/d/([\w-]+)", json.dumps(board))} == uids
    for board in BOARDS:
        assert {link["url"].removeprefix("/d/") for link in board["links"]} == uids - {board["uid"]}


def test_the_config_map_holds_the_dashboards_and_fits_into_a_cluster() -> None:
    stated = yaml.safe_load(config_map(Declaration()))
    assert stated["data"] == dict(dashboards(Declaration()))
    assert stated["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert len(config_map(Declaration())) < 2**20


def test_provisioning_says_where_dashboards_lie_and_where_traces_are() -> None:
    [found] = yaml.safe_load(provider())["providers"]
    assert found["type"] == "file"
    [source] = yaml.safe_load(data_source())["datasources"]
    [link] = source["jsonData"]["exemplarTraceIdDestinations"]
    assert link["name"] == "trace_id"
    # Grafana replaces variables of the environment in these files: a dollar that is its own is doubled.
    assert link["url"] == "$LANGFUSE_PROJECT_URL/traces/$${__value.raw}"


def test_the_folder_holds_no_dashboard_that_nothing_writes() -> None:
    assert {path.name for path in Path(FOLDER / "grafana" / "json").iterdir()} == set(dashboards(Declaration()))
