"""The release workflow, as far as it can be tried without a registry: its steps exist, and no job has idle rights."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
JOBS = WORKFLOW["jobs"]
SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
"""Those of keepachangelog.com, in its order."""
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def steps(job):
    return [step for step in JOBS[job]["steps"] if "run" in step]


def notes(version):
    return subprocess.run([ROOT / ".ci" / "changelog", version], capture_output=True, text=True, check=False)


def test_every_script_that_it_calls_is_there_and_can_be_run():
    called = {name for job in JOBS for step in steps(job) for name in re.findall(r"\.ci/\w+(?![\w.])", step["run"])}
    assert called == {".ci/audit", ".ci/changelog", ".ci/release", ".ci/run", ".ci/sbom"}
    for name in called:
        assert (ROOT / name).stat().st_mode & 0o111 or name == ".ci/run", name
        is_python = "python" in (ROOT / name).read_text().splitlines()[0]
        shell = (
            [sys.executable, "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())"]
            if is_python
            else ["bash", "-n"]
        )
        assert subprocess.run([*shell, ROOT / name], check=False).returncode == 0, name


def test_nothing_is_published_before_all_is_checked():
    def before(job):
        needed = JOBS[job].get("needs", [])
        direct = [needed] if isinstance(needed, str) else needed
        return {*direct, *(each for name in direct for each in before(name))}

    assert all("check" in before(job) for job in JOBS if job != "check")
    assert "twine check --strict" in steps("distributions")[1]["run"]


@pytest.mark.parametrize("job", JOBS)
def test_a_job_has_only_the_rights_that_it_uses_and_a_limit_of_time(job):
    assert WORKFLOW["permissions"] == {}
    rights = {name for name, right in JOBS[job]["permissions"].items() if right == "write"}
    assert rights == {
        "check": set(), "distributions": {"id-token", "attestations"}, "publish": {"id-token"},
        "images": {"packages", "id-token"}, "announce": {"contents"},
    }[job]  # fmt: skip
    assert JOBS[job]["timeout-minutes"] <= 60


def test_no_secret_is_kept_for_publishing():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert set(re.findall(r"secrets\.(\w+)", text)) == {"GITHUB_TOKEN"}


def test_the_notes_of_a_release_are_its_section_of_the_changelog():
    found = notes(VERSION)
    assert found.returncode == 0
    sections = re.findall(r"^### (.*)", found.stdout, re.MULTILINE)
    assert sections == [each for each in SECTIONS if each in sections]
    assert {"Added", "Fixed"} <= {*sections}
    assert "\n## " not in found.stdout


@pytest.mark.parametrize("version", ["9.9.9", "0.2", "2.0", ".*"])
def test_a_version_without_a_section_is_refused(version):
    found = notes(version)
    assert (found.returncode, found.stdout) == (2, "")
    assert "remedy" in found.stderr
