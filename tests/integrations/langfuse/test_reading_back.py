"""That a score is not there has to be answered: what is no page, or not all of it, is no proof."""

from __future__ import annotations

import pytest

from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.integrations.langfuse.existing_scores import existing_scores
from tests.fakes.langfuse.server import Mode, answer, only

DAYS = ("2026-11-18T07:00:00.000Z", "2026-11-19T07:00:00.000Z", "2026-11-20T07:00:00.000Z")


@pytest.mark.parametrize(("path", "v3"), [("/v3/scores", True), ("/v2/scores", False)])
@pytest.mark.parametrize("body", [{}, {"data": None}, [], "OK"], ids=str)
async def test_an_answer_that_is_no_page_is_an_error_and_not_an_absent_score(fake, client, path, v3, body):
    fake.standing_fault = only("GET", path, lambda _: answer(body))
    with pytest.raises(LangfuseError):
        await existing_scores(client(), ["sj-1"], v3=v3)


async def test_rows_beyond_the_first_page_are_read(fake, client):
    fake.mode = Mode.NEW  # it keeps a row of a score for each day
    ids = [f"sj-{number}" for number in range(40)]
    with fake.guard:
        for value, day in enumerate(DAYS):
            for name in ids:
                body = {"id": name, "traceId": "t1", "name": "qa_score", "value": float(value), "dataType": "NUMERIC"}
                fake.scores._store({"environment": "default", **body}, day)
    found = await existing_scores(client(), ids, v3=True)
    assert {name: each.row["value"] for name, each in found.items()} == dict.fromkeys(ids, 2.0)
    assert len(fake.requested("GET", "/v3/scores")) == 2


@pytest.mark.parametrize("number", [10**400, -(10**400), 1e308])
async def test_a_number_that_nobody_can_have_written_is_another_value_and_no_error(fake, client, number):
    fake.mode = Mode.NEW
    body = {"id": "sj-1", "traceId": "t1", "name": "qa_score", "value": 1.0, "dataType": "NUMERIC"}
    theirs = {**body, "environment": "default", "metadata": {"coverage": number, "revision": number}}
    with fake.guard:
        fake.scores._store(theirs, DAYS[0])
    found = (await existing_scores(client(), ["sj-1"], v3=True))["sj-1"]
    assert found.revision == 1
    assert found.states({**body, "metadata": {"coverage": 0.9}}) is False
    assert found.states({**body, "metadata": {}}) is True
