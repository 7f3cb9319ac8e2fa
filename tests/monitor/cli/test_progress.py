"""Progress where no terminal is: silent when it is soon done, a line now and then when it is not."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time

import pytest

from sidejudge.monitor.cli import progress as module
from sidejudge.monitor.cli.progress import counted, progress, waiting
from tests.running import ROOT


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(module, "EVERY_S", 0.0)


def test_what_is_soon_done_says_nothing(capsys):
    assert list(counted(range(1000), "traces read")) == list(range(1000))
    with progress(100, "tests") as shown:
        shown.step(50, None)
    assert capsys.readouterr() == ("", "")


def test_what_takes_long_says_how_far_it_is_on_standard_error(capsys, often):
    assert list(counted("ab", "traces read")) == ["a", "b"]
    with progress(200, "tests") as shown:
        shown.step(50, None)
        shown.report("a line\x1b[31m")
    stated = capsys.readouterr()
    assert stated.out == ""
    assert stated.err.splitlines() == ["1 traces read", "2 traces read", "50 of 200 (25%) tests", "a line"]


def test_what_has_no_length_is_announced_only_where_it_lasts(capsys, monkeypatch):
    with waiting("asking"):
        pass
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(module, "EVERY_S", 0.01)
    with waiting("asking\x1b[31m"):
        time.sleep(0.1)
    stated = capsys.readouterr()
    assert stated.out == ""
    assert stated.err.splitlines()[0] == "asking: 0 s so far"


def test_on_a_terminal_what_lasts_is_shown_and_taken_away_again(tmp_path):
    script = """import time
from sidejudge.monitor.cli.progress import waiting
with waiting('asking'):
    time.sleep(1.6)
"""
    master, slave = pty.openpty()
    subprocess.run([sys.executable, "-c", script], stderr=slave, stdout=subprocess.DEVNULL, check=True, cwd=ROOT)
    os.close(slave)
    shown = os.read(master, 65536).decode()
    os.close(master)
    assert "asking" in shown
    assert shown.rstrip().endswith(("\x1b[2K", "\x1b[?25h", "\x1b[1A\x1b[2K"))
