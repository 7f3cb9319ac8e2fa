"""A stand-in for a Kubernetes API server on loopback: it tells what it knows, and says yes to every write.

Helm's engine asks the server for its version and its kinds, and sends it what it has rendered. Nothing is stored, so
every release is a first one; but for Jobs, for which an installation waits: they are complete as soon as they are made.
"""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BUILTIN = {
    "v1": ["Pod", "Service", "ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim"],
    "apps/v1": ["Deployment", "StatefulSet", "DaemonSet"],
    "batch/v1": ["Job", "CronJob"],
    "policy/v1": ["PodDisruptionBudget"],
    "autoscaling/v2": ["HorizontalPodAutoscaler"],
    "networking.k8s.io/v1": ["NetworkPolicy", "Ingress"],
}
ADMISSION = {"admissionregistration.k8s.io/v1": ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]}
"""What is served from 1.36 on."""
CUSTOM = {
    "monitoring.coreos.com/v1": ["ServiceMonitor", "PodMonitor", "PrometheusRule"],
    "keda.sh/v1alpha1": ["ScaledObject"],
    "grafana.integreatly.org/v1beta1": ["GrafanaDashboard"],
    "gateway.networking.k8s.io/v1": ["HTTPRoute"],
}


class Cluster:
    """One cluster of a version, with or without the custom kinds; ``kubeconfig`` is how to reach it."""

    def __init__(self, version: str, *, custom: bool) -> None:
        kinds = {**BUILTIN, **(CUSTOM if custom else {})}
        if int(version.split(".")[1]) >= 36:
            kinds |= ADMISSION
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(kinds, version))
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def kubeconfig(self) -> str:
        address = f"http://127.0.0.1:{self._server.server_port}"
        return json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            "users": [{"name": "c", "user": {}}],
        })  # fmt: skip


def _plural(kind: str) -> str:
    name = kind.lower()
    return name[:-1] + "ies" if name.endswith("y") else name + ("es" if name.endswith("s") else "s")


def _resources(group: str, kinds: list[str]) -> dict[str, Any]:
    verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
    listed = [
        {"name": _plural(kind), "singularName": kind.lower(), "kind": kind, "namespaced": True, "verbs": verbs}
        for kind in kinds
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": listed}


def _groups(kinds: dict[str, list[str]]) -> dict[str, Any]:
    versions = [{"groupVersion": group, "version": group.split("/")[1]} for group in kinds if "/" in group]
    groups = [
        {"name": version["groupVersion"].split("/")[0], "versions": [version], "preferredVersion": version}
        for version in versions
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _handler(kinds: dict[str, list[str]], version: str) -> type[BaseHTTPRequestHandler]:  # noqa: C901  # a class within
    absent = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
    jobs: dict[str, dict[str, Any]] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            path = path.rstrip("/")
            group = re.fullmatch(r"/apis/([^/]+/[^/]+)", path)
            if "/jobs" in path:
                self._job(path.rpartition("/jobs")[2].strip("/"), query)
            elif path == "/openapi/v2":
                self._write(b"", 200)  # a description, in protobuf, of nothing: every object is taken
            elif path == "/version":
                self._reply({"major": "1", "minor": version.split(".")[1], "gitVersion": version})
            elif path == "/api":
                self._reply({"kind": "APIVersions", "versions": ["v1"]})
            elif path == "/apis":
                self._reply(_groups(kinds))
            elif path == "/api/v1":
                self._reply(_resources("v1", kinds["v1"]))
            elif group and group[1] in kinds:
                self._reply(_resources(group[1], kinds[group[1]]))
            else:
                self._reply(absent, 404)

        def _job(self, name: str, query: str) -> None:
            if name:
                return self._reply(*((jobs[name],) if name in jobs else (absent, 404)))
            kept = list(jobs.values())
            if "watch=" in query:
                seen = {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}
                events = [
                    *({"type": "ADDED", "object": each} for each in kept),
                    {"type": "BOOKMARK", "object": {"apiVersion": "batch/v1", "kind": "Job", "metadata": seen}},
                ]
                return self._write("".join(json.dumps(each) + "\n" for each in events).encode(), 200)
            listed = {"kind": "JobList", "apiVersion": "batch/v1", "metadata": {"resourceVersion": "1"}, "items": kept}
            return self._reply(listed)

        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
            sent.setdefault("metadata", {}).update(uid="0", resourceVersion="1")
            if sent.get("kind") == "Job":
                done = {"type": "Complete", "status": "True"}
                jobs[sent["metadata"]["name"]] = {**sent, "status": {"succeeded": 1, "conditions": [done]}}
            self._reply(sent, 201)

        do_PUT = do_PATCH = do_POST  # noqa: N815  # the base class calls them so

        def do_DELETE(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            jobs.pop(self.path.partition("?")[0].rpartition("/")[2], None)
            self._reply({"kind": "Status", "apiVersion": "v1", "status": "Success"})

        def _reply(self, answer: dict[str, Any], code: int = 200) -> None:
            self._write(json.dumps(answer).encode(), code)

        def _write(self, body: bytes, code: int) -> None:
            self.send_response(code)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name for it
            """Says nothing."""

    return Handler
