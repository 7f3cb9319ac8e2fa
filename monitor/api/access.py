"""Access: which requests the API answers, and which of them are shown what people and models wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from typing import Literal

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from integrations.credentials import Credentials
from monitor.config.model import ApiSection
from monitor.ingest.listeners import PROBES

from .errors import problem_response

_LOOPBACK_HOST = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_LOOPBACK_ORIGIN = re.compile(rf"https?://{_LOOPBACK_HOST.pattern}", re.IGNORECASE)
_FORWARDED = frozenset({"forwarded", "via", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """``contents`` are shown to callers on this machine, to everybody who is let in, or to nobody.

    Without ``credentials`` everybody is let in.
    """

    contents: Literal["loopback", "always", "never"] = "loopback"
    credentials: Credentials | None = None

    @classmethod
    def of(cls, section: ApiSection) -> AccessRules:
        """The rules of a configuration."""
        return cls(contents=section.contents, credentials=section.auth.credentials if section.auth else None)

    def shows_contents(self, request: Request) -> bool:
        """Whether the sender of a request is shown contents."""
        return self.contents == "always" or (self.contents == "loopback" and is_same_machine(request))


def is_same_machine(request: Request) -> bool:
    """Whether a request comes from a person or a program on this machine.

    The connection must come from 127.0.0.1 or ::1 (a service mesh delivers other people's requests from 127.0.0.6).
    It must ask for a loopback name: a page of another site that lets its name point here sends its own name. It must
    have no header that a proxy adds, and must not be sent on behalf of a page from elsewhere.
    """
    headers = request.headers
    if not _is_loopback(request.client.host if request.client else ""):
        return False
    if _LOOPBACK_HOST.fullmatch(headers.get("host", "")) is None or _is_forwarded(headers.keys()):
        return False
    origins = headers.getlist("origin")
    if any(_LOOPBACK_ORIGIN.fullmatch(origin) is None for origin in origins):
        return False
    return headers.get("sec-fetch-site", "none") in ("none", "same-origin", "same-site") or bool(origins)


class Guard:
    """Refuses requests without known credentials, before anything else looks at them."""

    def __init__(self, app: ASGIApp, credentials: Credentials) -> None:
        self._app, self._credentials = app, credentials

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES or self._credentials.known(_authorization(scope)):
            await self._app(scope, receive, send)
            return
        cause, remedy = "credentials are missing or not known here", "send a token or a user that api.auth names"
        missing = problem_response(HTTPStatus.UNAUTHORIZED, cause, remedy)
        missing.headers["www-authenticate"] = 'Basic realm="sidejudge", charset="UTF-8"'
        await missing(scope, receive, send)


def _authorization(scope: Scope) -> bytes:
    return next((value for name, value in scope["headers"] if name == b"authorization"), b"")


def _is_loopback(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    # A socket for both IPv4 and IPv6 reports 127.0.0.1 as ::ffff:127.0.0.1.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address) in ("127.0.0.1", "::1")


def _is_forwarded(names: Iterable[str]) -> bool:
    return any(name in _FORWARDED or name.startswith("x-forwarded-") for name in names)
