"""Reference look-up: the expected outcome, from the configured places in order; the first found wins.

It also looks up others' scores of a trace in Langfuse, where a rubric needs them, in the same way.

The look-ups and their results are committed with the verdict. So a reference that comes, changes or goes later is
noticed, also after a restart, and its trace is judged again: a revision under the same ids. While its spans are held
the assembler closes it once more; after that it is re-evaluated (``monitor/revise``).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from sidejudge.integrations.langfuse.client import Connections, Langfuse
from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.pulled import LateReferenceTable
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.rubrics import reached, reported_names
from sidejudge.monitor.config.sources import ReferenceSection
from sidejudge.monitor.ingest.assembler import Assembler
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.reported import ReportedScore, read_reported
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.trace.time_units import MINUTE_NS

from .places import InCorrections, InDataset, InFile, InScores, ReferencePlace, Unreadable, digest, key_of_case

log = logging.getLogger("sidejudge.references")

REFRESH_S: Final = 60
"""How often places are read anew."""
SETTLES_NS: Final = 2 * REFRESH_S * 10**9
"""How long a change must last before a trace is read anew for it, because a file may be half written."""
_RECENT_NS: Final = 10 * MINUTE_NS
"""Verdicts that are always compared, because their references were read before they were written."""
_BATCH: Final = 5_000
"""Traces in one notification."""


Lookups: TypeAlias = tuple[tuple[bytes, bytes | None], ...]
"""Keys that were looked up: (name of the key, digest of what was found or None)."""


@dataclass(frozen=True, slots=True)
class Found:
    """The reference found, its place, and every key that was looked up."""

    value: Json
    where: str | None
    lookups: Lookups


class References:
    """``sources`` in order: a key of metadata, or a place.

    ``reopen`` has a trace judged again and returns whether it is still held. It may be within ``late_ns`` of the
    verdict; ``within_ns`` (by place, in order) is how long after a verdict a change counts at all, and
    ``late_references`` receives traces that are not held any more. ``scores`` makes the place for others' scores of one
    name; they count for ``scores_within_ns``.
    """

    def __init__(
        self,
        sources: Sequence[str | ReferencePlace],
        *,
        store: Store,
        reopen: Callable[[bytes], bool],
        clock_ns: Callable[[], int],
        late_ns: int,
        within_ns: Sequence[int] = (),
        late_references: LateReferenceTable | None = None,
        scores: Callable[[str], ReferencePlace] | None = None,
        scores_within_ns: int = 0,
    ) -> None:
        self._sources = sources
        self._outcomes = [each for each in sources if not isinstance(each, str)]
        self._make_scores, self._scores_within_ns = scores, scores_within_ns
        self._scores: Mapping[str, ReferencePlace] = {}
        self._store, self._reopen, self._clock_ns = store, reopen, clock_ns
        self._recent_ns = max(late_ns, _RECENT_NS)
        self._within_ns = list(within_ns) or [self._recent_ns] * len(self._outcomes)
        self._late_references = late_references
        self._compared: Sequence[tuple[str, int]] | None = None
        self._unreadable: dict[str, Unreadable] = {}

    @property
    def elsewhere(self) -> bool:
        """Whether expected outcomes are looked for elsewhere than in the traces."""
        return bool(self._outcomes)

    @property
    def follows(self) -> bool:
        """Whether scores of others are read."""
        return bool(self._scores)

    def follow(self, names: Iterable[str]) -> None:
        """Read scores of others of these names from now on, where they can be read."""
        if (make := self._make_scores) is not None:
            self._scores = {name: self._scores.get(name) or make(name) for name in names}

    def scores(self, case: Case, names: Iterable[str]) -> tuple[tuple[ReportedScore, ...], Lookups]:
        """Others' scores of a case under these names, and every key that was looked up. Safe in any thread."""
        found: list[ReportedScore] = []
        lookups: list[tuple[bytes, bytes | None]] = []
        for place in filter(None, map(self._scores.get, names)):
            key = key_of_case(place.key, case)
            if key is not None:
                value = place.entries.get(key)
                lookups.append((place.entries.name_of(key), digest(value)))
                found += read_reported(value)
        return tuple(found), tuple(lookups)

    @property
    def _places(self) -> list[tuple[ReferencePlace, int]]:
        """All places, each with how long a change there counts after a verdict, ns."""
        scores = [(each, self._scores_within_ns) for each in self._scores.values()]
        return [*zip(self._outcomes, self._within_ns, strict=True), *scores]

    def find(self, case: Case) -> Found:
        """The reference of a case. Safe in any thread."""
        lookups: list[tuple[bytes, bytes | None]] = []
        for source in self._sources:
            if isinstance(source, str):
                value, where = decoded(case.metadata.get(source)), f"metadata.{source}"
            else:
                key = key_of_case(source.key, case)
                if key is None:
                    continue
                value, where = source.entries.get(key), source.entries.place
                lookups.append((source.entries.name_of(key), digest(value)))
            if value is not None:
                return Found(value, where, tuple(lookups))
        return Found(None, None, tuple(lookups))

    @property
    def unreadable(self) -> Mapping[str, Unreadable]:
        """Places that could not be read the last time, and why."""
        return self._unreadable

    def places(self) -> Mapping[str, str]:
        """The state of each place that is read: ``starting``, ``ok`` or ``retrying``."""
        return {each.entries.place: self._state_of(each) for each, _ in self._places}

    def _state_of(self, place: ReferencePlace) -> str:
        if place.entries.place in self._unreadable:
            return "retrying"
        return "ok" if place.entries.read else "starting"

    async def refresh(self) -> int:
        """Read all places anew, and have the traces judged again whose references came or changed; how many."""
        for place, _ in self._places:
            try:
                await place.refresh()
            except Unreadable as error:
                if str(self._unreadable.get(place.entries.place)) != str(error):
                    log.warning("references cannot be read; those that were read stand", extra={"cause": str(error)})
                self._unreadable[place.entries.place] = error
            else:
                self._unreadable.pop(place.entries.place, None)
        try:
            return await self._judge_again()
        except StoreError as error:
            log.warning("could not look for traces with new references", extra={"cause": str(error)})
            return 0

    def wanted(self, trace_id: bytes) -> bytes | None:
        """16 bytes for the present reference of a trace; None while it is unchanged."""
        places = self._read_places()
        changed = sorted(
            name + (places[name[:4]].digests.get(name) or b"")
            for name, seen in self._store.referred_of(trace_id)
            if name[:4] in places and places[name[:4]].differs(name, seen)
        )
        return hashlib.blake2b(b"".join(changed), digest_size=16).digest() if changed else None

    async def _judge_again(self) -> int:
        # All that was judged is looked through when anything is new; verdicts that were under way meanwhile always.
        versions = [(place.entries.place, place.entries.version) for place, _ in self._places]
        longest_ns = max((self._recent_ns, *(within_ns for _, within_ns in self._places)))
        since_ns = self._clock_ns() - (self._recent_ns if versions == self._compared else longest_ns)
        referred, still_here = iter(self._store.referred(since_ns)), 0
        while changed := await asyncio.to_thread(self._changed, referred):
            gone = {trace_id: what for trace_id, what in changed.items() if not self._reopen(trace_id)}
            still_here += len(changed) - len(gone)
            if gone and self._late_references is not None:
                now_ns = self._clock_ns()
                await self._late_references.note(gone, now_ns, now_ns + SETTLES_NS)
        self._compared = versions
        return still_here

    def _changed(self, referred: Iterator[tuple[int, bytes, bytes, bytes | None]]) -> dict[bytes, bytes]:
        """The next traces whose references have changed, and the new ones. Runs in the default thread pool.

        Keys without an entry are compared too, because a reference may have been removed.
        """
        now_ns, places = self._clock_ns(), self._read_places()
        found: set[bytes] = set()
        for closed_ns, name, trace_id, seen in referred:
            place = places.get(name[:4])
            if place is not None and place.differs(name, seen) and closed_ns >= now_ns - place.within_ns:
                found.add(trace_id)
                if len(found) >= _BATCH:
                    break
        return {trace_id: what for trace_id in found if (what := self.wanted(trace_id)) is not None}

    def _read_places(self) -> dict[bytes, _Read]:
        """By mark. A place that could not be read yet is unknown."""
        return {
            place.entries.mark: _Read(place.entries.digests(), place.entries.whole, within_ns)
            for place, within_ns in self._places
            if place.entries.read
        }


