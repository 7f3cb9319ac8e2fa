"""Credentials: tokens, and user names with passwords, that requests may carry.

They are compared in constant time, as digests, so that neither their text nor their length can be found out by
measuring; they are never logged.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256


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
