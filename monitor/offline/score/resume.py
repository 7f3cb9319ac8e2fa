"""Resume: the state for a run that goes on where another was interrupted.

One process at a time appends to a file, and a killed one may have left half a line. A verdict that stands is compared
with the one that comes next: with another digest of its case it is on something else. A case id that occurs twice is
reported once.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import orjson

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.trace.span import Json

from .judged_with import JUDGED_WITH, JudgedWith, changed


class AnotherRunError(SidejudgeError):
    """The file holds verdicts of another run, or another run is writing it."""


class BeingWrittenError(AnotherRunError):
    """Another run is writing the file."""

    remedy = "wait for its end, or name another --out"


class AppendFile:
    """Opened for appending and locked until it is closed; ``AnotherRunError`` while another process has it open."""

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, path.open("ab", buffering=0)
        if path.is_file():
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._file.close()
                raise BeingWrittenError(f"{path} is being written by another process") from None

    def write(self, block: bytes) -> None:
        """Append all of it. Raises ``OSError``, naming the file."""
        view = memoryview(block)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from None

    def cut(self, size: int) -> None:
        """Cut away what follows the first ``size`` bytes."""
        os.ftruncate(self._file.fileno(), size)

    def close(self) -> None:
        self._file.close()


class Wanted(NamedTuple):
    """A case under a version of a rubric. ``extra`` is what the verdict carries beside its own fields.

    Among that is ``case_digest``, of the case as it would be judged now: a verdict on another wording does not stand,
    and neither does one by a judge with other settings than ``judged_with``.
    """

    case_id: str
    rubric: str
    version: str
    extra: Mapping[str, object]
    judged_with: JudgedWith = MappingProxyType({})

    def fault(self, stated: Mapping[str, object]) -> str | None:
        """Why an existing verdict is not this one; ``None`` when it is."""
        found = (stated.get("case_id"), stated.get("rubric"), stated.get("rubric_version"))
        if found != (self.case_id, self.rubric, self.version) or stated.get("run") != self.extra.get("run"):
            was, now = _run(stated), _run(self.extra)
            return (
                f"holds the verdict of case {found[0]!r} by {found[2] or found[1]}{was}, "
                f"where case {self.case_id!r} by {self.version}{now} is next"
            )
        digest = self.extra.get("case_digest")
        if stated.get("case_digest") != digest:
            return (
                f"case {self.case_id!r}, its scenario or its budget has changed since this verdict was "
                f"reached (case_digest {stated.get('case_digest')}, now {digest})"
            )
        if (setting := changed(stated.get(JUDGED_WITH), self.judged_with)) is not None:
            return f"{setting} since this verdict was reached"
        if ("model_output" in stated) is not ("model_output" in self.extra):
            return f"was written {'with' if 'model_output' in stated else 'without'} --keep-outputs"
        return None


def _run(verdict: Mapping[str, object]) -> str:
    run = verdict.get("run")
    return "" if run is None else f" in run {run}"


_DIGITS = 16
NO_BUDGET: Final[Mapping[str, float]] = MappingProxyType({})


def case_digest(line: bytes, scenario: Mapping[str, Json] | None, budget: Mapping[str, float] = NO_BUDGET) -> str:
    """The first 16 hex digits of the SHA-256 of the case, and of the scenario and the budget of the configuration.

    ``line`` is a valid JSON line. Spaces and the order of keys do not matter, for they do not change a verdict.
    """
    try:
        case = orjson.dumps(orjson.loads(line), option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):  # what it does not read or write: then as it stands
        case = line.strip()
    return digest_of(case, scenario, budget)


def digest_of(case: bytes, scenario: Mapping[str, Json] | None, budget: Mapping[str, float] = NO_BUDGET) -> str:
    """As ``case_digest``, of a case in its canonical form: sorted keys, no spaces."""
    stated = hashlib.sha256(case)
    for held in (scenario, budget or None):
        if held is not None:
            stated.update(b"\n" + json.dumps(dict(held), sort_keys=True).encode())
    return stated.hexdigest()[:_DIGITS]


MAX_KNOWN = 100_000
"""Ids that are remembered, the first of the file: what comes after is not compared, so that memory stays constant."""


class Duplicates:
    """Records the ids of cases with their lines. ``count`` is how many lines repeat an id."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}
        self.count = 0

    def first_line(self, case_id: str, number: int) -> int | None:
        """The line on which this id stood before; ``None`` when it is new (or too late to be compared)."""
        first = self._lines.get(case_id)
        if first is not None:
            self.count += 1
        elif len(self._lines) < MAX_KNOWN:
            self._lines[case_id] = number
        return first
