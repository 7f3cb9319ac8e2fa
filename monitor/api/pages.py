"""Pages: the monitor's state as HTML for people, from the same queries as the API."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import partial
from http import HTTPStatus
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from sidejudge.dashboards.pages.plain_pages import (
    MetricCard,
    RubricPage,
    TracesPage,
    api_page,
    configuration_page,
    help_page,
    problem_page,
    rubric_page,
    search_page,
    traces_page,
)
from sidejudge.dashboards.pages.rendering import undated
from sidejudge.dashboards.pages.service_page import service_page
from sidejudge.dashboards.pages.status_page import SORTS, StatusChoice, StatusPage, status_page
from sidejudge.dashboards.pages.trace_page import trace_page
from sidejudge.integrations.store.errors import SearchTooLong, StoreError
from sidejudge.monitor.config.rubrics import Card, cards, choice, citation
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.verdict.rubric import Rubric

from .access import AccessRules, is_same_machine
from .compare import add_compare_page
from .contents_token import FILE_PATH, SESSION_PATH
from .errors import ProblemError
from .params import position_of, reason_of, span_of, trace_id_of, unknown_trace
from .shared_result import SharedResults, compressed
from .verdict_pages import add_verdict_pages, html, refused
from .view import MonitorView, ServiceChoice, TracePosition, TraceQuery, VerdictQuery

_LATEST_FAILURES = 8
_GROUPS = 5
_ON_A_PAGE = 50


def add_pages(app: FastAPI, view: MonitorView, rules: AccessRules) -> None:
    """Serve the pages. An error is a page as well."""
    _overview(app, view, rules)
    add_verdict_pages(app, view, rules)
    add_service_page(app, view, rules)
    add_compare_page(app, view)
    add_rubric_page(app, view)
    _traces(app, view, rules)

    @app.get("/configuration", response_class=HTMLResponse, include_in_schema=False)
    async def configuration() -> Response:
        return html(await asyncio.to_thread(configuration_page, view.configuration()))

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> Response:
        return html(await asyncio.to_thread(lambda: api_page(app.openapi())))

    _help(app)


def _help(app: FastAPI) -> None:
    @app.get("/help", response_class=HTMLResponse, include_in_schema=False)
    async def overview(q: Annotated[str, Query(max_length=200)] = "") -> Response:
        return await _document(search_page, q) if q.strip() else await _document(help_page, "")

    @app.get("/help/{address:path}", response_class=HTMLResponse, include_in_schema=False)
    async def document(address: str) -> Response:
        return await _document(help_page, address)


def _overview(app: FastAPI, view: MonitorView, rules: AccessRules) -> None:
    made = SharedResults[_LivePage](view.clock_ns)

    async def make(choice: StatusChoice, *, contents: bool) -> _LivePage:
        report = view.status()
        page = StatusPage(report=report, choice=choice)
        try:
            failed = await view.verdicts(VerdictQuery(passed="false", limit=_LATEST_FAILURES), contents=contents)
            groups = await view.failure_groups(contents=contents)
            trends = {(of.service, of.environment, of.rubric): each for of, each in (await view.trends()).items()}
            page = replace(page, failures=failed.verdicts, groups=groups[:_GROUPS], trends=trends)
        except StoreError as error:  # where services stand is known without it
            app.state.log_unreadable(error)
            page = replace(page, unreadable=True)
        return await asyncio.to_thread(lambda: _LivePage.of(status_page(page), report.now_ns))

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def landing(
        request: Request,
        find: Annotated[str, Query(max_length=200)] = "",
        sort: Annotated[str, Query(max_length=20)] = "",
        services: Annotated[str, Query(max_length=20)] = "",
    ) -> Response:
        contents = rules.shows_contents(request)
        known = sort if sort.removeprefix("-") in SORTS else ""
        choice = StatusChoice(find=" ".join(find.split()), sort=known, whole=services == "all")
        page = await made.get((choice, contents), partial(make, choice, contents=contents))
        return await page.response(request)


def _traces(app: FastAPI, view: MonitorView, rules: AccessRules) -> None:
    @app.get("/traces", response_class=HTMLResponse, include_in_schema=False)
    async def listed(
        request: Request,
        trace_id: Annotated[str | None, Query(alias="id", max_length=200)] = None,
        reason: Annotated[str, Query(max_length=200)] = "",
        service: Annotated[str, Query(max_length=2000)] = "",
        cursor: Annotated[str, Query(max_length=200)] = "",
    ) -> Response:
        try:
            if trace_id is not None:
                return RedirectResponse(f"/traces/{trace_id_of(trace_id)}", HTTPStatus.SEE_OTHER)
            query = TraceQuery(
                reason=reason_of(reason or None), service=service or None, limit=_ON_A_PAGE,
                after=position_of(TracePosition, cursor or None),
            )  # fmt: skip
        except ProblemError as problem:
            return refused(problem)
        found = await view.traces(query, contents=rules.shows_contents(request))
        page = TracesPage(
            traces=found.traces, reasons=[each.value for each in EndReason], reason=reason, service=service,
            next=str(found.next) if found.next else None, cursor=cursor, now_ns=view.clock_ns(),
        )  # fmt: skip
        return html(await asyncio.to_thread(traces_page, page))

    @app.get("/traces/{trace_id}", response_class=HTMLResponse, include_in_schema=False)
    async def trace(request: Request, trace_id: str) -> Response:
        try:
            known = trace_id_of(trace_id)
            found = await view.trace_page(known, contents=rules.shows_contents(request))
            if found is None:
                raise unknown_trace(known)
        except ProblemError as problem:
            return refused(problem)
        # in a thread: a trace may hold a great deal, and nobody else is to wait for it
        page = await asyncio.to_thread(lambda: _LivePage.of(trace_page(found), found.now_ns))
        return await page.response(request)


async def _document(make: Callable[[str], str | None], about: str) -> Response:
    # in a thread: the first page reads them all
    page = await asyncio.to_thread(make, about)
    if page is None:
        return html(
            problem_page("there is no such page in the documentation", "look it up at /help"), HTTPStatus.NOT_FOUND
        )
    return html(page)


@dataclass(frozen=True, slots=True)
class _LivePage:
    """A page that updates itself: its tag stays the same as long as nothing but time has passed."""

    body: bytes
    tag: str
    now_ns: int

    @classmethod
    def of(cls, text: str, now_ns: int) -> _LivePage:
        digest = hashlib.sha256(undated(text).encode("utf-8", "replace")).hexdigest()
        return cls(text.encode("utf-8", "replace"), f'"{digest[:32]}"', now_ns)

    async def response(self, request: Request) -> Response:
        """The page, or nothing when the caller has it already."""
        date = format_datetime(datetime.fromtimestamp(self.now_ns // 10**9, UTC), usegmt=True)
        headers = {"etag": self.tag, "date": date}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        response = await compressed(self.body, "text/html; charset=utf-8", request)
        response.headers.update(headers)
        return response


def add_sessions(app: FastAPI, rules: AccessRules) -> None:
    """Begin sessions, and name the token's file to commands on this machine, which read it if they may."""
    token = rules.token if rules.contents == "loopback" else None

    @app.get(SESSION_PATH, include_in_schema=False)
    async def begin(request: Request, given: Annotated[str, Query(alias="token", max_length=200)] = "") -> Response:
        """Give a browser that has the token a session, and show it the status page, whose address holds no token."""
        if token is None:
            return RedirectResponse("/", HTTPStatus.SEE_OTHER)
        if not token.is_token(given):
            cause, remedy = "this link is not of this monitor's store", "open the link that the monitor printed"
            raise ProblemError(cause, remedy, HTTPStatus.FORBIDDEN)
        response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
        name, value = token.cookie
        response.set_cookie(name, value, httponly=True, samesite="strict", secure=request.url.scheme == "https")
        return response

    @app.get(FILE_PATH, include_in_schema=False)
    async def file(request: Request) -> dict[str, str | None]:
        here = token is not None and is_same_machine(request)
        return {"token_file": str(token.file) if here and token is not None and token.file else None}


