"""Places: where references are read from. Each fills its entries anew when it is read."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.datasets import Correction, corrections, dataset_items
from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.span import Json

from .entries import MOST_ENTRIES, Entries, Gathering, key_of_case, key_of_map

log = logging.getLogger("sidejudge.references")

SOURCE_TRACE: Final = "trace_id"
_EXPECTED: Final = ("expected_outcome", "expected_output", "expectedOutput")
_LONGEST_LINE: Final = 4 * 2**20


class Unreadable(SidejudgeError):  # noqa: N818  # it names a state, as StoreCorrupt does
    """A place that could not be read now; what was read before stands."""


class ReferencePlace(Protocol):
    """One place. ``key`` is the part of a trace that it is searched by."""

    entries: Entries
    key: str

    async def refresh(self) -> None:
        """Read it anew, or what is new of it. Raises ``Unreadable``."""


class InDataset:
    """A dataset of Langfuse, whole, by source trace or by what items and traces share."""

    def __init__(self, langfuse: Langfuse, name: str, key: str | None) -> None:
        self.entries = Entries(f"dataset {name}")
        self.key = key or SOURCE_TRACE
        self._by_source = key is None
        self._langfuse, self._name = langfuse, name

    async def refresh(self) -> None:
        gathering = Gathering()
        try:
            async for item in dataset_items(self._langfuse, self._name):
                shared = self.key.removeprefix("metadata.")
                key = item.trace_id if self._by_source else key_of_map(shared, item.metadata)
                if not gathering.add(key, item.expected):
                    break
        except LangfuseError as error:
            raise Unreadable(f"dataset {self._name}: {error}") from error
        _take(self.entries, gathering)


class InCorrections:
    """Corrections of the last while, of any trace.

    An edit keeps the time of the first writing, and a deletion leaves nothing to list: so all of that while are listed
    anew, each minute where a request holds them, less often the more there are. In between, what is new is listed.
    One that is older than the while is held as it was read last. Where others replaced the entries meanwhile, as in a
    fleet, what was listed before is out of date: all are listed anew.
    """

    def __init__(self, langfuse: Langfuse, clock_ns: Callable[[], int], kept_ns: int) -> None:
        self.entries = Entries("corrections")
        self.key = SOURCE_TRACE
        self._langfuse, self._clock_ns, self._kept_ns = langfuse, clock_ns, kept_ns
        self._since_ns = self._all_due_ns = 0
        self._held: dict[str, Correction] = {}
        self._listed_version = self.entries.version

    async def refresh(self) -> None:
        begun_ns = self._clock_ns()
        oldest_ns = begun_ns - self._kept_ns
        every = begun_ns >= self._all_due_ns or self.entries.version != self._listed_version
        since_ns = oldest_ns if every else self._since_ns
        found: dict[str, Correction] = {}
        try:
            async for each in corrections(self._langfuse, since_ns):
                found.setdefault(each.trace_id, each)
                if len(found) >= MOST_ENTRIES:
                    break
        except LangfuseError as error:
            raise Unreadable(f"corrections: {error}") from error
        if every:
            self._all_due_ns = begun_ns + (1 + len(found) // _CORRECTIONS_A_REQUEST) * _ALL_AGAIN_NS
        held = {
            trace_id: known
            for trace_id, known in self._held.items()
            if not every or known.at_ns < oldest_ns or len(found) >= MOST_ENTRIES
        }
        gathering = Gathering()
        self._held = {}
        for trace_id, each in (found | {key: value for key, value in held.items() if key not in found}).items():
            if not gathering.add(trace_id, each.output):  # the oldest go first where not all fit
                break
            self._held[trace_id] = each
        # A score is there some time after its timestamp: what is new is looked for a while back.
        self._since_ns = begun_ns - _SCORES_LAG_NS
        _take(self.entries, gathering, whole=len(found) < MOST_ENTRIES)
        self._listed_version = self.entries.version


class InFile:
    """A file of JSON lines, read anew when it has changed."""

    def __init__(self, path: Path, key: str) -> None:
        self.entries = Entries(f"file {path}")
        self.key = key
        self._path = path
        self._read: tuple[int, int] | None = None

    async def refresh(self) -> None:
        await asyncio.to_thread(self._refresh)

    def _refresh(self) -> None:
        try:
            now = self._path.stat()
            if self._read == (now.st_mtime_ns, now.st_size):
                return
            gathering = Gathering()
            wrong = 0
            with self._path.open(encoding="utf-8", errors="replace") as lines:
                while line := lines.readline(_LONGEST_LINE):
                    found = _line(line)
                    if line.strip() and found is None:
                        wrong += 1
                    elif found is not None and not gathering.add(key_of_map(self.key, found), _expected(found)):
                        break
        except OSError as error:
            raise Unreadable(f"{self._path}: {error.strerror or error}") from error
        self._read = (now.st_mtime_ns, now.st_size)
        if wrong:
            log.warning("lines of a file of references are no JSON objects", extra={"lines": wrong})
        _take(self.entries, gathering)


def in_metadata(key: str, case: Case) -> Json:
    """The reference that the trace brings itself."""
    return decoded(case.metadata.get(key))


def requested_of(place: ReferencePlace, case: Case) -> str | None:
    """The value of a trace that a place is searched by."""
    return key_of_case(place.key, case)


def _take(entries: Entries, gathering: Gathering, *, whole: bool = True) -> None:
    if gathering.left_out:
        log.warning("not all references fit", extra={"place": entries.place, "held": len(gathering.held)})
    entries.replace(gathering.held, whole=whole and not gathering.left_out)


def _line(line: str) -> Mapping[str, Json] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _expected(found: Mapping[str, Json]) -> Json:
    return next((found[key] for key in _EXPECTED if found.get(key) is not None), None)


_SCORES_LAG_NS: Final = 600 * 10**9
_ALL_AGAIN_NS: Final = 50 * 10**9
"""How soon all corrections are listed again, for each request that it takes: a little less than places are read."""
_CORRECTIONS_A_REQUEST: Final = 100
