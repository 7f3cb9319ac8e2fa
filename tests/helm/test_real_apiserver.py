"""A real API server takes everything that the charts render, as it stands, and refuses what breaks ``restricted``.

It runs wherever a throwaway cluster is named by ``APISERVER`` (its URL) and ``APISERVER_TOKEN`` (of an administrator).
What that server does not know (an old one) is printed and not tried.
"""

from __future__ import annotations

import copy
import os
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from tests.helm.checks import pod_specs
from tests.helm.engine import LATEST
from tests.helm.generate import CHART, HELM, cases

REASON = "no API server is named; start a throwaway cluster, and name it in APISERVER and APISERVER_TOKEN"
pytestmark = pytest.mark.skipif("APISERVER" not in os.environ, reason=REASON)
FIRST = "v1.25.0"
PLURALS = {"NetworkPolicy": "networkpolicies", "Ingress": "ingresses"}
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


class Server:
    """An API server, and a namespace of its own that goes when it is closed."""

    def __init__(self) -> None:
        token = os.environ.get("APISERVER_TOKEN", "")
        self.http = httpx.Client(
            base_url=os.environ["APISERVER"], headers={"authorization": f"Bearer {token}"}, verify=False, timeout=60,
            trust_env=False,
        )  # fmt: skip
        self.namespace = f"sidejudge-{uuid.uuid4().hex[:12]}"
        named = {"name": self.namespace, "labels": RESTRICTED}
        self.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": named}).raise_for_status()

    def close(self) -> None:
        self.http.delete(f"/api/v1/namespaces/{self.namespace}")
        self.http.close()

    def post(self, path: str, obj: dict[str, Any]) -> httpx.Response:
        # Servers before 1.25 do not look at fieldValidation.
        return self.http.post(path, json=obj, params={"fieldValidation": "Strict"})

    def take(self, obj: dict[str, Any]) -> httpx.Response | None:
        """What the server answers to an object of this namespace; None where it does not know the kind."""
        group, kind = obj["apiVersion"], obj["kind"]
        at = f"/api/{group}" if group == "v1" else f"/apis/{group}"
        if self.http.get(at).status_code == 404:
            return None
        plural = PLURALS.get(kind, f"{kind.lower()}s")
        placed = {**obj, "metadata": {**obj["metadata"], "namespace": self.namespace}}
        return self.post(f"{at}/namespaces/{self.namespace}/{plural}", placed)

    @property
    def is_old(self) -> bool:
        """Whether it is of a version that the chart does not name any more."""
        return self.http.get("/apis/policy/v1").status_code == 404


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture(scope="module", autouse=True)
def kinds(shared) -> None:
    """The kinds of Prometheus' operator, as it publishes them."""
    made = Server()
    # Kubernetes 1.20 does not understand these definitions: it is not given them, and does not know the kinds.
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": 1}
    assert made.post("/apis/scheduling.k8s.io/v1/priorityclasses", low).status_code in (201, 409)
    if not made.is_old:
        for file in (shared / "contracts" / "prometheus-operator").glob("*.yaml"):
            at = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            answer = made.post(at, yaml.safe_load(file.read_text()))
            assert answer.status_code in (201, 409), answer.text
    made.close()


def pods(obj: dict[str, Any]) -> list[dict[str, Any]]:
    """The Pods that controllers would make of an object, without the service account, which no controller made."""
    made = []
    for number, found in enumerate(pod_specs(obj)):
        spec = copy.deepcopy(found)
        spec.pop("serviceAccountName", None)
        claimed = {each["metadata"]["name"] for each in obj["spec"].get("volumeClaimTemplates", ())}
        spec["volumes"] = [*(spec.get("volumes") or []), *({"name": name, "emptyDir": {}} for name in claimed)]
        spec.setdefault("restartPolicy", "Always")
        name = f"{obj['kind'].lower()}-{obj['metadata']['name']}-{number}"
        made.append({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    return made


@pytest.mark.parametrize("case", [*cases(), "otel-app", "langfuse-app"])
def test_every_object_and_every_pod_is_admitted(engine, server, case):
    chart, values = (CHART, cases()[case]) if case in cases() else (HELM / "examples" / case, {})
    if server.is_old and case not in cases():
        pytest.skip("this API server knows no native sidecars: they came with Kubernetes 1.29")
    rendered = engine.render(chart, values, kube=FIRST if server.is_old else LATEST)
    unknown, refused, taken = [], {}, 0
    for obj in rendered.everything:
        for each in [obj, *(pods(obj) if obj["kind"] != "Pod" else [])]:
            answer = server.take(each)
            name = f"{each['kind']} {each['metadata']['name']}"
            if answer is None or answer.status_code == 404:
                unknown.append(f"{each['apiVersion']} {name}")
            elif answer.status_code != 201:
                refused[name] = answer.json().get("message", answer.text)
            else:
                taken += 1
    assert refused == {}
    assert taken >= 2
    if unknown:
        print("not known to this server, and not tried:", *unknown, sep="\n  ")  # noqa: T201  # pytest -rA shows it


def test_a_pod_that_breaks_restricted_is_refused_beside_ours(engine, server):
    (pod,) = pods(engine.render(CHART).one("Deployment"))
    wrong = copy.deepcopy(pod)
    wrong["metadata"]["name"] = "wrong"
    for container in wrong["spec"]["containers"]:
        container["securityContext"]["allowPrivilegeEscalation"] = True
    assert server.take(pod).status_code == 201
    answer = server.take(wrong)
    if answer.status_code == 201:
        git = server.http.get("/version").json()["gitVersion"]
        pytest.skip(f"the API server ({git}) enforces no Pod security standard: it came with Kubernetes 1.25")
    assert "restricted" in answer.json()["message"]
