"""Past: verdicts in order of time, from a store or from a file of verdicts (JSON Lines)."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Protocol, cast

import orjson

from sidejudge.integrations.history.reading import history_records
from sidejudge.integrations.store.archive import latest_verdict_ns, read_verdicts
from sidejudge.monitor.alerting.observation import Key, Observation, observe_stored
from sidejudge.monitor.offline.engine.engine import Engine, Here
from sidejudge.monitor.offline.score.case_lines import NumberedLine, json_of, lines
from sidejudge.monitor.offline.score.chunks import chunks
from sidejudge.scoring.runs.verdict_line import VerdictLineError, read_verdict
from sidejudge.scoring.verdict.documents import VerdictDocument

_DAY_NS = 86_400 * 10**9
Seen = tuple[Key, Observation, VerdictDocument]


class Past(Protocol):
    """Where verdicts come from. ``latest_ns`` is when the latest was reached, ``None`` when there is none."""

    latest_ns: int | None

    def since(self, begin_ns: int) -> Iterator[Seen]:
        """Those from then on, the oldest first."""
        ...


class StoredPast:
    """The store of a monitor, one that runs or one that is gone. Raises ``StoreUnavailable``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.latest_ns = latest_verdict_ns(path)

    def since(self, begin_ns: int) -> Iterator[Seen]:
        yield from _seen(read_verdicts(self._path, begin_ns))


class FiledPast:
    """A file of verdicts, in any order; only when and where each line stands is held in memory.

    ``complain`` gets one line of text for each line that is no verdict, or has no time;
    ``bad_lines`` counts them. ``progress`` gets the bytes read. ``engine`` is where lines are checked; None: here.
    """

    def __init__(
        self, path: Path, complain: Callable[[str], None], progress: Callable[[int], None], engine: Engine | None = None
    ) -> None:
        self._path = path
        self.bad_lines = 0
        found: list[tuple[int, int]] = []
        with path.open("rb", buffering=1 << 20) as file:
            for placed in (engine or Here()).map(_placing, None, chunks(lines(file), most=1024)):
                self.bad_lines += len(placed.problems)
                for problem in placed.problems:
                    complain(problem)
                found += placed.found
                progress(placed.read)
        found.sort()
        self._at = array("q", (at_ns for at_ns, _ in found))
        self._place = array("q", (place for _, place in found))
        self.latest_ns = self._at[-1] if found else None

    def since(self, begin_ns: int) -> Iterator[Seen]:
        with self._path.open("rb") as file:
            for at_ns, place in zip(self._at, self._place, strict=True):
                if at_ns >= begin_ns:
                    file.seek(place)
                    yield from _seen([orjson.loads(file.readline())])


class HistoryPast:
    """The verdicts that ``sinks.parquet`` has written; some days of them are held in memory.

    ``complain`` gets one line of text for each row that is no verdict. Raises ``HistoryError``.
    """

    def __init__(self, path: str, complain: Callable[[str], None]) -> None:
        self._path = path
        self.bad_lines = 0
        self.latest_ns: int | None = None
        for number, verdict in enumerate(history_records(path, "verdicts", complain=complain), 1):
            try:
                self.latest_ns = max(self.latest_ns or 0, _checked(orjson.loads(orjson.dumps(verdict))))
            except VerdictLineError as error:
                self.bad_lines += 1
                complain(f"row {number}: {error}")

    def since(self, begin_ns: int) -> Iterator[Seen]:
        held: list[tuple[int, VerdictDocument]] = []
        done_ns = begin_ns
        for at_ns, verdict in self._placed(begin_ns):
            held.append((at_ns, verdict))
            if at_ns >= done_ns + 3 * _DAY_NS:
                done_ns = at_ns - 2 * _DAY_NS  # a folder holds one day, so that nothing older comes any more
                held.sort(key=itemgetter(0))
                end = bisect_left(held, done_ns, key=itemgetter(0))
                yield from _seen(each for _, each in held[:end])
                held = held[end:]
        held.sort(key=itemgetter(0))
        yield from _seen(each for _, each in held)

    def _placed(self, begin_ns: int) -> Iterator[tuple[int, VerdictDocument]]:
        day = datetime.fromtimestamp(max(0, begin_ns) / 1e9, UTC).date().isoformat()
        for verdict in history_records(self._path, "verdicts", day):
            with suppress(VerdictLineError):  # counted when the history was opened
                if (at_ns := _checked(orjson.loads(orjson.dumps(verdict)))) >= begin_ns:
                    yield at_ns, verdict


@dataclass(slots=True)
class _Placed:
    """When the verdicts of some lines were reached, and where each begins in the file."""

    read: int
    found: list[tuple[int, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def _placing(_: None) -> Callable[[Sequence[NumberedLine]], _Placed]:
    return _placed


def _placed(chunk: Sequence[NumberedLine]) -> _Placed:
    placed = _Placed(chunk[-1].read)
    for line in chunk:
        try:
            placed.found.append((_checked(json_of(line, VerdictLineError)), line.read - len(line.text or b"")))
        except VerdictLineError as error:
            placed.problems.append(f"line {line.number}: {error}")
    return placed


def _seen(verdicts: Iterable[VerdictDocument]) -> Iterator[Seen]:
    for verdict in verdicts:
        for key, seen in observe_stored([verdict]):
            yield key, seen, verdict


def _checked(stated: object) -> int:
    """When the verdict of a line was reached. ``VerdictLineError`` for what is none, or cannot be placed in time."""
    read_verdict(stated)
    verdict = cast("VerdictDocument", stated)  # a map, as that has found
    for name in ("service", "environment", "created_at", "sampling_probability", "composite_norm", "passed"):
        if name not in verdict:
            raise VerdictLineError(f"{name}: is missing")
    try:
        [(_, seen)] = observe_stored([verdict])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise VerdictLineError(f"created_at or scores: cannot be read ({type(error).__name__})") from None
    return seen.at_ns
