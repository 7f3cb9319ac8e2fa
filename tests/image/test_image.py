"""The image's steps, done here: its program runs for anybody, writes where it may, and ends without loss."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
import time
import tomllib
from collections import Counter
from pathlib import Path

import httpx
import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from monitor.demo.traffic import Traffic
from tests.image.dockerfile import ROOT, image
from tests.image.sandbox import Sandbox, missing
from tests.running import free_port

needs_sandbox = pytest.mark.skipif(missing() is not None, reason=str(missing()))
STATE = "/var/lib/sidejudge"


class Container:
    """The image, run by its own entry point with a configuration file beside it."""

    def __init__(self, folder: Path, installed: Path) -> None:
        self.state = folder / "state"
        self.state.mkdir()
        self.state.chmod(0o777)  # as an emptyDir comes
        settings = folder / "settings"
        settings.mkdir()
        self.otlp, self.api = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        said = {
            "sampling": {"rate": 1.0}, "assembly": {"grace": "100ms", "idle": "1s"},
            "sources": {"otlp": {"http": self.otlp.removeprefix("http://")}},
            "api": {"listen": self.api.removeprefix("http://")},
            "routes": [{"rubrics": ["workflow"], "scenario": "any"}],
            "scenarios": {"any": {"tools_should_exclude": ["rm"]}},
        }  # fmt: skip
        (settings / "sidejudge.yaml").write_text(yaml.safe_dump(said))
        root = folder / "root"
        root.mkdir()
        self.sandbox = Sandbox(root, {"/opt/sidejudge": installed, "/etc/sidejudge": settings}, {STATE: self.state})
        said_path = image().environ["PATH"].replace("$PATH", "/usr/local/bin:/usr/bin:/bin")
        self.environ = {**image().environ, "PATH": said_path, "SIDEJUDGE_CONFIG": "/etc/sidejudge/sidejudge.yaml"}
        self.log = folder / "log"
        self.process: subprocess.Popen[str] | None = None

    def start(self, *, user: int | None = None) -> None:
        user = int(image().user.split(":")[0]) if user is None else user
        with self.log.open("ab") as log:
            self.process = self.sandbox.start(
                [*image().entrypoint, *image().cmd],
                self.environ,
                user=user,
                cwd=image().workdir,
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
        return self.sandbox.run(command, self.environ, cwd=image().workdir)

    def settled(self) -> dict[str, int]:
        end = time.monotonic() + 30
        while (ledger := httpx.get(self.api + "/v1/status", trust_env=False).json()["ledger"])["open"]:
            assert time.monotonic() < end, ledger
            time.sleep(0.1)
        return ledger

    def end(self, *, grace_s: float = 20) -> int:
        """SIGTERM, and SIGKILL when the grace is over, as a kubelet does; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=grace_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


@pytest.fixture
def container(tmp_path, installed):
    made = Container(tmp_path, installed)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
        made.process.wait()


def send(url: str, traffic: Traffic) -> tuple[str, int]:
    sent = traffic.next(time.time_ns(), wrong=0.2)
    answer = httpx.post(
        url + "/v1/traces", content=sent.body, headers={"content-type": "application/x-protobuf"}, trust_env=False
    )
    request = ExportTraceServiceRequest.FromString(sent.body)
    return request.resource_spans[0].scope_spans[0].spans[0].trace_id.hex(), answer.status_code


@needs_sandbox
@pytest.mark.parametrize("user", [None, 1000770000], ids=["the image's user", "any other user"])
def test_it_serves_on_a_read_only_root_and_writes_only_where_it_may(container, user):
    container.start(user=user)
    traffic = Traffic(1)
    assert [send(container.otlp, traffic)[1] for _ in range(5)] == [200] * 5
    assert container.settled()["seen"] == 5
    status = Path(f"/proc/{container.process.pid}/status").read_text()
    assert re.search(rf"^Uid:\t({user or 65532})\t", status, re.MULTILINE)
    assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
    assert container.end() == 0
    assert {path.name.split(".")[0] for path in container.state.rglob("*") if path.is_file()} == {"sidejudge"}


@needs_sandbox
def test_nothing_else_can_be_written(container):
    tried = ["/", "/opt/sidejudge", "/etc", "/etc/sidejudge", "/usr", "/usr/local/bin"]
    code = (
        "import pathlib,json\n"
        "def writes(folder):\n"
        "    try: pathlib.Path(folder, 'x').write_text('x'); return True\n"
        "    except OSError: return False\n"
        f"print(json.dumps({{f: writes(f) for f in {[*tried, '/tmp', STATE]!r}}}))"
    )
    written = json.loads(container.run("python", "-P", "-c", code).stdout)
    assert written == {**dict.fromkeys(tried, False), "/tmp": True, STATE: True}


@needs_sandbox
def test_the_health_check_tells_a_running_monitor_from_none(container):
    listen = container.api.removeprefix("http://")
    check = [part.replace("127.0.0.1:8790", listen) for part in image().healthcheck]
    assert check != image().healthcheck
    assert container.run(*check).returncode != 0
    container.start()
    assert container.run(*check).returncode == 0


@needs_sandbox
def test_doctor_finds_nothing_to_complain_of(container):
    told = container.run(*image().entrypoint, "doctor")
    assert told.returncode == 0, told.stdout


@needs_sandbox
def test_sigterm_and_sigkill_two_seconds_later_under_load_lose_nothing_that_was_acknowledged(container):
    container.start()
    acknowledged: list[str] = []
    stop = threading.Event()

    def keep_sending(seed: int) -> None:
        traffic = Traffic(seed)
        while not stop.is_set():
            try:
                trace_id, status = send(container.otlp, traffic)
            except httpx.HTTPError:
                continue
            if status == 200:
                acknowledged.append(trace_id)

    senders = [threading.Thread(target=keep_sending, args=(seed,)) for seed in range(3)]
    for sender in senders:
        sender.start()
    time.sleep(1.0)
    container.end(grace_s=2.0)
    stop.set()
    for sender in senders:
        sender.join()
    container.start()
    container.settled()
    assert acknowledged
    told = Counter()
    for trace_id in acknowledged:
        story = httpx.get(f"{container.api}/v1/traces/{trace_id}", trust_env=False)
        assert story.status_code == 200, trace_id
        told[story.json()["reason"]] += 1
    assert set(told) == {"scored"}, told


def test_the_environment_is_small_and_holds_no_installer(installed):
    size = sum(path.stat().st_size for path in installed.rglob("*") if path.is_file() and not path.is_symlink())
    assert size < 100 * 10**6
    assert not list(installed.glob("bin/pip*"))
    assert not (installed / "lib" / "python3.11" / "site-packages" / "pip").exists()


def test_the_dockerfile_copies_what_exists_and_what_the_build_is_given():
    admitted = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        word
        for line in image().stages[0].splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
    }
    assert copied == admitted
    assert all((ROOT / name).exists() for name in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) <= copied


def test_the_image_runs_as_a_number_and_isolated():
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", image().user)
    assert image().entrypoint == ["python", "-P", "-m", "monitor"]
    assert image().healthcheck[:2] == ["python", "-P"]
    assert set(image().exposed) == {"4318", "8790"}
    assert not any(re.match(r"(apt|apk)", line) for line in image().stages[-1].splitlines())
