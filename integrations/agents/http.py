"""An agent behind HTTP: one POST for each test, a bounded answer, retries only where nothing was done.

The request is ``POST URL`` with ``{"input": …, "test_id": "…", "metadata": {…}}`` as JSON. An answer is 200–299 with
text, or with a JSON object that has ``output`` (whatever its content type). The request is repeated, at most twice,
after a refused connection and after a 503 whose ``Retry-After`` is at most 30 s. Redirects are not followed, because
they would change the method or send the test elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import time
from http import HTTPStatus
from typing import Self

import httpx

from sidejudge.integrations.addresses import from_environment, trusted, why_not
from sidejudge.integrations.backoff import requested_s
from sidejudge.scoring.lexical.shown_text import label, struck
from sidejudge.scoring.trace.jsontext import no_constant

from . import AgentError, AgentReply, NoSuchAgentError, Request

MAX_ANSWER = 16 * 2**20
"""Bytes of one answer."""
MAX_ATTEMPTS = 3
MAX_WAIT_S = 30.0
"""The longest ``Retry-After`` that is waited for."""
_REFUSED_WAIT_S = 0.25
"""Before the second attempt after a refused connection; doubled before the third."""
_SHOWN = 200
_LAST_PORT = 65535


class _TryAgainError(Exception):
    def __init__(self, wait_s: float, error: AgentError) -> None:
        super().__init__(error.reason)
        self.wait_s, self.error = wait_s, error


class HttpAgent:
    """Asks the agent at a URL. ``name`` is the URL without a password. Use it as an asynchronous context."""

    def __init__(self, url: str, connections: int) -> None:
        try:
            self._url = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise NoSuchAgentError(f"{url!r} is no address: {error}", "for example http://127.0.0.1:8000/ask") from None
        if not self._url.host or self._url.scheme not in ("http", "https"):
            raise NoSuchAgentError(f"{url!r} names no host", "for example http://127.0.0.1:8000/ask")
        if self._url.port is not None and self._url.port > _LAST_PORT:
            raise NoSuchAgentError(f"{url!r}: there is no port {self._url.port}", f"ports end at {_LAST_PORT}")
        self.name = str(self._url.copy_with(userinfo=b""))
        # A connection of its own for every test: one that is kept may be closed at the moment of the next POST.
        self._limits = httpx.Limits(max_connections=connections, max_keepalive_connections=0)
        self._client: httpx.AsyncClient

    async def __aenter__(self) -> Self:
        # The time limit is the runner's, over all attempts; a proxy has no business between us and this machine.
        from_env = from_environment(self._url.host)
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None), limits=self._limits, trust_env=from_env, verify=trusted()
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def ask(self, request: Request) -> AgentReply:
        """The agent's reply; ``AgentError`` when there is none. The caller sets the time limit."""
        body = _body(request)
        while True:
            request.attempts += 1
            try:
                return await self._attempt(body, request.attempts)
            except _TryAgainError as again:
                if request.attempts == MAX_ATTEMPTS:
                    raise again.error from None
                await asyncio.sleep(again.wait_s)

    async def _attempt(self, body: bytes, attempt: int) -> AgentReply:
        headers = {"content-type": "application/json", "accept-encoding": "identity", "user-agent": "sidejudge"}
        started = time.perf_counter()
        try:
            async with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                content = await _bounded(response)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            why = AgentError(f"cannot connect: {why_not(error)}", unreachable=True)
            raise _TryAgainError(_REFUSED_WAIT_S * 2 ** (attempt - 1), why) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise AgentError(f"the connection broke: {why_not(error)}") from None
        latency_ms = (time.perf_counter() - started) * 1000
        if not response.is_success:
            raise _refusal(response, content)
        return AgentReply(stated=_stated_in(response, content), latency_ms=latency_ms)


def _body(request: Request) -> bytes:
    body = {"input": request.input, "test_id": request.test_id, "metadata": dict(request.metadata)}
    return json.dumps(body).encode()


async def _bounded(response: httpx.Response) -> bytes:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise AgentError("its answer is compressed, though that was not requested")
    parts, size = [], 0
    async for part in response.aiter_raw():
        size += len(part)
        if size > MAX_ANSWER:
            raise AgentError(f"its answer is longer than {MAX_ANSWER} bytes")
        parts.append(part)
    return b"".join(parts)


def _refusal(response: httpx.Response, content: bytes) -> Exception:
    code = response.status_code
    phrase = response.reason_phrase
    stated = label(struck(" ".join(content[: 4 * _SHOWN].decode(errors="replace").split())), _SHOWN)
    where = f" to {label(struck(response.headers['location']), _SHOWN)}" if "location" in response.headers else ""
    reason = f"it answered {f'{code} {phrase}'.strip()}{where}" + (f": {stated}" if stated else "")
    error = AgentError(reason)
    wait_s = requested_s(response.headers.get("retry-after"))
    if code == HTTPStatus.SERVICE_UNAVAILABLE and wait_s is not None and wait_s <= MAX_WAIT_S:
        return _TryAgainError(wait_s, error)
    return error


def _stated_in(response: httpx.Response, content: bytes) -> object:
    """Text, or the JSON object with ``output``. A body with the content type JSON must be JSON.

    A byte order mark, as .NET writes it, is no part of either.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = kind == "application/json" or kind.endswith("+json")
    try:
        text = content.decode(response.charset_encoding or "utf-8").removeprefix("\ufeff")
    except (UnicodeDecodeError, LookupError):
        raise AgentError("its answer is not text in the encoding it names (UTF-8 if none)") from None
    try:
        found: object = json.loads(text, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        if is_json:
            raise AgentError(f"its answer is not JSON, though its content type is: {error}") from None
        return text
    return found if is_json or (isinstance(found, dict) and "output" in found) else text
