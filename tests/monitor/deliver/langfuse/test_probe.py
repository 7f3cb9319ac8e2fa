"""Who answers where a configuration says that Langfuse is, and what a person can do about it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from pydantic import SecretStr

from monitor.cli.check import check
from monitor.config.langfuse import LangfuseProject
from monitor.deliver.langfuse.probe import ScoreCounts, introduction
from tests.fakes.langfuse.server import (
    PUBLIC_KEY,
    SECRET_KEY,
    FakeLangfuse,
    Mode,
    database_away,
    login_page,
    proxy_page,
    rate_limited,
)  # fmt: skip

ALL = ScoreCounts(passing=13, most=13)


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        (None, ""),
        (proxy_page(503), "wait, or ask whoever runs it"),
        (database_away(), "wait, or ask whoever runs it"),
        (rate_limited(60), "wait, or ask whoever runs it"),
        (login_page(), "check sinks.langfuse.base_url"),
    ],
)
def test_the_remedy_fits_what_is_wrong(fault, remedy):
    with FakeLangfuse() as fake:
        fake.standing_fault = fault
        project = LangfuseProject(
            base_url=fake.base_url, public_key=SecretStr(PUBLIC_KEY), secret_key=SecretStr(SECRET_KEY)
        )
        found, reported = introduction("sinks.langfuse", project)
    assert reported.startswith(remedy) if remedy else reported == ""
    assert project.base_url in found


def test_wrong_keys_are_told_apart_from_a_wrong_address():
    with FakeLangfuse() as fake:
        project = LangfuseProject(
            base_url=fake.base_url, public_key=SecretStr(PUBLIC_KEY), secret_key=SecretStr("sk-wrong")
        )
        assert introduction("sinks.langfuse", project)[1].startswith("check sinks.langfuse.public_key")
    assert introduction("sinks.langfuse", project)[1].startswith("check sinks.langfuse.base_url, and that this machine")


@pytest.mark.parametrize(
    ("mode", "takes_events", "counts", "stated"),
    [
        (Mode.DUAL, True, ALL, "up to 40 scores a request; 600 requests a minute allow 1,026 traces a minute at 13"),
        (Mode.NEW, False, ALL, "up to 15 scores a request; 600 requests a minute allow 533 traces a minute at 13"),
        (Mode.DUAL, False, ALL, "single scores; 600 requests a minute allow 45 traces a minute at 13 scores a trace"),
        (Mode.DUAL, False, ScoreCounts(2, 13), "allow 294 traces a minute that pass (2 scores each), 45 that fail"),
    ],
)
def test_what_rate_of_traces_the_budget_allows_follows_the_way_that_the_server_takes_scores(
    mode, takes_events, counts, stated
):
    with FakeLangfuse(mode) as fake:
        fake.scores.takes_events = takes_events
        project = LangfuseProject(
            base_url=fake.base_url, public_key=SecretStr(PUBLIC_KEY), secret_key=SecretStr(SECRET_KEY)
        )
        assert stated in introduction("sinks.langfuse", project, counts)[0]


def test_before_a_server_is_asked_both_rates_are_shown(tmp_path):
    path = tmp_path / "sidejudge.yaml"
    path.write_text(
        "routes: [{rubrics: [qa]}]\n"
        "sinks: {langfuse: {base_url: http://127.0.0.1:9, public_key: pk, secret_key: sk, requests_per_minute: 300}}\n"
    )
    shown = CliRunner().invoke(check, [str(path)], catch_exceptions=False).output
    assert "300 requests a minute allow 3,333 traces a minute that pass (2 scores each), 392 that fail" in shown
    assert "where Langfuse takes single scores only, 300 requests a minute allow 147 traces" in shown
