"""Post: one POST to a receiver of notices or telemetry, and what its answer means.

Redirects are not followed: they could lead what was meant for one receiver to another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from sidejudge.scoring.lexical.shown_text import label, struck

from .addresses import from_environment, trusted, why_not
from .backoff import DestinationUnreachableError, RefusedError, requested_s

if TYPE_CHECKING:
    import httpx

TIMEOUT_S: Final = 10.0
"""The timeout of one whole attempt."""
MAX_RETRY_AFTER_S: Final = 900.0
"""The longest time that a receiver may ask to be left alone for."""
_READ: Final = 2_000
_SHOWN: Final = 200
_SECRET_PART: Final = 12
"""A shorter part of a path (``services``, ``webhook``) is a word."""
_SECRET_VALUE: Final = 6
"""A shorter value of a query guards nothing."""
_ANSWER_S: Final = 1.0
"""How long to wait for the body of a successful answer."""
_PAGE: Final = (b"<!doctype html", b"<html")
_ELSEWHERE_FOR_NOW: Final = frozenset({HTTPStatus.FOUND, HTTPStatus.SEE_OTHER, HTTPStatus.TEMPORARY_REDIRECT})
_LATER: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})


class Poster:
    """Posts to one address. It is never shown, because receivers' addresses hold secrets.

    ``pages``: the receiver may answer with a page of HTML. Without it, something in between has answered.
    """

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S, *, pages: bool = False) -> None:
        import httpx  # noqa: PLC0415  # only where a receiver is configured

        self._url = httpx.URL(url)
        self._timeout_s, self._pages = timeout_s, pages

    async def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
        """Post a body, JSON unless a header names another type, and return once the receiver took it.

        The beginning of the answer is returned; empty where that breaks off, because the body was taken.

        Raises ``DestinationUnreachableError`` where it may take it later (no connection, no answer in time, 408, 425,
        429, 5xx, a page of HTML) and ``RefusedError`` for every other answer that is not a success.
        """
        import httpx  # noqa: PLC0415  # as above

        try:
            from_env, tls = from_environment(self._url.host), trusted()
        except OSError as error:
            raise DestinationUnreachableError(str(error.strerror)) from None
        plain = {"accept-encoding": "identity"}  # the beginning of an answer is read as it is sent
        given = {"content-type": "application/json", "user-agent": "sidejudge", **plain, **(headers or {})}
        try:
            # A connection of its own each time: alerts are rare, and one that was kept is likely to be closed by then.
            # The limit around it is of all of it: the client's own begins anew with each byte.
            async with (
                asyncio.timeout(self._timeout_s),
                httpx.AsyncClient(timeout=2 * self._timeout_s, trust_env=from_env, verify=tls) as client,
                client.stream("POST", self._url, content=body, headers=given) as response,
            ):
                answer = await self._after_success(response) if response.is_success else await self._beginning(response)
        except TimeoutError:
            raise DestinationUnreachableError(f"no answer within {self._timeout_s:g} s") from None
        except httpx.HTTPError as error:
            raise DestinationUnreachableError(f"the connection failed: {why_not(error)}") from None
        if not response.is_success:
            raise self._failure(response, answer)
        if not self._pages and answer.lstrip()[:14].lower().startswith(_PAGE):
            why = f"it answered {response.status_code} with a page of HTML, as a login or a proxy does"
            raise DestinationUnreachableError(why)
        return answer

    async def _after_success(self, response: httpx.Response) -> bytes:
        import httpx  # noqa: PLC0415  # as above

        # The status is what counts: a receiver that does not finish its answer has taken the body all the same.
        with suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(min(_ANSWER_S, self._timeout_s)):
                return await self._beginning(response)
        return b""

    @staticmethod
    async def _beginning(response: httpx.Response) -> bytes:
        content = b""
        async for part in response.aiter_raw():
            content += part
            if len(content) >= _READ:
                break
        return content[:_READ]

    def _failure(self, response: httpx.Response, body: bytes) -> Exception:
        code = response.status_code
        words = " ".join(_without(self._url, body.decode(errors="replace")).split())
        shown = "".join(char if char.isprintable() else " " for char in words)
        reason = f"it answered {code} {response.reason_phrase}".strip() + (
            f": {label(struck(shown), _SHOWN)}" if shown else ""
        )
        if code in _LATER or code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            asked_s = requested_s(response.headers.get("retry-after"))
            return DestinationUnreachableError(reason, None if asked_s is None else min(asked_s, MAX_RETRY_AFTER_S))
        if response.has_redirect_location:
            moved = f"it answered {code} and names another address; configure the final one"
            # a passing one is a login's or a proxy's, like a page
            return DestinationUnreachableError(moved) if code in _ELSEWHERE_FOR_NOW else RefusedError(moved)
        return RefusedError(reason)


def _without(url: httpx.URL, text: str) -> str:
    """The text without the address, its path, and what may be a secret of it alone, as servers repeat them."""
    path = url.raw_path.decode("ascii")
    bare = path.partition("?")[0]
    alone = [part for part in bare.split("/") if len(part) >= _SECRET_PART]
    values = [value for value in url.params.values() if len(value) >= _SECRET_VALUE]
    parts = {str(url), path, bare, url.path, *alone, *values} - {"", "/"}
    for part in sorted({*parts, *(part.replace("/", "\\/") for part in parts)}, key=len, reverse=True):
        text = text.replace(part, "…")
    return text
