"""What requests to other people's servers have in common, whatever they are about."""

from __future__ import annotations

import os
from ipaddress import ip_address
from urllib.parse import urlsplit

from sidejudge.scoring.lexical.label import label
from sidejudge.scoring.lexical.secrets import struck

_SHOWN = 200


def why_not(error: BaseException) -> str:
    """Why a connection failed: the system's own message where there is one, else the client's. Never a URL."""
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, OSError) and below.errno:
            # asyncio rewords the message of the system; names that are not found and TLS have numbers of their own.
            plain = isinstance(below, ConnectionError) or type(below) is OSError
            return label(os.strerror(below.errno) if plain else below.strerror or str(below), _SHOWN)
        below = below.__cause__ or below.__context__
    return label(struck(str(error)) or type(error).__name__, _SHOWN)


def port_of(url: str) -> int:
    """The port of an address, or that of its scheme."""
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def is_local(host: str) -> bool:
    """Whether a host is this machine: a proxy has no business in between then."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
