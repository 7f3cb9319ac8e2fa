"""What requests to and from others share: addresses, credentials, and the certificates that clients trust.

Credentials are tokens, or user names with passwords. They are compared in constant time, as digests, so that measuring
finds out neither their text nor their length; they are never logged. Certificates are read once for all clients,
because that takes 20 ms and a megabyte.
"""

from __future__ import annotations

import base64
import errno
import hmac
import os
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from sidejudge.scoring.lexical.shown_text import label, struck

if TYPE_CHECKING:
    import ssl


_SHOWN = 200
_NO_CONNECTION = ("ConnectError", "ConnectTimeout", "ProxyError")


def why_not(error: BaseException) -> str:
    """Why a connection failed: the system's own message where there is one, else the client's. Never a URL.

    It names the proxy that was to be the way: else the destination would seem to be away.
    """
    return _cause(error) + ("" if _is_local_to(error) else way(error))


def way(error: BaseException) -> str:
    """The variable that names a proxy for the request of an error of httpx, in words; empty where there is none."""
    request = getattr(error, "_request", None)
    if type(error).__name__ not in _NO_CONNECTION or request is None or proxy_bypass(request.url.host):
        return ""
    known = getproxies_environment()
    named = next((f"{each.upper()}_PROXY" for each in (request.url.scheme, "all") if known.get(each)), None)
    return "" if named is None else f", by way of the proxy that {named} names"


def _is_local_to(error: BaseException) -> bool:
    request = getattr(error, "_request", None)
    return request is not None and is_local(request.url.host)


def _cause(error: BaseException) -> str:
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, OSError) and below.errno:
            # asyncio rewords the message of the system; names that are not found and TLS have numbers of their own.
            plain = isinstance(below, ConnectionError) or type(below) is OSError
            return label(os.strerror(below.errno) if plain else below.strerror or str(below), _SHOWN)
        below = below.__cause__ or below.__context__
    return label(struck(str(error)) or type(error).__name__, _SHOWN)


def port_of(url: str) -> int:
    """The port of an address; without one, the default port of its scheme."""
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def is_local(host: str) -> bool:
    """Whether a host is this machine: a proxy has no business in between then."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def stays(old: str, new: str) -> bool:
    """Whether a redirect from one address to another stays with the host that was asked, or goes on to its HTTPS.

    Elsewhere a client that follows would take contents, and keys in headers of their own.
    """
    before, after = urlsplit(old), urlsplit(new)
    try:
        same = (before.scheme, port_of(old)) == (after.scheme, port_of(new))
    except ValueError:  # it names no port
        return False
    return before.hostname == after.hostname and (same or (before.scheme, after.scheme) == ("http", "https"))


def from_environment(host: str) -> bool:
    """Whether a client for this host takes the proxies of the environment; this machine needs none.

    Raises ``OSError`` where they cannot be used: no client could be made.
    """
    if is_local(host):
        return False
    _check_proxies(tuple(sorted(getproxies_environment().items())))
    return True


@cache
def _check_proxies(_named: tuple[tuple[str, str], ...]) -> None:
    import httpx  # noqa: PLC0415  # only where something is sent

    try:
        httpx.Client(verify=trusted()).close()
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        why = label(struck(" ".join(str(error).split())), _SHOWN)
        variables = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY or NO_PROXY"
        raise OSError(errno.EPROTONOSUPPORT, f"{variables} cannot be used: {why}") from None


class Credentials:
    """``tokens`` are bearer tokens, ``users`` user names with their passwords (basic authentication)."""

    def __init__(self, *, tokens: Iterable[str] = (), users: Mapping[str, str] | None = None) -> None:
        allowed = [f"bearer {token}".encode() for token in tokens]
        for name, password in (users or {}).items():
            allowed.append(b"basic " + base64.b64encode(f"{name}:{password}".encode()))
        self._allowed = [sha256(each).digest() for each in allowed]

    def __bool__(self) -> bool:
        return bool(self._allowed)

    def known(self, authorization: bytes) -> bytes | None:
        """The digest of an ``Authorization`` header's credential; ``None`` for one that is not known here."""
        scheme, _, credential = authorization.partition(b" ")
        given = sha256(scheme.lower() + b" " + credential.strip()).digest()
        found = False
        for allowed in self._allowed:  # all of them, whichever fits
            found |= hmac.compare_digest(given, allowed)
        return given if found else None


def trusted() -> ssl.SSLContext:
    """What ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name, else what httpx trusts by default.

    Raises ``OSError`` with the file where ``SSL_CERT_FILE`` names none with certificates.
    """
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    try:
        return _read(file, folder)
    except OSError as error:  # it names no file
        why = f"SSL_CERT_FILE names no certificates that can be read ({error.strerror or error})"
        raise OSError(error.errno, why, file) from error


@cache
def _read(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    import httpx  # noqa: PLC0415  # only where something is sent

    return httpx.create_ssl_context()
