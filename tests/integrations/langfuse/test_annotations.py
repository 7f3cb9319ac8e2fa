"""What people said is read the same from either endpoint, page by page, and prefills are told from it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from sidejudge.integrations.langfuse.annotations import (
    PAGE,
    listed_scores,
    read_annotations,
    scores_of_others,
    still_there,
    subject_of,
    value_of,
)
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from tests.fakes.langfuse.server import Mode, answer, stamp, too_many

DAY_NS = 86_400 * 10**9
NOW_NS = 1_795_000_000 * 10**9


def at(ns: int) -> str:
    return stamp(datetime.fromtimestamp(ns / 1e9, UTC))


def write(fake, name, value, *, at_ns=NOW_NS - 10**9, called=None, **more):
    kind = "BOOLEAN" if isinstance(value, bool) else "CATEGORICAL" if isinstance(value, str) else "NUMERIC"
    value = float(value) if isinstance(value, bool) else value
    stated = {"traceId": "t1", "dataType": kind, "source": "ANNOTATION", "authorUserId": "ann", "id": name, **more}
    if "sessionId" in more:
        del stated["traceId"]
    with fake.guard:
        fake.scores._store({"environment": "default", "name": called or name, "value": value, **stated}, at(at_ns))


async def read(client, *, v3, since_ns=NOW_NS - DAY_NS, until_ns=NOW_NS):
    pages = read_annotations(client(), since_ns=since_ns, until_ns=until_ns, v3=v3)
    return [each async for page in pages for each in page]


@pytest.mark.parametrize(("mode", "v3"), [(Mode.V3, False), (Mode.DUAL, False), (Mode.DUAL, True), (Mode.NEW, True)])
async def test_either_endpoint_says_the_same(fake, client, mode, v3):
    fake.mode = mode
    write(fake, "passed", True)
    write(fake, "failed", False, observationId="o1")
    write(fake, "stars", 4.5, sessionId="s1")
    write(fake, "verdict", "good", queueId="q1")
    write(fake, "output", "what it should have said", dataType="CORRECTION")
    write(fake, "prefilled", True, authorUserId=None)
    write(fake, "program", 0.5, source="API")
    found = {each.name: each for each in await read(client, v3=v3)}
    stated = {name: (each.value, each.kind, each.subject, each.observation) for name, each in found.items()}
    assert stated == {
        "passed": (1.0, "trace", "t1", None), "failed": (0.0, "trace", "t1", "o1"),
        "stars": (4.5, "session", "s1", None), "verdict": ("good", "trace", "t1", None),
        "output": ("what it should have said", "trace", "t1", None), "prefilled": (1.0, "trace", "t1", None),
    }  # fmt: skip
    assert found["output"].correction
    assert not found["verdict"].correction
    assert found["verdict"].queue == "q1"
    assert [name for name, each in found.items() if each.author is None] == ["prefilled"]


@pytest.mark.parametrize(("mode", "v3"), [(Mode.V3, False), (Mode.NEW, True)])
async def test_pages_are_read_to_the_end_and_only_what_was_asked_for(fake, client, mode, v3):
    fake.mode = mode
    for number in range(2 * PAGE + 1):
        write(fake, f"n{number}", 1, at_ns=NOW_NS - (number + 1) * 10**9)
    write(fake, "before", 1, at_ns=NOW_NS - DAY_NS - 10**9)
    write(fake, "at the end", 1, at_ns=NOW_NS)
    found = await read(client, v3=v3)
    assert [each.name for each in found] == [f"n{number}" for number in range(2 * PAGE + 1)]


async def test_what_is_not_understood_is_left_out(fake, client):
    fake.mode = Mode.NEW
    write(fake, "whole", 1)
    rows = [{"id": "x"}, 3, None, {"id": "y", "name": "n", "value": [1], "subject": {"kind": "trace", "id": "t"}},
            {"id": "z", "name": "n", "value": 1, "subject": {"kind": "experiment", "id": "e"}}]  # fmt: skip
    fake.fails(lambda request: _with_rows(fake._act(request), rows))
    assert [each.name for each in await read(client, v3=True)] == ["whole"]


def _with_rows(act, rows):
    body = json.loads(act.body)
    return answer({**body, "data": [*rows, *body["data"]]})


async def test_a_refusal_in_the_middle_is_told(fake, client):
    fake.mode = Mode.NEW
    for number in range(PAGE + 1):
        write(fake, f"n{number}", 1, at_ns=NOW_NS - (number + 1) * 10**9)
    fake.fails(lambda _: None, lambda _: too_many(1))
    with pytest.raises(LangfuseError) as reported:
        await read(client, v3=True)
    assert reported.value.kind is LangfuseErrorKind.RATE_LIMITED


def test_recorded_annotations_and_corrections_are_read_as_they_were_meant(shared):
    folder = shared / "contracts" / "langfuse-recordings"
    row = json.loads((folder / "score-annotation-list-v3.dual.json").read_text())["response"]["body"]["data"][0]
    assert value_of(row) == 1.0
    row = json.loads((folder / "score-get-v2-correction.dual.json").read_text())["response"]["body"]
    assert value_of(row) == "the corrected output"
    rows = json.loads((folder / "score-list-v2-by-trace-filter.dual.json").read_text())["response"]["body"]["data"]
    assert [value_of(row) for row in rows][:3] == ["pass", 1.0, 0.9]


@pytest.mark.parametrize("value", [10**400, float("nan"), float("-inf"), None, "1"], ids=lambda value: str(value)[:4])
def test_what_is_no_number_is_no_value(value):
    assert value_of({"dataType": "NUMERIC", "value": value}) is None


@pytest.mark.parametrize(("mode", "v3"), [(Mode.V3, False), (Mode.NEW, True)])
async def test_scores_of_a_name_are_read_with_whose_they_are_but_for_our_own(fake, client, mode, v3):
    fake.mode = mode
    many = {"called": "tone", "source": "API"}
    write(fake, "a", "good", observationId="o1", **{**many, "source": "ANNOTATION"})
    write(fake, "b", 0.5, **many | {"authorUserId": None, "metadata": {"evaluator": "ragas"}, "comment": "Flat."})
    write(fake, "c", True, **many | {"authorUserId": None, "source": "EVAL"})
    write(fake, "d", 0.1, **many | {"authorUserId": None})
    write(fake, "ours", 0.2, **many | {"authorUserId": None, "metadata": {"written": "2026-01-01T00:00:00.000Z"}})
    write(fake, "text", "Better so.", dataType="CORRECTION", **many)
    write(fake, "elsewhere", 0.3, sessionId="s1", **many)
    write(fake, "another", 0.3, source="API")
    write(fake, "old", 0.3, at_ns=NOW_NS - 2 * DAY_NS, **many)
    scores = scores_of_others(client(), {"name": "tone"}, since_ns=NOW_NS - DAY_NS, until_ns=NOW_NS, v3=v3)
    found = {(each.value, each.by, each.comment, each.subject, each.observation) async for each in scores}
    assert found == {
        ("good", "ann", None, "t1", "o1"), (0.5, "ragas", "Flat.", "t1", None),
        (1.0, "an evaluator of Langfuse", None, "t1", None), (0.1, None, None, "t1", None),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("row", "on"),
    [
        ({"subject": {"kind": "trace", "id": "t"}}, ("trace", "t", None)),
        ({"subject": {"kind": "trace", "id": 3}}, None),
        ({"subject": {"kind": "session", "id": "s"}}, ("session", "s", None)),
        ({"subject": {"kind": "observation", "id": "o", "traceId": "t"}}, ("trace", "t", "o")),
        ({"subject": {"kind": "observation", "id": "o"}}, None),
        ({"subject": {"kind": "experiment", "id": "e", "traceId": "t"}}, None),
        ({"traceId": "t", "observationId": "o"}, ("trace", "t", "o")),
        ({"traceId": "t", "observationId": "", "sessionId": "s"}, ("trace", "t", None)),
        ({"traceId": None, "sessionId": "s"}, ("session", "s", None)),
        ({"traceId": "", "sessionId": 3}, None),
    ],
)
def test_what_a_score_is_on(row, on):
    assert subject_of(row) == on


class Rows:
    """A server that has these scores, whatever is asked for; ``asked`` are the queries."""

    def __init__(self, *rows):
        self.rows, self.asked = rows, []

    async def get(self, path, query):
        self.asked.append((path, dict(query)))
        return {"data": list(self.rows), "meta": {"totalPages": 1}}


SCORE = {"id": "a", "name": "tone", "dataType": "NUMERIC", "value": 1, "traceId": "t", "source": "API"}


@pytest.mark.parametrize("missing", ["id", "name", "value", "traceId"])
async def test_a_score_that_lacks_what_makes_it_one_is_none(missing):
    server = Rows({**SCORE, missing: None}, SCORE)
    assert [each.id async for each in listed_scores(server, since_ns=0, until_ns=1, v3=False)] == ["a"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [({"name": "tone"}, ["a"]), ({"dataType": "CORRECTION"}, ["c", "c2"]), ({"name": "other"}, ["b"])],
)
async def test_whatever_a_server_answers_only_what_was_meant_is_still_there(filters, found):
    rows = [
        SCORE, {**SCORE, "id": "b", "name": "other"}, {**SCORE, "id": "d", "metadata": {"written": "now"}},
        {**SCORE, "id": "c", "dataType": "CORRECTION", "value": "so", "name": "output"},
        {**SCORE, "id": "e", "traceId": None, "sessionId": "s"}, {**SCORE, "id": "f"},
        {**SCORE, "id": "c2", "dataType": "CORRECTION", "value": "so"},
    ]  # fmt: skip
    there = await still_there(Rows(*rows), [*"abcde", "c2"], filters, v3=False)
    assert [each.id for each in there] == found


@pytest.mark.parametrize(
    ("v3", "path", "more"),
    [(True, "v3/scores", {"fields": "details,subject,annotation"}), (False, "v2/scores", {"page": 1})],
)
async def test_filters_go_to_either_endpoint_in_its_words(v3, path, more):
    server = Rows()
    scores = scores_of_others(server, {"dataType": "CORRECTION", "name": "x"}, since_ns=0, until_ns=1, v3=v3)
    assert [each async for each in scores] == []
    epoch = "1970-01-01T00:00:00.000Z"
    asked = {"dataType": "CORRECTION", "name": "x", "limit": 100, "fromTimestamp": epoch, "toTimestamp": epoch, **more}
    assert server.asked == [(path, asked)]


@pytest.mark.parametrize("name", ["tone", "clear, short", " tone "])
@pytest.mark.parametrize(("mode", "v3"), [(Mode.V3, False), (Mode.NEW, True)])
async def test_scores_of_a_name_are_found_whatever_the_name_is(fake, client, name, mode, v3):
    fake.mode = mode
    for number, called in enumerate((name, "clear", "short", "other")):
        write(fake, str(number), number, source="API", called=called)
    scores = scores_of_others(client(), {"name": name}, since_ns=NOW_NS - DAY_NS, until_ns=NOW_NS, v3=v3)
    assert [each.value async for each in scores] == [0.0]
