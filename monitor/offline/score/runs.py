"""Runs: the verdicts of one rubric in files of verdicts, gathered run by run as they are read, a line at a time.

A run's metadata stands in a file of its own, YAML or JSON, which is read as strictly as the configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sidejudge.monitor.config.document import read_document
from sidejudge.monitor.config.read_files import MAX_BYTES
from sidejudge.scoring.case.case import parse_output
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.runs.aggregates import Accumulator, Aggregates, read_sample, sample_of_any

from .case_lines import NumberedLine, json_of
from .resume import Duplicates

RUBRIC = "answer"
MAX_RUNS = 1000
"""More runs than anybody repeats: beyond it, ``run`` is not what it should be, and memory would grow with the file."""
_MANY = 10
"""Versions of the rubric that are distinguished."""


class UnusableError(SidejudgeError):
    """A file that gates cannot be held against; the message names it and the line."""


@dataclass(slots=True)
class Runs:
    """Runs by name, in the order of their first verdict: ``file``, or ``file run 2`` where the verdicts name a run."""

    rubric: str = RUBRIC
    first: Mapping[str, object] | None = None
    _others: int = 0
    _versions: set[str] = field(default_factory=set)
    _weights: set[float] = field(default_factory=set)
    _cases: Duplicates = field(default_factory=Duplicates)
    _runs: dict[str, Accumulator] = field(default_factory=dict)

    def aggregates(self) -> dict[str, Aggregates]:
        """The figures of each run."""
        return {name: run.aggregates() for name, run in self._runs.items()}

    def remarks(self) -> list[str]:
        """Notes on the files for a reader of the figures."""
        stated = []
        if self._others:
            stated.append(f"verdicts by other rubrics are left out: {self._others}")
        if self._cases.count:
            stated.append(f"verdicts on a case that has one in the same run already; all count: {self._cases.count}")
        if len(self._weights) > 1:
            stated.append("cases were drawn with different probabilities: each counts with the inverse of its own")
        if len(self._versions) > 1:
            stated.append(f"verdicts are of several versions of the rubric: {', '.join(sorted(self._versions))}")
        return stated

    def read(self, source: str, lines: Iterable[NumberedLine]) -> None:
        """Take in a file, whose verdicts by other rubrics are counted and left out; ``UnusableError`` otherwise."""
        numbered: bool | None = None
        for line in lines:
            try:
                numbered = self._take(source, _verdict(line), numbered, line.number)
            except ValueError as error:
                raise UnusableError(f"{source}, line {line.number}: {error}") from None
        if numbered is None:
            raise UnusableError(f"{source}: holds no verdict of {self.rubric!r}")

    def _take(self, source: str, verdict: Mapping[str, object], numbered: bool | None, line: int) -> bool | None:  # noqa: FBT001  # as read so far
        """Take in one verdict; return whether this file's verdicts state their run, ``None`` before the first."""
        if verdict["rubric"] != self.rubric:
            self._others += 1
            return numbered
        run = _run(verdict)
        if numbered is not None and numbered is not (run is not None):
            raise ValueError("run: some verdicts of this file state their run, others do not")
        sample = read_sample(verdict) if self.rubric == RUBRIC else sample_of_any(verdict)
        self._at(source if run is None else f"{source} run {run}").add(sample)
        if len(self._weights) < 2:
            self._weights.add(sample.weight)
        if about := verdict.get("trace_id") or verdict.get("case_id"):
            self._cases.first_line(f"{source}\0{run}\0{about}", line)
        self.first = self.first or verdict
        if len(self._versions) < _MANY:
            self._versions.add(label(str(verdict.get("rubric_version"))))
        return run is not None

    def _at(self, name: str) -> Accumulator:
        if name not in self._runs and len(self._runs) == MAX_RUNS:
            raise ValueError(f"run: there are more than {MAX_RUNS} runs")
        return self._runs.setdefault(name, Accumulator())


def _verdict(line: NumberedLine) -> Mapping[str, object]:
    try:
        verdict = json_of(line, ValueError)
    except ValueError as error:
        cut = "" if line.text is None or line.text.endswith(b"\n") else "; if it is cut off, let 'score' finish it"
        raise ValueError(f"{error}{cut}") from None
    if not isinstance(verdict, dict) or not isinstance(verdict.get("rubric"), str):
        raise ValueError("is not a verdict: it is no object with a rubric")  # noqa: TRY004  # one kind of fault a line
    return verdict


def _run(verdict: Mapping[str, object]) -> int | None:
    run, revision = verdict.get("run"), verdict.get("revision", 1)
    if revision != 1:
        raise ValueError("revision: is a later revision; gates are held against what 'score' writes, each case once")
    if run is not None and (type(run) is not int or run < 1):
        raise ValueError("run: is not a whole number from 1 on")
    return run


class MetadataError(SidejudgeError):
    """The file holds no metadata that could be checked; the message names it, and every fault in it."""


def read_metadata(path: Path, environ: Mapping[str, str]) -> Mapping[str, object]:
    """The object in the file; ``${NAME}`` in YAML is taken from ``environ``. ``OSError`` when it cannot be opened."""
    with path.open("rb") as file:
        read = file.read(MAX_BYTES + 1)
    if len(read) > MAX_BYTES:
        raise MetadataError(f"{path}: is larger than {MAX_BYTES} bytes")
    try:
        text = read.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise MetadataError(f"{path}: is not UTF-8 text") from None
    if text.lstrip().startswith("{"):
        parsed = parse_output(text)
        if parsed.error is None and isinstance(parsed.value, dict):
            return parsed.value
    document = read_document(text, environ, str(path))  # a flow mapping of YAML begins with a brace too
    if document.problems:
        raise MetadataError("\n".join(map(str, document.problems)))
    if not isinstance(document.value, dict):
        raise MetadataError(f"{path}: is not an object")
    return document.value
