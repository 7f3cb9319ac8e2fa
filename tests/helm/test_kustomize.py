"""The component, the plain manifests and the policy, put together by kubectl's own kustomize and patch."""

from __future__ import annotations

import json
import shutil
import subprocess

import yaml

from tests.helm.checks import beyond_schemas, not_restricted, pod_specs, schema_errors
from tests.helm.engine import LATEST
from tests.helm.generate import HELM
from tests.needs import KUBECTL


def built(folder):
    done = subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@KUBECTL.mark
def test_the_component_reaches_what_is_labelled_and_nothing_else(shared):
    objects = {
        (obj["kind"], obj["metadata"]["name"].split("-")[0]): obj for obj in built(HELM / "kustomize" / "example")
    }
    for obj in objects.values():
        assert schema_errors(obj, shared / "contracts" / "prometheus-operator", LATEST) == []
    (untouched,) = pod_specs(objects["Deployment", "web"])
    assert "initContainers" not in untouched
    for kind, name in (("Deployment", "assistant"), ("Job", "reindex"), ("CronJob", "nightly"), ("DaemonSet", "edge")):
        obj = objects[kind, name]
        spec = obj["spec"]["jobTemplate"]["spec"] if kind == "CronJob" else obj["spec"]
        assert spec["template"]["metadata"]["labels"]["sidejudge.io/sidecar"] == "true"
        (pod,) = pod_specs(obj)
        (sidecar,) = pod["initContainers"]
        assert (sidecar["restartPolicy"], sidecar["image"]) == ("Always", "registry.internal/sidejudge:0.2.0-judge")
        alone = {**pod, "containers": [], "automountServiceAccountToken": False}
        assert (not_restricted(alone), beyond_schemas(alone)) == ([], [])


@KUBECTL.mark
def test_a_configuration_of_ones_own_rolls_the_pods(tmp_path):
    shutil.copytree(HELM / "kustomize", tmp_path / "kustomize")
    example = tmp_path / "kustomize" / "example"

    def mounted():
        objects = built(example)
        (config,) = (obj for obj in objects if obj["kind"] == "ConfigMap")
        (pod,) = pod_specs(next(obj for obj in objects if obj["metadata"]["name"] == "assistant"))
        (volume,) = (volume for volume in pod["volumes"] if volume["name"] == "sidejudge-config")
        assert volume["configMap"]["name"] == config["metadata"]["name"]
        assert config["data"]["sidejudge.yaml"] == (example / "sidejudge.yaml").read_text()
        return volume["configMap"]["name"]

    before = mounted()
    (example / "sidejudge.yaml").write_text("sampling: {rate: 0.9}\n")
    assert mounted() != before


@KUBECTL.mark
def test_what_the_policy_merges_into_a_pod_is_the_sidecar(shared, tmp_path):
    (policy,) = yaml.safe_load_all((HELM / "kyverno" / "inject.yaml").read_text())
    (rule,) = policy["spec"]["rules"]
    assert "$(" not in json.dumps(rule["mutate"]), "Kyverno reads it as a reference of its own"
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "app", "labels": {"sidejudge.io/inject": "true"}},
        "spec": {
            "initContainers": [{"name": "migrate", "image": "m"}], "containers": [{"name": "app", "image": "a"}],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    }  # fmt: skip
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump(pod))
    patch = json.dumps(rule["mutate"]["patchStrategicMerge"])
    done = subprocess.run(
        ["kubectl", "patch", "--local", "-f", str(file), "--type", "strategic", "-p", patch, "-o", "yaml"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    patched = yaml.safe_load(done.stdout)
    assert schema_errors(patched, shared / "contracts" / "prometheus-operator", LATEST) == []
    names = {container["name"] for container in patched["spec"]["initContainers"]}
    assert names == {"sidejudge", "migrate"}
    assert {"data", "sidejudge-state", "sidejudge-tmp", "sidejudge-config"} == {
        v["name"] for v in patched["spec"]["volumes"]
    }
    assert patched["metadata"]["labels"]["sidejudge.io/sidecar"] == "true"


def test_the_plain_manifests_are_restricted_and_know_nothing_of_helm(shared):
    text = (HELM / "manifests" / "gateway.yaml").read_text()
    objects = list(yaml.safe_load_all(text))
    assert {obj["kind"] for obj in objects} == {"ServiceAccount", "ConfigMap", "Service", "Deployment"}
    assert "helm.sh" not in text
    for obj in objects:
        assert schema_errors(obj, shared / "contracts" / "prometheus-operator", LATEST) == []
        for pod in pod_specs(obj):
            assert (not_restricted(pod), beyond_schemas(pod)) == ([], [])


def test_the_collector_sends_each_trace_to_one_pod_of_the_gateway():
    collector = yaml.safe_load((HELM / "collector" / "collector.yaml").read_text())
    exporter = collector["exporters"]["loadbalancing/sidejudge"]
    assert exporter["routing_key"] == "traceID"
    services = {
        obj["metadata"]["name"]: obj for obj in yaml.safe_load_all((HELM / "manifests" / "gateway.yaml").read_text())
        if obj["kind"] == "Service"
    }  # fmt: skip
    name, namespace, _ = exporter["resolver"]["dns"]["hostname"].split(".")
    assert (services[name]["spec"]["clusterIP"], services[name]["metadata"]["namespace"]) == ("None", namespace)
    for pipeline in collector["service"]["pipelines"].values():
        for section in ("receivers", "processors", "exporters"):
            assert set(pipeline[section]) <= collector[section].keys()
