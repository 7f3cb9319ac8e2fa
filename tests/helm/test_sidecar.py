"""The library in an application's chart: three includes, and what they come to on each version of Kubernetes."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.helm.checks import beyond_schemas, containers, not_restricted, pod_specs, schema_errors
from tests.helm.engine import BEFORE_NATIVE, FIRST_NATIVE, LATEST, Refused
from tests.helm.generate import HELM, LIBRARY
from tests.helm.kubelet import expanded

EXAMPLES = sorted(path.parent for path in (HELM / "examples").glob("*/Chart.yaml"))
OTEL = HELM / "examples" / "otel-app"


def pods(rendered):
    return [pod for obj in rendered.objects for pod in pod_specs(obj)]


def sidecar(pod):
    (found,) = (container for container in containers(pod) if container["name"] == "sidejudge")
    return found


def with_(**settings):
    return {LIBRARY.name: settings}


@pytest.mark.parametrize("kube", [FIRST_NATIVE, LATEST])
@pytest.mark.parametrize("chart", EXAMPLES, ids=lambda path: path.name)
def test_an_application_gets_a_native_sidecar_and_stays_restricted(engine, shared, chart, kube):
    rendered = engine.render(chart, kube=kube)
    assert pods(rendered)
    for obj in rendered.objects:
        assert schema_errors(obj, shared / "contracts" / "prometheus-operator", kube.removeprefix("v")) == []
    for pod in pods(rendered):
        assert (not_restricted(pod), beyond_schemas(pod)) == ([], [])
        (native,) = pod["initContainers"]
        assert (native["name"], native["restartPolicy"]) == ("sidejudge", "Always")
        assert not {"readinessProbe", "startupProbe", "lifecycle"} & native.keys()
        assert native["livenessProbe"]["httpGet"] == {"path": "/livez", "port": 8790}


def test_the_job_on_ray_is_restricted():
    job = yaml.safe_load((HELM / "examples" / "rayjob.yaml").read_text())
    cluster = job["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        assert (not_restricted(pod), beyond_schemas(pod)) == ([], [])


def test_a_job_gets_one_too(engine):
    (job,) = engine.render(OTEL).all("CronJob")
    (pod,) = pod_specs(job)
    assert sidecar(pod)["restartPolicy"] == "Always"
    assert job["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"]["sidejudge.io/sidecar"] == "true"


def test_before_native_sidecars_it_is_refused_in_a_sentence(engine):
    with pytest.raises(Refused, match=r"no native sidecars.*legacy=true.*or upgrade"):
        engine.render(OTEL, kube=BEFORE_NATIVE)


@pytest.mark.parametrize("kube", [BEFORE_NATIVE, LATEST])
def test_the_legacy_form_is_a_plain_container(engine, kube):
    for pod in pods(engine.render(OTEL, with_(legacy=True), kube=kube)):
        assert "restartPolicy" not in sidecar(pod)


def test_switched_off_it_leaves_no_trace(engine):
    rendered = engine.render(OTEL, with_(enabled=False), kube=BEFORE_NATIVE)
    for pod in pods(rendered):
        assert [container["name"] for container in containers(pod)] == ["assistant"]
        assert not pod.get("volumes")
    assert "sidejudge" not in rendered.manifest


def test_otlp_is_heard_on_loopback_only_and_no_port_is_declared_for_it(engine):
    for pod in pods(engine.render(OTEL)):
        (otlp,) = (each for each in sidecar(pod)["env"] if each["name"] == "SIDEJUDGE_SOURCES")
        assert json.loads(otlp["value"])["otlp"]["http"] == "127.0.0.1:4318"
        assert [port["name"] for port in sidecar(pod)["ports"]] == ["sidejudge-api"]


@pytest.mark.parametrize(
    ("limit", "cap"), [("1Gi", "512MiB"), ("0.5Gi", "256MiB"), ("500M", "238MiB"), ("64Mi", "32MiB")]
)
def test_the_state_is_bounded_and_the_monitor_keeps_within_half(engine, limit, cap):
    for pod in pods(engine.render(OTEL, with_(state={"sizeLimit": limit}))):
        (volume,) = (volume for volume in pod["volumes"] if volume["name"] == "sidejudge-state")
        assert volume["emptyDir"]["sizeLimit"] == limit
        (store,) = (each for each in sidecar(pod)["env"] if each["name"] == "SIDEJUDGE_STORE")
        assert json.loads(store["value"])["max_bytes"] == cap


def test_who_the_pod_is_comes_from_the_downward_api_before_it_is_used(engine):
    (pod, *_) = pods(engine.render(OTEL))
    env = {each["name"]: position for position, each in enumerate(sidecar(pod)["env"])}
    assert all(
        env[name] < env["OTEL_RESOURCE_ATTRIBUTES"] for name in ("POD_NAME", "POD_NAMESPACE", "POD_UID", "NODE_NAME")
    )


def test_a_configuration_arrives_as_it_was_written_whatever_kubernetes_expands(engine):
    stated = {"x": "a$$b $(POD_NAME) $${NAME} $$(POD_NAME) ${NAME} it's $"}
    (pod, *_) = pods(engine.render(OTEL, with_(config={"scenarios": {"s": stated}})))
    (value,) = (each["value"] for each in sidecar(pod)["env"] if each["name"] == "SIDEJUDGE_SCENARIOS")
    assert json.loads(expanded(value, {"POD_NAME": "pod-1"}))["s"] == stated


def test_a_change_of_the_configuration_changes_the_pod_template(engine):
    def template(**config):
        return engine.render(OTEL, with_(config=config)).one("Deployment")["spec"]["template"]

    assert template(sampling={"rate": 0.2}) != template(sampling={"rate": 0.3})


def test_a_config_map_of_others_is_mounted_as_a_folder_and_what_the_pod_decides_is_told_beside_it(engine):
    values = with_(config=None, existingConfigMap={"name": "mine", "key": "m.yaml"})
    (pod, *_) = pods(engine.render(OTEL, values))
    env = {each["name"]: each.get("value") for each in sidecar(pod)["env"]}
    assert env["SIDEJUDGE_CONFIG"] == "/etc/sidejudge/m.yaml"
    assert env["SIDEJUDGE_SOURCES__OTLP__HTTP"] == "127.0.0.1:4318"
    assert not {"SIDEJUDGE_SOURCES", "SIDEJUDGE_SAMPLING", "SIDEJUDGE_STORE"} & env.keys()
    (mount,) = (mount for mount in sidecar(pod)["volumeMounts"] if mount["name"] == "sidejudge-config")
    assert mount == {"name": "sidejudge-config", "mountPath": "/etc/sidejudge", "readOnly": True}, (
        "a subPath never changes"
    )


@pytest.mark.parametrize(
    ("settings", "states"),
    [
        ({"confg": {}}, "'confg' not allowed"),
        ({"image": {"tag": ""}}, "minLength"),
        ({"config": {"evaluators": {"judge": {"api_key": "sk-1"}}}}, "judge.api_key holds a secret"),
        ({"config": {"scenarios": {"s": {"x": "y" * 120_000}}}}, "too long for an environment variable"),
        ({"config": {"store": {"max_bytes": 1073741824}}}, "must be less than state.sizeLimit"),
        ({"state": {"sizeLimit": "1Mi"}}, r"1MiB\) must be less than state.sizeLimit"),
        ({"existingConfigMap": {"name": "mine"}}, "both set"),
        (
            {"config": {"api": {"listen": "127.0.0.1:8790"}}},
            r"config\.api\.listen .* and sidejudge-sidecar\.probes\.liveness asks from outside",
        ),
        ({"config": {"evaluators": {"embedding": {"model": "/models/m"}}}}, "memory limit of 512Mi would end it"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_name(engine, settings, states):
    with pytest.raises(Refused, match=states):
        engine.render(OTEL, with_(**settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"config": {"api": {"listen": "127.0.0.1:8790"}}, "probes": {"liveness": None}},
        {"config": {"evaluators": {"embedding": {"model": "/m"}}}, "resources": {"limits": {"memory": "1Gi"}}},
        {"config": {"evaluators": {"embedding": {"model": "/m"}}}, "resources": {"limits": None}},
        {"config": {"evaluators": {"embedding": {"model": "openai/m", "remote": True}}}},
    ],
)
def test_what_has_a_sense_is_let_through(engine, settings):
    assert pods(engine.render(OTEL, with_(**settings)))


def test_the_librarys_own_version_is_its_images(engine):
    chart = yaml.safe_load((LIBRARY / "Chart.yaml").read_text())
    assert yaml.safe_load((LIBRARY / "values.yaml").read_text())["image"]["tag"] == chart["appVersion"]
