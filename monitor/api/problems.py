"""Problems: every error of the API in the same shape, cause and remedy; a page for a browser."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from sidejudge.dashboards.pages.plain_pages import problem_page
from sidejudge.integrations.store.errors import SearchTooLong, StoreCorrupt, StoreError

from .errors import ProblemError, allowed_methods, problem_body

log = logging.getLogger("sidejudge.api")
_QUIET_S = 10


def explain_errors(app: FastAPI) -> None:
    """Give every error of the API the same shape: cause and remedy."""
    app.state.log_unreadable = _log_now_and_then()

    @app.exception_handler(ProblemError)
    async def problem(_: Request, error: ProblemError) -> Response:
        return _problem(error.code, error.error, error.remedy)

    @app.exception_handler(StoreError)
    async def unreadable(request: Request, error: StoreError) -> Response:
        if isinstance(error, SearchTooLong):
            cause, _, remedy = str(error).partition("; ")
            return _page_or_json(request, HTTPStatus.SERVICE_UNAVAILABLE, cause, remedy)
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
        return _problem(HTTPStatus.UNPROCESSABLE_ENTITY, causes, remedy)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        if error.status_code == HTTPStatus.NOT_FOUND:
            cause, remedy = "there is nothing at this path", "/docs lists every path"
            return _page_or_json(request, HTTPStatus.NOT_FOUND, cause, remedy)
        headers, remedy = dict(error.headers or {}), "see /docs"
        if "Allow" in headers:
            headers["Allow"], remedy = allowed_methods(headers["Allow"])
        response = _problem(HTTPStatus(error.status_code), str(error.detail), remedy)
        response.headers.update(headers)
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
    return _problem(code, error, remedy)


def _problem(code: HTTPStatus, error: str, remedy: str) -> Response:
    return Response(problem_body(error, remedy), code, media_type="application/json")
