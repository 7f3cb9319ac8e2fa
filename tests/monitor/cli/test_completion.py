"""Completion: each shell gets its script, and the script's question is answered with commands and options."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from sidejudge.monitor.cli import main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_asks_sidejudge(call, shell):
    done = call("completion", shell)
    assert done.exit_code == 0, done.stderr
    assert "_SIDEJUDGE_COMPLETE" in done.stdout
    assert f"completion {shell}" in done.stdout


@pytest.mark.parametrize(
    ("words", "at", "expected"),
    [("sidejudge sc", "1", "plain,scorecard"), ("sidejudge tail --re", "2", "plain,--reason")],
)
def test_commands_and_options_are_completed(words, at, expected):
    environ = {**os.environ, "_SIDEJUDGE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": at}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sidejudge"], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert expected in done.stdout.splitlines()


def test_explain_and_metrics_read_an_alias():
    shown = CliRunner().invoke(main, ["explain", "call-qa"])
    assert "also named" in shown.stdout
    assert shown.stdout.startswith("qa ·")
    assert CliRunner().invoke(main, ["metrics", "--rubric", "call-qa"]).exit_code == 0
