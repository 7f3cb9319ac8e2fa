"""Who may send, and how often: checked before a body is read, by both protocols alike.

Credentials are compared as digests and in constant time, so that timing reveals neither their text nor their length.
They are never logged.
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
"""Senders whose rate is remembered; the one that has been silent longest is forgotten first."""
_BURST_S: Final = 2.0
"""Seconds' worth of requests that a sender may send at once."""


class Admission:
    """Admits requests. Without credentials everybody may send; without a rate, any number of requests.

    Args:
        tokens: Bearer tokens that are accepted.
        users: User names with their passwords (basic authentication: Langfuse's SDKs send their public and secret key).
        requests_per_second: Rate of one sender, by its credential if it has one, else by its address.
        clock: Monotonic seconds.
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
        self._allowed = [sha256(credential).digest() for credential in allowed]
        self._rate = requests_per_second
        self._clock = clock
        self._senders: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    @property
    def authenticates(self) -> bool:
        """Whether senders need credentials."""
        return bool(self._allowed)

    def admit(self, authorization: bytes, peer: str) -> bytes:
        """Admit a request.

        Args:
            authorization: The request's ``Authorization`` header, empty if it has none.
            peer: The address that the request comes from.

        Returns:
            The sender's key: the digest of its credential, or its address.

        Raises:
            Refusal: 401 for unknown credentials, 429 above the rate.
        """
        sender = self._authenticate(authorization) or peer.encode()
        self._limit(sender)
        return sender

    def _authenticate(self, authorization: bytes) -> bytes | None:
        if not self._allowed:
            return None
        scheme, _, credential = authorization.partition(b" ")
        given = sha256(scheme.lower() + b" " + credential.strip()).digest()
        found = False
        for allowed in self._allowed:  # all of them, whichever matches
            found |= hmac.compare_digest(given, allowed)
        if not found:
            cause = "these credentials are not known here" if authorization else "credentials are missing"
            raise Refusal(401, f"{cause}; see sources.otlp.auth", authenticate='Bearer, Basic realm="sidejudge"')
        return given

    def _limit(self, sender: bytes) -> None:
        """A token bucket for each sender."""
        if self._rate is None:
            return
        now, most = self._clock(), max(1.0, self._rate * _BURST_S)
        left, at = self._senders.pop(sender, (most, now))
        left = min(most, left + (now - at) * self._rate)
        self._senders[sender] = (max(0.0, left - 1.0) if left >= 1.0 else left, now)
        if len(self._senders) > _SENDERS:
            self._senders.popitem(last=False)
        if left < 1.0:
            raise Refusal(
                429,
                f"more than {self._rate:g} requests a second from one sender; send again, or larger batches",
                retry_after_s=(1.0 - left) / self._rate,
            )
