"""The admission policy in Google's CEL: which Pods it changes, and what becomes of them.

An API server has the function ``indexOf`` of lists and the type ``JSONPatch``, which the library has not: the test puts
the place of a container into it, and maps in the place of patches. ``tests/helm/apiserver`` makes a program of the API
server's own evaluator, which the last test compares with this.
"""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helm.collector_keys import wrong
from tests.helm.engine import LATEST, Refused
from tests.helm.generate import CHART, injection

cel = pytest.importorskip("cel_expr_python.cel", reason="needs the extra cel")
ENDPOINT = {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://127.0.0.1:4318"}
VALUES = yaml.safe_load(Path(__file__).with_name("injection.yaml").read_text())
ASKS = {"sidejudge.io/inject": "true"}


@pytest.fixture(scope="module")
def policy(engine) -> dict[str, Any]:
    return injection(engine, VALUES)[0]["spec"]


def evaluated(expression: str, **values: Any) -> Any:
    extensions = "name: k8s\nextensions:\n- name: optional\n- name: strings\n"
    types = dict.fromkeys(("object", "variables", "namespaceObject"), cel.Type.DYN)
    env = cel.NewEnv(config=cel.NewEnvConfigFromYaml(extensions), variables=types)
    value = env.compile(expression).eval(data=values).value()
    return json.loads(json.dumps(plain(value)))


def plain(value: Any) -> Any:
    if hasattr(value, "value") and callable(value.value):
        return plain(value.value())
    if isinstance(value, dict):
        return {plain(key): plain(inner) for key, inner in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def as_maps(expression: str) -> str:
    """Patches as maps that the library knows."""
    while (at := expression.find("JSONPatch{")) >= 0:
        depth, end = 0, at + len("JSONPatch")
        while True:
            depth += {"{": 1, "}": -1}.get(expression[end], 0)
            end += 1
            if not depth:
                break
        inside = expression[at + len("JSONPatch{") : end - 1]
        op, path, value = re.fullmatch(r"op: (.*?), path: (.*?), value: (.*)", inside, re.DOTALL).groups()
        made = f'{{"op": dyn({op}), "path": dyn({path}), "value": dyn({value})}}'
        expression = expression[:at] + made + expression[end:]
    return expression.replace("object.spec.containers.indexOf(c)", "int(c.place)")


def changed(
    policy: dict[str, Any], pod: dict[str, Any], namespace: dict[str, str] | None = None
) -> dict[str, Any] | None:
    """The Pod as the policy leaves it; None where it does not match."""
    # An API server has no namespace where it evaluates conditions: null.
    if not all(evaluated(each["expression"], object=pod, namespaceObject=None) for each in policy["matchConditions"]):
        return None
    space = {"metadata": {"labels": namespace or {}}}
    variables: dict[str, Any] = {}
    for each in policy["variables"]:
        variables[each["name"]] = evaluated(each["expression"], object=pod, variables=variables, namespaceObject=space)
    if not variables["wanted"]:
        return None
    numbered = copy.deepcopy(pod)
    for place, container in enumerate(numbered["spec"]["containers"]):
        container["place"] = place
    (mutation,) = policy["mutations"]
    patches = evaluated(as_maps(mutation["jsonPatch"]["expression"]), object=numbered, variables=variables)
    made = copy.deepcopy(pod)
    for patch in patches:
        apply(made, patch)
    return made


def apply(pod: dict[str, Any], patch: dict[str, Any]) -> None:
    """RFC 6902's *add*."""
    assert patch["op"] == "add"
    *above, last = [part.replace("~1", "/").replace("~0", "~") for part in patch["path"].split("/")[1:]]
    at: Any = pod
    for name in above:
        at = at[int(name)] if isinstance(at, list) else at[name]
    if isinstance(at, list):
        at.insert(len(at) if last == "-" else int(last), patch["value"])
    else:
        at[last] = patch["value"]


def pod(annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    stated = {
        "name": "app",
        **({"annotations": annotations} if annotations else {}),
        **({"labels": labels} if labels else {}),
    }
    return {"metadata": stated, "spec": {"containers": [{"name": "app", "image": "app:1"}], **spec}}


@pytest.mark.parametrize(
    ("annotations", "labels", "namespace", "is_changed"),
    [
        ({}, {}, {}, False), (ASKS, {}, {}, True), ({}, ASKS, {}, True), ({}, {}, ASKS, True),
        ({"sidejudge.io/inject": "false"}, {}, ASKS, False), ({"sidejudge.io/inject": "yes"}, {}, {}, False),
    ],
)  # fmt: skip
def test_a_pod_or_its_namespace_asks_and_a_pod_may_decline(policy, annotations, labels, namespace, is_changed):
    assert (changed(policy, pod(annotations, labels), namespace) is not None) is is_changed


def test_the_sidecar_is_the_charts_own_with_the_configuration_of_the_release(policy, engine):
    made = changed(policy, pod(ASKS))
    rendered = engine.render(CHART.parent / "examples" / "otel-app", {"sidejudge-sidecar": VALUES["sidejudge-sidecar"]})
    template = rendered.one("Deployment")["spec"]["template"]
    # What the example configures beside is not the release's.
    own = {"SIDEJUDGE_ROUTES", "SIDEJUDGE_SCENARIOS", "SIDEJUDGE_EVALUATORS", "SIDEJUDGE_SINKS", "SIDEJUDGE_ALERTS"}
    (expected,) = template["spec"]["initContainers"]
    expected = {**expected, "env": [each for each in expected["env"] if each["name"] not in own]}
    (container,) = made["spec"]["initContainers"]
    assert {**container, "env": None} == {**expected, "env": None}
    assert {each["name"] for each in container["env"]} >= {"SIDEJUDGE_FORWARD", "SIDEJUDGE_SAMPLING", "SIDEJUDGE_DRAIN"}
    assert made["spec"]["volumes"] == template["spec"]["volumes"][: len(made["spec"]["volumes"])]
    assert made["metadata"]["labels"] == {"sidejudge.io/sidecar": "true"}
    assert made["spec"]["containers"][0]["env"] == [ENDPOINT]


def test_the_example_beside_the_opentelemetry_operator_takes_no_port_twice_and_loses_no_span(policy):
    """The Operator sets the endpoint where it is not set, so the policy must leave it."""
    stated = (CHART.parent / "examples" / "otel-operator.yaml").read_text()
    collector, instrumentation, workload = (each["spec"] for each in yaml.safe_load_all(stated))
    made = changed(policy, {**(template := workload["template"]), "metadata": {"name": "a", **template["metadata"]}})
    (container,) = made["spec"]["containers"]
    assert [each["name"] for each in container["env"]] == ["OTEL_SERVICE_NAME"]
    (monitor,) = made["spec"]["initContainers"]
    sources = next(each["value"] for each in monitor["env"] if each["name"] == "SIDEJUDGE_SOURCES")
    received = collector["config"]["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
    taken = json.loads(sources)["otlp"]["http"]
    assert received != taken
    assert instrumentation["exporter"]["endpoint"] == f"http://{received}"
    assert collector["config"]["exporters"]["otlphttp/sidejudge"]["endpoint"] == f"http://{taken}"
    assert wrong(collector["config"]) == []
    assert set(collector["config"]["exporters"]) == set(
        collector["config"]["service"]["pipelines"]["traces"]["exporters"]
    )


def test_what_a_pod_has_stays_and_the_sidecar_comes_first(policy):
    kept = {"name": "data", "emptyDir": {}}
    made = changed(policy, pod(ASKS, {"app": "shop"}, initContainers=[{"name": "migrate"}], volumes=[kept]))
    assert [each["name"] for each in made["spec"]["initContainers"]] == ["sidejudge", "migrate"]
    assert made["spec"]["volumes"][0] == kept
    assert made["metadata"]["labels"] == {"app": "shop", "sidejudge.io/sidecar": "true"}
    assert changed(policy, made) is None, "once"


def test_an_endpoint_that_is_set_is_honoured_and_containers_may_be_named(policy):
    mine = {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://mine:4318"}
    other = {"name": "LEVEL", "value": "info"}
    containers = [{"name": "app", "env": [other]}, {"name": "old", "env": [mine]}, {"name": "proxy"}]
    every = changed(policy, pod(ASKS, containers=containers))["spec"]["containers"]
    assert [each.get("env") for each in every] == [[other, ENDPOINT], [mine], [ENDPOINT]]
    some = changed(policy, pod({**ASKS, "sidejudge.io/containers": "app, old"}, containers=containers))["spec"][
        "containers"
    ]
    assert [each.get("env") for each in some] == [[other, ENDPOINT], [mine], None]


def test_a_pod_may_bring_its_configuration_and_its_memory(policy):
    notes = {"sidejudge.io/config": "mine", "sidejudge.io/memory-limit": "1Gi", "sidejudge.io/memory-request": "300Mi"}
    made = changed(policy, pod({**ASKS, **notes}))["spec"]
    (container,) = made["initContainers"]
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert env["SIDEJUDGE_CONFIG"] == "/etc/sidejudge/sidejudge.yaml"
    assert env.keys().isdisjoint({"SIDEJUDGE_FORWARD", "SIDEJUDGE_SAMPLING"}), "the release's would win over the file"
    assert {"SIDEJUDGE_API", "SIDEJUDGE_STORE", "SIDEJUDGE_DRAIN", "POD_NAME"} <= env.keys()
    assert (container["resources"]["limits"]["memory"], container["resources"]["requests"]["memory"]) == (
        "1Gi",
        "300Mi",
    )
    assert container["resources"]["requests"]["cpu"] == "50m"
    assert {"name": "sidejudge-config", "configMap": {"name": "mine", "optional": True}} in made["volumes"]
    assert {"name": "sidejudge-config", "mountPath": "/etc/sidejudge", "readOnly": True} in container["volumeMounts"]


def test_so_may_it_where_that_of_the_release_lies_in_a_config_map_too(engine):
    values = {**VALUES, "sidejudge-sidecar": {"config": None, "existingConfigMap": {"name": "theirs", "key": "m.yaml"}}}
    release = injection(engine, values)[0]["spec"]
    for notes, name in ({}, "theirs"), ({"sidejudge.io/config": "mine"}, "mine"):
        made = changed(release, pod({**ASKS, **notes}))["spec"]
        (container,) = made["initContainers"]
        mounts = [each["mountPath"] for each in container["volumeMounts"]]
        assert len(mounts) == len(set(mounts))
        (volume,) = (each["configMap"]["name"] for each in made["volumes"] if each["name"] == "sidejudge-config")
        assert volume == name
        env = [each["name"] for each in container["env"]]
        assert len(env) == len(set(env))
        assert {"SIDEJUDGE_API__LISTEN", "SIDEJUDGE_STORE__PATH", "SIDEJUDGE_CONFIG"} <= set(env)


def test_a_cluster_that_does_not_know_it_refuses_it_in_words(engine):
    with pytest.raises(Refused, match="does not serve MutatingAdmissionPolicy v1"):
        engine.render(CHART, VALUES, kube=LATEST)


def test_a_failure_is_loud_and_it_runs_once(policy):
    assert (policy["failurePolicy"], policy["reinvocationPolicy"]) == ("Fail", "Never")


CASES = {
    "nothing asks": (pod(), {}),
    "other annotations": (pod({"a": "b"}, {"c": "d"}), {"e": "f"}),
    "its annotation asks": (pod(ASKS), {}),
    "its label asks": (pod(labels=ASKS), {}),
    "its namespace asks": (pod(), ASKS),
    "it declines": (pod({"sidejudge.io/inject": "false"}), ASKS),
    "it has init containers and volumes": (
        pod(ASKS, {"app": "shop"}, initContainers=[{"name": "migrate"}], volumes=[{"name": "data", "emptyDir": {}}]),
        {},
    ),
    "it names containers": (
        pod(
            {**ASKS, "sidejudge.io/containers": "app, old"},
            containers=[
                {"name": "app", "env": [{"name": "LEVEL", "value": "info"}]},
                {"name": "old"},
                {"name": "proxy"},
            ],
        ),
        {},
    ),
    "it brings a configuration": (pod({**ASKS, "sidejudge.io/config": "mine", "sidejudge.io/memory-limit": "1Gi"}), {}),
}


def without_nothing(value: Any) -> Any:
    """What a type of Go writes though it is empty is left out."""
    if isinstance(value, dict):
        made = {name: without_nothing(inner) for name, inner in value.items()}
        return {name: inner for name, inner in made.items() if inner not in ({}, None)}
    return [without_nothing(each) for each in value] if isinstance(value, list) else value


@pytest.mark.skipif(
    "ADMISSION" not in os.environ,
    reason="the API server's evaluator is missing; tests/helm/apiserver/build FOLDER, and name it in ADMISSION",
)
def test_the_api_servers_own_evaluator_makes_the_same_of_every_pod(engine, policy, tmp_path):
    files = {name: tmp_path / name for name in ("POLICY", "PODS", "ANSWERS")}
    files["POLICY"].write_text(json.dumps(injection(engine, VALUES)[0]))
    given = {name: {"pod": made, "namespace": labels} for name, (made, labels) in CASES.items()}
    files["PODS"].write_text(json.dumps(given))
    environ = os.environ | {name: str(file) for name, file in files.items()}
    done = subprocess.run([os.environ["ADMISSION"]], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    answers = json.loads(files["ANSWERS"].read_text())
    assert answers.keys() == CASES.keys()
    for name, (made, labels) in CASES.items():
        assert "error" not in answers[name], name
        found = answers[name].get("pod", made)
        found = {part: found[part] for part in ("metadata", "spec")}
        assert without_nothing(found) == without_nothing(changed(policy, made, labels) or made), name
