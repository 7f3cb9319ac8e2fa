"""Forks run each test once, report all that one process would, and outlive a test that ends its process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
FILES = {
    "test_one": """
        import os, warnings
        import pytest

        @pytest.fixture(scope="session", autouse=True)
        def lasts(tmp_path_factory):
            yield
            (tmp_path_factory.getbasetemp().parent / f"ended-{os.getpid()}").touch()

        def test_passes(): pass
        def test_kills(): os._exit(7)
        def test_comes_behind(tmp_path): print("printed"); assert not tmp_path.name
        @pytest.fixture
        def breaks(): yield; assert False
        def test_breaks_at_its_end(breaks): pass
        """,
    "test_two": """
        import pytest, warnings
        def test_skips(): pytest.skip("for a reason")
        @pytest.mark.xfail
        def test_xfails(): assert False
        def test_warns(): warnings.warn("beware")
        """,
    "test_three": """
        import time
        import pytest

        @pytest.mark.apart
        @pytest.mark.parametrize(("mine", "others"), [("a", "b"), ("b", "a")])
        def test_meets_the_other(tmp_path_factory, mine, others):
            place = tmp_path_factory.getbasetemp().parent
            (place / f"here-{mine}").touch()
            end = time.monotonic() + 60
            while not (place / f"here-{others}").exists():
                assert time.monotonic() < end, "the other runs only once this one has ended"
                time.sleep(0.01)
        """,
}  # fmt: skip


def test_forks_report_what_one_process_would(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(**FILES)
    base = pytester.path / "base"
    run = pytester.run(
        sys.executable, "-m", "pytest", "-p", "tests.spread", "--forks=2", "-rA", f"--basetemp={base}",
        "-o", f"pythonpath={Path(__file__).parents[1]}", "-o", "markers=apart",
    )  # fmt: skip
    run.assert_outcomes(passed=5, failed=2, errors=1, skipped=1, xfailed=1, warnings=1)
    run.stdout.fnmatch_lines_random([
        "the process that ran it ended: 7", "printed", "*UserWarning: beware", "FAILED test_one.py::test_kills*",
        "FAILED test_one.py::test_comes_behind*", "ERROR test_one.py::test_breaks_at_its_end*",
    ])  # fmt: skip
    assert len(list(base.glob("ended-*"))) == 1, "what lasts for the session ends with the fork that was not killed"
    assert len(list(base.glob("fork*"))) == 3
