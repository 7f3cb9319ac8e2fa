"""Problems: what the API answers when it cannot answer, and the headers that every answer carries."""

from __future__ import annotations

import json
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboards.pages.rendering import security_policy


class ProblemError(Exception):
    """A request that cannot be answered: status code, one line of cause, one of remedy."""

    def __init__(self, code: HTTPStatus, error: str, remedy: str) -> None:
        super().__init__(error)
        self.code, self.error, self.remedy = code, error, remedy


class SecurityHeaders:
    """Adds to every answer what keeps a browser from doing anything with it that was not meant."""

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
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self._headers]
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


def explain_errors(app: FastAPI) -> None:
    """Give every error of the API the same shape: cause and remedy."""

    @app.exception_handler(ProblemError)
    async def problem(_: Request, error: ProblemError) -> Response:
        return _problem(error.code, error.error, error.remedy)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        # Only names and messages: what was sent is not repeated, it may be anything.
        said = "; ".join(f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors())
        return _problem(HTTPStatus.UNPROCESSABLE_ENTITY, said, "correct the parameters named; /docs lists them all")

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> Response:
        if error.status_code == HTTPStatus.NOT_FOUND:
            return _problem(HTTPStatus.NOT_FOUND, "there is nothing at this path", "/docs lists every path")
        remedy = "every path here answers GET and nothing else" if error.status_code == 405 else "see /docs"
        answer = _problem(HTTPStatus(error.status_code), str(error.detail), remedy)
        answer.headers.update(error.headers or {})
        return answer


def _problem(code: HTTPStatus, error: str, remedy: str) -> Response:
    return Response(json.dumps({"error": error, "remedy": remedy}), code, media_type="application/json")
