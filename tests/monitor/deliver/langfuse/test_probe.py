"""Who answers where a configuration says that Langfuse is, and what a person can do about it."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from monitor.config.langfuse import LangfuseProject
from monitor.deliver.langfuse.probe import introduction
from tests.fakes.langfuse.server import (
    PUBLIC_KEY,
    SECRET_KEY,
    FakeLangfuse,
    database_away,
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
def test_the_remedy_fits_what_is_wrong(fault, remedy):
    with FakeLangfuse() as fake:
        fake.standing_fault = fault
        project = LangfuseProject(
            base_url=fake.base_url, public_key=SecretStr(PUBLIC_KEY), secret_key=SecretStr(SECRET_KEY)
        )
        found, told = introduction("sinks.langfuse", project)
    assert told.startswith(remedy) if remedy else told == ""
    assert project.base_url in found


def test_wrong_keys_are_told_apart_from_a_wrong_address():
    with FakeLangfuse() as fake:
        project = LangfuseProject(
            base_url=fake.base_url, public_key=SecretStr(PUBLIC_KEY), secret_key=SecretStr("sk-wrong")
        )
        assert introduction("sinks.langfuse", project)[1].startswith("check sinks.langfuse.public_key")
    assert introduction("sinks.langfuse", project)[1].startswith("check sinks.langfuse.base_url, and that this machine")
