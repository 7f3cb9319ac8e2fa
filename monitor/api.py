"""API: the monitor over HTTP: probes, metrics, status, verdicts, a trace's story, and two pages for people.

It only reads. There is no CORS: a page of another origin has no business here. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, Protocol, TypeAlias

import orjson
from fastapi import Depends, FastAPI, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse

from dashboards.api_page import api_page
from dashboards.page import StatusPage, status_page
from scoring.judge_metrics import available_metrics
from scoring.rubrics import RUBRICS
from scoring.verdict import State

from .alerts.answers import AlertBody, BoardBody, ConditionBody
from .answers import AvailableMetricsBody, ProblemBody, StatusBody, TraceBody, VerdictsBody
from .config.errors import nearest
from .problems import ProblemError, SecurityHeaders, explain_errors
from .report import Passed, Position, Report, VerdictPage, VerdictQuery

PROBES = frozenset({"/livez", "/readyz", "/startupz"})
MAX_LIMIT = 1000
"""Verdicts on one page, at most."""
_LATEST_FAILURES = 8
_TRACE_ID = "^[0-9a-fA-F]{32}$"
_Responses: TypeAlias = dict[int | str, dict[str, Any]]
_WRONG: _Responses = {422: {"model": ProblemBody, "description": "The request is wrong; the body says how."}}


class MonitorView(Protocol):
    """What the API may ask of the monitor. It is asked on the event loop; only the store may make it wait."""

    def live(self) -> bool:
        """Whether the process works; when not, it should be restarted."""

    def ready(self) -> bool:
        """Whether it takes traces in."""

    def started(self) -> bool:
        """Whether its start is over."""

    def status(self) -> Report:
        """Everything at this moment."""

    async def verdicts(self, query: VerdictQuery) -> VerdictPage:
        """Verdicts that match, newest first: by time of closing, then trace id, then rubric, all descending."""

    async def story(self, trace_id: str, *, caller: str | None) -> Mapping[str, object] | None:
        """What is known of a trace (32 lower-case hex digits), None when nothing is.

        ``caller`` is the address that asks: whether it is shown contents depends on it.
        """

    def metrics(self, accept: str) -> tuple[bytes, str]:
        """The metrics and their content type, as the ``Accept`` header wants them."""


def create_app(view: MonitorView, *, version: str = "0") -> FastAPI:
    """The API over a view of the monitor."""
    app = FastAPI(
        title="sidejudge",
        version=version,
        summary="An online monitor for LLM applications: judged traces, pass ratios, status.",
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(SecurityHeaders)
    explain_errors(app)
    _probes(app, view)
    _catalogue(app)
    _questions(app, view)
    _pages(app, view)
    return app


def _probes(app: FastAPI, view: MonitorView) -> None:
    bad: _Responses = {503: {"description": "No.", "content": {"text/plain": {}}}}

    formats: _Responses = {200: {"content": {"application/openmetrics-text": {"schema": {"type": "string"}}}}}

    def answer(yes: bool, no: str) -> Response:  # noqa: FBT001  # the answer is all there is
        return PlainTextResponse("ok\n" if yes else f"{no}\n", HTTPStatus.OK if yes else HTTPStatus.SERVICE_UNAVAILABLE)

    @app.get("/livez", response_class=PlainTextResponse, responses=bad, tags=["probes"])
    async def livez() -> Response:
        """Whether the process works. When it does not, it should be restarted."""
        return answer(view.live(), "not live: a part of the monitor has ended; the log says which")

    @app.get("/readyz", response_class=PlainTextResponse, responses=bad, tags=["probes"])
    async def readyz() -> Response:
        """Whether traces are taken in."""
        return answer(view.ready(), "not ready: traces are not taken in; the log says why")

    @app.get("/startupz", response_class=PlainTextResponse, responses=bad, tags=["probes"])
    async def startupz() -> Response:
        """Whether the start is over, what was left open by the last run included."""
        return answer(view.started(), "not started: what the last run left open is being resumed")

    @app.get("/metrics", response_class=PlainTextResponse, responses=formats, tags=["probes"])
    async def metrics(request: Request) -> Response:
        """Prometheus metrics, as OpenMetrics 1.0 where it is accepted, else in the classic text format."""
        body, content_type = view.metrics(",".join(request.headers.getlist("accept")))
        return Response(body, headers={"content-type": content_type})


def _catalogue(app: FastAPI) -> None:
    @app.get("/config/available-metrics", response_model=AvailableMetricsBody, tags=["config"])
    async def available(request: Request) -> Response:
        """The metrics of `agent`, opt-in included: what each measures, its default weight, what each score means."""
        return _json(available_metrics(), request)


def _questions(app: FastAPI, view: MonitorView) -> None:
    @app.get("/v1/status", response_model=StatusBody, tags=["v1"])
    async def status() -> Response:
        """Where every service stands under every rubric, the ledger, and what is running."""
        body = StatusBody.of(view.status())
        return Response(body.model_dump_json(), media_type="application/json")

    @app.get("/v1/alerts", response_model=BoardBody, tags=["v1"])
    async def alerts() -> Response:
        """What fires, what is about to, what cannot be told any more, and everything that is watched."""
        report = view.status()
        body = BoardBody(
            alerts=[AlertBody.of(each) for each in report.alerts],
            conditions=[ConditionBody.of(each) for each in report.conditions],
        )
        return Response(body.model_dump_json(), media_type="application/json")

    @app.get(
        "/v1/verdicts", response_model=VerdictsBody, responses=_WRONG, tags=["v1"], dependencies=[Depends(_only_known)]
    )
    async def verdicts(  # noqa: PLR0917  # the framework calls it by name
        request: Request,
        rubric: Annotated[str | None, Query(max_length=200)] = None,
        service: Annotated[str | None, Query(max_length=2000)] = None,
        environment: Annotated[str | None, Query(max_length=2000)] = None,
        passed: Annotated[Passed | None, Query(description="`none`: neither passed nor failed")] = None,
        state: Annotated[State | None, Query()] = None,
        trace_id: Annotated[str | None, Query(pattern=_TRACE_ID, description="32 hex digits")] = None,
        since: Annotated[datetime | None, Query(description="closed at or after this time; UTC unless it says")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 100,
        cursor: Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before")] = None,
    ) -> Response:
        """Verdicts that match all that is given, newest first."""
        page = await view.verdicts(
            VerdictQuery(
                rubric=_rubric(rubric), service=service, environment=environment, passed=passed, state=state,
                trace_id=trace_id.lower() if trace_id else None, since_ns=_nanoseconds(since), limit=limit,
                after=_position(cursor),
            )
        )  # fmt: skip
        found = {"verdicts": list(page.verdicts), "next_cursor": str(page.next) if page.next else None}
        return _json(found, request)

    unknown: _Responses = {404: {"model": ProblemBody, "description": "Nothing is known of this trace."}, **_WRONG}

    @app.get("/v1/traces/{trace_id}", response_model=TraceBody, responses=unknown, tags=["v1"])
    async def trace(request: Request, trace_id: Annotated[str, Path(description="32 hex digits")]) -> Response:
        """What happened to one trace and why, with its verdicts, and what was read of it while its spans are held."""
        known = trace_id.lower()
        if len(known) != 32 or set(known) - set("0123456789abcdef") or known == "0" * 32:
            raise ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "trace_id: a trace id is 32 hex digits, not all of them 0",
                "copy it from a verdict's trace_id, or from the application's trace",
            )
        story = await view.story(known, caller=request.client.host if request.client else None)
        if story is None:
            raise ProblemError(
                HTTPStatus.NOT_FOUND,
                f"nothing is known of trace {known}",
                "it was not drawn by sampling, never arrived, or is past store.retention; "
                f"'sidejudge explain {known} --config FILE' tells what sampling says of it",
            )
        return _json(story, request)


def _pages(app: FastAPI, view: MonitorView) -> None:
    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def landing() -> Response:
        report = view.status()
        failed = await view.verdicts(VerdictQuery(passed="false", limit=_LATEST_FAILURES))
        page = StatusPage(
            overall=report.overall, standings=report.standings, policy=report.policy,
            window_s=report.window_ns / 1e9, seen=report.seen, open=report.open, ended=report.ended,
            sampling_rate=report.sampling_rate, version=report.version, fingerprint=report.fingerprint,
            now=datetime.fromtimestamp(report.now_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
            uptime_s=(report.now_ns - report.started_ns) / 1e9, failures=failed.verdicts, judge=report.judge,
            exports=report.exports, now_s=report.now_ns / 1e9,
            receiving=report.receiving, forwarding=report.forwarding,
            alerts=report.alerts, now_ns=report.now_ns,
        )  # fmt: skip
        return HTMLResponse(status_page(page).encode("utf-8", "replace"))

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(api_page(app.openapi()))


def _only_known(request: Request) -> None:
    """Refuse a parameter that the path does not have: ignored, it would give an answer to another question."""
    known = [str(parameter.alias) for parameter in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in known:
            near = nearest(name[:80], known)
            raise ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"{name[:80]}: there is no such parameter",
                f"did you mean {near}?" if near is not None else f"the parameters are {', '.join(known)}",
            )


def _rubric(name: str | None) -> str | None:
    if name is not None and name not in RUBRICS:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "rubric: there is no such rubric", f"choose from {', '.join(RUBRICS)}"
        )
    return name


def _json(body: Mapping[str, Any], request: Request) -> Response:
    """The body as it is (a thousand verdicts are what they were when they were stored); indented for a browser."""
    person = "text/html" in request.headers.get("accept", "")
    try:
        said = orjson.dumps(body, option=orjson.OPT_INDENT_2 if person else 0)
    except TypeError:  # whole numbers beyond 64 bits, lone surrogates: json can write what orjson refuses
        said = json.dumps(body, indent=2 if person else None).encode()
    return Response(said, media_type="application/json")


def _nanoseconds(at: datetime | None) -> int | None:
    if at is None:
        return None
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    since = aware - datetime.fromtimestamp(0, UTC)
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


def _position(cursor: str | None) -> Position | None:
    if cursor is None:
        return None
    try:
        return Position.parse(cursor)
    except ValueError as error:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"cursor: {error}", "leave it out for the first page"
        ) from None
