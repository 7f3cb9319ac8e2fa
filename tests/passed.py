"""A run leaves out what an earlier run saw pass, on this machine and of this code, and lists what passes in it.

CI runs the suite twice: on a bare machine, and with all programs and packages. The second run is for the tests that the
first could not run. ``PASSED_TESTS`` names the list, one test a line; each run appends to it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

VARIABLE = "PASSED_TESTS"


class Passed:
    """A plugin of pytest. A test has passed when it was called, and neither that nor its end failed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._passed: dict[str, bool] = {}

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        before = set(self._path.read_text().splitlines()) if self._path.exists() else set()
        known = [item for item in items if item.nodeid in before]
        if known:
            config.hook.pytest_deselected(items=known)
            items[:] = [item for item in items if item.nodeid not in before]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            self._passed[report.nodeid] = report.passed and self._passed.get(report.nodeid, True)

    def pytest_sessionfinish(self) -> None:
        with self._path.open("a") as file:
            file.writelines(f"{test}\n" for test, passed in self._passed.items() if passed)
