"""Errors: responses to requests that cannot be answered, and the headers of every response."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sidejudge.dashboards.pages.plain_pages import problem_page
from sidejudge.dashboards.pages.rendering import security_policy
from sidejudge.integrations.store.errors import StoreCorrupt, StoreError
from sidejudge.scoring.errors import SidejudgeError

log = logging.getLogger("sidejudge.api")
_QUIET_S = 10


class ProblemError(SidejudgeError):
    """A request that cannot be answered: one line of cause, one of remedy, and the status code."""

    def __init__(self, error: str, remedy: str, code: HTTPStatus = HTTPStatus.UNPROCESSABLE_ENTITY) -> None:
        super().__init__(error)
        self.code, self.error, self.remedy = code, error, remedy


class SecurityHeaders:
    """Adds to every response the headers that keep a browser from running or sharing it; answers HEAD as GET."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = [
            (b"content-security-policy", security_policy().encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"x-frame-options", b"DENY"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cache-control", b"no-store"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = scope["type"] == "http" and scope["method"] == "HEAD"

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self._headers]
            elif head:
                message["body"] = b""
            await send(message)

        requested = {**scope, "method": "GET"} if head else scope
        await self._app(requested, receive, with_headers if scope["type"] == "http" else send)


def explain_errors(app: FastAPI) -> None:
    """Give every error of the API the same shape: cause and remedy."""
    app.state.log_unreadable = _log_now_and_then()

    @app.exception_handler(ProblemError)
    async def problem(_: Request, error: ProblemError) -> Response:
        return problem_response(error.code, error.error, error.remedy)

    @app.exception_handler(StoreError)
    async def unreadable(request: Request, error: StoreError) -> Response:
        app.state.log_unreadable(error)
        cause, remedy = "the store cannot be read at the moment", "try again, or see the log"
        if isinstance(error, StoreCorrupt):
            cause, remedy = "the store is damaged", "see the log: it names the command that saves what can be read"
        response = _page_or_json(request, HTTPStatus.SERVICE_UNAVAILABLE, cause, remedy)
        response.headers["retry-after"] = "5"
        return response

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        # Only names and messages: what was sent is not repeated, it may be anything.
        causes = "; ".join(f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors())
        remedy = "correct the parameters named; /docs lists them all"
        return problem_response(HTTPStatus.UNPROCESSABLE_ENTITY, causes, remedy)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        if error.status_code == HTTPStatus.NOT_FOUND:
            cause, remedy = "there is nothing at this path", "/docs lists every path"
            return _page_or_json(request, HTTPStatus.NOT_FOUND, cause, remedy)
        remedy = "every path here answers GET and HEAD and nothing else" if error.status_code == 405 else "see /docs"
        response = problem_response(HTTPStatus(error.status_code), str(error.detail), remedy)
        response.headers.update(error.headers or {})
        return response


def _log_now_and_then() -> Callable[[StoreError], None]:
    """Log why the store could not be read. The cause names a path of this machine, so that no response holds it."""
    logged_s = float("-inf")

    def write(error: StoreError) -> None:
        nonlocal logged_s
        if time.monotonic() - logged_s > _QUIET_S:
            logged_s = time.monotonic()
            log.warning("the store could not be read for a request", extra={"cause": str(error)})

    return write


def _page_or_json(request: Request, code: HTTPStatus, error: str, remedy: str) -> Response:
    """A page for a browser, JSON for everybody else."""
    if "text/html" in request.headers.get("accept", ""):
        return HTMLResponse(problem_page(error, remedy), code)
    return problem_response(code, error, remedy)


def problem_response(code: HTTPStatus, error: str, remedy: str) -> Response:
    """A response with one line of cause and one of remedy, as JSON."""
    return Response(json.dumps({"error": error, "remedy": remedy}), code, media_type="application/json")
