"""The chart, rendered by the real engine: every set of values, two versions, with and without the custom kinds."""

from __future__ import annotations

import base64
import copy
import gzip
import json
import shutil

import pytest
import yaml

from tests.helm.checks import beyond_schemas, not_restricted, pod_specs, schema_errors
from tests.helm.engine import FIRST_NATIVE, LATEST, Refused
from tests.helm.generate import CHART, GOLDEN, ROOT, cases, golden

CUSTOM = {"PodMonitor", "ServiceMonitor", "PrometheusRule"}
ASK_FOR_CUSTOM = {"stateful", "everything"}


def without_sleep(obj):
    """An object as Kubernetes before 1.30 takes it, which knows no pause before the end of a container."""
    obj = copy.deepcopy(obj)
    for pod in pod_specs(obj):
        for each in pod["containers"]:
            each.pop("lifecycle", None)
    return obj


def is_dashboard(obj):
    return obj["metadata"].get("labels", {}).get("app.kubernetes.io/component") == "dashboards"


@pytest.mark.parametrize("kube", [FIRST_NATIVE, LATEST])
@pytest.mark.parametrize("case", cases())
def test_every_object_is_one_that_a_cluster_takes(engine, shared, case, kube):
    rendered = engine.render(CHART, cases()[case], kube=kube)
    assert rendered.everything
    wrong = {}
    for obj in rendered.everything:
        name = f"{obj['kind']} {obj['metadata']['name']}"
        found = schema_errors(obj, shared / "contracts" / "prometheus-operator", kube.removeprefix("v"))
        for pod in pod_specs(obj):
            found += not_restricted(pod) + beyond_schemas(pod)
        if found:
            wrong[name] = found
    assert wrong == {}


@pytest.mark.parametrize("case", cases())
def test_versions_make_no_difference_and_without_crds_only_monitors_are_missing(engine, case):
    expected = engine.render(CHART, cases()[case]).everything
    first = engine.render(CHART, cases()[case], kube=FIRST_NATIVE).everything
    assert first == [without_sleep(each) for each in expected]
    if case in ASK_FOR_CUSTOM:
        with pytest.raises(Refused, match="no matches for kind"):
            engine.render(CHART, cases()[case], crds=False)
        return
    without = engine.render(CHART, cases()[case], crds=False).everything
    missing = [obj for obj in expected if obj not in without]
    assert {obj["kind"] for obj in missing if not is_dashboard(obj)} <= CUSTOM
    assert [obj for obj in without if obj not in expected] == []


@pytest.mark.parametrize("case", cases())
def test_it_renders_as_its_golden_file_says(engine, case):
    assert golden(engine, cases()[case]) == (GOLDEN / f"{case}.yaml").read_text(), "python -m tests.helm.generate"


def test_linting_finds_nothing(engine):
    for chart in (CHART, CHART.parent / "sidejudge-sidecar"):
        found = engine.ask(do="lint", chart=str(chart))["lint"].get("messages") or []
        assert [message for message in found if "icon is recommended" not in str(message)] == []


def test_there_is_no_role_no_token_and_no_secret(engine):
    for values in cases().values():
        rendered = engine.render(CHART, values)
        assert not {obj["kind"] for obj in rendered.everything} & {
            "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "Secret", "ValidatingWebhookConfiguration",
            "MutatingWebhookConfiguration",
        }  # fmt: skip


def test_before_1_25_it_is_refused(engine):
    with pytest.raises(Refused, match=r"1\.25"):
        engine.render(CHART, kube="v1.24.0")


def test_the_notes_tell_the_label_that_prometheus_wants_and_what_is_missing(engine):
    bare = engine.render(CHART).notes
    assert "release: <name of its release>" in bare
    assert "registry.example.com" in bare
    labelled = engine.render(CHART, {"monitoring": {"labels": {"release": "kps"}}, "image": {"registry": "r.io"}}).notes
    assert "release: <name" not in labelled
    assert "registry.example.com" not in labelled
    assert "does not know monitoring.coreos.com" in engine.render(CHART, crds=False).notes
    assert "loadbalancing" in engine.render(CHART, {"gateway": {"replicaCount": 3}}).notes
    assert "loadbalancing" not in bare


