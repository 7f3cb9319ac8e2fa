"""A Langfuse on a real socket: it behaves as the recordings of real servers say, and goes wrong on demand.

`FakeLangfuse(mode)` answers from a thread of its own, so that a test in this process and a monitor in another may both
call it. Each part (scores, configs, …) is a list of routes in a file of its own; a part is a function that is given the
fake and returns routes. What goes wrong is a queue of faults, after which a standing one holds; a fault is a function
of the request that returns an `Act`, or None to let it be answered as usual.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.fakes.openai import Act, Provider, perform

PUBLIC_KEY, SECRET_KEY = "pk-lf-test", "sk-lf-test"
API = "/api/public"


class Mode(Enum):
    """A version of the server and its write mode."""

    V3 = "3.225.4"
    DUAL = "4.16.0"
    EVENTS_ONLY = "4.16.0 events_only"
    NEW = "4.62.0"

    @property
    def version(self) -> str:
        return self.value.split()[0]


@dataclass(frozen=True)
class Request:
    """A request as it came over the wire."""

    method: str
    path: str
    """Below /api/public, decoded."""
    query: Sequence[tuple[str, str]]
    headers: Mapping[str, str]
    raw: bytes
    args: tuple[str, ...] = ()

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def params(self) -> dict[str, str]:
        return dict(self.query)


Fault = Callable[[Request], Act | None]
Handler = Callable[[Request], Act]
Route = tuple[str, str, Handler]
"""Method, pattern of the path below /api/public, and what answers."""


def answer(body: Any, status: int = 200, **headers: str) -> Act:
    reported = {
        "content-type": "application/json; charset=utf-8",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    return Act(status=status, body=json.dumps(body).encode(), headers=reported)


def plain(status: int, text: str) -> Act:
    """As the web framework answers before the application is reached: no JSON, no content type."""
    return Act(status=status, body=text.encode(), headers={})


def page(status: int = 404) -> Act:
    return Act(
        status, b"<!DOCTYPE html><html><body>not found</body></html>", {"content-type": "text/html; charset=utf-8"}
    )


def invalid(*issues: Mapping[str, Any]) -> Act:
    return answer({"message": "Invalid request data", "error": list(issues)}, 400)


EVENTS_ONLY = (
    "This endpoint is not available on deployments running in Langfuse v4 events_only mode. "
    "Learn more about Langfuse v4 at: https://langfuse.com/docs/v4"
)


@dataclass
class Limit:
    """Requests a minute; what is beyond is answered 429 until the window has passed."""

    per_minute: int
    window_s: float = 60.0
    began: float = field(default_factory=time.monotonic)
    used: int = 0

    def exceeded(self) -> Act | None:
        now = time.monotonic()
        if now - self.began >= self.window_s:
            self.began, self.used = now, 0
        self.used += 1
        return too_many(self.began + self.window_s - now, self.per_minute) if self.used > self.per_minute else None


class FakeLangfuse(Provider):
    """The server. Used as a context manager; `base_url` is what to give to a client."""

    def __init__(
        self,
        mode: Mode = Mode.DUAL,
        *,
        visible_after_s: float = 0.0,
        parts: Sequence[Callable[[Any], list[Route]]] = (),
    ) -> None:
        super().__init__()
        from tests.fakes.langfuse.configs import Configs  # noqa: PLC0415 - the parts are written on top of this file
        from tests.fakes.langfuse.scores import Scores  # noqa: PLC0415 - likewise

        self.mode = mode
        self.visible_after_s = visible_after_s
        self.project = {"id": "proj-test", "name": "Test Project"}
        self.requests: list[Request] = []
        self.faults: deque[Fault] = deque()
        self.standing_fault: Fault | None = None
        self.limit: Limit | None = None
        self.clock_s: Callable[[], float] = time.time
        """What it takes for the present, s since the epoch."""
        self.guard = threading.RLock()
        """Held while a request is answered; tests hold it while they look inside."""
        self.configs = Configs(self)
        self.scores = Scores(self)
        self.routes: list[Route] = [
            ("GET", "/health", self._health),
            ("GET", "/ready", lambda _: answer({"status": "OK", "version": self.mode.version})),
            ("GET", "/projects", self._projects),
            *self.configs.routes(),
            *self.scores.routes(),
            *(route for part in parts for route in part(self)),
            *_reads(self),
        ]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    @property
    def now(self) -> str:
        """The time as the server writes it."""
        return stamp(datetime.fromtimestamp(self.clock_s(), UTC))

    def fails(self, *faults: Fault) -> None:
        """What goes wrong with the next requests, one each."""
        self.faults.extend(faults)

    def requested(self, method: str, path: str) -> list[Request]:
        """The requests so far with this method and path below /api/public."""
        with self.guard:
            return [r for r in self.requests if (r.method, r.path) == (method, path)]

    def _health(self, request: Request) -> Act:
        return answer({"status": "OK", "version": self.mode.version})

    def _projects(self, _: Request) -> Act:
        return answer(
            {"data": [{**self.project, "organization": {"id": "org-test", "name": "Test Org"}, "metadata": {}}]}
        )

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:]) if k}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        method, target, _ = head[0].split(" ")
        parts = urlsplit(target)
        path = parts.path.removeprefix(API)
        query = parse_qsl(parts.query, keep_blank_values=True)
        request = Request(method, path, query, headers, raw)
        with self.guard:
            self.requests.append(request)
            fault = self.faults.popleft() if self.faults else self.standing_fault
            act = fault(request) if fault else None
            if act is None:
                act = self._act(request)
        if method == "HEAD":
            act = _with(act, body=b"")
        await asyncio.sleep(act.delay_s)
        if act.hang:
            await self._hanging.wait()
        return await perform(act, writer)

    def _act(self, request: Request) -> Act:
        if request.path not in ("/health", "/ready"):
            refused = self._unauthorised(request)
            if refused:
                return refused
            exceeded = self.limit.exceeded() if self.limit else None
            if exceeded:
                return exceeded
        known = False
        for method, pattern, handler in self.routes:
            match = re.fullmatch(pattern, request.path)
            if match and method == request.method:
                args = tuple(unquote(part) for part in match.groups())
                refused = None if request.path.startswith("/otel/") else _unread(request)
                if refused:
                    return refused
                return handler(Request(request.method, request.path, request.query, request.headers, request.raw, args))
            known = known or bool(match)
        if known:
            return answer({"message": "Method not allowed", "error": "MethodNotAllowedError"}, 405)
        return page()

    def _unauthorised(self, request: Request) -> Act | None:
        kind, _, value = request.headers.get("authorization", "").partition(" ")
        if not kind:
            return answer({"message": "No authorization header"}, 401)
        stated = {"message": "Invalid credentials. Confirm that you've configured the correct host."}
        wrong = answer(stated | ({"error": "UnauthorizedError"} if request.path == "/ingestion" else {}), 401)
        if kind == "Bearer":
            if value != PUBLIC_KEY:
                return wrong
            if (request.method, request.path) in (("POST", "/scores"), ("POST", "/ingestion")):
                return None
            return answer({"message": "Access denied - insufficient permissions for this endpoint"}, 403)
        try:
            keys = base64.b64decode(value, validate=True).decode()
        except ValueError:
            return answer({"message": "Invalid character. Confirm that you've configured the correct host."}, 401)
        return None if keys == f"{PUBLIC_KEY}:{SECRET_KEY}" else wrong


def _reads(fake: FakeLangfuse) -> list[Route]:
    """Whether there are reads at all, for a probe; a part that answers them properly comes before."""

    def observations(_: Request) -> Act:
        if fake.mode is Mode.V3:
            stated = "v2 APIs are currently only available on Langfuse Cloud"
            return answer({"message": stated, "error": "LangfuseNotFoundError"}, 404)
        return answer({"data": [], "meta": {}})

    def traces(request: Request) -> Act:
        if fake.mode in (Mode.EVENTS_ONLY, Mode.NEW):
            return answer({"message": EVENTS_ONLY}, 404)
        limit = int(request.params.get("limit", "50"))
        return answer({"data": [], "meta": {"page": 1, "limit": limit, "totalItems": 0, "totalPages": 0}})

    return [("GET", "/v2/observations", observations), ("GET", "/traces", traces)]


def _unread(request: Request) -> Act | None:
    """What the web framework refuses before it asks the application, which reads spans itself."""
    if len(request.raw) > 1_048_576:
        return plain(413, "Body exceeded 1mb limit")
    states_json = "application/json" in request.headers.get("content-type", "")
    if request.method != "GET" and request.raw and states_json and not _is_json(request.raw):
        return plain(400, "Invalid JSON")
    return None


def _is_json(raw: bytes) -> bool:
    try:
        json.loads(raw, parse_constant=_no_constant)
    except ValueError:
        return False
    return True


def _no_constant(name: str) -> None:
    raise ValueError(name)


def stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# What goes wrong.


def only(method: str, path: str, fault: Fault) -> Fault:
    """A standing fault for one endpoint."""
    return lambda request: fault(request) if (request.method, request.path) == (method, path) else None


def error(code: int, message: str = "", **body: Any) -> Fault:
    return lambda _: answer({"message": message, **body}, code)


def too_many(retry_after_s: float = 60, limit: int = 30) -> Act:
    """As Langfuse Cloud says it."""
    seconds = max(1, round(retry_after_s))
    at = datetime.now(UTC)
    details = {"retryAfterSeconds": seconds, "limit": limit, "remaining": 0, "resetAt": stamp(at)}
    return answer(
        {"message": "Rate limit exceeded", "code": "rate_limited", "details": details}, 429,
        retry_after=str(seconds), x_ratelimit_limit=str(limit), x_ratelimit_remaining="0",
        x_ratelimit_reset=at.strftime("%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)"),
    )  # fmt: skip


def rate_limited(retry_after_s: float = 60, limit: int = 30) -> Fault:
    return lambda _: too_many(retry_after_s, limit)


def suspended() -> Fault:
    return error(403, "Ingestion suspended: Usage threshold exceeded. Please upgrade your plan.")


def gone() -> Fault:
    return error(410, "This endpoint is not available.", error="LEGACY_API_UNAVAILABLE_FOR_NEW_ORGANIZATION")


def resources() -> Fault:
    return error(
        422, "Your query could not be completed because it required too many resources.", error="Request timed out"
    )


def store_away() -> Fault:
    """Blob store and ClickHouse are unreachable (recorded)."""
    return error(
        500, "Internal Server Error", error="Failed to upload events to blob storage, aborting event processing"
    )


def database_away() -> Fault:
    return error(503, "Service Unavailable")


def proxy_page(status: int = 502) -> Fault:
    return lambda _: Act(status, b"<html><body><h1>Bad Gateway</h1></body></html>", {"content-type": "text/html"})


def login_page() -> Fault:
    """What an authenticating proxy says in place of an answer."""
    return lambda _: Act(200, b"<html><body>Sign in</body></html>", {"content-type": "text/html"})


def broken_json(body: bytes = b'{"data": [{"id": "a", "trac') -> Fault:
    """An answer of Langfuse that was cut, or that nests too deep to be read."""
    return lambda _: Act(200, body, {"content-type": "application/json; charset=utf-8"})


def too_large() -> Fault:
    return lambda _: plain(413, "Body exceeded 1mb limit")


def hangs() -> Fault:
    return lambda _: Act(hang=True)


def resets(after: int = 0) -> Fault:
    """Breaks the connection before the request is looked at."""
    return lambda _: Act(body=b"x" * 200, reset_after=after)


def slow(seconds: float) -> Callable[[FakeLangfuse], Fault]:
    """Answers as usual, late."""
    return lambda fake: lambda request: _with(fake._act(request), delay_s=seconds)


def lost_answer(fake: FakeLangfuse) -> Fault:
    """Does what it is asked, and the connection breaks before it can say so."""
    return lambda request: _with(fake._act(request), reset_after=0)


def forgets(fake: FakeLangfuse) -> Fault:
    """Says 200 and stores nothing, as a worker does that drops what it was given."""

    def act(request: Request) -> Act:
        with fake.scores.forgetting():
            return fake._act(request)

    return act


def _with(act: Act, **changed: Any) -> Act:
    return Act(**{**{name: getattr(act, name) for name in act.__dataclass_fields__}, **changed})
