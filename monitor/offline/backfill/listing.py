"""Lists the traces of a time range that are to be judged, without reading their contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from sidejudge.integrations.langfuse import legacy, observations
from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.normalise import is_trace_id
from sidejudge.integrations.langfuse.observations import Window
from sidejudge.integrations.langfuse.pages import Row
from sidejudge.integrations.langfuse.probe import LangfuseServer
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.ingest.langfuse.listed_trace import ListedTrace, grouped
from sidejudge.monitor.ingest.langfuse.preselect import at_sight, may_match, once_settled
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.ingest.sampler import Sampler

OTHER = "other than --filter"
FOREIGN = "no W3C trace id"


@dataclass(slots=True)
class Listing:
    """The traces that are drawn, the oldest first, and why the others are not, by how many."""

    drawn: list[ListedTrace] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def seen(self) -> int:
        """Traces in all."""
        return len(self.drawn) + self.left_out.total()


async def list_traces(
    langfuse: Langfuse, server: LangfuseServer, window: Window, sampler: Sampler, wanted: MatchSection
) -> Listing:
    """List a window. A trace that a listing does not decide is drawn, and decided once it is read.

    Raises ``LangfuseError``.
    """
    sightings: dict[str, ListedTrace] = {}
    unwanted: dict[str, str] = {}
    async for page in _pages(langfuse, server, window):
        for trace_id, rows in grouped(page).items():
            if trace_id in unwanted:
                continue
            sighting = sightings.setdefault(trace_id, ListedTrace.of(trace_id, 0))
            sighting.add(rows, 0)
            why = at_sight(sampler, bytes.fromhex(trace_id), sighting) if is_trace_id(trace_id) else FOREIGN
            if why is not None:
                unwanted[trace_id] = why.value if isinstance(why, EndReason) else why
                del sightings[trace_id]
    listing = Listing(left_out=Counter(unwanted.values()))
    for sighting in sorted(sightings.values(), key=lambda each: (each.start_ns, each.trace_id)):
        why = once_settled(sampler, bytes.fromhex(sighting.trace_id), sighting)
        if why is not None:
            listing.left_out[why.value] += 1
        elif not may_match(wanted, sighting):
            listing.left_out[OTHER] += 1
        else:
            listing.drawn.append(sighting)
    return listing


async def _pages(langfuse: Langfuse, server: LangfuseServer, window: Window) -> AsyncIterator[Sequence[Row]]:
    read = observations.pages if server.observations_v2 else legacy.pages
    async for page in read(langfuse, window):
        yield page
