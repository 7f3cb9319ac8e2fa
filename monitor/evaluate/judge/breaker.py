"""Circuit breaker: results of calls in, permission for the next call out.

Closed: calls pass. Open: none does. After a pause it is half open: one call passes as a probe and decides. The pause
doubles with each failed probe. A probe contains nothing of any trace (``health_probe.py``); otherwise a trace that the
provider cannot process would keep the breaker open for all. A failure that needs an operator (a wrong key) opens it at
once, other failures when several follow each other. All methods are pure given ``now`` in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidejudge.integrations.backoff import grown_s
from sidejudge.integrations.provider.errors import ProviderError

from .failure_policy import REACTIONS

CONSECUTIVE: Final = 5
"""Failures in a row that open it."""
FIRST_PAUSE_S: Final = 5.0
LONGEST_PAUSE_S: Final = 300.0


class Circuit(StrEnum):
    """The three states of a circuit breaker (Nygard, *Release It!*, 2007)."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerState:
    """``reason`` is why it is not closed, and is empty when it is. ``since`` and ``next_probe`` as ``now`` was given.

    ``next_probe`` is None when closed, and while a probe is under way.
    """

    circuit: Circuit
    reason: str = ""
    since: float
    next_probe: float | None = None


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission for one call. Its result counts only while the breaker has not changed state since.

    ``probe``: the breaker is half open, and this call decides.
    """

    generation: int
    probe: bool = False


class Breaker:
    """One breaker for one model of one provider. ``consecutive`` failures in a row open it."""

    def __init__(self, now: float = 0.0, *, consecutive: int = CONSECUTIVE) -> None:
        self._consecutive = consecutive
        self._circuit = Circuit.CLOSED
        self._reason = ""
        self._since = now
        self._failures = 0
        self._generation = 0
        self._probing = False
        self._openings = 0
        self._probe_at = now
        self.cause = ""
        """The error that opened it last, in the provider's words: for whoever sees the contents of traces alone."""

    def state(self, now: float) -> BreakerState:
        """The state now. Open becomes half open by the passing of time alone."""
        self._turn(now)
        waits = self._circuit is not Circuit.CLOSED and not self._probing
        return BreakerState(
            circuit=self._circuit,
            reason=self._reason,
            since=self._since,
            next_probe=self._probe_at if waits else None,
        )

    def permit(self, now: float) -> Permit | None:
        """A permit, or None. Its holder must call ``succeeded``, ``failed`` or ``abandoned``."""
        self._turn(now)
        if self._circuit is Circuit.OPEN or (self._circuit is Circuit.HALF_OPEN and self._probing):
            return None
        self._probing = self._circuit is Circuit.HALF_OPEN
        return Permit(self._generation, self._probing)

    def succeeded(self, permit: Permit, now: float) -> None:
        """The provider answered."""
        if permit.generation != self._generation:
            return
        self._failures = 0
        if self._circuit is not Circuit.CLOSED:
            self._become(Circuit.CLOSED, "", now)

    def failed(self, permit: Permit, error: ProviderError, now: float) -> None:
        """The call failed; by its kind this opens the breaker at once, counts, or shows that the provider works."""
        reaction = REACTIONS[error.kind].breaker
        if reaction == "ignores":
            self.succeeded(permit, now)
            return
        if permit.generation != self._generation:
            return
        self._failures += 1
        if self._circuit is Circuit.HALF_OPEN or reaction == "trips" or self._failures >= self._consecutive:
            again = self._circuit is Circuit.HALF_OPEN
            since = self._since if again else now
            self._openings = self._openings + 1 if again else 1
            pause_s = grown_s(self._openings, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S)
            requested_s = min(error.retry_after_s or 0.0, LONGEST_PAUSE_S)
            # An error may quote the request, and with it a trace: only its cause is shown to everybody.
            why = f"{error.cause}: {error.message}" if reaction == "trips" and error.message else error.cause
            self._become(Circuit.OPEN, why, since)
            self.cause = str(error)
            self._probe_at = now + max(pause_s, requested_s)

    def abandoned(self, permit: Permit) -> None:
        """The call was cancelled without a result; another may probe."""
        if permit.generation == self._generation:
            self._probing = False

    def _turn(self, now: float) -> None:
        if self._circuit is Circuit.OPEN and now >= self._probe_at:
            self._become(Circuit.HALF_OPEN, self._reason, self._since)

    def _become(self, circuit: Circuit, reason: str, since: float) -> None:
        self._circuit, self._reason, self._since = circuit, reason, since
        self._generation += 1
        self._failures = 0
        self._probing = False
