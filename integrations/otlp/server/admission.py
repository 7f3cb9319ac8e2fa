"""Gate: who may send, and how much. Asked before a body is read, by both protocols alike.

Credentials are compared in constant time, as digests, so that neither their text nor their length can be found out by
measuring; they are never logged.
"""

from __future__ import annotations

import base64
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Final

from .response import Refusal

_SENDERS: Final = 10_000
"""Senders whose pace is remembered; the one that has been silent longest is forgotten first."""
_BURST_S: Final = 2.0
"""Seconds' worth of requests that a sender may send at once."""


class Admission:
    """Lets requests in. Without credentials everybody may send, without a pace as much as they like.

    ``tokens`` are bearer tokens, ``users`` user names with their passwords (basic authentication, as Langfuse's SDKs
    send their public and secret key). ``requests_per_second`` bounds each sender: an authenticated one by its
    credential, others by their address.
    """

    def __init__(
        self,
        *,
        tokens: Iterable[str] = (),
        users: Mapping[str, str] | None = None,
        requests_per_second: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        allowed = [f"bearer {token}".encode() for token in tokens]
        for name, password in (users or {}).items():
            allowed.append(b"basic " + base64.b64encode(f"{name}:{password}".encode()))
        self._allowed = [sha256(said).digest() for said in allowed]
        self._pace = requests_per_second
        self._clock = clock
        self._senders: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    @property
    def authenticates(self) -> bool:
        """Whether senders must say who they are."""
        return bool(self._allowed)

    def admit(self, authorization: bytes, peer: str) -> None:
        """Let a request in, or raise 401 or 429. ``authorization`` is its header, ``peer`` where it comes from."""
        if not self._allowed and self._pace is None:
            return
        self._keep_pace(self._authenticate(authorization) or peer.encode())

    def _authenticate(self, authorization: bytes) -> bytes | None:
        if not self._allowed:
            return None
        scheme, _, credential = authorization.partition(b" ")
        given = sha256(scheme.lower() + b" " + credential.strip()).digest()
        found = False
        for allowed in self._allowed:  # all of them, whichever fits
            found |= hmac.compare_digest(given, allowed)
        if not found:
            cause = "these credentials are not known here" if authorization else "credentials are missing"
            raise Refusal(401, f"{cause}; see sources.otlp.auth", authenticate='Bearer, Basic realm="sidejudge"')
        return given

    def _keep_pace(self, sender: bytes) -> None:
        """A bucket for each sender, filled by time and emptied by requests."""
        if self._pace is None:
            return
        now, most = self._clock(), max(1.0, self._pace * _BURST_S)
        left, at = self._senders.pop(sender, (most, now))
        left = min(most, left + (now - at) * self._pace)
        self._senders[sender] = (max(0.0, left - 1.0) if left >= 1.0 else left, now)
        if len(self._senders) > _SENDERS:
            self._senders.popitem(last=False)
        if left < 1.0:
            raise Refusal(
                429,
                f"more than {self._pace:g} requests a second from one sender; send again, or larger batches",
                retry_after_s=(1.0 - left) / self._pace,
            )