class _Read(NamedTuple):
    """A place as it was read last. What a partly read one lacks is unknown."""

    digests: Mapping[bytes, bytes | None]
    whole: bool
    within_ns: int

    def differs(self, name: bytes, seen: bytes | None) -> bool:
        now = self.digests.get(name)
        return now != seen and (now is not None or self.whole)


def references(
    config: Config,
    connections: Connections,
    store: Store,
    assembler: Assembler,
    clock_ns: Callable[[], int],
    *,
    under_way: Callable[[bytes], bool] = lambda _: False,
    late_references: LateReferenceTable | None = None,
    shared: Callable[[ReferencePlace], ReferencePlace] = lambda place: place,
) -> References | None:
    """The look-up of references; None where they are in the traces alone.

    ``shared`` has a fleet read what is in Langfuse once.
    ``under_way`` returns whether a trace that the assembler does not hold is being judged.
    """
    sink = config.sinks.langfuse
    if config.revised_within is None and sink is None:
        return None

    def reopen(trace_id: bytes) -> bool:
        here = assembler.reopen(trace_id, clock_ns())
        return here or assembler.knows(trace_id) or under_way(trace_id)

    project = config.langfuse
    wanted = any(each.in_langfuse for each in config.references)
    langfuse = connections.to(project.access) if project is not None and wanted else None
    others = None if sink is None else connections.to(sink.access)
    # Twice as far back: whatever a verdict was held against is read anew for as long as it may be revised.
    kept_ns = 2 * (config.kept_for if sink is None else max(config.kept_for, sink.reevaluate_within)).ns
    sources = [_source(each, langfuse, clock_ns, kept_ns) for each in config.references]
    found = References(
        # A place in Langfuse is the same for every monitor with these keys; a file may be another on each machine.
        [each if isinstance(each, str | InFile) else shared(each) for each in sources],
        store=store,
        reopen=reopen,
        clock_ns=clock_ns,
        late_ns=config.late_for.ns,
        within_ns=[each.within.ns for each in config.references if each.metadata is None],
        late_references=late_references,
        scores=None if others is None else lambda name: shared(InScores(others, name, clock_ns, kept_ns)),
        scores_within_ns=0 if sink is None else sink.reevaluate_within.ns,
    )
    found.follow(reported_names(reached(config).values()))
    return found


def _source(
    each: ReferenceSection, langfuse: Langfuse | None, clock_ns: Callable[[], int], kept_ns: int
) -> str | ReferencePlace:
    if each.metadata is not None:
        return each.metadata
    if each.file is not None and each.key is not None:
        return InFile(each.file, each.key)
    if langfuse is None:
        raise ValueError("a reference in Langfuse needs its address and keys")
    if each.langfuse_dataset is not None:
        return InDataset(langfuse, each.langfuse_dataset, each.key)
    return InCorrections(langfuse, clock_ns, kept_ns)
