"""Circuit breaker (Nygard, *Release It!*, 2007): results of calls in, permission for the next call out.

Closed: calls pass. Open: none does. After a pause it is half open: one call passes as a probe and decides. The pause
doubles with each failed probe. A probe contains nothing of any trace (``probe.py``); otherwise a trace that the
provider cannot process would keep the breaker open for all. A failure that needs an operator (a wrong key), or a wait
that is too long for a retry, opens it at once, other failures when several follow each other. All methods are pure
given ``now`` in seconds.

Client, breaker and queue handle each kind of failure by one table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from sidejudge.integrations.backoff import grown_s
from sidejudge.integrations.provider.errors import ProviderError, ProviderErrorKind
from sidejudge.scoring.status.snapshots import CircuitName, JudgeModelSnapshot


@dataclass(frozen=True, slots=True)
class Reaction:
    """The handling of one kind of failure.

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
        retry_after_s: the wait that the provider asked for; up to a tenth is added, so that callers do not all come
            back at once. None: half a second, doubled with each attempt.
        jitter: in [0, 1), the share of the pause that is taken ("full jitter", AWS Architecture Blog, Exponential
            Backoff And Jitter, 2015).
    """
    if retry_after_s is not None:
        return retry_after_s * (1 + 0.1 * jitter) if retry_after_s <= MAX_PAUSE_S else None
    return grown_s(attempt + 1, first_s=_FIRST_PAUSE_S, longest_s=MAX_PAUSE_S) * jitter


CONSECUTIVE: Final = 5
"""Failures in a row that open it."""
FIRST_PAUSE_S: Final = 5.0
LONGEST_PAUSE_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission for one call. Its result counts only while the breaker has not changed state since.

    ``probe``: the breaker is half open, and this call decides.
    """

    generation: int
    probe: bool = False


class Breaker:
    """One breaker for one ``model`` of one provider. ``consecutive`` failures in a row open it."""

    def __init__(self, now: float = 0.0, *, model: str = "", consecutive: int = CONSECUTIVE) -> None:
        self._model, self._consecutive = model, consecutive
        self._circuit: CircuitName = "closed"
        self._reason = ""
        self._since = now
        self._failures = 0
        self._generation = 0
        self._probing = False
        self._openings = 0
        self._probe_at = now
        self.cause = ""
        """The error that opened it last, in the provider's words; only for readers with rights to contents."""

    def state(self, now: float) -> JudgeModelSnapshot:
        """The state now. Open becomes half open by the passing of time alone. During a probe no next one is known."""
        self._turn(now)
        next_s = self._probe_at if self._circuit != "closed" and not self._probing else None
        return JudgeModelSnapshot(
            model=self._model, circuit=self._circuit, reason=self._reason, since_s=self._since, next_probe_s=next_s
        )

    def permit(self, now: float) -> Permit | None:
        """A permit, or None. Its holder must call ``succeeded``, ``failed`` or ``abandoned``."""
        self._turn(now)
        if self._circuit == "open" or (self._circuit == "half_open" and self._probing):
            return None
        self._probing = self._circuit == "half_open"
        return Permit(self._generation, self._probing)

    def succeeded(self, permit: Permit, now: float) -> None:
        """The provider answered."""
        if permit.generation != self._generation:
            return
        self._failures = 0
        if self._circuit != "closed":
            self._become("closed", "", now)

    def failed(self, permit: Permit, error: ProviderError, now: float) -> None:
        """The call failed; by its kind this opens the breaker at once, counts, or shows that the provider works."""
        kind, requested_s = REACTIONS[error.kind], error.retry_after_s or 0.0
        reaction = kind.breaker
        if reaction == "ignores":
            self.succeeded(permit, now)
            return
        if permit.generation != self._generation:
            return
        self._failures += 1
        opens = reaction == "trips" or (kind.outage and requested_s > MAX_PAUSE_S)
        if self._circuit == "half_open" or opens or self._failures >= self._consecutive:
            again = self._circuit == "half_open"
            since = self._since if again else now
            self._openings = self._openings + 1 if again else 1
            pause_s = grown_s(self._openings, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S)
            # An error may quote the request, and with it a trace: only its cause is shown to everybody.
            why = f"{error.cause}: {error.message}" if reaction == "trips" and error.message else error.cause
            self._become("open", why, since)
            self.cause = str(error)
            self._probe_at = now + max(pause_s, min(requested_s, LONGEST_PAUSE_S))

    def abandoned(self, permit: Permit) -> None:
        """The call was cancelled without a result; another may probe."""
        if permit.generation == self._generation:
            self._probing = False

    def _turn(self, now: float) -> None:
        # No pause is longer: a probe that is further off is of a clock that was set back.
        if self._circuit == "open" and not now < self._probe_at <= now + LONGEST_PAUSE_S:
            self._become("half_open", self._reason, min(self._since, now))

    def _become(self, circuit: CircuitName, reason: str, since: float) -> None:
        self._circuit, self._reason, self._since = circuit, reason, since
        self._generation += 1
        self._failures = 0
        self._probing = False
