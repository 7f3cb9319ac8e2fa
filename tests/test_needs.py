"""What a run skips, it says in one table."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.needs import Need, table

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]


def test_the_table_counts_each_reason_once_and_says_how_to_have_it() -> None:
    rows = table(Counter({"Skipped: promtool is missing; apt-get install prometheus": 12, "the kernel is old": 1}))
    assert rows == [
        "tests  skipped because      how to run them",
        "   12  promtool is missing  apt-get install prometheus",
        "    1  the kernel is old    not on this machine",
    ]


def test_a_run_ends_with_the_table_and_one_that_skips_nothing_has_none(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "from tests.needs import print_table\n"
        "def pytest_terminal_summary(terminalreporter): print_table(terminalreporter)"
    )
    pytester.makepyfile(
        """
        import pytest
        from tests.needs import Need

        LACKING, HERE = Need("horse", "buy one", None), Need("cart", "build one", "/cart")

        @LACKING.mark
        def test_marked(): raise AssertionError

        def test_asking(): LACKING.path()

        @HERE.mark
        def test_here(): assert HERE.path() == "/cart"
        """
    )
    arguments = [sys.executable, "-P", "-m", "pytest", "-p", "no:randomly", "-o", f"pythonpath={ROOT}"]
    done = pytester.run(*arguments)
    done.assert_outcomes(passed=1, skipped=2)
    done.stdout.fnmatch_lines(["*not run here*", "tests  skipped because*", "    2  horse is missing  buy one"])
    whole = pytester.run(*arguments, "-k", "here")
    whole.stdout.no_fnmatch_line("*not run here*")


def test_what_is_missing_is_named_with_its_remedy() -> None:
    assert Need("horse", "buy one", None).reason == "horse is missing; buy one"
