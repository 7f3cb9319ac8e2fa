"""What a cluster would say of objects: schemas, the Pod security standard ``restricted``, what schemas do not know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.needs import KUBERNETES_VALIDATE

Object = dict[str, Any]
RESTRICTED_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}


def pod_specs(obj: Object) -> Iterator[Object]:
    """The Pod specs in an object, whatever owns the Pods."""
    spec = obj.get("spec", {})
    if obj["kind"] == "Pod":
        yield spec
    elif obj["kind"] == "CronJob":
        yield spec["jobTemplate"]["spec"]["template"]["spec"]
    elif "template" in spec:
        yield spec["template"]["spec"]


def containers(pod: Object) -> list[Object]:
    return [*(pod.get("initContainers") or []), *pod["containers"]]


def not_restricted(pod: Object) -> list[str]:
    """What the Pod security standard ``restricted`` (v1.33) would refuse. Empty: nothing."""
    wrong = [f"{key} is set" for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key)]
    wrong += [
        f"volume {volume['name']}"
        for volume in pod.get("volumes") or []
        if not (volume.keys() - {"name"}) <= RESTRICTED_VOLUMES
    ]
    shared = pod.get("securityContext") or {}
    for container in containers(pod):
        name, own = container["name"], container.get("securityContext") or {}
        capabilities = own.get("capabilities") or {}
        both = {**shared, **own}
        rules = {
            "privilege escalation is allowed": own.get("allowPrivilegeEscalation") is False,
            "it is privileged": not own.get("privileged"),
            "not all capabilities are dropped": "ALL" in (capabilities.get("drop") or []),
            "capabilities are added": set(capabilities.get("add") or []) <= {"NET_BIND_SERVICE"},
            "it may run as root": both.get("runAsNonRoot") is True and both.get("runAsUser") != 0,
            "no seccomp profile": (both.get("seccompProfile") or {}).get("type") in {"RuntimeDefault", "Localhost"},
            "a host port": not any(port.get("hostPort") for port in container.get("ports") or []),
        }
        wrong += [f"{name}: {what}" for what, well in rules.items() if not well]
    return wrong


def beyond_schemas(pod: Object) -> list[str]:
    """What the API server refuses though the schemas allow it, and what nobody should do to other people's Pods."""
    wrong = []
    names = [port["name"] for container in containers(pod) for port in container.get("ports") or [] if "name" in port]
    wrong += [
        f"port name {name}"
        for name in names
        if not re.fullmatch(r"(?=.*[a-z])[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?", name)
    ]
    wrong += [f"port name {name} twice" for name in set(names) if names.count(name) > 1]
    volumes = {volume["name"] for volume in pod.get("volumes") or []}
    for container in containers(pod):
        mounts = [mount["name"] for mount in container.get("volumeMounts") or []]
        known = volumes | {"sidejudge-state"}  # a StatefulSet's comes from its claim
        wrong += [f"{container['name']}: no volume {name}" for name in mounts if name not in known]
        resources = container.get("resources") or {}
        if not {"cpu", "memory"} <= (resources.get("requests") or {}).keys() or "memory" not in (
            resources.get("limits") or {}
        ):
            wrong.append(f"{container['name']}: no requests for CPU and memory, or no limit on memory")
        declared = [each["name"] for each in container.get("env") or []]
        wrong += [f"{container['name']}: {name} is set twice" for name in set(declared) if declared.count(name) > 1]
        if container.get("restartPolicy") not in (None, "Always"):
            wrong.append(f"{container['name']}: restartPolicy {container['restartPolicy']}")
    if pod.get("automountServiceAccountToken") is not False:
        wrong.append("a service account token is mounted")
    return wrong


@cache
def _custom(folder: Path) -> dict[str, Draft202012Validator]:
    found = {}
    for file in folder.glob("*.yaml"):
        crd = yaml.safe_load(file.read_text(encoding="utf-8"))
        version = next(each for each in crd["spec"]["versions"] if each["name"] == "v1")
        found[crd["spec"]["names"]["kind"]] = Draft202012Validator(_strict(version["schema"]["openAPIV3Schema"]))
    return found


def _strict(schema: Any) -> Any:
    """A CRD's schema as JSON Schema that refuses unknown keys, as the API server would prune them."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(value) for key, value in schema.items() if not str(key).startswith("x-kubernetes-")}
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
        made["additionalProperties"] = schema.get("x-kubernetes-preserve-unknown-fields", False)
    return made


def schema_errors(obj: Object, folder: Path, version: str) -> list[str]:
    """What the schema of an object's kind has against it; of KEDA's and the Gateway API's kinds there is none here."""
    if obj["apiVersion"] == "monitoring.coreos.com/v1":
        loose = {**obj, "metadata": {}}  # the CRD says nothing of metadata
        return [f"{error.json_path}: {error.message}" for error in _custom(folder)[obj["kind"]].iter_errors(loose)]
    if "." in obj["apiVersion"].split("/")[0] and not obj["apiVersion"].split("/")[0].endswith("networking.k8s.io"):
        return []
    if obj["apiVersion"].startswith("gateway."):
        return []
    schemas = pytest.importorskip("kubernetes_validate", reason=KUBERNETES_VALIDATE.reason)
    try:
        schemas.validate(obj, version, strict=True)
    except schemas.ValidationError as error:
        return [f"{'.'.join(map(str, error.path))}: {error.message}"]
    return []
