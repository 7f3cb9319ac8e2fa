"""Pending: listed traces that are not dealt with yet; each leaves once, for a reason."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from sidejudge.integrations.langfuse.normalise import is_trace_id
from sidejudge.integrations.langfuse.observations import MOST_IN_TRACE
from sidejudge.integrations.langfuse.pages import Row
from sidejudge.integrations.raw import RawSpan
from sidejudge.integrations.store.pulled import Pulled, Taken
from sidejudge.monitor.ingest.outcomes import EndReason, TraceOutcomes
from sidejudge.monitor.ingest.sampler import Sampler

from .listed_trace import ListedTrace, grouped, left_out_at_once, left_out_once_settled

_ELSEWHERE: Final = "elsewhere"
"""Why a trace was not read here: another monitor of the fleet read it."""
MOST_NAMES: Final = 2000
"""Number of trace names whose service is remembered, the latest ones."""
_LONGEST: Final = 200
_Name: TypeAlias = tuple[str | None, str]


class Pending:
    """Processed traces are in the store before they leave this memory."""

    def __init__(
        self, *, pulled: Pulled, outcomes: TraceOutcomes, sampler: Sampler, clock_ns: Callable[[], int]
    ) -> None:
        self._pulled, self._outcomes, self._sampler, self._clock_ns = pulled, outcomes, sampler, clock_ns
        self.listed: dict[str, ListedTrace] = {}
        self.services = Services()
        """The services of names, learned from the traces that were read."""

    def __len__(self) -> int:
        return len(self.listed)

    @property
    def start_ns(self) -> int | None:
        """When the first row of any of them began."""
        return min((each.start_ns for each in self.listed.values()), default=None)

    def holds(self, trace_id: str) -> bool:
        """Whether it is not dealt with."""
        return trace_id in self.listed

    def keep(self, mine: Callable[[str], bool]) -> None:
        """Drop the others: another monitor deals with them."""
        self.listed = {trace_id: each for trace_id, each in self.listed.items() if mine(trace_id)}

    def set_back(self, now_ns: int) -> None:
        """The clock was set back to this time: what was seen later was seen now."""
        for each in self.listed.values():
            each.changed_ns, each.retry_ns = min(each.changed_ns, now_ns), min(each.retry_ns, now_ns)

    async def leave(self, elsewhere: Sequence[ListedTrace]) -> None:
        """Another monitor took these: they are not looked at again, and not counted here."""
        await self._pulled.put(
            [Taken(trace_id=each.trace_id, last_ns=each.last_ns, reason=_ELSEWHERE) for each in elsewhere]
        )
        for each in elsewhere:
            self.listed.pop(each.trace_id, None)

    def settled(self, settle_ns: int, rootless_ns: int, behind_ns: int) -> list[ListedTrace]:
        """The traces that may be read now, the oldest first; ``behind_ns`` as in ``ListedTrace.settled``."""
        now_ns = self._clock_ns()
        ready = [each for each in self.listed.values() if each.settled(now_ns, settle_ns, rootless_ns, behind_ns)]
        return sorted(ready, key=lambda each: each.start_ns)

    async def note(self, page: Sequence[Row]) -> None:
        """Note a page of a listing; traces that need no reading end at once."""
        now_ns = self._clock_ns()
        traces = grouped(page)
        fresh = [trace_id for trace_id in traces if trace_id not in self.listed]
        known = await asyncio.to_thread(self._pulled.known, fresh)
        ended: list[tuple[ListedTrace, EndReason]] = []
        for trace_id, rows in traces.items():
            reason, taken = known.get(trace_id, (None, frozenset()))
            if reason is not None:
                continue
            listed = self.listed.get(trace_id) or ListedTrace.of(trace_id, now_ns, taken)
            listed.add(rows, now_ns)
            if not listed.grown:
                continue
            why = self._left_out_at_once(listed)
            if why is None:
                self.listed[trace_id] = listed
            else:
                ended.append((listed, why))
        await self.end(ended)

    def _left_out_at_once(self, listed: ListedTrace) -> EndReason | None:
        if not is_trace_id(listed.trace_id):
            return EndReason.UNDECODABLE
        if listed.taken:
            return None
        if len(listed.spans) > MOST_IN_TRACE:
            return EndReason.SHED
        return left_out_at_once(self._sampler, bytes.fromhex(listed.trace_id), listed)

    async def drawn(self, listed: Sequence[ListedTrace]) -> list[ListedTrace]:
        """The settled traces that are to be read; the others end."""
        wanted: list[ListedTrace] = []
        ended: list[tuple[ListedTrace, EndReason]] = []
        for each in listed:
            # What was taken is drawn already.
            reason = None if each.taken else left_out_once_settled(self._sampler, bytes.fromhex(each.trace_id), each)
            if reason is None:
                wanted.append(each)
            else:
                ended.append((each, reason))
        await self.end(ended)
        return wanted

    async def end(self, ended: Sequence[tuple[ListedTrace, EndReason]]) -> None:
        """End these unread; earlier readings of them stay."""
        unread = [(each, reason) for each, reason in ended if not each.taken]
        await self._pulled.put(
            [Taken(trace_id=each.trace_id, last_ns=each.last_ns, reason=reason.value) for each, reason in unread]
        )
        for each, reason in unread:
            self.listed.pop(each.trace_id, None)
            if reason is EndReason.SAMPLED_OUT:
                self._outcomes.sampled_out(self.services.of(each), {bytes.fromhex(each.trace_id)})
            else:
                self._outcomes.seen()
                self._outcomes.ended(self.services.of(each), reason)
        for each, _ in ended:
            if each.taken:
                await self.done(each, frozenset(each.spans))

    async def done(self, listed: ListedTrace, spans: frozenset[bytes]) -> None:
        """These rows of it were taken."""
        taken = Taken(trace_id=listed.trace_id, last_ns=listed.last_ns, reason=None, spans=spans | listed.taken)
        await self._pulled.put([taken])
        self.listed.pop(listed.trace_id, None)


class Services:
    """The service of a trace by its name and environment, learned from traces that were read; listings show none.

    A name that one service alone has used there stands for it; one that several have used stands for none. Only
    outcomes use it; no verdict depends on it.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[_Name, str | None] = OrderedDict()

    def learn(self, listed: ListedTrace, spans: Sequence[RawSpan]) -> None:
        """Learn from the spans of a trace."""
        name = _name(listed)
        named = {span.resource.get("service.name") for span in spans}
        service = named.pop() if len(named) == 1 else None
        if name is None:
            return
        found = service if isinstance(service, str) and service else None
        self._known[name] = found if self._known.get(name, found) == found else None
        self._known.move_to_end(name)
        if len(self._known) > MOST_NAMES:
            self._known.popitem(last=False)

    def of(self, listed: ListedTrace) -> str | None:
        """The service of a trace that was not read; None where its name is unknown or ambiguous."""
        name = _name(listed)
        return None if name is None else self._known.get(name)


def _name(listed: ListedTrace) -> _Name | None:
    case = listed.case()
    return None if not case.name else (case.environment and case.environment[:_LONGEST], case.name[:_LONGEST])
