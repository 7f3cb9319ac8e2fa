"""The pages of the formats name every field that there is."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from monitor.cli import COMMANDS, main
from tests.docs.blocks import ROOT


@pytest.mark.parametrize(
    ("page", "option"), [("cases.md", "--case"), ("verdicts.md", "--verdict"), ("scenarios.md", "--scenario")]
)
def test_a_page_names_every_field_of_its_schema(page: str, option: str) -> None:
    schema = json.loads(CliRunner().invoke(main, ["schema", option]).output)
    text = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert schema["properties"]
    missing = [name for name in schema["properties"] if not re.search(rf"`{name}`|^ *{name}:", text, re.MULTILINE)]
    assert missing == []


def test_the_table_of_exit_codes_names_only_commands_that_there_are() -> None:
    text = (ROOT / "docs" / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    named = {name for row in re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)", row)}
    assert named
    assert named <= COMMANDS.keys()
