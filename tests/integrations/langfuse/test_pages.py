"""Pages of lists: whatever a server answers with, rows are objects and the number of pages is one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest

from sidejudge.integrations.langfuse.errors import LangfuseError
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
    pages = by_number(Endless(), "v2/scores")  # type: ignore[arg-type]  # it answers one method
    with pytest.raises(LangfuseError, match="more than 1000 pages"):
        [rows async for rows in pages]


class Further:
    """A server whose every page names another one by these cursors."""

    def __init__(self, cursors: Iterable[str]) -> None:
        self._cursors = iter(cursors)

    async def get(self, path: str, query: object) -> Json:
        return {"data": [{"id": "a"}], "meta": {"cursor": next(self._cursors)}}


@pytest.mark.parametrize(
    ("cursors", "cause"),
    [
        (map(str, itertools.count()), "more than 10000 pages"),
        (itertools.cycle("abc"), "gives the same cursor again"),
    ],
)
async def test_a_list_whose_cursors_have_no_end_is_an_error(cursors: Iterable[str], cause: str) -> None:
    pages = by_cursor(Further(cursors), "v3/scores", {})  # type: ignore[arg-type]  # it answers one method
    with pytest.raises(LangfuseError, match=cause):
        [rows async for rows in pages]
    window = Window(from_ns=0, to_ns=10**9)
    with pytest.raises(LangfuseError, match=cause):
        await traces_of_session(Further(cursors), "s", window=window)  # type: ignore[arg-type]  # likewise
