"""Pages: what the monitor shows to people, over the same questions that the API answers. Addresses, no contents."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from http import HTTPStatus
from typing import Annotated, Protocol, cast, get_args

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from dashboards.pages.api_page import api_page
from dashboards.pages.configuration_page import ConfigurationPage, configuration_page
from dashboards.pages.problem_page import problem_page
from dashboards.pages.rendering import undated
from dashboards.pages.status_page import ShownAnomaly, StatusPage, status_page
from dashboards.pages.trace_page import TracePage, trace_page
from dashboards.pages.verdicts_page import VerdictsPage, verdicts_page
from monitor.alerting.observation import Key
from scoring.status.trend import Trend

from .access import AccessRules
from .errors import ProblemError
from .params import position_of, rubric_of, trace_id_of, unknown_trace
from .report import MonitorReport, Passed, VerdictPage, VerdictQuery

_LATEST_FAILURES = 8
_ON_A_PAGE = 50


class PagesView(Protocol):
    """What pages ask of the monitor."""

    @property
    def rubrics(self) -> Sequence[str]:
        """The names of all rubrics, those that the configuration declares too."""

    def status(self) -> MonitorReport:
        """Everything at this moment."""

    async def verdicts(self, query: VerdictQuery, *, contents: bool = False) -> VerdictPage:
        """Verdicts that match, newest first: by time of closing, then trace id, then rubric, all descending.

        Without ``contents`` reasons and details hold nothing that people or models wrote.
        """

    async def trace_page(self, trace_id: str, *, contents: bool) -> TracePage | None:
        """What the page of a trace shows, with its contents or without; None when nothing is known of the trace."""

    async def trends(self) -> Mapping[Key, Trend]:
        """Where each service came from."""

    def configuration(self) -> ConfigurationPage:
        """The configuration in force, secrets struck."""


def add_pages(app: FastAPI, view: PagesView, rules: AccessRules) -> None:
    """Serve the pages. What a person asks for in vain is answered by a page as well."""
    _overview(app, view, rules)
    _verdicts(app, view, rules)
    _traces(app, view, rules)

    @app.get("/configuration", response_class=HTMLResponse, include_in_schema=False)
    async def configuration() -> Response:
        return _page(configuration_page(view.configuration()))

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> Response:
        return _page(api_page(app.openapi()))


def _overview(app: FastAPI, view: PagesView, rules: AccessRules) -> None:
    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def landing(request: Request) -> Response:
        report = view.status()
        latest = VerdictQuery(passed="false", limit=_LATEST_FAILURES)
        failed = await view.verdicts(latest, contents=rules.shows_contents(request))
        return _live(status_page(_status(report, failed, await view.trends())), report.now_ns, request)


def _verdicts(app: FastAPI, view: PagesView, rules: AccessRules) -> None:
    @app.get("/verdicts", response_class=HTMLResponse, include_in_schema=False)
    async def verdicts(  # noqa: PLR0917  # the framework calls it by name
        request: Request,
        service: Annotated[str, Query(max_length=2000)] = "",
        environment: Annotated[str, Query(max_length=2000)] = "",
        rubric: Annotated[str, Query(max_length=200)] = "",
        passed: Annotated[str, Query(max_length=200)] = "",
        cursor: Annotated[str, Query(max_length=200)] = "",
    ) -> Response:
        try:
            query = VerdictQuery(
                service=service or None, environment=environment or None,
                rubric=rubric_of(rubric or None, view.rubrics),
                passed=_passed(passed), after=position_of(cursor or None), limit=_ON_A_PAGE,
            )  # fmt: skip
        except ProblemError as problem:
            return _refused(problem)
        found = await view.verdicts(query, contents=rules.shows_contents(request))
        page = VerdictsPage(
            verdicts=found.verdicts, rubrics=list(view.rubrics),
            next=str(found.next) if found.next else None, cursor=cursor,
            service=service, environment=environment, rubric=rubric, passed=passed, now_ns=view.status().now_ns,
        )  # fmt: skip
        return _page(verdicts_page(page))


def _traces(app: FastAPI, view: PagesView, rules: AccessRules) -> None:
    @app.get("/traces", response_class=HTMLResponse, include_in_schema=False)
    async def find(trace_id: Annotated[str, Query(alias="id", max_length=200)] = "") -> Response:
        try:
            return RedirectResponse(f"/traces/{trace_id_of(trace_id)}", HTTPStatus.SEE_OTHER)
        except ProblemError as problem:
            return _refused(problem)

    @app.get("/traces/{trace_id}", response_class=HTMLResponse, include_in_schema=False)
    async def trace(request: Request, trace_id: str) -> Response:
        try:
            known = trace_id_of(trace_id)
            found = await view.trace_page(known, contents=rules.shows_contents(request))
            if found is None:
                raise unknown_trace(known)
        except ProblemError as problem:
            return _refused(problem)
        # in a thread: a trace may say a great deal, and nobody else is to wait for it
        return _live(await asyncio.to_thread(trace_page, found), found.now_ns, request)


def _status(report: MonitorReport, failed: VerdictPage, trends: Mapping[Key, Trend]) -> StatusPage:
    return StatusPage(
        overall=report.overall, services=report.standings, policy=report.policy,
        window_s=report.window_ns / 1e9, seen=report.seen, open=report.open, ended=report.ended,
        sampling_rate=report.sampling_rate, version=report.version, fingerprint=report.fingerprint,
        now_ns=report.now_ns, started_ns=report.started_ns, failures=failed.verdicts,
        trends={(key.service, key.environment, key.rubric): each for key, each in trends.items()},
        judge=report.judge, agreement=report.agreement, pull=report.pull, late=report.belated,
        exports=report.exports,
        anomalies=[
            ShownAnomaly(kind=each.kind.value, service=each.service, cause=each.cause, remedy=each.remedy)
            for each in report.suspicions
        ],
        receiving=report.receiving, forwarding=report.forwarding, alerts=report.alerts,
    )  # fmt: skip


def _passed(text: str) -> Passed | None:
    if text not in ("", *get_args(Passed)):
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "passed: there is no such outcome", "choose from true, false, none"
        )
    return cast("Passed", text) if text else None


def _page(text: str, code: HTTPStatus = HTTPStatus.OK) -> HTMLResponse:
    # half a surrogate pair, which JSON may have carried, has no UTF-8
    return HTMLResponse(text.encode("utf-8", "replace"), code)


def _live(text: str, now_ns: int, request: Request) -> Response:
    """A page with a tag that stays the same as long as nothing but time has passed; nothing when the caller has it."""
    tag = f'"{hashlib.sha256(undated(text).encode("utf-8", "replace")).hexdigest()[:32]}"'
    headers = {"etag": tag, "date": format_datetime(datetime.fromtimestamp(now_ns // 10**9, UTC), usegmt=True)}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    answer = _page(text)
    answer.headers.update(headers)
    return answer


def _refused(problem: ProblemError) -> HTMLResponse:
    return _page(problem_page(str(problem), problem.remedy), problem.code)
