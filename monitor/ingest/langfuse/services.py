"""Services: which service the traces of a name are of. Listings do not show it: it is in the metadata of rows.

So it is learned from traces that were read: where all of one name and environment were of one service, another of that
name counts as its. A name that two services use is ambiguous. Only outcomes use it; no verdict depends on it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, TypeAlias

from sidejudge.integrations.raw import RawSpan

from .listed_trace import ListedTrace

MOST_NAMES: Final = 2000
"""Names that are remembered: those that came last."""
_LONGEST: Final = 200
_Name: TypeAlias = tuple[str | None, str]


class Services:
    """Names, with the environment that they were used in, and their service: None where there is more than one."""

    def __init__(self) -> None:
        self._known: OrderedDict[_Name, str | None] = OrderedDict()

    def learn(self, sighting: ListedTrace, spans: Sequence[RawSpan]) -> None:
        """Learn from the spans of a trace."""
        name = _name(sighting)
        named = {span.resource.get("service.name") for span in spans}
        service = named.pop() if len(named) == 1 else None
        if name is None:
            return
        found = service if isinstance(service, str) and service else None
        self._known[name] = found if self._known.get(name, found) == found else None
        self._known.move_to_end(name)
        if len(self._known) > MOST_NAMES:
            self._known.popitem(last=False)

    def of(self, sighting: ListedTrace) -> str | None:
        """The service of a trace that was not read; None where its name is unknown or ambiguous."""
        name = _name(sighting)
        return None if name is None else self._known.get(name)


def _name(sighting: ListedTrace) -> _Name | None:
    case = sighting.case()
    return None if not case.name else (case.environment and case.environment[:_LONGEST], case.name[:_LONGEST])
