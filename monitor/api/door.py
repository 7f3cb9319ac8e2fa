"""The door of the API: it answers probes and metrics itself, and loads the API when it is asked for anything else.

A sidecar is asked for little else for most of its life. FastAPI and the schemas of the API take a seventh of the memory
of an idle monitor and a quarter of its start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeAlias

from sidejudge.integrations.addresses import Credentials
from sidejudge.integrations.otlp.server.response import Header, answer, header
from sidejudge.integrations.prometheus.exposition import restricted
from sidejudge.monitor.ingest.listeners import PROBES

from .access import Guard
from .errors import SecurityHeaders, allowed_methods, send_problem
from .readers import METRICS, Readers, names_of_series
from .shared_result import accepts_gzip, packed

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from .view import MonitorView

_ANSWERED = {*PROBES, METRICS}
Found: TypeAlias = tuple[HTTPStatus, str, bytes, list[Header]]
"""Status, content type, body, and further headers."""


def door(
    view: MonitorView, load: Callable[[], ASGIApp], credentials: Credentials | None = None,
    restored: Callable[[], bool] = lambda: True,
) -> ASGIApp:  # fmt: skip
    """The API that ``load`` gives, with its probes and metrics; with ``credentials`` only those who have them enter.

    Until it is ``restored`` a monitor answers probes alone: its figures are of a part of what it knows.
    """
    api: list[ASGIApp] = []
    loading = asyncio.Lock()

    async def loaded() -> ASGIApp:
        async with loading:
            if not api:
                # In a thread, for it takes 0.2 s, in which the event loop goes on.
                api.append(await asyncio.to_thread(load))
        return api[0]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in PROBES and not restored():
            unknown = "not started: what the last run left is being read"
            await send_problem(send, HTTPStatus.SERVICE_UNAVAILABLE, unknown, "ask again", [(b"retry-after", b"5")])
        elif scope["type"] == "http" and scope["path"] in _ANSWERED:
            if scope["method"] == "GET":
                await answer(send, *await probed(view, scope))
            else:  # a stranger may ask for a probe, and has nothing loaded
                allowed, remedy = allowed_methods()
                refused = HTTPStatus.METHOD_NOT_ALLOWED
                await send_problem(send, refused, refused.phrase, remedy, [(b"allow", allowed.encode())])
        else:
            await (await loaded())(scope, receive, send)

    guarded: ASGIApp = Readers(app)
    return SecurityHeaders(guarded if credentials is None else Guard(guarded, credentials))


async def probed(view: MonitorView, scope: Scope) -> Found:
    """The response to a request for a probe or for metrics."""
    if scope["path"] == METRICS:
        small = accepts_gzip(header(scope, b"accept-encoding"))
        names = names_of_series(scope)
        body, headers = await view.metrics(header(scope, b"accept"), small=small and not names)
        if names:
            body = await asyncio.to_thread(restricted, body, names)
            if small:
                body, headers = await asyncio.to_thread(packed, body), {**headers, "content-encoding": "gzip"}
        more = [(name.encode(), value.encode()) for name, value in headers.items() if name != "content-type"]
        return HTTPStatus.OK, headers["content-type"], body, more
    yes, no = {
        "/livez": (view.live, "not live: a part of the monitor has ended; the log names it"),
        "/readyz": (view.ready, "not ready: traces are not taken in; the log has the reason"),
        "/startupz": (view.started, "not started: what the last run left open is being resumed"),
    }[scope["path"]]
    status = HTTPStatus.OK if yes() else HTTPStatus.SERVICE_UNAVAILABLE
    return status, "text/plain; charset=utf-8", ("ok" if status is HTTPStatus.OK else no).encode() + b"\n", []
