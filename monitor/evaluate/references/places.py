"""Places: where references are read from. Each fills its entries anew when it is read."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol

from msgspec import to_builtins

from sidejudge.integrations.langfuse.annotations import ListedScore, scores_of_others, still_there
from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.datasets import dataset_items
from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.integrations.langfuse.pages import PAGE
from sidejudge.integrations.langfuse.probe import ABSENT
from sidejudge.monitor.config.match import metadata_text
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.shown_text import one_line
from sidejudge.scoring.trace.jsontext import no_constant
from sidejudge.scoring.trace.reported import LONGEST_NAME, LONGEST_TEXT, MOST_REPORTED, ReportedScore
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.trace.time_units import HOUR_NS, MINUTE_NS

log = logging.getLogger("sidejudge.references")

SOURCE_TRACE: Final = "trace_id"
_EXPECTED: Final = ("expected_outcome", "expected_output", "expectedOutput")
_LONGEST_LINE: Final = 4 * 2**20


MOST_ENTRIES: Final = 50_000
"""Most references of one place; further ones are left out and reported."""
MOST_CHARACTERS: Final = 64 * 2**20
"""Characters of all references of one place together, as JSON."""
_LONGEST_KEY: Final = 1000


class Entries:
    """The references of one place. A reader during a replacement sees the old or the new ones, never a mixture."""

    def __init__(self, place: str) -> None:
        self.place: Final = place
        self.mark: Final = hashlib.blake2b(place.encode("utf-8", "replace"), digest_size=4).digest()
        """4 bytes that stand for the place."""
        self._held: Mapping[str, Json] = {}
        self._digests: Mapping[bytes, bytes | None] = {}
        self.read = False
        """Whether it was read at all."""
        self.whole = True
        """Whether a missing key is certainly absent: in a partly read place it is unknown."""
        self.version = 0
        """Counts the changes of the held references."""

    def __len__(self) -> int:
        return len(self._held)

    @property
    def held(self) -> Mapping[str, Json]:
        """All references, by their keys."""
        return self._held

    def get(self, key: str) -> Json:
        """The reference under a key; None when there is none."""
        return self._held.get(key)

    def replace(self, held: Mapping[str, Json], *, whole: bool = True) -> None:
        """Replace the held references; with ``whole`` they are all that exist."""
        digests = {self.name_of(key): digest(value) for key, value in held.items()}
        self.version += not self.read or digests != self._digests or whole is not self.whole
        self._held, self._digests, self.whole, self.read = held, digests, whole, True

    def digests(self) -> Mapping[bytes, bytes | None]:
        """The digest of each reference, by the name of its key."""
        return self._digests

    def name_of(self, key: str) -> bytes:
        """16 bytes that represent a key: ``mark``, then the key's digest."""
        return self.mark + hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=12).digest()


class Gathering:
    """New entries while they are read: of two under one key the first that expects something stays."""

    def __init__(self) -> None:
        self.held: dict[str, Json] = {}
        self.left_out = 0
        self._characters = 0

    def add(self, key: str | None, value: Json) -> bool:
        """Take one; False when nothing more fits."""
        if key is None or value is None or len(key) > _LONGEST_KEY or key in self.held:
            return True
        size = len(json.dumps(value))
        if len(self.held) >= MOST_ENTRIES or self._characters + size > MOST_CHARACTERS:
            self.left_out += 1
            return False
        self._characters += size
        self.held[key] = value
        return True


def digest(value: Json) -> bytes | None:
    """16 bytes that change with the reference; None for none."""
    if value is None:
        return None
    stated = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(stated.encode(), digest_size=16).digest()


def key_of_case(key: str, case: Case) -> str | None:
    """The value of a trace under a configured key, as text; None without one."""
    if key.startswith("metadata."):
        return key_of_map(key.removeprefix("metadata."), case.metadata)
    value = getattr(case, key)
    return value if isinstance(value, str) and value else None


def key_of_map(key: str, held: Mapping[str, Json]) -> str | None:
    """The scalar under a key as text, found as ``match`` finds it; None without one."""
    return metadata_text(held, key) or None


class Unreadable(SidejudgeError):  # noqa: N818  # it names a state, as StoreCorrupt does
    """A place that cannot be read now; its earlier references stay."""


class ReferencePlace(Protocol):
    """One place. ``key`` is the part of a trace by which it is searched."""

    entries: Entries
    key: str

    async def refresh(self) -> None:
        """Read all of it, or only new entries. Raises ``Unreadable``."""


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


