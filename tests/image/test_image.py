"""The image's steps, done here: its program runs for anybody, writes where it may, and ends without loss."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
import tomllib
from collections import Counter
from pathlib import Path

import httpx
import pytest

from sidejudge.monitor.demo.traffic import SampleTraffic
from tests.image.container import ANSWERS_S, STATE, Container, send
from tests.image.dockerfile import ROOT, image
from tests.image.sandbox import missing

needs_sandbox = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture
def container(tmp_path, installed):
    made = Container(tmp_path, installed)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
        made.process.wait()


@needs_sandbox
@pytest.mark.parametrize("user", [None, 1000770000], ids=["the image's user", "any other user"])
def test_it_serves_on_a_read_only_root_and_writes_only_where_it_may(container, user):
    container.start(user=user)
    traffic = SampleTraffic(1)
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
    reported = container.run(*image().entrypoint, "doctor")
    assert reported.returncode == 0, reported.stdout


@needs_sandbox
@pytest.mark.parametrize("grace_s", [2.0, 0.0], ids=["two seconds later", "at once"])
def test_sigterm_and_sigkill_under_load_lose_nothing_that_was_acknowledged(container, grace_s):
    container.start()
    acknowledged: list[str] = []
    stop = threading.Event()

    def keep_sending(seed: int) -> None:
        traffic = SampleTraffic(seed)
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
    time.sleep(0.4)
    container.end(grace_s=grace_s)
    stop.set()
    for sender in senders:
        sender.join()
    container.start()
    container.settled()
    assert acknowledged
    reported = Counter()
    for trace_id in acknowledged:
        story = httpx.get(f"{container.api}/v1/traces/{trace_id}", trust_env=False, timeout=ANSWERS_S)
        assert story.status_code == 200, trace_id
        reported[story.json()["reason"]] += 1
    assert set(reported) == {"scored"}, reported


def test_the_environment_is_small_and_holds_no_installer(installed):
    size = sum(path.stat().st_size for path in installed.rglob("*") if path.is_file() and not path.is_symlink())
    assert size < 130 * 10**6, "14 MB of it are PostgreSQL's client"
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
    assert image().entrypoint == ["python", "-P", "-m", "sidejudge"]
    assert image().healthcheck[:2] == ["python", "-P"]
    assert set(image().exposed) == {"4318", "8790"}
    assert not any(re.match(r"(apt|apk)", line) for line in image().stages[-1].splitlines())


def test_no_installer_and_nothing_to_make_one_of_is_left_in_the_base(tmp_path):
    """The command of the Dockerfile, on a folder laid out like the base image's."""
    (command,) = [line.removeprefix("RUN ") for line in image().stages[-1].splitlines() if line.startswith("RUN ")]
    library = tmp_path / "usr/local/lib/python3.11"
    for name in ("pip", "pip-25.0.dist-info", "setuptools", "wheel", "_distutils_hack", "kept"):
        (library / "site-packages" / name).mkdir(parents=True)
    (library / "ensurepip/_bundled").mkdir(parents=True)
    (library / "ensurepip/_bundled/pip-25.0.whl").touch()
    (tmp_path / "usr/local/bin").mkdir()
    for name in ("pip", "pip3", "pip3.11", "python3"):
        (tmp_path / "usr/local/bin" / name).touch()
    command = command.replace("/usr/local", f"{tmp_path}/usr/local").replace("/var/lib", f"{tmp_path}/var/lib")
    command = re.sub(r"&& chown .*", "", command).replace("python3 -c", "false")
    subprocess.run(["bash", "-c", command], check=True)
    left = {path.name for path in (tmp_path / "usr").rglob("*")}
    assert not {name for name in left if name.startswith(("pip", "setuptools", "wheel", "ensurepip", "_distutils"))}
    assert {"kept", "python3"} <= left


def test_the_image_says_what_it_is():
    (labels,) = [line for line in image().stages[-1].splitlines() if line.startswith("LABEL ")]
    stated = set(re.findall(r"org\.opencontainers\.image\.([\w.]+)=", labels))
    assert stated == {"title", "description", "licenses", "version", "revision", "base.name", "base.digest"}
    assert 'licenses="MIT"' in labels
    release = (ROOT / ".ci" / "release").read_text()
    for name in ("VERSION", "REVISION", "BASE_DIGEST"):
        assert f'--build-arg "{name}=' in release
    assert '--build-arg "PYTHON=$base@$base_digest"' in release, "by its digest"
