"""A second run is for what the first could not run: nothing runs twice, and what did not pass is never left out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.passed import VARIABLE

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[1]
TESTS = """
import os
import pytest

HERE = "PROGRAM" in os.environ

@pytest.fixture
def breaks_at_its_end():
    yield
    assert HERE

def test_passes(): pass

@pytest.mark.skipif(not HERE, reason="the program is missing")
def test_skips(): pass

def test_fails(): assert HERE

def test_breaks(breaks_at_its_end): pass

@pytest.mark.parametrize("of", [1, 2])
def test_of_two(of): assert of == 1 or HERE
"""


@pytest.mark.parametrize("processes", [(), ("-p", "tests.spread", "--forks", "2")], ids=["one process", "two"])
def test_a_run_leaves_out_what_passed_before_and_nothing_else(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, processes: tuple[str, ...]
) -> None:
    passed = pytester.path / "passed"
    monkeypatch.setenv(VARIABLE, str(passed))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(
        f"from pathlib import Path\nfrom tests.passed import Passed\n"
        f"def pytest_configure(config): config.pluginmanager.register(Passed(Path({str(passed)!r})))"
    )
    pytester.makepyfile(TESTS)
    arguments = [sys.executable, "-P", "-m", "pytest", "-o", f"pythonpath={ROOT}", *processes]
    pytester.run(*arguments).assert_outcomes(passed=3, skipped=1, failed=2, errors=1)
    assert {line.partition("::")[2] for line in passed.read_text().splitlines()} == {"test_passes", "test_of_two[1]"}
    monkeypatch.setenv("PROGRAM", "/here")
    pytester.run(*arguments).assert_outcomes(passed=4, deselected=2)
    assert len(passed.read_text().splitlines()) == 6