def add_service_page(app: FastAPI, view: MonitorView, rules: AccessRules) -> None:
    """Serve the page, made once for all who ask for the same at about the same time."""
    made = SharedResults[str | None](view.clock_ns)

    @app.get("/services", response_class=HTMLResponse, include_in_schema=False)
    async def service(request: Request, choice: Annotated[ServiceChoice, Query()]) -> Response:
        if not choice.rubric:
            return RedirectResponse("/")  # the status page lists them
        contents = rules.shows_contents(request)

        async def make() -> str | None:
            page = await view.service(choice, contents=contents)
            return None if page is None else await asyncio.to_thread(service_page, page)

        try:
            if choice.last:
                span_of(choice.last)
            text = await made.get((*choice.model_dump().values(), contents), make)
        except (ProblemError, SearchTooLong) as problem:
            return refused(problem)
        if text is None:
            return refused(ProblemError("rubric: there is no such rubric", "choose a service on the status page"))
        return html(text)


def add_rubric_page(app: FastAPI, view: MonitorView) -> None:
    """Serve the page."""

    @app.get("/rubrics/{name}", response_class=HTMLResponse, include_in_schema=False)
    async def rubric(name: str) -> Response:
        found = view.rubric(name)
        if found is None:
            error = "there is no such rubric in the configuration"
            return refused(ProblemError(error, "see /configuration for those that there are", HTTPStatus.NOT_FOUND))
        return html(await asyncio.to_thread(lambda: rubric_page(_made_of(found))))


def _made_of(rubric: Rubric) -> RubricPage:
    passes = "by its own conditions" if rubric.pass_mark is None else f"from {rubric.pass_mark:g} on"
    return RubricPage(
        id=rubric.id,
        title=rubric.title,
        facts=[
            ("score", f"{rubric.formula}, from 0 to {rubric.scale:g}"), ("passes", passes),
            ("needs", f"values for {rubric.min_coverage:.0%} of the weight"), ("version", rubric.version),
            *(("without a judge", each) for each in [choice(rubric).without_judge] if each),
        ],
        metrics=[_metric_card(card) for card in cards({rubric.id: rubric})],
    )  # fmt: skip


def _metric_card(card: Card) -> MetricCard:
    metric = card.criterion.metric
    return MetricCard(
        id=metric.id,
        title=metric.title,
        meaning=metric.meaning,
        facts=[
            ("formula", metric.formula), ("weight", card.weight), ("unit", f"{metric.unit}, in {card.range}"),
            ("bands", card.bands), ("blocker", card.blocker),
            ("decided by", ", ".join(method.value for method in metric.methods)),
            ("without a value where", metric.undefined), ("source", citation(metric.source)),
        ],
    )  # fmt: skip
