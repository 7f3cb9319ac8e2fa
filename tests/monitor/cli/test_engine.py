"""``--workers``: how many processes a command's input is worth where nobody says."""

import pytest
from click.testing import CliRunner

from sidejudge.monitor.cli import engine
from sidejudge.monitor.cli.engine import EngineChoice, processors
from sidejudge.monitor.cli.score import score

OPEN = EngineChoice(None, None, None)


@pytest.mark.parametrize(
    ("choice", "size", "workers"),
    [
        (OPEN, 0, 1),
        (OPEN, (16 << 20) - 1, 1),
        (OPEN, 1 << 40, processors()),
        (OPEN, None, None),
        (OPEN._replace(workers=1), 1 << 40, 1),
        (OPEN._replace(engine="ray"), 1 << 40, None),
    ],
    ids=["nothing", "short", "long", "standard input", "one is asked for", "a cluster"],
)
def test_a_long_file_takes_a_process_a_processor_and_what_was_chosen_stays(choice, size, workers):
    assert choice.by_size(size).workers == workers
    assert not OPEN.by_size(0).elsewhere


@pytest.mark.parametrize("given", ["0", "-1", "some", "1.5", ""])
def test_a_number_of_workers_that_is_none_names_both_forms(given):
    done = CliRunner().invoke(score, ["cases.jsonl", "--out", "out", "--workers", given])
    assert done.exit_code == 2
    assert "'auto'" in done.output


def test_auto_is_every_processor_that_this_process_may_use():
    assert engine._Workers().convert("auto", None, None) == processors() >= 1
