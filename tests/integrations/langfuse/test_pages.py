"""Pages of lists: whatever a server answers with, rows are objects and the number of pages is one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from sidejudge.integrations.langfuse import pages
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.observations import Window, traces_of_session
from sidejudge.integrations.langfuse.pages import by_cursor, by_number, meta_of, page_of, pages_in, rows_of
from sidejudge.scoring.trace.span import Json

BROKEN: list[Json] = [None, 3, "data", [], {}, {"data": None}, {"data": 5}, {"data": {"id": "a"}}]


@pytest.mark.parametrize("body", BROKEN)
def test_an_answer_that_is_no_page_has_no_rows_and_is_refused_where_one_is_needed(body: Json) -> None:
    assert rows_of(body) == []
    with pytest.raises(LangfuseError, match="without data"):
        page_of(body)


def test_rows_that_are_no_objects_are_left_out_and_a_meta_that_is_none_is_empty() -> None:
    assert page_of({"data": [{"id": "a"}, 3, None], "meta": 7}) == ([{"id": "a"}], {})


@pytest.mark.parametrize(("meta", "pages"), [({"totalPages": 4}, 4), ({"totalPages": "4"}, 1), ({}, 1), (5, 1)])
def test_a_list_has_one_page_where_no_number_is_given(meta: Json, pages: int) -> None:
    assert pages_in(meta_of({"meta": meta})) == pages


class Endless:
    """A server whose pages are all full and that names no number of them."""

    async def get(self, path: str, query: object) -> Json:
        return {"data": [{}] * 100}


async def test_a_list_that_is_longer_than_what_is_read_does_not_pass_for_whole() -> None:
    found = by_number(Endless(), "v2/scores")  # type: ignore[arg-type]  # it answers one method
    with pytest.raises(LangfuseError, match="more than 1000 pages"):
        [rows async for rows in found]


class Further:
    """A server whose every page names another one by these cursors."""

    def __init__(self, cursors: Iterable[str]) -> None:
        self._cursors = iter(cursors)

    async def get(self, path: str, query: object) -> Json:
        return {"data": [{"id": "a"}], "meta": {"cursor": next(self._cursors)}}


@pytest.mark.parametrize(
    ("cursors", "cause"),
    [(map(str, itertools.count()), "more than 10000 pages"), (itertools.cycle("abc"), "gives the same cursor again")],
)
async def test_a_list_whose_cursors_have_no_end_is_an_error(cursors: Iterable[str], cause: str) -> None:
    found = by_cursor(Further(cursors), "v3/scores", {})  # type: ignore[arg-type]  # it answers one method
    with pytest.raises(LangfuseError, match=cause):
        [rows async for rows in found]
    window = Window(from_ns=0, to_ns=10**9)
    with pytest.raises(LangfuseError, match=cause):
        await traces_of_session(Further(cursors), "s", window=window)  # type: ignore[arg-type]  # likewise


class Answers:
    """A server that answers with these in turn, errors too; ``asked`` are the queries."""

    def __init__(self, *answers: Json | LangfuseErrorKind) -> None:
        self._answers = iter(answers)
        self.asked: list[Mapping[str, Any]] = []

    async def get(self, path: str, query: Mapping[str, Any]) -> Json:
        self.asked.append(dict(query))
        answer = next(self._answers)
        if isinstance(answer, LangfuseErrorKind):
            raise LangfuseError(answer)
        return answer


def full(rows: int, **meta: Json) -> Json:
    return {"data": [{"id": "a"}] * rows, "meta": dict(meta)}


@pytest.mark.parametrize(
    ("answers", "most", "numbers"),
    [
        ([full(2, totalPages=2), full(100, totalPages=2)], 1000, [1, 2]),
        ([full(0, totalPages=0)], 1000, [1]),
        ([full(100), full(101), full(99)], 1000, [1, 2, 3]),
        ([full(100, totalPages=3)] * 3, 3, [1, 2, 3]),
        # Rows that are deleted meanwhile shift the others to pages that were read.
        ([full(100, totalPages=2, totalItems=101), *[full(0, totalPages=1, totalItems=100)] * 2], 1000, [1, 2, 1]),
        ([full(100, totalPages=3, totalItems=n) for n in (300, 300, 110, 110, 110, 110)], 1000, [1, 2, 3, 1, 2, 3]),
    ],
)
async def test_a_list_is_read_to_its_last_page(monkeypatch, answers, most, numbers):
    monkeypatch.setattr(pages, "_MOST_PAGES", most)
    server = Answers(*answers)
    found = [rows async for rows in by_number(server, "v2/scores", {"name": "a"})]  # type: ignore[arg-type]  # likewise
    assert [len(rows) for rows in found] == [len(rows_of(answer)) for answer in answers]
    assert server.asked == [{"limit": 100, "name": "a", "page": number} for number in numbers]


async def test_of_a_list_that_is_too_long_no_more_is_asked_for_than_is_read(monkeypatch):
    monkeypatch.setattr(pages, "_MOST_PAGES", 3)
    server = Answers(*[full(100, totalPages=4)] * 4)
    with pytest.raises(LangfuseError, match="more than 3 pages"):
        [rows async for rows in by_number(server, "v2/scores")]  # type: ignore[arg-type]  # likewise
    assert len(server.asked) == 3


DEAR, END = LangfuseErrorKind.TOO_EXPENSIVE, full(1)


@pytest.mark.parametrize(
    ("answers", "first", "limits", "ends"),
    [
        ([DEAR, DEAR, DEAR, END], 100, [100, 25, 6, 1], None),
        ([DEAR, DEAR, END], 8, [8, 2, 1], None),
        ([full(25, cursor="b"), DEAR, full(1, cursor="c"), END], 8, [8, 8, 2, 2], None),
        ([DEAR, DEAR, DEAR], 8, [8, 2, 1], DEAR),
        ([DEAR], None, [50], DEAR),
        *(([kind], 8, [8], kind) for kind in LangfuseErrorKind if kind is not DEAR),
        ([full(1, cursor="b"), full(1, cursor="b")], 8, [8, 8], LangfuseErrorKind.NOT_LANGFUSE),
    ],
)
async def test_what_costs_too_much_is_asked_for_in_quarters_and_no_other_error_is(answers, first, limits, ends):
    server = Answers(*answers)
    read, ended = 0, None
    try:
        async for rows in by_cursor(server, "x", {"limit": 50}, shrinking=first):  # type: ignore[arg-type]  # likewise
            read += len(rows)
    except LangfuseError as error:
        ended = error.kind
    assert ([query["limit"] for query in server.asked], ended) == (limits, ends)
    assert read == sum(len(rows_of(answer)) for answer in answers)


@pytest.mark.parametrize(("cursors", "whole"), [("ab", True), ("abc", False)])
async def test_as_many_cursors_are_followed_as_a_list_may_have(monkeypatch, cursors, whole):
    monkeypatch.setattr(pages, "_MOST_CURSORS", 3)
    server = Answers(*(full(1, cursor=each) for each in cursors), END)
    found = by_cursor(server, "v3/scores", {})  # type: ignore[arg-type]  # likewise
    if whole:
        assert len([rows async for rows in found]) == 3
    else:
        with pytest.raises(LangfuseError, match="more than 3 pages"):
            [rows async for rows in found]
    assert [query.get("cursor") for query in server.asked] == [None, "a", "b"]


async def test_an_answer_without_data_and_a_circle_may_be_the_fault_of_what_was_requested():
    for answer in ({"data": 1}, full(1, cursor="a")):
        with pytest.raises(LangfuseError) as raised:
            [rows async for rows in by_cursor(Answers(answer, answer), "x", {})]  # type: ignore[arg-type]  # likewise
        assert raised.value.perhaps_its
