"""API: the monitor over HTTP: probes, metrics, status, verdicts, details of traces, and pages for people.

It only reads. There is no CORS, because pages of other origins need no access. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Final, TypeAlias, TypeVar

import orjson
from fastapi import Depends, FastAPI, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse

from sidejudge.scoring.metrics.judge_metrics import available_metrics
from sidejudge.scoring.verdict.verdict import State

from .access import AccessRules, asked_by_a_page
from .compare import add_comparisons
from .errors import ProblemError
from .fleet_route import add_fleet
from .pages import add_pages, add_sessions
from .params import nanoseconds_of, only_known, position_of, reason_of, rubric_of, trace_id_of, unknown_trace
from .problems import explain_errors
from .readers import METRICS
from .reported_route import add_reported
from .schemas import AvailableMetricsBody, StatusBody
from .shared_result import SharedResult, compressed
from .status_schemas import AlertBody, BoardBody, ConditionBody
from .verdict_schemas import JudgeCallsBody, ProblemBody, TraceBody, TracesBody, VerdictsBody
from .view import MonitorView, Passed, Position, TracePosition, TraceQuery, VerdictQuery

MAX_LIMIT = 1000
"""Verdicts on one page, at most."""
_BLOCK: Final = 50
"""Rows of a page that are read at once."""
_Service: TypeAlias = Annotated[
    str | None, Query(max_length=2000, description="`unknown_service`: traces that name none")
]
_Limit: TypeAlias = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
_Cursor: TypeAlias = Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before")]
_TraceId: TypeAlias = Annotated[str, Path(description="32 hex digits")]
_TRACE_ID = "^[0-9a-fA-F]{32}$"
_Responses: TypeAlias = dict[int | str, dict[str, object]]
_Rows: TypeAlias = Sequence[Mapping[str, object]]
_P = TypeVar("_P", bound=TracePosition)
_STRICT = [Depends(only_known)]
_WRONG: _Responses = {422: {"model": ProblemBody, "description": "The request is wrong; the body describes how."}}
_HIDDEN: _Responses = {403: {"model": ProblemBody, "description": "Contents of traces are not shown to this caller."}}


class _Protobuf(Response):
    media_type = "application/x-protobuf"


def create_app(view: MonitorView, *, version: str, rules: AccessRules) -> FastAPI:
    """The API behind its door; the rules say who is shown contents."""
    app = FastAPI(
        title="sidejudge",
        version=version,
        summary="An online monitor for LLM applications: judged traces, pass ratios, status.",
        docs_url=None,
        redoc_url=None,
    )
    app.state.one_block = asyncio.Lock()
    explain_errors(app)
    _probes(app)
    _reloading(app, view)
    add_sessions(app, rules)
    _catalogue(app)
    _queries(app, view, rules)
    add_comparisons(app, view)
    add_fleet(app, view)
    add_reported(app, view)
    _traces(app, view, rules)
    _misdirected(app)
    add_pages(app, view, rules)
    return app


def _no(why: str) -> _Responses:
    return {503: {"description": f"{why} The body says so in a line.", "content": {"text/plain": {}}}}


def _probes(app: FastAPI) -> None:
    """Describe the paths that the door answers itself: nothing here is called."""
    formats: _Responses = {200: {"content": {"application/openmetrics-text": {"schema": {"type": "string"}}}}}

    @app.get("/livez", response_class=PlainTextResponse, responses=_no("A part has ended."), tags=["probes"])
    def livez() -> None:
        """Whether the process works. When it does not, it should be restarted."""

    @app.get("/readyz", response_class=PlainTextResponse, responses=_no("Traces are not taken in."), tags=["probes"])
    def readyz() -> None:
        """Whether traces are taken in."""

    @app.get("/startupz", response_class=PlainTextResponse, responses=_no("The start is not over."), tags=["probes"])
    def startupz() -> None:
        """Whether the start is over, including the open traces of the last run."""

    @app.get(METRICS, response_class=PlainTextResponse, responses=formats, tags=["probes"])
    def metrics() -> None:
        """Prometheus metrics, as OpenMetrics 1.0 where it is accepted, else in the classic text format.

        `name[]`, once or more, names the series that are wanted; without it all are sent.
        """


def _reloading(app: FastAPI, view: MonitorView) -> None:
    @app.post("/-/reload", include_in_schema=False)
    async def reload(request: Request) -> Response:
        """Read the configuration and the rubric files again."""
        if view.reload is None:
            raise ProblemError(
                "the configuration is not reloaded over HTTP", "set api.reload, or send SIGHUP", HTTPStatus.FORBIDDEN
            )
        if (cause := asked_by_a_page(request)) is not None:
            raise ProblemError(cause, "ask from a command line, by the monitor's own address", HTTPStatus.FORBIDDEN)
        outcome = await view.reload()
        status = HTTPStatus.INTERNAL_SERVER_ERROR if outcome.mistakes else HTTPStatus.OK
        return _json(outcome.to_json(), request, status)


def _catalogue(app: FastAPI) -> None:
    @app.get("/config/available-metrics", response_model=AvailableMetricsBody, tags=["config"], dependencies=_STRICT)
    async def available(request: Request) -> Response:
        """The metrics of `agent`, opt-in included: what each measures, its default weight, what each score means."""
        return _json(available_metrics(), request)


def _queries(app: FastAPI, view: MonitorView, rules: AccessRules) -> None:
    shared, board = SharedResult[bytes](view.clock_ns), SharedResult[bytes](view.clock_ns)

    async def status_body() -> bytes:
        report = view.status()
        return await asyncio.to_thread(lambda: StatusBody.of(report).model_dump_json().encode())

    @app.get("/v1/status", response_model=StatusBody, tags=["v1"], dependencies=_STRICT)
    async def status(request: Request) -> Response:
        """The status of every service under every rubric, the outcomes of traces, and what is running."""
        return await compressed(await shared.get(status_body), "application/json", request)

    async def board_body() -> bytes:
        report = view.status()
        return await asyncio.to_thread(
            lambda: (
                BoardBody(
                    alerts=[AlertBody.of(each) for each in report.alerts],
                    conditions=list(map(ConditionBody.read, report.conditions)),
                )
                .model_dump_json()
                .encode()
            )
        )

    @app.get("/v1/alerts", response_model=BoardBody, tags=["v1"], dependencies=_STRICT)
    async def alerts(request: Request) -> Response:
        """Alerts that fire, are pending or are unknown, and everything that is watched."""
        return await compressed(await board.get(board_body), "application/json", request)

    @app.get("/v1/verdicts", response_model=VerdictsBody, responses=_WRONG, tags=["v1"], dependencies=_STRICT)
    async def verdicts(  # noqa: PLR0917  # the framework calls it by name
        request: Request,
        rubric: Annotated[str | None, Query(max_length=200)] = None,
        service: _Service = None,
        environment: Annotated[
            str | None, Query(max_length=2000, description="`unknown`: traces that name none")
        ] = None,
        passed: Annotated[Passed | None, Query(description="`none`: neither passed nor failed")] = None,
        state: Annotated[State | None, Query()] = None,
        trace_id: Annotated[str | None, Query(pattern=_TRACE_ID, description="32 hex digits")] = None,
        since: Annotated[datetime | None, Query(description="closed at or after it; UTC without an offset")] = None,
        limit: _Limit = 100,
        cursor: _Cursor = None,
    ) -> Response:
        """Verdicts that match all that is given, newest first.

        One that is revised while pages are read is then the newest, and may be on none of them: ask again with `since`
        at the time of the first page.
        """
        query = VerdictQuery(
            rubric=rubric_of(rubric, view.rubrics), service=service, environment=environment, passed=passed,
            state=state, trace_id=trace_id.lower() if trace_id else None, since_ns=nanoseconds_of(since),
        )  # fmt: skip
        contents = rules.shows_contents(request)

        async def read(count: int, after: Position | None) -> tuple[_Rows, Position | None]:
            page = await view.verdicts(replace(query, limit=count, after=after), contents=contents)
            return page.verdicts, page.next

        return await _listed("verdicts", read, limit, position_of(Position, cursor), request)


def _traces(app: FastAPI, view: MonitorView, rules: AccessRules) -> None:
    @app.get("/v1/traces", response_model=TracesBody, responses=_WRONG, tags=["v1"], dependencies=_STRICT)
    async def traces(  # noqa: PLR0917  # the framework calls it by name
        request: Request,
        reason: Annotated[
            str | None, Query(max_length=200, description="how they ended: `scored`, `no_rubric`, …")
        ] = None,
        service: _Service = None,
        since: Annotated[datetime | None, Query(description="ended at or after it; UTC without an offset")] = None,
        limit: _Limit = 100,
        cursor: _Cursor = None,
    ) -> Response:
        """Traces that have ended, newest first: how, why, and the verdicts in short.

        One that is revised while pages are read is then the newest, and may be on none of them: ask again with `since`
        at the time of the first page.
        """
        query = TraceQuery(reason=reason_of(reason), service=service, since_ns=nanoseconds_of(since))
        contents = rules.shows_contents(request)

        async def read(count: int, after: TracePosition | None) -> tuple[_Rows, TracePosition | None]:
            page = await view.traces(replace(query, limit=count, after=after), contents=contents)
            return page.traces, page.next

        return await _listed("traces", read, limit, position_of(TracePosition, cursor), request)

    unknown: _Responses = {404: {"model": ProblemBody, "description": "Nothing is known of this trace."}, **_WRONG}

    @app.get("/v1/traces/{trace_id}", response_model=TraceBody, responses=unknown, tags=["v1"], dependencies=_STRICT)
    async def trace(request: Request, trace_id: _TraceId) -> Response:
        """What happened to one trace and why, with its verdicts, and what was read of it while its spans are held."""
        known = trace_id_of(trace_id)
        found = await view.trace(known, contents=rules.shows_contents(request))
        if found is None:
            raise unknown_trace(known)
        return await asyncio.to_thread(_json, found, request)

    @app.get(
        "/v1/traces/{trace_id}/spans", response_class=_Protobuf, responses={**_HIDDEN, **unknown}, tags=["v1"],
        dependencies=_STRICT,
    )  # fmt: skip
    async def spans(request: Request, trace_id: _TraceId) -> Response:
        """The spans of one trace while they are held: an OTLP request in protobuf, as 'try' and 'inspect' read it."""
        rules.require_contents(request, "spans")
        known = trace_id_of(trace_id)
        found = await view.spans(known)
        if found is None:
            error = f"no spans of trace {known} are held"
            remedy = "see store.keep_contents for which stay once late spans can no longer come"
            raise ProblemError(error, remedy, HTTPStatus.NOT_FOUND)
        return _Protobuf(found)

    @app.get(
        "/v1/traces/{trace_id}/judge", response_model=JudgeCallsBody, responses={**_HIDDEN, **_WRONG}, tags=["v1"],
        dependencies=_STRICT,
    )  # fmt: skip
    async def judge_calls(request: Request, trace_id: _TraceId) -> Response:
        """What judges were sent about one trace and what they answered, as far as that is kept."""
        rules.require_contents(request, "calls to judges")
        return await asyncio.to_thread(_json, await view.judge_calls(trace_id_of(trace_id)), request)


def _misdirected(app: FastAPI) -> None:
    @app.post("/v1/traces", include_in_schema=False)
    async def traces() -> Response:
        """A route for exporters that use the address of the API by mistake."""
        remedy = "send them to the address of sources.otlp.http, port 4318 unless it is configured otherwise"
        raise ProblemError("traces are not taken at this address", remedy, HTTPStatus.NOT_FOUND)


def _json(body: Mapping[str, object], request: Request, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """The body as it is (a thousand verdicts are what they were when they were stored); indented for a browser."""
    return Response(_text(body, person=_is_person(request)), status, media_type="application/json")


def _is_person(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _text(body: Mapping[str, object], *, person: bool) -> bytes:
    try:
        return orjson.dumps(body, option=orjson.OPT_INDENT_2 if person else 0)
    except TypeError:  # whole numbers beyond 64 bits, lone surrogates: json can write what orjson refuses
        return json.dumps(body, indent=2 if person else None).encode()


async def _listed(
    name: str, read: Callable[[int, _P | None], Awaitable[tuple[_Rows, _P | None]]], limit: int, after: _P | None,
    request: Request,
) -> Response:  # fmt: skip
    """Rows under a name, and where the next page begins.

    They are read and written a few at a time: as objects a thousand verdicts take ten times the memory of their text.
    Only one request does so at a time: two threads would delay incoming requests twice as long, and be no faster.
    """
    person, texts = _is_person(request), list[bytes]()

    def write(rows: _Rows) -> list[bytes]:
        return [_text(row, person=person).replace(b"\n", b"\n    ") for row in rows]

    goes_on = True
    while goes_on:
        count = min(_BLOCK, limit - len(texts))
        async with request.app.state.one_block:
            rows, after = await read(count, after)
            texts += await asyncio.to_thread(write, rows)
        goes_on = after is not None and len(rows) == count and len(texts) < limit
    body = {name: [*map(orjson.Fragment, texts)], "next_cursor": str(after) if after else None}
    return await asyncio.to_thread(_json, body, request)
