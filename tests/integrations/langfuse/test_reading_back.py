"""That a score is not there has to be answered: what is no page, or not all of it, is no proof."""

from __future__ import annotations

import pytest

from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.integrations.langfuse.existing_scores import ExistingScore, existing_scores, read_back
from sidejudge.integrations.langfuse.observations import instant_ns
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


BODY = {"id": "sj-1", "name": "qa_score", "value": 0.5, "dataType": "NUMERIC", "comment": "so"}


def stored(metadata=None, **more):
    row = {**BODY, "timestamp": DAYS[0], "metadata": metadata or {}, **more}
    return ExistingScore(at_ns=instant_ns(DAYS[0]), revision=1, row=row)


@pytest.mark.parametrize(
    ("shown", "meant", "within", "same"),
    [
        ({}, {}, 0.0, True), ({"value": 0.5 + 1e-15}, {}, 0.0, True), ({"value": 0.51}, {}, 0.0, False),
        ({"value": 0.51}, {}, 0.02, True), ({"value": "0.5"}, {}, 0.0, False),
        ({"dataType": "BOOLEAN"}, {}, 0.0, False),
        ({"comment": "else"}, {}, 0.0, False), ({"comment": "else"}, {}, 0.1, True),
        ({"comment": ""}, {"comment": None}, 0.0, True), ({"comment": "null"}, {"comment": ""}, 0.0, True),
        ({"value": None, "stringValue": "good", "dataType": "CATEGORICAL"},
         {"value": "good", "dataType": "CATEGORICAL"}, 0.0, True),
        ({"value": 1, "stringValue": "True"}, {"value": 1.0}, 0.0, True),
    ],
)  # fmt: skip
def test_whether_a_score_is_what_would_be_written(shown, meant, within, same):
    assert stored(**shown).states({**BODY, **meant}, within=within) is same


@pytest.mark.parametrize(
    ("shown", "meant", "same"),
    [
        (1, "1", True), ("1", 1.0, True), (0.1 + 0.2, 0.3, True), (None, "null", True), ("", None, True),
        ('{"a": [1, 2]}', {"a": [1, 2]}, True), ([1], [1, 2], False), ([1, 2], [1], False), ([1], 1, False),
        ([1], {"a": 1}, False), ({"a": 1}, 1, False), (1, {"a": 1}, False), ({"a": 1}, {"a": 1, "b": 2}, False),
        ("a", 1, False), (1, "a", False), ("NaN", "NaN", True), (True, "true", True), ("a", "b", False),
    ],
)  # fmt: skip
def test_values_of_metadata_are_compared_by_what_they_mean(shown, meant, same):
    assert stored({"k": shown}).states({**BODY, "metadata": {"k": meant}}) is same


def test_the_number_of_a_revision_and_metrics_are_compared_where_this_writing_is_meant():
    score = stored({"revision": 2, "metrics": "{}"})
    meant = {**BODY, "metadata": {"revision": 3, "metrics": None}}
    assert score.states(meant)
    assert not score.states(meant, whole=True)


@pytest.mark.parametrize(
    ("stated", "read"),
    [(2, 2), ("3", 3), (1, 1), (0, 1), (-4, 1), (2**31, 2**31), (2**31 + 1, 1), ("x", 1), (None, 1), (2.5, 1)],
)
async def test_the_revision_of_a_stored_score(fake, client, stated, read):
    fake.mode = Mode.NEW
    with fake.guard:
        fake.scores._store(
            {"environment": "default", **BODY, "traceId": "t", "metadata": {"revision": stated}}, DAYS[0]
        )
    found = (await existing_scores(client(), ["sj-1"], v3=True))["sj-1"]
    assert (found.revision, found.at_ns, found.written_ms) == (read, instant_ns(DAYS[0]), found.at_ns // 10**6)


class Rows:
    """A server with one score; ``asked`` are the queries."""

    def __init__(self):
        self.asked = []

    async def get(self, path, query):
        self.asked.append((path, dict(query)))
        return {"data": [{"id": "a"}, {"id": "other"}], "meta": {"totalPages": 1}}


@pytest.mark.parametrize(
    ("v3", "fields", "asked"),
    [
        (True, "details", ("v3/scores", {"id": "a,b", "limit": 100, "fields": "details"})),
        (True, "", ("v3/scores", {"id": "a,b", "limit": 100})),
        (False, "details", ("v2/scores", {"scoreIds": "a,b", "limit": 100, "page": 1})),
    ],
)
async def test_scores_are_asked_for_in_the_words_of_either_endpoint(v3, fields, asked):
    server = Rows()
    assert await read_back(server, ["a", "b"], v3=v3, fields=fields) == [{"id": "a"}]
    assert server.asked == [asked]


def test_metadata_of_somebody_else_that_are_nested_without_end_are_others():
    assert stored({"k": "[" * 100_000}).states({**BODY, "metadata": {"k": "v"}}) is False
