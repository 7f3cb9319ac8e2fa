"""What people see: tables aligned everywhere, wrapped and coloured on a terminal only; and progress.

Progress where no terminal is: silent when it is soon done, a line now and then when it is not.
"""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.monitor.cli import terminal
from sidejudge.monitor.cli.status import services_table
from sidejudge.monitor.cli.terminal import _fitted, counted, progress, table, waiting
from tests.forked import Forked
from tests.running import ROOT

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_a_terminal(*arguments: str, columns: int = 80, code: int = 0, **variables: str) -> str:
    """What the command shows on a terminal of this width."""
    ours, theirs = pty.openpty()
    screen = Path(os.ttyname(theirs))
    environ = {"COLUMNS": str(columns), "NO_COLOR": "", "TERM": "", **variables}
    process = Forked(*arguments, env=environ, stdin=screen, stdout=screen, stderr=screen)
    reported, ended = b"", False
    while not ended or select.select([ours], [], [], 0)[0]:
        ended = process.poll() is not None
        if select.select([ours], [], [], 0.02)[0]:
            reported += os.read(ours, 65536)
    os.close(theirs)
    os.close(ours)
    assert process.returncode == code
    return reported.decode().replace("\r\n", "\n")


def test_the_catalogue_fits_a_terminal_and_no_name_is_broken() -> None:
    for columns in (80, 100, 140):
        reported = on_a_terminal("metrics", columns=columns)
        assert "\x1b[" in reported, "colours are for terminals"
        plain = CODES.sub("", reported)
        assert max(map(len, plain.splitlines())) <= columns
        assert {"response_structure_compliance", "domain_term_preservation_rate"} <= set(plain.split())


def test_a_card_goes_on_under_itself() -> None:
    plain = CODES.sub("", on_a_terminal("explain", "factual_accuracy", columns=80))
    assert max(map(len, plain.splitlines())) <= 80
    assert [line for line in plain.splitlines() if line.startswith(" " * 15)]


def test_the_status_fits_eighty_columns_and_a_pipe_gets_all_of_them() -> None:
    each = {
        "status": "insufficient_data", "service": "unknown_service:python", "environment": "production",
        "rubric": "run_health", "pass_ratio": 0.912, "interval_lower": 0.855, "interval_upper": 1.0, "n": 12345,
        "clusters": None, "failures": 1086, "incomplete": 12,
    }  # fmt: skip
    named = each | {"service": "shop-very-long-name-of-a-service-that-somebody-gave-it", "n": 30}
    assert max(map(len, CODES.sub("", services_table([named, each], 80)).splitlines())) <= 80
    narrow = CODES.sub("", services_table([each], 80))
    assert max(map(len, narrow.splitlines())) <= 80
    assert {"production", "run_health", "0.912", "0.855", "12345", "1086,", "12"} <= set(narrow.split())
    whole = CODES.sub("", services_table([each], None))
    assert whole == CODES.sub("", services_table([each], 140))
    assert whole.splitlines()[0].split()[-2:] == ["FAILED", "INCOMPLETE"]


def test_colours_are_left_out_where_nobody_wants_them() -> None:
    for variables, coloured in (({"TERM": "xterm"}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        assert ("\x1b[" in on_a_terminal("rubrics", "show", "nope", code=2, **variables)) is coloured
    assert "\x1b[" not in on_a_terminal("metrics", NO_COLOR="1")


def test_a_pipe_gets_a_line_a_metric_and_no_colours(call) -> None:
    reported = call("metrics").stdout
    assert "\x1b" not in reported
    (line,) = [line for line in reported.splitlines() if line.startswith("keyword_f1 ")]
    assert re.split(r"  +", line) == ["keyword_f1", "0.47", "exact", "good >=0.9, acceptable >=0.85, else fail", "-"]


def test_counts_are_coloured_where_there_is_something_to_count() -> None:
    reported = table(("rubric", "passed", "failed"), [("qa", "3", "0"), ("failed", "0", "12")])
    assert [CODES.findall(line) for line in reported.splitlines()[1:]] == [
        ["\x1b[32m", "\x1b[0m"], ["\x1b[31m", "\x1b[0m"],
    ]  # fmt: skip
    assert CODES.sub("", reported) == "RUBRIC  PASSED  FAILED\nqa           3       0\nfailed       0      12"


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(1, 50)), min_size=1, max_size=6), st.integers(10, 200))
def test_columns_are_made_narrower_only_as_far_as_is_asked_and_allowed(columns, screen) -> None:
    widths, least = [max(pair) for pair in columns], [min(pair) for pair in columns]
    found = _fitted(widths, least, screen)
    total = sum(found) + 2 * (len(found) - 1)
    assert all(low <= now <= before for low, now, before in zip(least, found, widths, strict=True))
    assert total <= screen or found == least
    assert total >= min(screen, sum(widths) + 2 * (len(widths) - 1))
    assert _fitted(widths, least, None) == widths


def test_a_column_of_nothing_is_a_column() -> None:
    assert table(("", "a", ""), [("", "1", ""), ("", "2", "")]) == "\x1b[1m  A\x1b[0m\n  1\n  2"
    assert CODES.sub("", table(("", "a"), [])) == "  A"


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(terminal, "EVERY_S", 0.0)


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
    monkeypatch.setattr(terminal, "EVERY_S", 0.01)
    with waiting("asking\x1b[31m"):
        time.sleep(0.1)
    stated = capsys.readouterr()
    assert stated.out == ""
    assert stated.err.splitlines()[0] == "asking: 0 s so far"


def test_on_a_terminal_what_lasts_is_shown_and_taken_away_again(tmp_path):
    script = """import time
from sidejudge.monitor.cli.terminal import waiting
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
