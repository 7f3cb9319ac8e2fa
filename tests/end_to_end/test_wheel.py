"""The wheel alone, made from the source distribution and installed outside the repository: what a newcomer calls works.

It is used from the folder of a project that has packages of its own with the names of our rooms.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import time
import venv
from pathlib import Path

import httpx
import pytest

from tests.needs import HATCHLING
from tests.running import free_port

ROOT = Path(__file__).parents[2]
pytestmark = HATCHLING.mark


PLUGIN = ROOT / "tests" / "plugin"
OWN = ("monitor", "scoring", "integrations", "dashboards", "tests")
AGENT = """from monitor import NAME

def answer(case):
    return f"{NAME} answers: {case}"
"""
CONFIG = "rubrics: {own: {metrics: [{id: greets, check: {contains: monitor answers}}]}}\n"


def built(kind: str, source: Path, target: Path) -> Path:
    """A distribution of ``kind`` (``sdist`` or ``wheel``) of the folder ``source``, written to ``target``."""
    made = subprocess.run(
        [sys.executable, "-c", f"import hatchling.build as b; print(b.build_{kind}({str(target)!r}))"],
        cwd=source, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return target / made.stdout.split()[-1]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The unpacked source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built("sdist", ROOT, folder)) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return unpacked


@pytest.fixture(scope="module")
def installed(tmp_path_factory, source):
    """The command of an environment that holds the wheel; what it depends on is borrowed from this one."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel = built("wheel", source, folder)
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    subprocess.run(
        [
            sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-compile", "--no-deps", "--no-index",
            wheel,
        ],
        check=True,
    )  # fmt: skip
    packages = next((folder / "env" / "lib").glob("python*")) / "site-packages"
    (packages / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    project = folder / "project"
    for name in OWN:
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text(f"NAME = {name!r}\n")
    (project / "agent.py").write_text(AGENT)
    (project / "sidejudge.yaml").write_text(CONFIG)
    (project / "tests.yaml").write_text("tests: [{id: one, input: hello}]\n")
    return folder / "env" / "bin" / "sidejudge", project


def environ(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SIDEJUDGE_", "PYTHON"))}
    return {**kept, "PYTHONUNBUFFERED": "1", **more}


def run(installed, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command, folder = installed
    return subprocess.run(
        [command, *arguments], cwd=folder, env=environ(**more), capture_output=True, text=True, timeout=90, check=False
    )


COMMANDS = [
    (["--help"], "Look at a running monitor:"),
    (["--version"], "sidejudge "),
    (["check"], "configuration ok"),
    (["explain", "run_health"], "run_health"),
    (["rubrics", "list"], "faithfulness"),
    (["schema", "--case"], "model_output"),
    (["init", "--yes", "--out", "init.yaml", "--compose", "--kubernetes"], "written: init.yaml"),
    (["export", "dashboards", "--to", "dashboards"], ""),
]
EACH = """import json, sys
from contextlib import redirect_stdout
from io import StringIO
from sidejudge.monitor.cli import main
for sys.argv[1:] in json.loads(sys.argv[1]):
    code, stated = 0, StringIO()
    try:
        with redirect_stdout(stated):
            main()
    except SystemExit as end:
        code = end.code or 0
    print(json.dumps([code, stated.getvalue()]))
"""


def test_commands_that_need_no_monitor_work_from_the_wheel(installed):
    """In one process: a start takes longer than any of them."""
    python = installed[0].with_name("python")
    done = run((python, installed[1]), "-P", "-c", EACH, json.dumps([arguments for arguments, _ in COMMANDS]))
    ends = [json.loads(line) for line in done.stdout.splitlines()]
    assert [code for code, _ in ends] == [0] * len(COMMANDS), done.stderr
    for (arguments, wanted), (_, stated) in zip(COMMANDS, ends, strict=True):
        assert wanted in stated, arguments


def test_the_source_distribution_holds_every_file_that_is_tracked(source):
    listed = subprocess.run(["git", "ls-files", "-s"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("git is missing, or this is no clone")
    rows = [line.split(maxsplit=3) for line in listed.stdout.splitlines()]
    tracked = {path for mode, _, _, path in rows if mode != "120000"}
    links = {path for mode, _, _, path in rows if mode == "120000" and path.startswith("helm/")}
    assert {path for path in tracked if not (source / path).is_file()} == set()
    assert {path for path in links if not (source / path / "Chart.yaml").is_file()} == set()


def test_it_has_one_importable_name(installed):
    command, _ = installed
    packages = next((command.parents[1] / "lib").glob("python*")) / "site-packages"
    there = {path.name for path in packages.iterdir()} - {"borrowed.pth", "_virtualenv.py", "__pycache__"}
    assert {name for name in there if not name.endswith(".dist-info")} == {"sidejudge"}
    assert not any(path.is_symlink() for path in (packages / "sidejudge").iterdir())


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


def test_an_agent_uses_the_packages_of_its_own_project(installed):
    arguments = ("test", "tests.yaml", "--config", "sidejudge.yaml", "--rubric", "own", "--out", "verdicts.jsonl")
    done = run(installed, *arguments, "--agent", "python:agent:answer")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "monitor answers: hello" in (installed[1] / "verdicts.jsonl").read_text()


def test_a_plugin_judges_there(installed, tmp_path):
    _, project = installed
    install = ["install", "-q", "--no-deps", "--no-index", "--target", tmp_path / "plugin"]
    subprocess.run([sys.executable, "-m", "pip", *install, built("wheel", PLUGIN, tmp_path)], check=True)
    (project / "plugin.yaml").write_text("routes: [{rubrics: [acme-support]}]\n")
    (project / "cases.jsonl").write_text('{"case_id": "1", "model_output": "Thank you, it is on its way."}\n')
    arguments = ("score", "cases.jsonl", "--config", "plugin.yaml", "--out", "judged.jsonl")
    done = run(installed, *arguments, PYTHONPATH=str(tmp_path / "plugin"))
    assert json.loads((project / "judged.jsonl").read_text())["state"] == "valid", done.stderr


def test_the_application_s_own_environment_has_both(installed):
    command, project = installed
    program = (
        f"import {', '.join(OWN)}, sidejudge\n"
        f"assert [m.NAME for m in ({', '.join(OWN)})] == {list(OWN)}\n"
        "print(sidejudge.score.__module__, sidejudge.load_config.__module__)\n"
    )
    done = subprocess.run(
        [command.with_name("python"), "-c", program],
        cwd=project, env=environ(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == [
        "sidejudge.monitor.offline.experiment.score_cases",
        "sidejudge.monitor.config.load",
    ], done.stderr
