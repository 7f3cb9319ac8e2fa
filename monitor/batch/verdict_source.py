"""Verdicts of one model read from their file: every line checked, revised ones replaced, in constant memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from scoring.runs.revisions import Revisions
from scoring.runs.tally import ModelTally
from scoring.runs.verdict_line import VerdictLine, VerdictLineError, read_verdict

from .duplicates import Duplicates
from .lines import MAX_LINE, Line, lines


@dataclass(slots=True, kw_only=True)
class VerdictSource:
    """A verdict file. It is read twice: what a later line revises is known only at the end of the first reading.

    ``complain`` hears one line of text for each line that is no verdict. ``bad_lines``, ``replaced`` (verdicts that
    a later revision stands for) and ``repeated`` (verdicts on a case that has one by the same rubric already; all
    count) are known once it has been read.
    """

    path: Path
    complain: Callable[[str], None]
    bad_lines: int = 0
    replaced: int = 0
    repeated: int = 0
    _revisions: Revisions = field(default_factory=Revisions)

    def read_into(self, tally: ModelTally, progress: Callable[[int], None]) -> None:
        """Count every verdict that stands; ``progress`` hears the bytes read, twice the size of the file in all."""
        read = 0
        for line, found in self._verdicts(tell=True):
            read = line.read
            if found is not None:
                self._revisions.hear(found)
            progress(read)
        seen = Duplicates()
        for line, found in self._verdicts(tell=False):
            progress(read + line.read)
            if found is None:
                continue
            if not self._revisions.stands(found):
                self.replaced += 1
                continue
            seen.first_line(f"{found.rubric}\0{found.run}\0{found.identity}", line.number)
            tally.add(found)
        self.repeated = seen.count

    def _verdicts(self, *, tell: bool) -> Iterator[tuple[Line, VerdictLine | None]]:
        with self.path.open("rb", buffering=1 << 20) as file:
            for line in lines(file):
                try:
                    found = _parsed(line)
                except VerdictLineError as error:
                    found = None
                    if tell:
                        self.bad_lines += 1
                        self.complain(f"line {line.number}: {error}")
                yield line, found


def _parsed(line: Line) -> VerdictLine:
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
