"""Recognises requests that a web page may have made, which go on without the operator's credentials.

A page that somebody opens in a browser can send requests to this machine and to the browser's network: across origins
with a few content types, and under a name of its own that it makes resolve to a private address (DNS rebinding). An
exporter needs neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Final

from sidejudge.integrations.otlp.server.receiver import Cors
from sidejudge.integrations.otlp.server.response import KINDS

_FORMS: Final = ("", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
"""Content types that a page may send across origins without asking first (Fetch standard, CORS-safelisted)."""
_PRIVATE: Final = (".localhost", ".local", ".internal", ".svc", ".home.arpa", ".lan")
"""Ends of names that no public name server resolves, so that no page can have one."""


class WebPages:
    """Decides on requests.

    ``hosts`` are further names of this monitor; ``cors`` the origins whose pages may send. ``in_cluster``: it
    runs in Kubernetes, where ``service.namespace`` is a name that everybody uses and that no browser resolves.
    """

    def __init__(self, hosts: Sequence[str] = (), cors: Cors | None = None, *, in_cluster: bool = False) -> None:
        self._dots = 1 if in_cluster else 0
        self._hosts = tuple(host.lower() for host in hosts)
        self._cors = cors

    def suspicion(self, method: str, headers: Mapping[bytes, bytes], *, otlp: bool) -> str | None:
        """Why a request may come from a web page; ``None`` where it cannot.

        Args:
            method: The request's method.
            headers: Its headers, names in lower case.
            otlp: Whether it is an export, so that its content type is known.
        """
        origin = headers.get(b"origin")
        if origin is not None and self._cors is not None and self._cors.allows(origin):
            return None
        if origin is not None or headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            return "it comes from a web page whose origin is not among sources.otlp.cors_origins"
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
        if method == "POST" and (kind not in KINDS if otlp else kind in _FORMS):
            return f"its content type is {kind[:80] or 'missing'}, as web pages may send it"
        host = headers.get(b"host", b"localhost").decode("latin-1").lower()
        if not self.is_ours(host):
            return f"its Host is {host[:80]}, which is not among forward.hosts"
        return None

    def is_ours(self, host: str) -> bool:
        """Whether a ``Host`` is an address, a name that cannot be public, or one of ours."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        try:
            ip_address(name.strip("[]"))
        except ValueError:
            pass
        else:
            return True
        name = name.rstrip(".")
        return (
            name.count(".") <= self._dots
            or name.endswith(_PRIVATE)
            or any(fnmatchcase(name, each) for each in self._hosts)
        )
