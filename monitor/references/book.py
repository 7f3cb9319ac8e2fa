"""Book of references: what ought to have been answered, looked up in the configured order; the first found wins.

What was looked for, and whether it was there, is committed with the verdict. So a reference that comes or changes
later is noticed, after a restart too, and its trace is judged again while its spans are held: a revision under the
same ids.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from integrations.store.errors import StoreError
from scoring.case import Case
from scoring.span import Json

from .entries import digest
from .places import Place, Unreadable, asked_of, in_metadata

log = logging.getLogger("sidejudge.references")

REFRESH_S: Final = 60
"""How often places are read anew."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found, where, and everything that was looked for on the way: (name of the key, digest or None)."""

    value: Json
    where: str | None
    lookups: tuple[tuple[bytes, bytes | None], ...]


class Remembering(Protocol):
    """What it asks of the store."""

    def referred(self, since_ns: int) -> list[tuple[bytes, bytes, bytes | None]]: ...


class References:
    """``sources`` in order: a key of metadata, or a place. ``reopen`` has a trace judged again, if it still can be."""

    def __init__(
        self,
        sources: Sequence[str | Place],
        *,
        store: Remembering,
        reopen: Callable[[bytes], bool],
        clock_ns: Callable[[], int],
        late_ns: int,
    ) -> None:
        self._sources = sources
        self._places = [each for each in sources if not isinstance(each, str)]
        self._store, self._reopen, self._clock_ns, self._late_ns = store, reopen, clock_ns, late_ns
        self._unreadable: dict[str, str] = {}

    def find(self, case: Case) -> Found:
        """The reference of a case. Safe in any thread."""
        lookups: list[tuple[bytes, bytes | None]] = []
        for source in self._sources:
            if isinstance(source, str):
                value, where = in_metadata(source, case), f"metadata.{source}"
            else:
                key = asked_of(source, case)
                if key is None:
                    continue
                value, where = source.entries.get(key), source.entries.place
                lookups.append((source.entries.name_of(key), digest(value)))
            if value is not None:
                return Found(value, where, tuple(lookups))
        return Found(None, None, tuple(lookups))

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Places that could not be read the last time, and why."""
        return self._unreadable

    async def refresh(self) -> int:
        """Read all places anew, and have the traces judged again whose references came or changed; how many."""
        for place in self._places:
            try:
                await place.refresh()
            except Unreadable as error:
                if self._unreadable.get(place.entries.place) != str(error):
                    log.warning("references cannot be read; those that were read stand", extra={"cause": str(error)})
                self._unreadable[place.entries.place] = str(error)
            else:
                self._unreadable.pop(place.entries.place, None)
        try:
            return self._judge_again()
        except StoreError as error:
            log.warning("could not look for traces with new references", extra={"cause": str(error)})
            return 0

    def _judge_again(self) -> int:
        # Keys that nothing is held under are compared too: a reference may have been taken away. Of a place that could
        # not be read yet nothing is known.
        now = {name: told for place in self._places for name, told in place.entries.digests().items()}
        unread = {place.entries.mark for place in self._places if not place.entries.read}
        changed = {
            trace_id
            for name, trace_id, told in self._store.referred(self._clock_ns() - self._late_ns)
            if name[:4] not in unread and now.get(name) != told
        }
        return sum(map(self._reopen, changed))
