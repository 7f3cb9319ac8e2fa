"""A rendered container as a kubelet would start it: its command, environment, files and probes, in a sandbox."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx

from tests.image.dockerfile import image
from tests.image.sandbox import Sandbox

FIELDS = {
    "metadata.name": "pod-1", "metadata.namespace": "shop", "metadata.uid": "0000-1", "status.podIP": "10.0.0.7",
    "spec.nodeName": "node-1", "metadata.labels['app.kubernetes.io/name']": "assistant",
}  # fmt: skip


def environment(container: dict[str, Any]) -> dict[str, str]:
    """The variables of a container: the image's, then its own, with ``$(NAME)`` expanded as Kubernetes does."""
    environ = dict(image().environ)
    environ["PATH"] = environ["PATH"].replace("$PATH", "/usr/local/bin:/usr/bin:/bin")
    declared: dict[str, str] = {}
    for each in container["env"]:
        source = each.get("valueFrom", {})
        if "fieldRef" in source:
            value = FIELDS[source["fieldRef"]["fieldPath"]]
        elif "secretKeyRef" in source:
            value = f"secret-{source['secretKeyRef']['key']}"
            if "DATABASE" in each["name"]:
                value = f"postgresql://{value}"
        else:
            value = expanded(each.get("value", ""), declared)
        declared[each["name"]] = value
    return environ | declared


def expanded(text: str, declared: dict[str, str]) -> str:
    """``$(NAME)`` of what is declared before, ``$$`` as ``$`` wherever it stands, anything else as it stands."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else declared.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", value, text)


class Kubelet:
    """One container in a Pod of its own. ``files`` is the ConfigMap that is mounted as the configuration."""

    def __init__(self, folder: Path, installed: Path, container: dict[str, Any], files: dict[str, str] | None) -> None:
        self.container = container
        binds = {"/opt/sidejudge": installed}
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        if files is not None:
            settings = folder / "settings"
            settings.mkdir()
            for name, text in files.items():
                (settings / name).write_text(text)
            binds[mounts["sidejudge-config"]] = settings
        state = folder / "state"
        state.mkdir()
        state.chmod(0o777)
        root = folder / "root"
        root.mkdir()
        self.sandbox = Sandbox(root, binds, {mounts["sidejudge-state"]: state})
        self.log = folder / "log"
        self.process: subprocess.Popen[str] | None = None

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The container's command with other arguments, to its end."""
        return self.sandbox.run(
            [*self.container["command"], *arguments], environment(self.container), cwd=image().workdir
        )

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = self.sandbox.start(
                [*self.container["command"], *self.container["args"]], environment(self.container),
                user=int(image().user.split(":")[0]), cwd=image().workdir, stdout=log, stderr=log,
            )  # fmt: skip

    def probe(self, kind: str) -> int | None:
        """The HTTP status that a probe gets; None when nobody answers."""
        get = self.container[f"{kind}Probe"]["httpGet"]
        try:
            return httpx.get(f"http://127.0.0.1:{get['port']}{get['path']}", trust_env=False).status_code
        except httpx.HTTPError:
            return None

    def wait(self) -> None:
        """Until each of the container's probes succeeds."""
        end = time.monotonic() + 30
        kinds = [kind for kind in ("liveness", "readiness", "startup") if f"{kind}Probe" in self.container]
        while any(self.probe(kind) != 200 for kind in kinds):
            assert self.process is not None
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.05)

    def end(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(timeout=20)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
