"""The dashboards are what Grafana can load, and name nothing that is not exported or recorded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from sidejudge.dashboards.generated import FOLDER
from sidejudge.dashboards.grafana.files import config_map, dashboards, data_source, provider
from sidejudge.dashboards.pages.plain_pages import help_page
from sidejudge.dashboards.rules.groups import rules
from sidejudge.dashboards.rules.recordings import STATUS_CODES
from sidejudge.integrations.prometheus.families import FAMILIES, LABELS
from sidejudge.scoring.alerts.declaration import Declaration

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


FRAMES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "grafana" / "overview.json").read_text())
"""What Grafana's own transformations make of answers, table by table (``record_frames.cjs``)."""


def followed(url: str, frame: dict[str, Any], row: int) -> str:
    """A link of a cell as Grafana fills it in: a field of the row by its name, percent-encoded."""
    fields = {field["name"]: field for field in frame["fields"]}
    labels = next((field["labels"] for field in frame["fields"] if field["labels"]), None) or {}
    url = re.sub(r"\$\{__field\.labels\.(\w+)\}", lambda found: quote(str(labels.get(found[1], "")), safe=""), url)
    return re.sub(
        r"\$\{__data\.fields\.(\w+)\}",
        lambda found: quote(str(fields[found[1]]["values"][row]), safe="") if found[1] in fields else "",
        url,
    )


@pytest.mark.parametrize("title", list(FRAMES))
def test_a_row_of_a_table_leads_to_its_own_place(title: str) -> None:
    (frame,) = FRAMES[title]
    (panel,) = [each for board in BOARDS for each in panels(board) if each["title"] == title]
    (order,) = [each["options"] for each in panel["transformations"] if each["id"] == "organize"]
    assert list(order["renameByName"]) == [field["name"] for field in frame["fields"]], "record the frames again"
    drill = next(
        link["url"] for link in panel["fieldConfig"]["defaults"]["links"] if "/d/sidejudge-rubric" in link["url"]
    )
    for row, namespace in enumerate(("shop", "other")):
        led = followed(drill, frame, row)
        assert f"&var-cluster=east&var-namespace={namespace}&var-service=check%20out&var-environment=prod" in led
        assert led.endswith("&var-rubric=qa")


def test_tables_link_by_fields_and_series_by_labels() -> None:
    for board in BOARDS:
        for panel in panels(board):
            links = json.dumps(panel["fieldConfig"]["defaults"]["links"])
            assert "__field.labels" not in links or panel["type"] == "timeseries", panel["title"]
            exemplars = any(target["exemplar"] for target in panel["targets"])
            assert "__data.fields" not in links or panel["type"] == "table" or exemplars, panel["title"]


def test_one_tile_of_the_overview_counts_each_status() -> None:
    overview = next(board for board in BOARDS if board["uid"] == "sidejudge-overview")
    tiles = [panel["targets"][0]["expr"] for panel in panels(overview) if panel["type"] == "stat"]
    counted = [int(found[1]) for expr in tiles if (found := re.search(r"== (-?\d+)\)", expr))]
    assert sorted(counted) == sorted(STATUS_CODES)


def test_tiles_and_rows_of_the_overview_lead_on() -> None:
    overview = next(board for board in BOARDS if board["uid"] == "sidejudge-overview")
    for panel in panels(overview):
        if panel["type"] in {"stat", "table"}:
            assert panel["fieldConfig"]["defaults"]["links"], panel["title"]


@pytest.mark.parametrize("runbooks", [None, "https://monitor.example/help/alert"])
def test_a_row_of_an_alert_leads_to_its_runbook_where_somebody_said_where_these_lie(runbooks: str | None) -> None:
    overview = json.loads(dashboards(Declaration(), runbooks)["sidejudge-overview.json"])
    (table,) = [panel for panel in panels(overview) if panel["title"] == "Alerts that fire"]
    links = [each["url"] for each in table["fieldConfig"]["defaults"]["links"] if each["title"] == "Its runbook"]
    (frame,) = FRAMES["Alerts that fire"]
    led = [followed(link, frame, 0) for link in links]
    assert led == ([] if runbooks is None else ["https://monitor.example/help/alert/pass-rate-critical"])
    assert help_page("alert/pass-rate-critical") is not None


def test_versions_that_take_over_are_marked_on_boards_that_show_services() -> None:
    marked = {board["uid"] for board in BOARDS if "Versions" in {a["name"] for a in board["annotations"]["list"]}}
    assert marked == {"sidejudge-overview", "sidejudge-rubric", "sidejudge-application"}
    for board in BOARDS:
        for annotation in board["annotations"]["list"]:
            check_names(annotation["expr"])


def test_the_applications_panels_say_why_they_are_empty() -> None:
    application = next(board for board in BOARDS if board["uid"] == "sidejudge-application")
    without = [each["title"] for each in panels(application) if "noValue" not in each["fieldConfig"]["defaults"]]
    assert without == ["Pass ratio", "Share of each version"]


def test_panels_of_the_judge_say_why_they_are_empty() -> None:
    monitor = next(board for board in BOARDS if board["uid"] == "sidejudge-monitor")
    titles = [panel["title"] for panel in monitor["panels"]]
    judge = monitor["panels"][titles.index("The judge") + 1 : titles.index("What runs")]
    assert len(judge) == 8
    for panel in judge:
        assert "No judge is configured" in panel["fieldConfig"]["defaults"]["noValue"], panel["title"]


def test_every_board_is_chosen_by_cluster_and_namespace_and_a_rubric_is_one_that_judges() -> None:
    for board in BOARDS:
        names = [variable["name"] for variable in board["templating"]["list"]]
        assert names[:4] == ["datasource", "cluster", "namespace", "job"], board["uid"]
        for panel in panels(board):
            for target in panel["targets"]:
                if "ALERTS" not in target["expr"]:
                    assert 'cluster=~"$cluster",namespace=~"$namespace"' in target["expr"], panel["title"]
    rubric = next(board for board in BOARDS if board["uid"] == "sidejudge-rubric")
    (chosen,) = [each for each in rubric["templating"]["list"] if each["name"] == "rubric"]
    assert "effective" in chosen["definition"], (
        "a counter that exists may be 0; this is recorded once there is a verdict"
    )
