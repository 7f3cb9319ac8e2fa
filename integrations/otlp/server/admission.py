"""Admission: who may send, how often, and over which connections, for both protocols.

Authentication and rates are checked before a body is read.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sidejudge.integrations.addresses import Credentials

from .response import Refusal

_SENDERS: Final = 10_000
"""Senders whose rate is remembered; the one that has been silent longest is forgotten first."""
_BURST_S: Final = 2.0
"""Seconds' worth of requests that a sender may send at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Bounds on the connections of one address; times in seconds.

    ``idle_s`` is the longest wait for the next request, ``head_s`` the longest that a head may take, ``body_s`` the
    longest that a body may take, and that a response may wait to be read. ``connections`` is the number of open ones.
    """

    idle_s: float = 60.0
    head_s: float = 10.0
    body_s: float = 60.0
    connections: int = 1000


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
        self._credentials = Credentials(tokens=tokens, users=users)
        self._rate = requests_per_second
        self._clock = clock
        self._senders: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    @property
    def authenticates(self) -> bool:
        """Whether senders need credentials."""
        return bool(self._credentials)

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
        if not self._credentials:
            return None
        known = self._credentials.known(authorization)
        if known is None:
            cause = "these credentials are not known here" if authorization else "credentials are missing"
            raise Refusal(401, f"{cause}; see sources.otlp.auth", authenticate='Bearer, Basic realm="sidejudge"')
        return known

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
