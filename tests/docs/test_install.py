"""What the documentation has people install can be had: each line is resolved against the index, none is installed."""

from __future__ import annotations

import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import click
import pytest

from sidejudge.monitor.cli import COMMANDS, main
from tests.docs.blocks import PAGES, ROOT, blocks
from tests.needs import HATCHLING, NPM, UV_INSTALLER

SHELL = [(page, block) for page in PAGES for block in blocks(page) if block.language == "sh"]
INSTALLED = [(page, line) for page, each in SHELL if each.kind == "install" for line in each.text.splitlines()]
ELSEWHERE = [(page, each) for page, each in SHELL if each.kind == "elsewhere"]


def named(page: Path, what: object) -> str:
    return f"{page.relative_to(ROOT)}:{what}"


@cache
def resolved(*requirements: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "uv", "pip", "install", "--dry-run", "--python", sys.executable, *requirements]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)


@UV_INSTALLER.mark
@HATCHLING.mark
@pytest.mark.parametrize("line", [line for _, line in INSTALLED if line.startswith("pip")])
def test_a_line_that_installs_packages_can_be_resolved(line):
    if resolved("six").returncode:
        pytest.skip("the index of packages is out of reach; connect this machine to one")
    program, verb, *requirements = (word for word in shlex.split(line) if word != "--upgrade")
    assert (program, verb) in {("pip", "install"), ("pipx", "install")}
    found = resolved(*(each.replace("sidejudge[", ".[") for each in requirements))  # which is installed by then
    assert found.returncode == 0, found.stderr


@NPM.mark
@pytest.mark.parametrize("line", [line for _, line in INSTALLED if line.startswith("npm")])
def test_a_line_that_installs_packages_of_node_can_be_resolved(line, tmp_path):
    ask = ["--dry-run", "--no-audit", "--no-fund"]
    done = subprocess.run([*shlex.split(line), *ask], cwd=tmp_path, capture_output=True, text=True, check=False)
    if "ENOTFOUND" in done.stderr or "ECONNREFUSED" in done.stderr:
        pytest.skip("the index of packages is out of reach; connect this machine to one")
    assert done.returncode == 0, done.stderr


def test_whoever_installs_begins_in_a_clone_and_not_with_a_name_that_no_index_has():
    for page, line in INSTALLED:
        assert line.split()[0] in ("pip", "pipx", "npm"), named(page, line)
        assert "sidejudge" not in shlex.split(line), f"{named(page, line)}: write '.', as in a clone"


@pytest.mark.parametrize(("page", "block"), ELSEWHERE, ids=lambda each: getattr(each, "name", ""))
def test_a_block_that_does_not_run_says_why_and_its_commands_exist(page, block):
    assert block.why, named(page, block.line)
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["sidejudge"]:
            _exists(words[1:], named(page, block.line))


def _exists(words: list[str], where: str) -> None:
    """The command is there, and has each option that is written."""
    context = click.Context(main, info_name="sidejudge")
    command: click.Command | None = main
    while isinstance(command, click.Group) and words:
        command, words = command.get_command(context, words[0]), words[1:]
    assert command is not None, where
    options = {name for each in command.params if isinstance(each, click.Option) for name in each.opts}
    assert {word for word in words if word.startswith("--")} <= options, where


def test_a_command_that_is_not_there_is_found():
    with pytest.raises(AssertionError, match="here"):
        _exists(["score", "--nowhere"], "here")
    assert "score" in COMMANDS