class _ScoresInLangfuse:
    """Scores of the last while, of any trace.

    An edit keeps the time of the first writing, and a deletion leaves nothing to list: so all of that while are listed
    anew, each minute where a request holds them, less often the more there are. In between, what is new is listed. One
    that a list lacks is asked for by its id, for pages may shift while they are read. One that is older than the while
    is held as it was read last. Where others replaced the entries meanwhile, as in a fleet, what was listed before is
    out of date: all are listed anew.
    """

    def __init__(
        self, langfuse: Langfuse, place: str, filters: Mapping[str, str], clock_ns: Callable[[], int], kept_ns: int
    ) -> None:
        self.entries, self.key = Entries(place), SOURCE_TRACE
        self._langfuse, self._filters, self._clock_ns, self._kept_ns = langfuse, filters, clock_ns, kept_ns
        self._since_ns = self._all_due_ns = 0
        self._held: dict[str, ListedScore] = {}
        self._listed_version = self.entries.version
        self._v3 = True

    async def refresh(self) -> None:
        begun_ns = self._clock_ns()
        oldest_ns = begun_ns - self._kept_ns
        usual = self._since_ns <= begun_ns < self._all_due_ns  # earlier: the clock was set back
        every = not usual or self.entries.version != self._listed_version
        since_ns = oldest_ns if every else self._since_ns
        try:
            found = await self._listed(since_ns, begun_ns + _AHEAD_NS)
            full = len(found) >= MOST_ENTRIES
            held = {name: each for name, each in self._held.items() if name not in found}
            if every and not full:
                gone = [name for name, each in held.items() if each.at_ns >= oldest_ns]
                there = await still_there(self._langfuse, gone, self._filters, v3=self._v3)
                found |= {each.id: each for each in there}
                held = {name: each for name, each in held.items() if each.at_ns < oldest_ns}
        except LangfuseError as error:
            raise Unreadable(f"{self.entries.place}: {error}") from error
        if every:
            self._all_due_ns = begun_ns + (1 + len(found) // PAGE) * _ALL_AGAIN_NS
        gathering = Gathering()
        latest_first = sorted((held | found).values(), key=lambda each: (each.at_ns, each.id), reverse=True)
        for trace_id, value in self._by_trace(latest_first).items():
            if not gathering.add(trace_id, value):  # the oldest go first where not all fit
                break
        self._held = {each.id: each for each in latest_first if each.subject in gathering.held}
        # A score is there some time after its timestamp: what is new is looked for a while back.
        self._since_ns = begun_ns - _SCORES_LAG_NS
        _take(self.entries, gathering, whole=not full)
        self._listed_version = self.entries.version

    async def _listed(self, since_ns: int, until_ns: int) -> dict[str, ListedScore]:
        found: dict[str, ListedScore] = {}
        try:
            async for each in scores_of_others(
                self._langfuse, self._filters, since_ns=since_ns, until_ns=until_ns, v3=self._v3
            ):
                found.setdefault(each.id, each)
                if len(found) >= MOST_ENTRIES:
                    break
        except LangfuseError as error:
            if not self._v3 or error.kind not in ABSENT:
                raise
            self._v3 = False  # an older server
            return await self._listed(since_ns, until_ns)
        return found

    def _by_trace(self, latest_first: Iterable[ListedScore]) -> Mapping[str, Json]:
        """The reference of each trace."""
        raise NotImplementedError


class InCorrections(_ScoresInLangfuse):
    """People's corrections of outputs: the latest for each trace."""

    def __init__(self, langfuse: Langfuse, clock_ns: Callable[[], int], kept_ns: int) -> None:
        super().__init__(langfuse, "corrections", {"dataType": "CORRECTION"}, clock_ns, kept_ns)

    def _by_trace(self, latest_first: Iterable[ListedScore]) -> Mapping[str, Json]:
        found: dict[str, Json] = {}
        for each in latest_first:
            found.setdefault(each.subject, each.value)
        return found


class InScores(_ScoresInLangfuse):
    """Others' scores of one name: by people, by Langfuse's evaluators and by other programs."""

    def __init__(self, langfuse: Langfuse, name: str, clock_ns: Callable[[], int], kept_ns: int) -> None:
        super().__init__(langfuse, f"scores {name}", {"name": name}, clock_ns, kept_ns)

    def _by_trace(self, latest_first: Iterable[ListedScore]) -> Mapping[str, Json]:
        found: dict[str, list[Json]] = {}
        for each in latest_first:
            of_trace = found.setdefault(each.subject, [])
            if len(of_trace) < MOST_REPORTED:
                of_trace.append(to_builtins(_reported(each)))
        return {trace_id: each[::-1] for trace_id, each in found.items()}


def _reported(score: ListedScore) -> ReportedScore:
    text = score.value if isinstance(score.value, str) else None
    step = score.observation if score.observation is not None and len(score.observation) == _SPAN else None
    return ReportedScore(
        name=score.name, value=None if isinstance(score.value, str) else score.value,
        label=text and one_line(text, LONGEST_NAME),
        explanation=score.comment and one_line(score.comment, LONGEST_TEXT),
        by=score.by and one_line(score.by, LONGEST_NAME), via="langfuse", at_ns=score.at_ns, span_id=step,
    )  # fmt: skip


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
            with self._path.open(encoding="utf-8-sig", errors="replace") as lines:
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


def _take(entries: Entries, gathering: Gathering, *, whole: bool = True) -> None:
    if gathering.left_out:
        log.warning("not all references fit", extra={"place": entries.place, "held": len(gathering.held)})
    entries.replace(gathering.held, whole=whole and not gathering.left_out)


def _line(line: str) -> Mapping[str, Json] | None:
    try:
        found = json.loads(line, parse_constant=no_constant)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _expected(found: Mapping[str, Json]) -> Json:
    return next((found[key] for key in _EXPECTED if found.get(key) is not None), None)


_SCORES_LAG_NS: Final = 10 * MINUTE_NS
_AHEAD_NS: Final = HOUR_NS
"""How far ahead the clock of a score's writer may be."""
_SPAN: Final = 16
"""Digits of a step's id."""
_ALL_AGAIN_NS: Final = 50 * 10**9
"""How soon all scores are listed again, for each request that it takes: a little less than places are read."""