def test_rules_and_dashboards_of_the_repository_are_in_the_chart_as_grafana_and_prometheus_look_for_them(engine):
    rendered = engine.render(CHART, {"monitoring": {"labels": {"release": "kps"}}})
    boards = [obj for obj in rendered.all("ConfigMap") if is_dashboard(obj)]
    there = {path.name: path.read_text().rstrip() for path in ROOT.glob("dashboards/grafana/json/*.json")}
    assert there
    assert {name: text for obj in boards for name, text in obj["data"].items()} == there
    for obj in boards:
        assert obj["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert json.loads(*obj["data"].values())["uid"]
    (rule,) = rendered.all("PrometheusRule")
    assert rule["metadata"]["labels"]["release"] == "kps"
    assert rule["spec"] == yaml.safe_load((ROOT / "dashboards" / "rules" / "sidejudge.rules.yaml").read_text())


@pytest.mark.parametrize("case", cases())
def test_a_release_and_each_of_its_objects_is_smaller_than_a_cluster_can_keep(engine, case):
    rendered = engine.render(CHART, cases()[case])
    assert max(len(json.dumps(obj)) for obj in rendered.everything) < 1 << 20, "etcd takes 1.5 MiB, a ConfigMap 1 MiB"
    # A release is a Secret (1 MiB): the chart's files and what was rendered, as JSON, gzipped, base64 (and that again).
    files = [base64.b64encode(path.read_bytes()).decode() for path in CHART.rglob("*") if path.is_file()]
    release = gzip.compress(json.dumps([rendered.manifest, rendered.hooks, rendered.notes, files]).encode())
    assert len(release) * 16 / 9 < 1 << 19, "half of it, for the values of others"


@pytest.mark.parametrize("folder", ["rules", "dashboards"])
def test_the_notes_say_so_when_the_package_holds_no_rules_or_dashboards(engine, folder, tmp_path):
    assert f"holds no {folder}" not in engine.render(CHART).notes
    chart = tmp_path / "sidejudge"
    shutil.copytree(CHART, chart)
    shutil.rmtree(chart / "files" / folder)
    assert f"holds no {folder}" in engine.render(chart).notes


def test_rules_and_dashboards_are_taken_as_they_are(engine, shared, tmp_path):
    chart = tmp_path / "sidejudge"
    shutil.copytree(CHART, chart)
    shutil.rmtree(chart / "files")
    rules = (shared / "research" / "samples" / "prometheus" / "llmmon.rules.yaml").read_text()
    assert "{{ $labels" in rules
    board = json.dumps({"title": "x", "panels": [{"legendFormat": "{{pod}} {{`raw`}}"}]})
    for folder in ("rules", "dashboards"):
        (chart / "files" / folder).mkdir(parents=True, exist_ok=True)
    (chart / "files" / "rules" / "some.rules.yaml").write_text(rules)
    (chart / "files" / "dashboards" / "over_view.json").write_text(board)
    rendered = engine.render(chart)
    rule = rendered.one("PrometheusRule", "rel-sidejudge-some-rules")
    assert rule["spec"] == yaml.safe_load(rules)
    assert schema_errors(rule, shared / "contracts" / "prometheus-operator", LATEST) == []
    made = rendered.one("ConfigMap", "rel-sidejudge-dashboard-over-view")
    assert made["data"] == {"over_view.json": board}
    assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert not engine.render(
        chart, {"monitoring": {"rules": {"enabled": False}, "dashboards": {"enabled": False}}}
    ).all("PrometheusRule")
    assert (
        len(engine.render(chart, {"monitoring": {"dashboards": {"enabled": True}}}, crds=False).all("ConfigMap")) == 2
    )
