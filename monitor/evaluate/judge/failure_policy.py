"""What is done about each way in which a provider fails. One table; client, breaker and answerer keep to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from integrations.provider.errors import ProviderErrorKind


@dataclass(frozen=True, slots=True)
class Reaction:
    """``retry``: the same request may succeed a little later. ``breaker``: what the failure says about the provider.

    ``trips``: no call can succeed until somebody acts. ``counts``: trouble, if it goes on. ``ignores``: the provider
    works; it is this request that it does not answer.
    """

    retry: bool
    breaker: Literal["trips", "counts", "ignores"]


REACTIONS: Final[Mapping[ProviderErrorKind, Reaction]] = {
    ProviderErrorKind.AUTHENTICATION_FAILED: Reaction(retry=False, breaker="trips"),
    ProviderErrorKind.MODEL_NOT_FOUND: Reaction(retry=False, breaker="trips"),
    ProviderErrorKind.CREDIT_EXHAUSTED: Reaction(retry=False, breaker="trips"),
    ProviderErrorKind.NOT_INSTALLED: Reaction(retry=False, breaker="trips"),
    ProviderErrorKind.RATE_LIMITED: Reaction(retry=True, breaker="counts"),
    ProviderErrorKind.TIMEOUT: Reaction(retry=True, breaker="counts"),
    ProviderErrorKind.OVERLOADED: Reaction(retry=True, breaker="counts"),
    ProviderErrorKind.UNREACHABLE: Reaction(retry=True, breaker="counts"),
    ProviderErrorKind.BAD_ANSWER: Reaction(retry=True, breaker="counts"),
    ProviderErrorKind.BAD_REQUEST: Reaction(retry=False, breaker="counts"),
    ProviderErrorKind.CONTEXT_OVERFLOW: Reaction(retry=False, breaker="ignores"),
    ProviderErrorKind.CONTENT_REFUSED: Reaction(retry=False, breaker="ignores"),
}

MAX_PAUSE_S: Final = 60.0
"""The longest wait before a retry. A provider that asks for more is left alone by the breaker instead."""
_FIRST_PAUSE_S: Final = 0.5


def pause(attempt: int, retry_after_s: float | None, jitter: float) -> float | None:
    """Seconds before the next attempt, after ``attempt`` (from 0) failed; None: not worth waiting for.

    What the provider asks for is kept to, and up to a tenth added so that not all come back at once. Otherwise half a
    second, doubled with each attempt, of which ``jitter`` in [0, 1) says how much ("full jitter", AWS Architecture
    Blog, Exponential Backoff And Jitter, 2015).
    """
    if retry_after_s is not None:
        return retry_after_s * (1 + 0.1 * jitter) if retry_after_s <= MAX_PAUSE_S else None
    return min(MAX_PAUSE_S, _FIRST_PAUSE_S * 2.0**attempt) * jitter
