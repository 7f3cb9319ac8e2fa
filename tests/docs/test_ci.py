"""The GitHub action and the hook of pre-commit do what their users' pages show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sidejudge.monitor.cli import COMMANDS
from tests.docs.blocks import ROOT, blocks

ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
SHOWN = {
    each.title: yaml.safe_load(each.text)
    for each in blocks(ROOT / "docs/how-to/gate-ci.md")
    if each.title.endswith(".yaml")
}
INSTALL, RUN = ACTION["runs"]["steps"]


def step(script, folder, **environ):
    """A step as a runner executes it."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder, capture_output=True, text=True, check=False, timeout=280,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "RUNNER_TEMP": str(folder), "NO_COLOR": "1", **environ},
    )  # fmt: skip


@pytest.fixture
def runner(tmp_path):
    """A runner that has sidejudge installed already."""
    (tmp_path / "sidejudge" / "bin").mkdir(parents=True)
    (tmp_path / "sidejudge" / "bin" / "sidejudge").symlink_to(Path(sys.executable).with_name("sidejudge"))
    (tmp_path / "good.yaml").write_text("sampling: {rate: 0.5}\n")
    (tmp_path / "bad.yaml").write_text("sampling: {rate: 5}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("run", "code"),
    [
        ("check  good.yaml --all", 0),
        ("check\n  good.yaml\n", 0),
        ("check good.yaml\ncheck bad.yaml\n", 2),
        ("check\nbad.yaml", 2),
    ],
)
def test_the_action_runs_the_command_and_ends_as_it_does(runner, run, code):
    done = step(RUN["run"], runner, RUN=run)
    assert done.returncode == code, done.stderr
    assert ("configuration ok" in done.stdout) is (code == 0)
    assert ("--all shows every value" in done.stdout) is (code == 0 and "--all" not in run)


def test_what_the_action_is_given_is_never_evaluated(runner):
    step(RUN["run"], runner, RUN="check good.yaml; touch hit $(touch hit) `touch hit` | touch hit")
    assert not (runner / "hit").exists()
    assert all("${{" not in each["run"] for each in (INSTALL, RUN)), "an expression would be pasted into the script"


@pytest.mark.parametrize(("extras", "asked"), [("", ""), ("judge,checks", "[judge,checks]")])
def test_the_action_installs_its_own_revision_with_the_extras_that_are_asked_for(tmp_path, extras, asked):
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python3"
    # In place of an interpreter that makes an environment: one whose pip writes down what it is to install.
    python.write_text(f"""#!/bin/sh
mkdir -p "$3/bin"
printf '#!/bin/sh\\necho "$@" >> {tmp_path}/asked\\n' > "$3/bin/python"
chmod +x "$3/bin/python"
""")
    python.chmod(0o755)
    done = step(
        INSTALL["run"], tmp_path, EXTRAS=extras, GITHUB_ACTION_PATH="/action",
        PATH=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "asked").read_text() == f"-m pip install --quiet /action{asked}\n"


def test_the_workflow_of_the_page_gives_the_action_what_it_takes():
    steps = SHOWN[".github/workflows/judge.yaml"]["jobs"]["judge"]["steps"]
    used = [each for each in steps if "sidejudge" in each["uses"]]
    assert len(used) > 1
    for each in used:
        assert each["with"].keys() <= ACTION["inputs"].keys()
        assert each["with"]["run"].split()[0] in COMMANDS
    extras = (ROOT / "pyproject.toml").read_text()
    assert all(re.search(rf"^{each['with'].get('extras', 'judge')} = ", extras, re.MULTILINE) for each in used)


@pytest.mark.parametrize(("rate", "code"), [(0.5, 0), (5, 2)])
def test_the_hook_checks_the_configuration_and_fails_as_check_does(tmp_path, rate, code):
    (shown,) = (each for repo in SHOWN[".pre-commit-config.yaml"]["repos"] for each in repo["hooks"])
    assert shown["id"] == HOOK["id"]
    (tmp_path / "sidejudge.yaml").write_text(f"sampling: {{rate: {rate}}}\n")
    program, *words = [*HOOK["entry"].split(), *HOOK["args"]]
    command = [str(Path(sys.executable).with_name(program)), *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=120)
    assert done.returncode == code
    assert not HOOK["pass_filenames"]
    for name in ("sidejudge.yaml", "rubrics/own.yml", "references.jsonl"):
        assert re.search(HOOK["files"], name)
