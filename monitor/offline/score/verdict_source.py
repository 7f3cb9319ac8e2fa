"""Verdicts read from their file: every line checked, revised ones replaced, in constant memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import orjson

from scoring.runs.revisions import Revisions
from scoring.runs.verdict_fields import VerdictLineError
from scoring.runs.verdict_line import VerdictLine, read_verdict

from .duplicates import Duplicates
from .lines import MAX_LINE, NumberedLine, lines


class VerdictTally(Protocol):
    """A counter of verdicts."""

    def add(self, line: VerdictLine, /) -> None:
        """Count one that stands."""


@dataclass(slots=True, kw_only=True)
class VerdictSource:
    """A verdict file. It is read twice: what a later line revises is known only at the end of the first reading.

    ``complain`` gets one line of text for each line that is no verdict. ``bad_lines``, ``replaced`` (verdicts that
    a later revision stands for) and ``repeated`` (verdicts on a case that has one by the same rubric already; all
    count) are known once it has been read.
    """

    path: Path
    complain: Callable[[str], None]
    bad_lines: int = 0
    replaced: int = 0
    repeated: int = 0
    _revisions: Revisions = field(default_factory=Revisions)

    def read_into(self, tally: VerdictTally, progress: Callable[[int], None]) -> None:
        """Count every verdict that stands; ``progress`` gets the bytes read, twice the size of the file in all."""
        read = 0
        for line in self._lines():
            read = line.read
            self._take(line)
            progress(read)
        seen = Duplicates()
        for line in self._lines():
            if line.read > read:
                break  # a running monitor has appended since; what it revises is not known
            progress(read + line.read)
            try:
                found = _parsed(line)
            except VerdictLineError as error:
                self.bad_lines += 1
                self.complain(f"line {line.number}: {error}")
                continue
            if not self._revisions.stands(found):
                self.replaced += 1
                continue
            seen.first_line(f"{found.rubric}\0{found.run}\0{found.identity}", line.number)
            tally.add(found)
        self.repeated = seen.count

    def _lines(self) -> Iterator[NumberedLine]:
        with self.path.open("rb", buffering=1 << 20) as file:
            yield from lines(file)

    def _take(self, line: NumberedLine) -> None:
        """Take note of a line that revises another; every other is left to the second reading."""
        if line.text is None or b'"revision"' not in line.text:
            return
        try:
            stated = _loaded(line.text)
            if isinstance(stated, dict) and stated.get("revision") != 1:
                self._revisions.add(read_verdict(stated))
        except (orjson.JSONDecodeError, VerdictLineError):
            return  # the second reading reports it


def _parsed(line: NumberedLine) -> VerdictLine:
    if line.text is None:
        raise VerdictLineError(f"is longer than {MAX_LINE} bytes")
    try:
        return read_verdict(_loaded(line.text))
    except orjson.JSONDecodeError as error:
        raise VerdictLineError(f"is not JSON: {error.msg}") from None


def _loaded(text: bytes) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            return json.loads(text, parse_constant=_refused)  # halves of surrogate pairs, which a verdict may quote
        except (ValueError, RecursionError):
            pass
        raise


def _refused(constant: str) -> float:
    raise ValueError(constant)
