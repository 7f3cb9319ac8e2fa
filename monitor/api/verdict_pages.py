"""Pages of verdicts: searched by their contents, with all choices in the address, and as CSV."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Annotated, get_args

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import Field

from sidejudge.dashboards.pages.plain_pages import IN_A_FILE, VerdictsPage, problem_page, verdicts_page
from sidejudge.integrations.store.errors import SearchTooLong
from sidejudge.scoring.trace.time_units import iso_time
from sidejudge.scoring.verdict.verdict import State

from .access import AccessRules
from .errors import ProblemError
from .params import one_of, only_known, position_of, rubric_of, span_of
from .view import MonitorView, Passed, PlaceChoice, Position, VerdictSearch

_ON_A_PAGE = 50
_COLUMNS = (
    "closed_at", "trace_id", "case_id", "name", "service", "environment", "rubric", "rubric_version", "passed", "state",
    "composite_norm", "coverage", "sampling_probability", "revision", "session_id", "cost_usd", "reason",
    "input_beginning",
)  # fmt: skip
_READ = (*_COLUMNS, "closed_ns")


class VerdictChoice(PlaceChoice):
    """The chosen filters, as in the address; empty for any."""

    passed: str = Field(default="", max_length=200)
    state: str = Field(default="", max_length=200)
    last: str = Field(default="", max_length=20)
    metric: str = Field(default="", max_length=200)
    below: str = Field(default="", max_length=20)
    text: str = Field(default="", max_length=200)
    release: str = Field(default="", max_length=2000)
    prompt: str = Field(default="", max_length=2000)
    model: str = Field(default="", max_length=2000)
    cursor: str = Field(default="", max_length=200)

    def query(self, view: MonitorView, limit: int) -> VerdictSearch:
        """The query that this asks for; ``ProblemError`` where a value is none that there is."""
        last = self.last.strip()
        since_ns = view.clock_ns() - span_of(last) if last else None
        return VerdictSearch(
            service=self.service or None, environment=self.environment or None,
            rubric=rubric_of(self.rubric or None, view.rubrics),
            passed=one_of("passed", self.passed or None, get_args(Passed)),
            state=one_of("state", self.state or None, tuple(State)), metric=self.metric or None,
            text=self.text.strip() or None, release=self.release or None, prompt=self.prompt or None,
            model=self.model or None,
            below=_share(self.below), since_ns=since_ns,
            after=position_of(Position, self.cursor or None), limit=limit,
        )  # fmt: skip


def add_verdict_pages(app: FastAPI, view: MonitorView, rules: AccessRules) -> None:
    """Serve the page and the file. Both take the same parameters."""

    @app.get("/verdicts", response_class=HTMLResponse, include_in_schema=False)
    async def verdicts(request: Request, chosen: Annotated[VerdictChoice, Query()]) -> Response:
        try:
            found = await view.search(chosen.query(view, _ON_A_PAGE), contents=rules.shows_contents(request))
        except (ProblemError, SearchTooLong) as problem:
            return refused(problem)
        page = VerdictsPage(
            verdicts=found.verdicts, rubrics=list(view.rubrics), next=str(found.next) if found.next else None,
            counts=found.counts, capped=found.capped, now_ns=view.clock_ns(), cursor=chosen.cursor,
            failing_of=found.failing_of,
            chosen={name: value for name, value in chosen.model_dump().items() if name != "cursor"},
        )  # fmt: skip
        return html(await asyncio.to_thread(verdicts_page, page))

    @app.get("/verdicts.csv", include_in_schema=False, dependencies=[Depends(only_known)])
    async def table(request: Request, chosen: Annotated[VerdictChoice, Query()]) -> Response:
        try:
            query = chosen.query(view, IN_A_FILE)
            found = await view.search(query, contents=rules.shows_contents(request), counted=False, fields=_READ)
        except (ProblemError, SearchTooLong) as problem:
            return refused(problem)
        body = await asyncio.to_thread(lambda: csv_of(found.verdicts).encode("utf-8", "replace"))
        named = {"content-disposition": 'attachment; filename="verdicts.csv"'}
        return Response(body, media_type="text/csv; charset=utf-8", headers=named)


def csv_of(verdicts: Iterable[Mapping[str, object]]) -> str:
    """Verdicts as CSV with a head; a cell that a spreadsheet would take for a formula begins with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for verdict in verdicts:
        at = verdict.get("closed_ns")
        shown = {**verdict, "closed_at": iso_time(at) if isinstance(at, int) else ""}
        writer.writerow([_cell(shown.get(column)) for column in _COLUMNS])
    return text.getvalue()


def html(text: str, code: HTTPStatus = HTTPStatus.OK) -> HTMLResponse:
    """A page as it is sent."""
    # half a surrogate pair, which JSON may have carried, has no UTF-8
    return HTMLResponse(text.encode("utf-8", "replace"), code)


def refused(problem: ProblemError | SearchTooLong) -> HTMLResponse:
    """The page for a request that cannot be met."""
    if isinstance(problem, SearchTooLong):
        return html(problem_page(str(problem), "try again, or see the log"), HTTPStatus.SERVICE_UNAVAILABLE)
    return html(problem_page(str(problem), problem.remedy), problem.code)


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        line = " ".join(value.split())
        return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line
    return "" if value is None else value


def _share(below: str) -> float | None:
    if not below.strip():
        return None
    try:
        share = float(below)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ProblemError("below: cannot be read", "write a number from 0 to 1")
    return share
