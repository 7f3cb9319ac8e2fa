"""The wheel alone: built, installed outside the repository, and everything that a newcomer calls first works."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

import httpx
import pytest

from tests.needs import HATCHLING
from tests.running import free_port

ROOT = Path(__file__).parents[2]
pytestmark = HATCHLING.mark


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The command of an environment that holds the wheel; what it depends on is borrowed from this one."""
    folder = tmp_path_factory.mktemp("wheel")
    made = subprocess.run(
        [sys.executable, "-c", f"import hatchling.build as b; print(b.build_wheel({str(folder)!r}))"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    wheel = folder / made.stdout.split()[-1]
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel], check=True
    )
    packages = next((folder / "env" / "lib").glob("python*")) / "site-packages"
    (packages / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    (folder / "elsewhere").mkdir()
    return folder / "env" / "bin" / "sidejudge", folder / "elsewhere"


def environ(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SIDEJUDGE_", "PYTHON"))}
    return {**kept, "PYTHONUNBUFFERED": "1", **more}


def run(installed, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command, folder = installed
    return subprocess.run(
        [command, *arguments], cwd=folder, env=environ(**more), capture_output=True, text=True, timeout=90, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "stated"),
    [
        (["--help"], "Commands:"),
        (["--version"], "sidejudge "),
        (["check"], "configuration ok"),
        (["explain", "run_health"], "run_health"),
        (["rubrics", "list"], "faithfulness"),
        (["schema", "--case"], "model_output"),
        (["init", "--yes", "--out", "init.yaml", "--compose", "--kubernetes"], "written: init.yaml"),
        (["export", "dashboards", "--to", "dashboards"], ""),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_commands_that_need_no_monitor_work_from_the_wheel(installed, arguments, stated):
    done = run(installed, *arguments)
    assert done.returncode == 0, done.stderr
    assert stated in done.stdout


def test_its_files_are_its_own(installed):
    command, folder = installed
    names = "monitor, scoring, integrations, dashboards, sidejudge"
    found = subprocess.run(
        [command.with_name("python"), "-P", "-c", f"import {names}; print([m.__file__ for m in ({names})])"],
        cwd=folder, env=environ(), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert found.count(str(command.parents[1])) == 5, found


def test_a_bare_monitor_serves_its_pages(installed):
    command, folder = installed
    otlp, api = (f"127.0.0.1:{free_port()}" for _ in range(2))
    variables = environ(
        SIDEJUDGE_SOURCES__OTLP__HTTP=otlp, SIDEJUDGE_API__LISTEN=api, SIDEJUDGE_STORE__PATH=str(folder / "s.sqlite")
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([command, "serve"], cwd=folder, env=variables, stdout=log, stderr=log)
    try:
        with httpx.Client(base_url=f"http://{api}", timeout=10, follow_redirects=True) as http:
            end = time.monotonic() + 60
            while not _ready(http):
                assert time.monotonic() < end, (folder / "log").read_text()
                time.sleep(0.1)
            for path in ("/", "/verdicts", "/traces", "/configuration", "/docs", "/help", "/metrics", "/openapi.json"):
                assert http.get(path).status_code == 200, path
    finally:
        process.terminate()
        process.wait(20)


def _ready(http: httpx.Client) -> bool:
    try:
        return http.get("/readyz").status_code == 200
    except httpx.HTTPError:
        return False


def test_the_demo_runs_and_ends_with_what_to_do_next(installed):
    otlp, api = (f"127.0.0.1:{free_port()}" for _ in range(2))
    done = run(installed, "demo", "--otlp", otlp, "--api", api, "--seconds", "4")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.partition("next")[2].splitlines()]
    commands = [words[1] for words in lines if words and words[0].endswith("sidejudge")]  # with its folder off the path
    assert len(commands) == 3
    for command in commands:
        assert run(installed, command, "--help").returncode == 0, command
