"""Failure policy: a kind of failure in, what is done about it out. Client, breaker and queue follow one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from sidejudge.integrations.backoff import grown_s
from sidejudge.integrations.provider.errors import ProviderErrorKind


@dataclass(frozen=True, slots=True)
class Reaction:
    """What follows from one kind of failure.

    ``retry``: the same request may succeed a little later. ``outage``: the failure does not depend on the trace, which
    may be judged again later. ``breaker`` is its meaning for the provider. ``trips``: no call can succeed until
    an operator acts. ``counts``: trouble, if it goes on. ``ignores``: the provider works and rejects this request.
    """

    retry: bool
    breaker: Literal["trips", "counts", "ignores"]
    outage: bool = False


REACTIONS: Final[Mapping[ProviderErrorKind, Reaction]] = {
    ProviderErrorKind.AUTHENTICATION_FAILED: Reaction(retry=False, breaker="trips", outage=True),
    ProviderErrorKind.MODEL_NOT_FOUND: Reaction(retry=False, breaker="trips", outage=True),
    ProviderErrorKind.CREDIT_EXHAUSTED: Reaction(retry=False, breaker="trips", outage=True),
    ProviderErrorKind.NOT_INSTALLED: Reaction(retry=False, breaker="trips", outage=True),
    ProviderErrorKind.RATE_LIMITED: Reaction(retry=True, breaker="counts", outage=True),
    ProviderErrorKind.TIMEOUT: Reaction(retry=True, breaker="counts", outage=True),
    ProviderErrorKind.OVERLOADED: Reaction(retry=True, breaker="counts", outage=True),
    ProviderErrorKind.UNREACHABLE: Reaction(retry=True, breaker="counts", outage=True),
    ProviderErrorKind.BAD_ANSWER: Reaction(retry=True, breaker="counts"),
    ProviderErrorKind.BAD_REQUEST: Reaction(retry=False, breaker="counts"),
    ProviderErrorKind.CONTEXT_OVERFLOW: Reaction(retry=False, breaker="ignores"),
    ProviderErrorKind.CONTENT_REFUSED: Reaction(retry=False, breaker="ignores"),
}

MAX_PAUSE_S: Final = 60.0
"""The longest wait before a retry. A provider that asks for more is left alone by the breaker instead."""
_FIRST_PAUSE_S: Final = 0.5


def pause(attempt: int, retry_after_s: float | None, jitter: float) -> float | None:
    """Seconds before the next attempt; None when the wait would be too long.

    Args:
        attempt: the number of the attempt that failed, from 0.
        retry_after_s: the wait that the provider asked for; up to a tenth is added so that not all callers come back at
        once.
            None: half a second, doubled with each attempt.
        jitter: in [0, 1), the share of the pause that is taken ("full jitter", AWS Architecture Blog, Exponential
            Backoff And Jitter, 2015).
    """
    if retry_after_s is not None:
        return retry_after_s * (1 + 0.1 * jitter) if retry_after_s <= MAX_PAUSE_S else None
    return grown_s(attempt + 1, first_s=_FIRST_PAUSE_S, longest_s=MAX_PAUSE_S) * jitter
