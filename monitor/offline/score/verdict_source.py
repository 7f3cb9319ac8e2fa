"""Reads verdicts and labels from their files, and checks every line, in constant memory. Revisions replace verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Protocol

import orjson

from sidejudge.monitor.offline.engine import Engine, Here
from sidejudge.scoring.runs.label_line import LabelLine, LabelLineError, read_label
from sidejudge.scoring.runs.verdict_line import Revisions, VerdictLine, VerdictLineError, read_verdict

from .case_lines import NumberedLine, json_of, lines, loaded
from .chunks import chunks
from .resume import Duplicates

_CHUNK_LINES: Final = 1024
_CHUNK_BYTES: Final = 4 * 2**20


class VerdictPart(Protocol):
    """A counter of some of the verdicts."""

    def add(self, line: VerdictLine, /) -> None:
        """Count one verdict."""

    @property
    def sums(self) -> Any:
        """Its counts, for ``VerdictTally.merge``."""


class VerdictTally(Protocol):
    """A counter of verdicts, which counts them in parts. Sums are exact, so any division into parts gives the same."""

    def part(self) -> VerdictPart:
        """An empty part."""

    def merge(self, sums: Any, /) -> None:
        """Add the sums of a part; called in the order of the parts."""


@dataclass(slots=True)
class _Counted:
    """The results of one chunk. ``bad`` are (line number, reason), ``names`` (identity of a verdict, line number)."""

    sums: Any
    read: int
    bad: list[tuple[int, str]] = field(default_factory=list)
    replaced: int = 0
    names: list[tuple[str, int]] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class VerdictSource:
    """A verdict file. It is read twice: only the first reading shows which verdicts a later line revises.

    ``complain`` gets one line of text for each line that is no verdict. After reading, ``bad_lines`` counts those,
    ``replaced`` the verdicts that a later revision replaces, and ``repeated`` the verdicts on a case that has one by
    the same rubric already; all of these count. ``engine`` parses and counts the lines.
    """

    path: Path
    complain: Callable[[str], None]
    engine: Engine = field(default_factory=Here)
    bad_lines: int = 0
    replaced: int = 0
    repeated: int = 0

    def read_into(self, tally: VerdictTally, progress: Callable[[int], None]) -> None:
        """Count every verdict that is not revised. ``progress`` gets the bytes read, in both readings together."""
        size, revisions = 0, Revisions()
        for found in self.engine.map(_revisions, self._chunks()):
            size = found.read
            revisions.merge(found.sums)
            progress(size)
        seen = Duplicates()
        # Lines that a running monitor has appended since are left out: it is not known what they revise.
        for found in self.engine.map(partial(_counted, tally, revisions), self._chunks(size)):
            for number, why in found.bad:
                self.complain(f"line {number}: {why}")
            self.bad_lines += len(found.bad)
            self.replaced += found.replaced
            for name, number in found.names:
                seen.first_line(name, number)
            tally.merge(found.sums)
            progress(size + found.read)
        self.repeated = seen.count

    def _chunks(self, size: float = math.inf) -> Iterator[Sequence[NumberedLine]]:
        with self.path.open("rb", buffering=1 << 20) as file:
            read = takewhile(lambda line: line.read <= size, lines(file))
            yield from chunks(read, _CHUNK_LINES, _CHUNK_BYTES)


def _revisions(chunk: Sequence[NumberedLine]) -> _Counted:
    """The first reading of a chunk: which of its lines revise others."""
    revisions = Revisions()
    for line in chunk:
        if line.text is None or b'"revision"' not in line.text:
            continue
        try:
            stated = loaded(line.text)
            if isinstance(stated, dict) and stated.get("revision") != 1:
                revisions.add(read_verdict(stated))
        except (orjson.JSONDecodeError, VerdictLineError):
            continue  # the second reading reports it
    return _Counted(revisions, chunk[-1].read)


def _counted(tally: VerdictTally, revisions: Revisions, chunk: Sequence[NumberedLine]) -> _Counted:
    """The second reading of a chunk: its verdicts that are not revised, counted."""
    part, counted = tally.part(), _Counted(None, chunk[-1].read)
    for line in chunk:
        try:
            found = read_verdict(json_of(line, VerdictLineError))
        except VerdictLineError as error:
            counted.bad.append((line.number, str(error)))
            continue
        if not revisions.stands(found):
            counted.replaced += 1
            continue
        counted.names.append((f"{found.rubric}\0{found.run}\0{found.identity}", line.number))
        part.add(found)
    counted.sums = part.sums
    return counted


MAX_LABEL_LINE = 2**20
"""Bytes of one label, far more than it needs."""


def read_labels(
    path: Path, take: Callable[[LabelLine], None], complain: Callable[[str], None], *, with_verdicts: bool
) -> int:
    """Call ``take`` with every label, and return how many lines are no labels. Each is reported to ``complain``.

    ``with_verdicts``: each line has to state our verdict too. ``take`` raises ``LabelLineError`` for a label that
    contradicts an earlier one.
    """
    bad = 0
    with path.open("rb", buffering=1 << 20) as file:
        for line in lines(file, MAX_LABEL_LINE):
            try:
                take(_label(line, with_verdicts=with_verdicts))
            except LabelLineError as error:
                bad += 1
                complain(f"line {line.number}: {error}")
    return bad


def _label(line: NumberedLine, *, with_verdicts: bool) -> LabelLine:
    label = read_label(json_of(line, LabelLineError))
    if with_verdicts and not label.states_verdict:
        raise LabelLineError("verdict: is missing, and no file of verdicts is named")
    return label
