"""``--format json`` is JSON for every command that shows something."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from sidejudge.monitor.cli import main
from sidejudge.monitor.cli.serve import _announce_defaults
from sidejudge.monitor.config import resolve


@pytest.mark.parametrize(
    ("arguments", "holds"),
    [
        (["check"], "traces_per_hour"),
        (["explain", "run_health"], "tool_success"),
        (["explain", "tool_success"], "run_health"),
        (["metrics"], "tool_success"),
        (["rubrics", "list"], "faithfulness"),
        (["doctor"], "grade"),
    ],
    ids=" ".join,
)
def test_it_is_one_json_text_and_nothing_else(arguments, holds):
    done = CliRunner().invoke(main, [*arguments, "--format", "json"])
    assert done.exit_code in {0, 1}, done.stderr
    assert holds in json.dumps(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("environ", "warned"),
    [
        ({}, ["sources.otlp.http", "api.listen"]),
        ({"SIDEJUDGE_API__LISTEN": "127.0.0.1:8790"}, ["sources.otlp.http"]),
        ({"SIDEJUDGE_API__LISTEN": "127.0.0.1:1", "SIDEJUDGE_SOURCES__OTLP__HTTP": "127.0.0.1:2"}, []),
    ],
)
def test_a_bare_start_that_everybody_can_reach_is_warned_of(capsys, environ, warned):
    _announce_defaults(resolve(None, environ))
    stated = capsys.readouterr()
    assert "up to 1000 an hour" in stated.out
    for key in ("sources.otlp.http", "api.listen"):
        assert (f"{key} " in stated.err) is (key in warned)
    assert ("SIDEJUDGE_SOURCES__OTLP__HTTP=127.0.0.1:4318" in stated.err) is ("sources.otlp.http" in warned)


def test_whoever_gives_a_configuration_is_not_warned(capsys, tmp_path):
    (tmp_path / "c.yaml").write_text("sampling: {rate: 0.5}")
    _announce_defaults(resolve(tmp_path / "c.yaml", {}))
    assert capsys.readouterr() == ("", "")
