"""Service habits: how long the traces of a service pause, and whether it sends their roots.

*Idle.* An agent that waits a minute for a tool would have each of its traces cut at an idle of 30 s, judged as a
fragment, and revised. Learned is the longest pause of each trace while something of it was missing, including pauses
that a closing cut short (the span that reopened the trace shows them). Idle is then twice the 95th percentile of the
service's last traces, within bounds: never shorter than configured, never longer than ``ceiling_ns``.

*Tops.* Langfuse's SDK marks a span as the topmost exported where the span right above it is not exported: behind a web
framework that is the run, below a function of the application it is a step. Learned is for how long spans still came
after a mark. Of a service that is not known, its traces wait as others do.

*Roots.* A run of an agent may take hours, and its root is exported last. The service's latest traces show
whether waiting is worth it. A trace that was closed without a root is no evidence yet: some of them are remembered for
as long as a root may take, and count when it has come, or has not. An open trace that is without a root for much longer
than the service's roots take counts as one without, so a service that stops sending roots is not waited for all day.

Where parts of traces go to other monitors, a root comes but parents do not, and the root of another part never comes.
So the roots of a service are not expected while many of its traces with a root lack parents. The price: where an
exporter leaves out intermediate spans, no root is awaited, and a late root makes a revision.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from .outcomes import NAME_LENGTH

REMEMBERED: Final = 128
"""Most traces of a service that are remembered."""
_ENOUGH: Final = 16
"""Traces of a service before its idle timeout is adapted."""
_FACTOR: Final = 2
_SERVICES: Final = 1_000


class AdaptiveIdle:
    """Learned pauses by service, in ns. Services beyond the bound, and endless names, keep the configured idle.

    That is ``unknown_ns``, and at least the shortest that may be learned, ``floor_ns``.
    """

    def __init__(self, floor_ns: int, ceiling_ns: int, unknown_ns: int = 0) -> None:
        self._floor_ns, self._ceiling_ns = floor_ns, max(floor_ns, ceiling_ns)
        self._unknown_ns = max(floor_ns, unknown_ns)
        self._pauses: dict[str | None, deque[int]] = {}
        self._idle_ns: dict[str | None, int] = {}

    def idle_ns(self, service: str | None) -> int:
        """The silence after which a trace of this service counts as idle."""
        return self._idle_ns.get(service, self._unknown_ns)

    def learn(self, service: str | None, pause_ns: int) -> None:
        """The longest pause of a trace that was closed; 0 when nothing of it was waited for."""
        if self._ceiling_ns == self._floor_ns:
            return
        pauses = self._pauses.get(service)
        if pauses is None:
            if len(self._pauses) >= _SERVICES or len(service or "") > NAME_LENGTH:
                return
            pauses = self._pauses[service] = deque(maxlen=REMEMBERED)
        alike = len(pauses) == REMEMBERED and pauses[0] == pause_ns  # it takes the place of an equal one
        pauses.append(pause_ns)
        if len(pauses) >= _ENOUGH and not alike:
            ranked = sorted(pauses)
            usual = ranked[(19 * len(ranked) - 1) // 20]
            self._idle_ns[service] = min(self._ceiling_ns, max(self._floor_ns, _FACTOR * usual))


_KNOWN: Final = 5
"""Traces before anything is known of a service."""
_EXPECTED: Final = 0.8
"""Least share of traces with a root at which a service is expected to send roots."""
_DOUBTED: Final = 0.5
"""Share below which it no longer is. The gap keeps a service from changing sides with every trace."""
_TORN: Final = 0.2
"""Share of the traces with a root that lack a parent, above which the service's roots are not expected."""
_MENDED: Final = 0.1
"""Share up to which they are expected again."""
_OVERDUE: Final = 2
"""A root is overdue after this many times the longest that one took lately."""
_FADING: Final = 0.99
"""The factor by which the longest time decays with each faster trace."""
_PROBED: Final = 64
"""Closed traces of a service without a known root that are remembered, to see whether the root comes after all."""


@dataclass(slots=True)
class _History:
    rooted: deque[bool] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    count: int = 0  # of those with a root
    torn: deque[bool] = field(default_factory=lambda: deque(maxlen=REMEMBERED))  # of traces with a root
    longest_ns: float = 0.0
    expected: bool = False
    probed: int = 0


class ExpectedRoots:
    """Learned by service. Of services beyond the bound, and of endless names, nothing is known."""

    def __init__(self) -> None:
        self._histories: dict[str | None, _History] = {}

    def expected(self, service: str | None) -> bool:
        """Whether the root of a trace of this service is still to come when it is not there."""
        history = self._histories.get(service)
        return history is not None and history.expected

    def remember(self, service: str | None) -> bool:
        """Whether a trace that is closed without its root is remembered for as long as the root may take.

        It is until ``forget`` is called for it: where roots are expected, and of any service some traces as probes.
        """
        history = self._history(service)
        if history is None or (history.probed >= _PROBED and not history.expected):
            return False
        history.probed += 1
        return True

    def forget(self, service: str | None) -> None:
        """A trace that was remembered has been opened again, or is not remembered any more."""
        self._histories[service].probed -= 1

    def overdue_ns(self, service: str | None) -> int:
        """How long after its first span the root of a trace is overdue; 0 when nothing is known."""
        history = self._histories.get(service)
        return 0 if history is None else int(_OVERDUE * history.longest_ns)

    def learn(self, service: str | None, took_ns: int | None, *, amends: bool = False, torn: bool = False) -> bool:
        """Record whether a trace had a root.

        Args:
            service: The service it is of.
            took_ns: How long after its first span the root came; None when none came.
            amends: The trace was recorded as one without a root before, and has one.
            torn: The trace has a root and lacks a parent that its spans name.

        Returns:
            Whether the service has just ceased to be one whose roots are expected.
        """
        history = self._history(service)
        if history is None:
            return False
        rooted = history.rooted
        if amends and False in rooted:
            rooted.remove(False)
        elif len(rooted) == REMEMBERED:
            history.count -= rooted[0]
        rooted.append(took_ns is not None)
        history.count += took_ns is not None
        if took_ns is not None:
            history.longest_ns = max(took_ns, history.longest_ns * _FADING)
            history.torn.append(torn)
        before = history.expected
        if len(rooted) >= _KNOWN:
            share = history.count / len(rooted)
            torn_share = sum(history.torn) / max(1, len(history.torn))
            history.expected = share >= (_DOUBTED if before else _EXPECTED) and torn_share <= (
                _TORN if before else _MENDED
            )
        return before and not history.expected

    def _history(self, service: str | None) -> _History | None:
        history = self._histories.get(service)
        if history is None and len(self._histories) < _SERVICES and len(service or "") <= NAME_LENGTH:
            history = self._histories[service] = _History()
        return history
