"""Errors: responses to requests that cannot be answered, and the headers of every response."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

from sidejudge.dashboards.pages.rendering import security_policy
from sidejudge.integrations.otlp.server.response import answer
from sidejudge.scoring.errors import SidejudgeError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


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


async def send_problem(
    send: Send, code: HTTPStatus, error: str, remedy: str, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Send a response with one line of cause and one of remedy, as JSON."""
    await answer(send, code, "application/json", problem_body(error, remedy), headers)


def allowed_methods(declared: str = "GET") -> tuple[str, str]:
    """The ``Allow`` header of a path that has these methods, and the remedy for a request by another."""
    allowed = declared.replace("GET", "GET, HEAD")
    return allowed, f"this path answers {allowed} and nothing else"


def problem_body(error: str, remedy: str) -> bytes:
    """The body of such a response."""
    return json.dumps({"error": error, "remedy": remedy}).encode()
