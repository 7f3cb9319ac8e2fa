"""Progress where no terminal is: silent when it is soon done, a line now and then when it is not."""

from __future__ import annotations

import pytest

from monitor.cli import progress as module
from monitor.cli.progress import counted, progress


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
