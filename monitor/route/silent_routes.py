"""Silent routes: routes that match none of the arriving traces, with the names that do arrive.

A route's conditions on name, service and environment are compared with the ended traces; a route without a match is
silent. So is one that matches only traces of an earlier route, because the first match wins. Conditions on rarer things
(a tag, an error, a slow run) are not judged, because their expected frequency is unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.config.model import RouteSection
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.status.snapshots import Anomaly, AnomalyKind
from sidejudge.scoring.verdict.documents import TraceDocument

Identity: TypeAlias = tuple[str | None, str | None, str | None]
"""Name, service and environment of a trace."""

ENOUGH: Final = 20
"""Number of traces without a match after which a route is called silent."""
REMEDY: Final = (
    "mend the route's match, or put it before the one that takes its traces; "
    "'sidejudge explain TRACE_ID' shows which condition a trace does not meet"
)
_ASKED: Final = ("name", "service", "environment")
_MOST_IDENTITIES: Final = 1_000
_MOST_NAMED: Final = 3
_LENGTH: Final = 60


@dataclass(slots=True)
class _Watched:
    """A route with its conditions on name, service and environment; ``whole``: it has no others.

    ``taken_by`` are earlier routes that matched traces which this one matches too.
    """

    name: str
    described: str
    match: MatchSection
    whole: bool
    silent: bool = True
    taken_by: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, index: int, route: RouteSection) -> _Watched:
        name = route.name or f"routes[{index}]"
        match = MatchSection.model_construct(**{key: getattr(route.match, key) for key in _ASKED})
        return cls(name, f"{name} ({route.match.describe()})", match, whole=match == route.match)

    def takes_the_rest_of(self, other: _Watched) -> bool:
        """Whether this one asks for nothing, or for less of the same than the other."""
        mine, theirs = ({key: held for key in _ASKED if (held := getattr(each.match, key))} for each in (self, other))
        return not mine or mine.items() < theirs.items()


class SilentRoutes:
    """Counts which of the configured routes match the traces that ended."""

    def __init__(self, routes: Sequence[RouteSection]) -> None:
        self._seen: Counter[Identity] = Counter()
        self._total = 0
        self._routes: list[_Watched] = []
        self.take_routes(routes)

    def take_routes(self, routes: Sequence[RouteSection]) -> None:
        """Replace the routes after a reload, and compare the new ones with the traces seen so far."""
        self._routes = [_Watched.of(index, route) for index, route in enumerate(routes)]
        for known in self._seen:
            self._hold(known)

    def observe(self, trace: TraceDocument) -> None:
        """Take a trace that ended, unless it was drawn as a session.

        Excluded traces are not counted, but matched, after a reload too: a route that excludes is there for them. So
        are those of further names once a thousand are known.
        """
        if "name" not in trace or trace.get("kind") == "session":
            return
        known = trace.get("name"), trace.get("service"), trace.get("environment")
        if known not in self._seen:
            self._hold(known)
        counts = "excluded" not in trace
        self._total += counts
        if known in self._seen or len(self._seen) < _MOST_IDENTITIES:
            self._seen[known] += counts

    def _hold(self, known: Identity) -> None:
        name, service, environment = known
        case = Case(case_id="", model_output=None, name=name, service=service, environment=environment)
        taken: _Watched | None = None
        for route in self._routes:
            if not route.match.matches(case):
                continue
            if taken is None or route.takes_the_rest_of(taken):
                route.silent = False  # one for whatever is left over may find nothing left
            if taken is None:
                taken = route if route.whole else None
            elif taken.name not in route.taken_by:
                route.taken_by.append(taken.name)

    def lines(self, enough: int = ENOUGH) -> Iterator[str]:
        """A line for each silent route; empty until enough traces were seen."""
        for route in self._routes if self._total >= enough else ():
            if route.silent:
                arrived = [self._arrived(key) for key in _ASKED if getattr(route.match, key)]
                taken = [f"what it is for goes to {', '.join(route.taken_by)} before it"] if route.taken_by else []
                total = f"{self._total} trace{'s' * (self._total != 1)}"
                yield f"{route.described} matched 0 of {total}; {'; '.join(taken or arrived)}"

    def _arrived(self, key: str) -> str:
        """The most frequent values of a route's key: ``name seen: 'invoke_agent support' (60)``."""
        counts: Counter[str] = Counter()
        for known, count in (+self._seen).items():
            counts[repr(value[:_LENGTH]) if (value := known[_ASKED.index(key)]) is not None else "unknown"] += count
        named = ", ".join(f"{value} ({count})" for value, count in counts.most_common(_MOST_NAMED))
        more = f" and {len(counts) - _MOST_NAMED} more" if len(counts) > _MOST_NAMED else ""
        return f"{key} seen: {named}{more}"

    def anomalies(self) -> Iterator[Anomaly]:
        """One anomaly for all silent routes."""
        if found := list(self.lines()):
            yield Anomaly(kind=AnomalyKind.SILENT_ROUTES, service=None, cause="; ".join(found), remedy=REMEDY)


def silent_in(routes: Sequence[RouteSection], traces: Iterable[TraceDocument]) -> list[str]:
    """A line for each of these routes that is silent, by any number of ended traces, for an explicit check."""
    watched = SilentRoutes(routes)
    for trace in traces:
        watched.observe(trace)
    return list(watched.lines(enough=1))
