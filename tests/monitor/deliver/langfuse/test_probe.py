"""Who answers where a configuration says that Langfuse is, and what a person can do about it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from pydantic import SecretStr

from sidejudge.monitor.cli.check import check
from sidejudge.monitor.config.langfuse import LangfuseProject
from sidejudge.monitor.deliver.langfuse.probe import check_server
from tests.fakes.langfuse.server import (
    PUBLIC_KEY,
    SECRET_KEY,
    FakeLangfuse,
    Mode,
    database_away,
    error,
    login_page,
    proxy_page,
    rate_limited,
)  # fmt: skip


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
async def test_the_remedy_fits_what_is_wrong(fault, remedy):
    with FakeLangfuse() as fake:
        fake.standing_fault = fault
        project = LangfuseProject(
            base_url=fake.base_url, public_key=SecretStr(PUBLIC_KEY), secret_key=SecretStr(SECRET_KEY)
        )
        reported = await check_server("sinks.langfuse", project)
    assert reported.remedy.startswith(remedy) if remedy else reported.remedy == ""
    assert project.base_url in reported.found


async def test_wrong_keys_are_told_apart_from_a_wrong_address():
    with FakeLangfuse() as fake:
        project = LangfuseProject(
            base_url=fake.base_url, public_key=SecretStr(PUBLIC_KEY), secret_key=SecretStr("sk-wrong")
        )
        assert (await check_server("sinks.langfuse", project)).remedy.startswith("check sinks.langfuse.public_key")
    assert (await check_server("sinks.langfuse", project)).remedy.startswith(
        "check sinks.langfuse.base_url, and that this machine"
    )


@pytest.mark.parametrize(
    ("mode", "takes_events", "stated"),
    [
        (Mode.DUAL, True, "up to 40 scores a request (POST ingestion); 600 requests a minute allow 3,333 traces"),
        (Mode.NEW, True, "up to 15 scores a request (arrays at POST scores); 600 requests a minute allow 1,731"),
        (Mode.NEW, False, "up to 15 scores a request (arrays at POST scores); 600 requests a minute allow 1,731"),
        (Mode.DUAL, False, "single scores; 600 requests a minute allow 147 traces a minute at 4 scores a trace"),
    ],
)
async def test_what_rate_of_traces_the_budget_allows_follows_the_way_that_the_server_takes_scores(
    mode, takes_events, stated
):
    with FakeLangfuse(mode) as fake:
        fake.scores.takes_events = takes_events
        project = LangfuseProject(
            base_url=fake.base_url, public_key=SecretStr(PUBLIC_KEY), secret_key=SecretStr(SECRET_KEY)
        )
        reported = await check_server("sinks.langfuse", project, 4)
    assert stated in reported.found
    warned = "the time of its delivery" in reported.remedy
    assert (warned, reported.works) == (stated.startswith("single"), True)


@pytest.mark.parametrize("takes_events", [True, False], ids=["batches", "no batches"])
async def test_keys_that_may_not_write_are_found_though_nothing_is_written(takes_events):
    with FakeLangfuse(Mode.DUAL) as fake:
        fake.scores.takes_events = takes_events
        forbidden = error(403, "Access denied")
        fake.standing_fault = lambda request: forbidden(request) if request.method == "POST" else None
        project = LangfuseProject(
            base_url=fake.base_url, public_key=SecretStr(PUBLIC_KEY), secret_key=SecretStr(SECRET_KEY)
        )
        reported = await check_server("sinks.langfuse", project, 4)
    assert "these keys may not write scores (HTTP 403)" in reported.found
    assert not reported.works


def test_before_a_server_is_asked_both_rates_are_shown(tmp_path):
    path = tmp_path / "sidejudge.yaml"
    path.write_text(
        "routes: [{rubrics: [qa]}]\n"
        "sinks: {langfuse: {base_url: http://127.0.0.1:9, public_key: pk, secret_key: sk, requests_per_minute: 300}}\n"
    )
    shown = CliRunner().invoke(check, [str(path)], catch_exceptions=False).output
    assert "of every verdict, as far as it has a value: qa_score, qa_pass" in shown
    rates = "300 requests a minute allow 1,731 traces a minute at 2 scores a trace in arrays of 15 (Langfuse from 4.59)"
    assert rates in shown
    assert "3,333 in batches of 40 (before); where neither is taken 147, one score a request" in shown
