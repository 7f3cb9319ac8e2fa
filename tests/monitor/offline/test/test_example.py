"""The example and the page of the format: what they say is so."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from sidejudge.integrations.agents.http import MAX_ANSWER, MAX_ATTEMPTS, MAX_WAIT_S
from sidejudge.integrations.agents.python import MAX_ABANDONED
from sidejudge.monitor.offline.test.judge import FIELDS
from sidejudge.monitor.offline.test.run import UNREACHABLE_LIMIT
from sidejudge.monitor.offline.test.test_file import TEST_FIELDS
from tests.forked import sidejudge

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "reference" / "test-sets.md"


@pytest.mark.parametrize("page", [PAGE, ROOT / "README.md"])
def test_the_command_of_the_page_runs_and_every_test_passes(page: Path) -> None:
    (command,) = re.findall(r"^(?:\.venv/bin/)?sidejudge (test .*desk:answer)$", page.read_text(), re.MULTILINE)
    done = sidejudge(*shlex.split(command), "--format", "json", cwd=ROOT)
    assert (done.returncode, json.loads(done.stdout)["passed"]) == (0, 4), done.stderr


@pytest.mark.parametrize("name", [*TEST_FIELDS, *FIELDS])
def test_the_page_names_every_field(name: str) -> None:
    assert re.search(rf"`{name}`|^ *(- )?{name}:", PAGE.read_text(), re.MULTILINE)


def test_the_page_tells_the_limits_that_hold() -> None:
    reported = PAGE.read_text()
    assert f"At most {MAX_ANSWER // 2**20} MiB" in reported
    assert (MAX_ATTEMPTS, MAX_WAIT_S) == (3, 30)
    assert f"after {MAX_ABANDONED} of them" in reported
    assert UNREACHABLE_LIMIT == 3
    assert "the first three tests" in reported
