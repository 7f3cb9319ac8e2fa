"""``help``: commands, keys, pages and words; what remedies name is there."""

from __future__ import annotations

import re

import pytest

from sidejudge.dashboards.help.site import addresses
from sidejudge.monitor.cli import COMMANDS
from sidejudge.monitor.config.validation_messages import walk
from tests.docs.blocks import ROOT


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["alerts.window"], "alerts.window: duration, default `1h`; SIDEJUDGE_ALERTS__WINDOW\n  verdicts of this"),
        (["sampling"], "sampling.traces_per_hour: whole number, default `1000`"),
        (["serve"], "Usage: sidejudge serve [OPTIONS] [FILE]"),
        (["how-to/silence"], "# Silence an alert"),
        (["/help/how-to/silence.md"], "# Silence an alert"),
        (["change", "threshold"], "Choose thresholds for thin traffic\n  how-to/thresholds"),
        (["langchian"], "tutorials/langchain"),
        ([], "Look at a running monitor:"),
        (["", " "], "Look at a running monitor:"),
    ],
)
def test_it_explains_what_is_named(call, words, shown):
    done = call("help", *words)
    assert done.exit_code == 0, done.output
    assert shown in done.stdout


def test_a_misspelt_key_is_answered_by_the_nearest_one(call):
    first, *_ = call("help", "sampling.rat").stdout.splitlines()
    assert first == "there is no key 'sampling.rat'; did you mean sampling.rate?"


def test_words_that_no_page_holds_are_two_lines_and_exit_2(call):
    done = call("help", "zxqvy")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no page is about 'zxqvy'" in done.stderr


def test_every_command_and_every_key_is_explained(call):
    for name in COMMANDS:
        assert call("help", name).stdout.startswith(f"Usage: sidejudge {name}"), name
    keys = {".".join(path) for path, _ in walk()}
    undeclared = [key for key in sorted(keys)[::12] if f"{key}" not in call("help", key).stdout]
    assert undeclared == []


def test_remedies_name_pages_and_keys_that_help_has_and_no_file_of_the_repository():
    known = {*addresses(), *(".".join(path) for path, _ in walk()), *COMMANDS, "KEY", "PAGE"}
    named: list[str] = []
    for package in ("monitor", "integrations", "scoring"):
        for path in (ROOT / package).rglob("*.py"):
            named += re.findall(r"sidejudge help ([\w/.-]+)", path.read_text(encoding="utf-8"))
    assert len(named) > 5
    assert set(named) - known == set()


def test_json_is_short_for_the_format(call):
    assert call("metrics", "--json").stdout == call("metrics", "--format", "json").stdout != call("metrics").stdout
    assert call("check", "--json").stdout == call("check", "--format", "json").stdout
