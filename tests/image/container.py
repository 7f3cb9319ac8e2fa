"""An image's environment, run as a container engine would run the image, in a sandbox."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sidejudge.monitor.demo.traffic import SampleTraffic
from tests.image.built import Built
from tests.image.dockerfile import Image, image
from tests.image.sandbox import Sandbox
from tests.running import free_port

STATE = "/var/lib/sidejudge"
ANSWERS_S = 30.0
"""How long a request may take on a busy machine."""


class Container:
    """The image, run by its own entry point with a configuration file beside it.

    ``made`` is its environment, made by the image's steps; or the image itself.
    """

    def __init__(self, folder: Path, made: Path | Built) -> None:
        self.image: Image | Built = made if isinstance(made, Built) else image()
        self.state = folder / "state"
        self.state.mkdir()
        self.state.chmod(0o777)  # as an emptyDir comes
        settings = folder / "settings"
        settings.mkdir()
        self.settings = settings / "sidejudge.yaml"
        self.otlp, self.api = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        stated = {
            "sampling": {"rate": 1.0}, "assembly": {"grace": "100ms", "idle": "1s"},
            "sources": {"otlp": {"http": self.otlp.removeprefix("http://")}},
            "api": {"listen": self.api.removeprefix("http://")},
            "routes": [{"rubrics": ["workflow"], "scenario": "any"}],
            "scenarios": {"any": {"max_seconds": 10**9}},
        }  # fmt: skip
        self.configure(stated)
        root = folder / "root"
        root.mkdir()
        binds = {"/etc/sidejudge": settings} | ({} if isinstance(made, Built) else {"/opt/sidejudge": made})
        base = made.root if isinstance(made, Built) else None
        self.sandbox = Sandbox(root, binds, {STATE: self.state}, base=base)
        environ = self.image.environ
        stated_path = environ["PATH"].replace("$PATH", "/usr/local/bin:/usr/bin:/bin")
        self.environ = {**environ, "PATH": stated_path, "SIDEJUDGE_CONFIG": "/etc/sidejudge/sidejudge.yaml"}
        self.log = folder / "log"
        self.process: subprocess.Popen[str] | None = None

    def configure(self, stated: dict[str, Any]) -> None:
        """Set sections of the configuration."""
        held = yaml.safe_load(self.settings.read_text()) if self.settings.exists() else {}
        self.settings.write_text(yaml.safe_dump(held | stated))

    def start(self, *, user: int | None = None) -> None:
        user = int(self.image.user.split(":")[0]) if user is None else user
        with self.log.open("ab") as log:
            self.process = self.sandbox.start(
                [*self.image.entrypoint, *self.image.cmd],
                self.environ,
                user=user,
                cwd=self.image.workdir,
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + 30
        while not self.answers("/readyz"):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.05)

    def answers(self, path: str) -> bool:
        try:
            return httpx.get(self.api + path, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return self.sandbox.run(command, self.environ, cwd=self.image.workdir)

    def settled(self, seconds: float = 60) -> dict[str, Any]:
        """The outcomes once no trace is open."""
        end = time.monotonic() + seconds
        while (outcomes := self._status()["outcomes"])["open"]:
            assert time.monotonic() < end, outcomes
            time.sleep(0.1)
        return outcomes

    def _status(self) -> dict[str, Any]:
        return httpx.get(self.api + "/v1/status", trust_env=False, timeout=ANSWERS_S).json()

    def end(self, *, grace_s: float = 20) -> int:
        """SIGTERM, and SIGKILL when the grace is over, as a kubelet does; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=grace_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def send(url: str, traffic: SampleTraffic) -> tuple[str, int]:
    sent = traffic.next(time.time_ns(), wrong=0.2)
    answer = httpx.post(
        url + "/v1/traces", content=sent.body, headers={"content-type": "application/x-protobuf"}, trust_env=False,
        timeout=ANSWERS_S,
    )  # fmt: skip
    request = ExportTraceServiceRequest.FromString(sent.body)
    return request.resource_spans[0].scope_spans[0].spans[0].trace_id.hex(), answer.status_code
