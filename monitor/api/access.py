"""Access: which requests the API answers, and which of them may see contents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Literal

from sidejudge.integrations.addresses import Credentials
from sidejudge.integrations.otlp.proxy.web_pages import WebPages
from sidejudge.monitor.config.model import ApiSection
from sidejudge.monitor.ingest.listeners import PROBES

from .contents_token import ContentsToken
from .errors import ProblemError, send_problem

if TYPE_CHECKING:
    from fastapi import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

_LOOPBACK_HOST = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_LOOPBACK_ORIGIN = re.compile(rf"https?://{_LOOPBACK_HOST.pattern}", re.IGNORECASE)
_FORWARDED = frozenset(
    {
        "forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-proxyuser-ip", "x-original-url",
        "x-original-host", "x-envoy-external-address", "x-amzn-trace-id", "x-cloud-trace-context", "x-azure-clientip",
        "x-appengine-user-ip", "cf-connecting-ip", "true-client-ip", "fastly-client-ip", "fly-client-ip",
        "x-original-forwarded-for", "x-original-remote-addr", "x-originating-ip", "x-remote-ip", "x-remote-addr",
        "forwarded-for", "x-forwarded", "client-ip", "cdn-loop", "wl-proxy-client-ip", "proxy-client-ip", "x-varnish",
        "x-azure-socketip", "ali-cdn-real-ip", "x-nginx-proxy",
    }
)  # fmt: skip
"""Headers that proxies add, besides ``x-forwarded-…``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """``contents`` are shown to callers on this machine with the ``token``, to every admitted caller, or to nobody.

    Without ``credentials`` every caller is admitted.
    """

    contents: Literal["loopback", "always", "never"] = "loopback"
    credentials: Credentials | None = None
    token: ContentsToken | None = None

    @classmethod
    def of(cls, section: ApiSection, token: ContentsToken | None = None) -> AccessRules:
        """The rules of a configuration."""
        credentials = section.auth.credentials if section.auth else None
        return cls(contents=section.contents, credentials=credentials, token=token)

    def shows_contents(self, request: Request) -> bool:
        """Whether the sender of a request is shown contents."""
        if self.contents != "loopback" or self.token is None:
            return self.contents == "always"
        return is_same_machine(request) and self.token.is_shown_by(request)

    def require_contents(self, request: Request, what: str) -> None:
        """Raise ``ProblemError`` where the sender of a request is not shown contents; ``what`` holds them."""
        if not self.shows_contents(request):
            cause = f"{what} hold contents of traces, which are not shown to this caller"
            remedy = "ask with the token beside the store, on the monitor's own machine, or set api.contents"
            raise ProblemError(cause, remedy, HTTPStatus.FORBIDDEN)


def is_same_machine(request: Request) -> bool:
    """Whether a request comes from a person or a program on this machine.

    The connection must come from 127.0.0.1 or ::1 (a service mesh delivers other people's requests from 127.0.0.6). It
    must ask for a loopback name: a page of another site that lets its name point here sends its own name. It must have
    no header that a proxy adds, and must not be sent on behalf of a page from elsewhere. It must not use HTTP/1.0,
    which nginx uses by default with the upstream address as Host, and no client does.

    A proxy on this machine that speaks HTTP/1.1, sends a loopback name and adds nothing cannot be distinguished from
    a person: so this is one condition of two, the other is the token.
    """
    if request.scope.get("http_version") == "1.0":
        return False
    headers = request.headers
    if not _is_loopback(request.client.host if request.client else ""):
        return False
    if _LOOPBACK_HOST.fullmatch(headers.get("host", "")) is None or _is_forwarded(headers.keys()):
        return False
    origins = headers.getlist("origin")
    if any(_LOOPBACK_ORIGIN.fullmatch(origin) is None for origin in origins):
        return False
    return headers.get("sec-fetch-site", "none") in ("none", "same-origin", "same-site") or bool(origins)


def asked_by_a_page(request: Request) -> str | None:
    """Why a web page may have made a request that changes something; None where it cannot have.

    Our pages request no change. A page of another site may post across origins, or under its own name that resolves to
    this machine.
    """
    headers = request.headers
    if "origin" in headers or headers.get("sec-fetch-site", "none") != "none":
        return "a web page may not ask for this"
    if not WebPages(in_cluster=True).is_ours(headers.get("host", "localhost").lower()) and not headers.get(
        "authorization"
    ):
        return "its Host is a public name, which a web page may have let point here"
    return None


class Guard:
    """Refuses requests without known credentials, before anything else looks at them."""

    def __init__(self, app: ASGIApp, credentials: Credentials) -> None:
        self._app, self._credentials = app, credentials

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES or self._credentials.known(_authorization(scope)):
            await self._app(scope, receive, send)
            return
        cause, remedy = "credentials are missing or not known here", "send a token or a user that api.auth names"
        asked = (b"www-authenticate", b'Basic realm="sidejudge", charset="UTF-8"')
        await send_problem(send, HTTPStatus.UNAUTHORIZED, cause, remedy, [asked])


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
