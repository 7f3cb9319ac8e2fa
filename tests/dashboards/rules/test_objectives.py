"""Objectives are what OpenSLO, Sloth and Pyrra read, and their queries give the share of failures.

The schemas below restate, in full strictness, what is published of each kind: OpenSLO v1 (its specification and
``schemas/v1``, Apache-2.0, github.com/OpenSLO/OpenSLO), ``sloth.slok.dev_prometheusservicelevels.yaml`` (Apache-2.0,
github.com/slok/sloth at 04be61ab), ``pyrra.dev_servicelevelobjectives.json`` (Apache-2.0, github.com/pyrra-dev/pyrra at
029f90cc). Where those allow what nobody reads, such as further keys, these do not.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from sidejudge.dashboards.rules.objectives import FORMS, objectives, written_objectives
from sidejudge.monitor.cli.export import export
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.lexical.shown_text import clean
from sidejudge.scoring.status.status import Thresholds
from tests.needs import PROMTOOL

DECLARED = Declaration(thresholds={"strict": Thresholds(warning=0.995, critical=0.9), "whole": Thresholds(warning=1.0)})
HOSTILE = 'Ünï \u200b "shop"\\{{.x}}$(id)' + "x" * 200
SERVICES = ("shop", "Shop", HOSTILE)


def shape(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    properties = {**required, **optional}
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


TEXT = {"type": "string", "minLength": 1}
NAME = {
    "type": "string",
    "maxLength": 253,
    "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
}
METADATA = shape({"name": NAME}, labels={"type": "object", "additionalProperties": TEXT})
DURATION = {"type": "string", "pattern": "^[1-9][0-9]*[mhdwMQY]$"}
SOURCE = shape({"metricSource": shape({"type": TEXT, "spec": shape({"query": TEXT})})})
INDICATOR = shape({"metadata": METADATA, "spec": shape({
    "ratioMetric": shape({"counter": {"type": "boolean"}, "bad": SOURCE, "total": SOURCE})})})  # fmt: skip
OPENSLO = {
    "Service": shape({"description": {**TEXT, "maxLength": 1050}}),
    "SLO": shape({
        "description": {**TEXT, "maxLength": 1050}, "service": NAME, "indicator": INDICATOR,
        "timeWindow": {"type": "array", "minItems": 1, "maxItems": 1,
                       "items": shape({"duration": DURATION, "isRolling": {"const": True}})},
        "budgetingMethod": {"enum": ["Occurrences", "Timeslices", "RatioTimeslices"]},
        "objectives": {"type": "array", "minItems": 1, "items": shape({
            "displayName": TEXT, "target": {"type": "number", "minimum": 0, "exclusiveMaximum": 1}})},
    }),
}  # fmt: skip
DISABLED = shape({"disable": {"type": "boolean"}})
SLOTH = {"PrometheusServiceLevel": shape({
    "service": TEXT,
    "slos": {"type": "array", "minItems": 1, "items": shape({
        "name": {**TEXT, "maxLength": 128}, "description": TEXT,
        "objective": {"type": "number", "exclusiveMinimum": 0, "maximum": 100},
        "sli": shape({"events": shape({"errorQuery": {**TEXT, "pattern": r"\{\{\.window\}\}"},
                                       "totalQuery": {**TEXT, "pattern": r"\{\{\.window\}\}"}})}),
        "alerting": shape({"name": TEXT}, pageAlert=DISABLED, ticketAlert=DISABLED),
    })},
})}  # fmt: skip
METRIC = shape({"metric": TEXT})
PYRRA = {"ServiceLevelObjective": shape({
    "target": {"type": "string", "pattern": r"^[0-9]{1,3}(\.[0-9]+)?$"}, "window": DURATION, "description": TEXT,
    "indicator": shape({"ratio": shape(
        {"errors": METRIC, "total": METRIC}, grouping={"type": "array", "items": TEXT})}),
    "alerting": shape({"burnrates": {"type": "boolean"}, "absent": {"type": "boolean"}}),
})}  # fmt: skip
KINDS = {
    "openslo": ("openslo/v1", OPENSLO),
    "sloth": ("sloth.slok.dev/v1", SLOTH),
    "pyrra": ("pyrra.dev/v1alpha1", PYRRA),
}


def read(form: str, services: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    found = objectives(DECLARED, ["strict", "run_health", "whole"], services)
    return list(yaml.safe_load_all(written_objectives(form, found)))


@pytest.mark.parametrize("services", [(), SERVICES], ids=["all", "some"])
@pytest.mark.parametrize("form", FORMS)
def test_objects_have_the_published_shape_and_names_of_their_own(form: str, services: tuple[str, ...]) -> None:
    version, kinds = KINDS[form]
    stated = read(form, services)
    for each in stated:
        schema = shape(
            {"apiVersion": {"const": version}, "kind": TEXT, "metadata": METADATA, "spec": kinds[each["kind"]]}
        )
        assert [error.message for error in Draft202012Validator(schema).iter_errors(each)] == []
    named = [(each["kind"], each["metadata"]["name"]) for each in stated]
    assert len(set(named)) == len(named)


def test_the_objective_is_the_warning_threshold_and_what_may_never_fail_has_none() -> None:
    found = {each.rubric: each.target for each in objectives(DECLARED, ["strict", "run_health", "whole"])}
    assert found == {"strict": 0.995, "run_health": DECLARED.policy.thresholds.warning}
    assert [each["spec"]["target"] for each in read("pyrra")] == ["99.5", "85"]
    assert [slo["objective"] for slo in read("sloth")[0]["spec"]["slos"]] == [99.5, 85.0]
    assert [each["spec"]["objectives"][0]["target"] for each in read("openslo") if each["kind"] == "SLO"] == [
        0.995,
        0.85,
    ]


def queries() -> dict[str, tuple[str, str]]:
    """Of a service with a hostile name: what failed and all, as each program asks over ten minutes."""
    [sloth] = read("sloth", (HOSTILE,))
    assert str([slo["sli"] for slo in sloth["spec"]["slos"]]).count("{{") == 4, "only the windows are variables"
    slo = next(each for each in read("openslo", (HOSTILE,)) if each["kind"] == "SLO")
    ratio, events = slo["spec"]["indicator"]["spec"]["ratioMetric"], sloth["spec"]["slos"][0]["sli"]["events"]
    pyrra = read("pyrra", (HOSTILE,))[0]["spec"]["indicator"]["ratio"]
    window = "{{.window}}"
    return {
        "openslo": tuple(  # type: ignore[dict-item]  # two of them
            f"increase(({ratio[part]['metricSource']['spec']['query']})[10m:1m])" for part in ("bad", "total")
        ),
        "sloth": (events["errorQuery"].replace(window, "10m"), events["totalQuery"].replace(window, "10m")),
        "pyrra": tuple(  # type: ignore[dict-item]  # two of them
            f"sum by (service, environment) (increase({pyrra[part]['metric']}[10m]))" for part in ("errors", "total")
        ),
    }


def test_each_query_gives_the_share_that_failed(tmp_path: Path) -> None:
    def of(service: str) -> str:
        quoted = clean(service).replace("\\", "\\\\").replace('"', '\\"')
        return f'{{service="{quoted}",environment="prod",rubric="strict"}}'

    rates = {HOSTILE: (3, 20), "shop": (50, 50)}
    series = [
        {"series": f"sidejudge_verdict_{kind}_total{of(service)}", "values": f"0+{rate}x20"}
        for service, both in rates.items()
        for kind, rate in zip(("failed_weight", "weight"), both, strict=True)
    ]
    asked = [
        {"expr": f"round(sum({bad}) / sum({total}), 1e-6)", "eval_time": "15m",
         "exp_samples": [{"labels": "{}", "value": 0.15}]}
        for bad, total in queries().values()
    ]  # fmt: skip
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({
        "rule_files": [], "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": asked}],
    }))  # fmt: skip
    done = subprocess.run(
        [PROMTOOL.path(), "test", "rules", str(tmp_path / "test.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_service_has_the_objectives_of_the_rubrics_that_its_routes_name(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "routes:\n- {match: {service: 'shop*'}, rubrics: [run_health]}\n- {rubrics: [answer]}\n"
        "alerts: {rubrics: {answer: {warning: 0.9}}}\n"
    )

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(export, ["objectives", "--config", str(path), "--form", "pyrra", *arguments])

    def shown(*services: str) -> set[tuple[str, str]]:
        done = run(*(word for service in services for word in ("--service", service)))
        return {(each["metadata"]["name"], each["spec"]["target"]) for each in yaml.safe_load_all(done.output)}

    assert run("--service", " \u200b").exception.cause == "--service: is empty"
    assert shown("shop-eu", "desk") == {("shop-eu.run-health", "85"), ("desk.answer", "90")}
    assert {("run-health", "85"), ("answer", "90")} <= shown()
    path.write_text("alerts: {thresholds: {warning: 1.0, critical: 0.5}}")
    assert "no rubric has an objective" in str(run().exception)
