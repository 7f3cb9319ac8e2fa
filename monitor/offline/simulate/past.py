"""Past: verdicts in order of time, from a store or from a file of verdicts (JSON Lines)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import orjson

from integrations.store.archive import latest_verdict_ns, read_verdicts
from monitor.alerting.observation import Key, Observation, observe_stored
from monitor.offline.score.lines import MAX_LINE, lines
from scoring.runs.verdict_fields import VerdictLineError
from scoring.runs.verdict_line import read_verdict

Seen = tuple[Key, Observation, Mapping[str, Any]]


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
    ``bad_lines`` counts them. ``progress`` gets the bytes read.
    """

    def __init__(self, path: Path, complain: Callable[[str], None], progress: Callable[[int], None]) -> None:
        self._path = path
        self.bad_lines = 0
        found: list[tuple[int, int]] = []
        with path.open("rb", buffering=1 << 20) as file:
            for line in lines(file):
                progress(line.read)
                try:
                    at_ns = _checked(line.text)
                except VerdictLineError as error:
                    self.bad_lines += 1
                    complain(f"line {line.number}: {error}")
                    continue
                found.append((at_ns, line.read - len(line.text or b"")))
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


def _seen(verdicts: Iterable[Mapping[str, Any]]) -> Iterator[Seen]:
    for verdict in verdicts:
        for key, seen in observe_stored([verdict]):
            yield key, seen, verdict


def _checked(text: bytes | None) -> int:
    """When the verdict of a line was reached. ``VerdictLineError`` for what is none, or cannot be placed in time."""
    if text is None:
        raise VerdictLineError(f"is longer than {MAX_LINE} bytes")
    try:
        stated = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise VerdictLineError(f"is not JSON: {error.msg}") from None
    read_verdict(stated)
    for field in ("service", "environment", "created_at", "sampling_probability", "composite_norm", "passed"):
        if field not in stated:
            raise VerdictLineError(f"{field}: is missing")
    try:
        [(_, seen)] = observe_stored([stated])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise VerdictLineError(f"created_at or scores: cannot be read ({type(error).__name__})") from None
    return seen.at_ns
