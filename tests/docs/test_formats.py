"""The pages of the formats name every field that there is."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from sidejudge.monitor.cli import COMMANDS, main
from sidejudge.monitor.cli.errors import CALL, DATA
from sidejudge.monitor.cli.status import EXIT_CODES
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


def exit_codes() -> dict[str, list[str]]:
    """The table: by command what 1 means, and what other codes mean."""
    text = (ROOT / "docs" / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines() if row.startswith("| ")]
    return {name: cells for head, _, *cells in rows for name in re.findall(r"`([\w-]+)", head)}


def loaded_names(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def test_the_table_of_exit_codes_names_only_commands_that_there_are() -> None:
    assert exit_codes().keys() <= COMMANDS.keys()


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"serve", "demo"}))  # a part that ends, ends these with 1
def test_the_table_says_what_1_means_for_every_command_that_ends_with_it_and_for_no_other(command: str) -> None:
    module = COMMANDS[command][0].partition(":")[0].replace(".", "/")
    names = loaded_names(ROOT / f"{module}.py")
    stated = bool(exit_codes().get(command, [""])[0])
    assert stated == bool(names & {"DATA", "EXIT_CODES"}), f"{command}: mend docs/reference/exit-codes.md"


def test_the_table_states_the_codes_of_a_status() -> None:
    one, other = exit_codes()["status"]
    stated = {
        "healthy": 0,
        one: 1,
        **{name.replace(" ", "_"): int(n) for n, name in re.findall(r"(\d): (\w.*?)(?:;|$)", other)},
    }
    assert stated.pop("no_monitor_answers") == CALL
    assert stated == EXIT_CODES


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", "bad.yaml"], CALL), (["score", "bad.jsonl", "--out", "-"], DATA),
        (["try", "answer", "bad.jsonl"], CALL), (["inspect", "bad.json"], CALL), (["gate", "none.jsonl"], CALL),
        (["status", "--url", "http://127.0.0.1:1"], CALL), (["schema", "--case"], 0), (["nothing"], CALL),
    ],
)  # fmt: skip
def test_commands_end_as_the_table_says(
    arguments: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("bad.yaml", "bad.jsonl", "bad.json"):
        (tmp_path / name).write_text("[1\n")
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == code, done.output
