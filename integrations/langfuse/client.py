"""Client: one Langfuse, one request a call. Retries and the handling of a refusal belong to the caller.

The SDK is not used: it loses scores while the server is away, and reads the environment of the application beside it.
This client reads only the usual variables of HTTP clients: proxies and certificates. No redirection is followed,
because every request carries the keys.

Reading and writing share a budget of requests a minute. Langfuse counts the requests of an organisation from all
senders, and names its limit only when it has been exceeded (``X-RateLimit-Limit`` of a 429). So the budget begins at
what is configured, keeps to four fifths of a limit that the server names, and rests as long as the server asks. Callers
are served in order.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote

from sidejudge.integrations.addresses import from_environment, trusted, why_not
from sidejudge.scoring.trace.span import Json

from .errors import LangfuseError, LangfuseErrorKind, as_json, date_of, read_refusal

if TYPE_CHECKING:
    import httpx


_MINUTE_S: Final = 60.0
_SHARE: Final = 0.8
"""The used share of a limit that the server names: other programs of the organisation count towards it too."""
_LONGEST_REST_S: Final = 3600.0
_BURST_S: Final = 2.0
"""Seconds' worth of requests that may be sent at once."""


class RequestBudget:
    """A number of requests a minute, evenly, a few seconds' worth at once. Shared by all callers of one Langfuse."""

    def __init__(
        self,
        per_minute: float,
        *,
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if per_minute <= 0:
            raise ValueError(f"a rate is above 0 a minute, got {per_minute!r}")
        self._per_minute = per_minute
        self._now_s = now_s
        self._sleep = sleep
        self._free_at = float("-inf")
        self._rests_until = float("-inf")

    @property
    def per_minute(self) -> float:
        """Requests a minute that it lets through."""
        return self._per_minute

    def reserve(self) -> float:
        """Take one request from the future; the seconds to wait before sending it, >= 0."""
        now = self._now_s()
        starts = max(self._free_at, now - _BURST_S, self._rests_until)
        self._free_at = starts + _MINUTE_S / self._per_minute
        return max(0.0, starts - now)

    async def take(self) -> None:
        """Wait for one request's turn."""
        wait_s = self.reserve()
        while wait_s > 0:
            await self._sleep(wait_s)
            wait_s = self._rests_until - self._now_s()  # a rest that began meanwhile holds for those who wait

    def limited(self, retry_after_s: float | None, per_minute: int | None) -> None:
        """The server answered 429: rest as long as it asks, and keep to the limit that it names."""
        if per_minute is not None:
            self._per_minute = min(self._per_minute, max(1.0, _SHARE * per_minute))
        rest_s = min(_MINUTE_S / self._per_minute if retry_after_s is None else retry_after_s, _LONGEST_REST_S)
        self._rests_until = max(self._rests_until, self._now_s() + rest_s)


Query = Mapping[str, str | int | Sequence[str]]

API: Final = "/api/public/"
_MOST_BYTES: Final = 64 * 1024 * 1024
"""The largest response, decompressed: 1000 observations with their contents may be large."""
_MOST_CONTAINERS: Final = 500_000
_MOST_VALUES: Final = 2_500_000
"""Lists and maps of an answer, and values. Three bytes can be a list, which takes 64 and the time of a thousand
characters; brackets and commas are counted, in texts too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The address of a Langfuse, the keys of one project, and the limits of requests. Its repr holds no key."""

    base_url: str
    public_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    requests_per_minute: int = 600
    timeout_s: float = 20.0


@dataclass(frozen=True, slots=True)
class LangfuseReply:
    """An answer of 2xx: its status and its body as JSON."""

    status: int
    body: Json
    date: datetime | None = None
    """When the server made it, by its own clock; None where it does not say."""


class Langfuse:
    """A connection to one project of one Langfuse. Raises ``LangfuseError``; paths are below ``/api/public/``."""

    def __init__(self, access: Access, *, budget: RequestBudget | None = None, timeout_s: float | None = None) -> None:
        import httpx  # noqa: PLC0415  # only where a Langfuse is configured

        self.access = access
        self.budget = RequestBudget(access.requests_per_minute) if budget is None else budget
        self.ahead_s = 0.0
        """How far the clock of the server is ahead of ours at most, s, by its latest answer; 0 where it is not."""
        self.behind_s = 0.0
        """How far it is behind ours at most, s, likewise."""
        self._timeout_s = access.timeout_s if timeout_s is None else timeout_s
        self._http = httpx.AsyncClient(
            base_url=access.base_url.rstrip("/") + API,
            auth=httpx.BasicAuth(access.public_key, access.secret_key),
            headers={"user-agent": "sidejudge", "accept": "application/json"},
            timeout=self._timeout_s,
            follow_redirects=False,
            trust_env=from_environment(httpx.URL(access.base_url).host),
            verify=trusted(),
        )

    async def get(self, path: str, query: Query | None = None) -> Json:
        """The JSON body of an answer to GET."""
        return (await self._ask("GET", path, query=query)).body

    async def clock_skew_s(self) -> float | None:
        """How far the server's clock is ahead of ours, in s, to a second; None where it shows no time."""
        asked_s = time.time()
        date = (await self._ask("GET", "health")).date
        return None if date is None else date.timestamp() - (asked_s + time.time()) / 2

    async def post(self, path: str, body: object) -> LangfuseReply:
        """Send JSON; 200, 201, 202 and 207 are all answers."""
        return await self._ask("POST", path, body=body)

    async def has(self, path: str, query: Query | None = None) -> bool:
        """Whether there is something at a path."""
        try:
            await self.get(path, query)
        except LangfuseError as error:
            if error.missing:
                return False
            raise
        return True

    async def delete(self, path: str, name: str) -> bool:
        """Delete the object with this name (any text) under a path; returns whether it existed.

        Deletions have their own daily limit: reaching it slows nothing else down.
        """
        try:
            await self._ask("DELETE", f"{path}/{quote(name, safe='')}")
        except LangfuseError as error:
            if error.missing:
                return False
            raise
        return True

    async def close(self) -> None:
        """Let the connections go."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _ask(self, method: str, path: str, *, query: Query | None = None, body: object = None) -> LangfuseReply:
        import httpx  # noqa: PLC0415  # as above

        await self.budget.take()
        content = None if body is None else encoded(body)
        headers = {} if content is None else {"content-type": "application/json"}
        request = self._http.build_request(method, path, params=query, content=content, headers=headers)
        try:
            # The library's limits are for each read; a server that drips would hold a request for ever.
            async with asyncio.timeout(self._timeout_s):
                status, reported, answer = await self._send(request)
        except (TimeoutError, httpx.TimeoutException):
            raise LangfuseError(LangfuseErrorKind.TIMEOUT, f"no answer within {self._timeout_s:g} s") from None
        except httpx.TransportError as error:
            broken = isinstance(error, httpx.ReadError | httpx.RemoteProtocolError)
            raise LangfuseError(LangfuseErrorKind.UNREACHABLE, why_not(error), broken=broken) from None
        except httpx.DecodingError:
            raise LangfuseError(
                LangfuseErrorKind.NOT_LANGFUSE, "the answer's compression is damaged", broken=True
            ) from None
        if status == HTTPStatus.TOO_MANY_REQUESTS and method != "DELETE":
            limit = read_refusal(status, reported, answer)
            self.budget.limited(limit.retry_after_s, limit.per_minute)
        if (date := date_of(reported)) is not None:  # of a whole second, the last moment
            ahead_s = date.timestamp() - time.time()
            self.ahead_s = ahead_s + 1 if ahead_s > 1 else 0.0
            self.behind_s = max(0.0, -ahead_s)
        return _read(status, reported, answer)

    async def _send(self, request: httpx.Request) -> tuple[int, httpx.Headers, bytes]:
        response = await self._http.send(request, stream=True)
        try:
            parts, size, containers, values = [], 0, 0, 0
            async for part in response.aiter_bytes():
                parts.append(part)
                size += len(part)
                containers += part.count(b"[") + part.count(b"{")
                values += part.count(b",")
                if size > _MOST_BYTES or containers > _MOST_CONTAINERS or values > _MOST_VALUES:
                    most = f"more than {_MOST_BYTES >> 20} MiB" if size > _MOST_BYTES else "very many lists and maps"
                    raise LangfuseError(LangfuseErrorKind.TOO_EXPENSIVE, f"an answer of {most}")
        finally:
            await response.aclose()
        return response.status_code, response.headers, b"".join(parts)


def _read(status: int, headers: Mapping[str, str], content: bytes) -> LangfuseReply:
    if not 200 <= status < 300:
        raise read_refusal(status, headers, content)
    body = as_json(content)
    if not isinstance(body, Mapping | list):
        broken = "json" in headers.get("content-type", "")
        raise LangfuseError(LangfuseErrorKind.NOT_LANGFUSE, "an answer that is no JSON", status=status, broken=broken)
    return LangfuseReply(status, body, date_of(headers))


def encoded(body: object) -> bytes:
    """JSON for sending: ASCII, because half a surrogate pair is no UTF-8, and without NaN, which is no JSON."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()


class Connections:
    """Clients by address and key: Langfuse limits requests by project, so all users of one project share a budget."""

    def __init__(self, projects: Iterable[Access]) -> None:
        self._projects = list(projects)
        self._clients: dict[tuple[str, str], Langfuse] = {}

    def to(self, access: Access) -> Langfuse:
        """The client of a project, with the smallest of the budgets that are configured for it."""
        key = _key(access)
        if key not in self._clients:
            budgets = [each.requests_per_minute for each in self._projects if _key(each) == key]
            least = min((access.requests_per_minute, *budgets))
            self._clients[key] = Langfuse(access, budget=RequestBudget(least))
        return self._clients[key]

    async def close(self) -> None:
        """Close every connection."""
        for langfuse in self._clients.values():
            await langfuse.close()


def _key(access: Access) -> tuple[str, str]:
    return access.base_url, access.public_key
