"""Runs read from files, a monitor's store, or cases, each with its group and with what is known of how good it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from sidejudge.integrations.cases import CaseError, read_case
from sidejudge.integrations.otlp.wire.recording import RecordedFile, recorded_traces
from sidejudge.monitor.api.inspect import inspect_spans
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.offline.engine.engine import Engine, Here
from sidejudge.monitor.offline.score.case_lines import NumberedLine, case_lines
from sidejudge.monitor.offline.score.chunks import chunks
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.learning.observed_run import ObservedRun, observe_run
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.span import Json

from .store_source import StoredRun, history_runs, is_store, stored_runs

Good: TypeAlias = Literal["all", "passed", "labels"]
_RECORDED = (".pb", ".json", ".gz")
_TRUE = (True, 1, 1.0, "1", "true", "yes", "pass", "passed", "good", "success")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSource:
    """Which cases of the files are looked at, under which name, and when one is good.

    Attributes:
        match: The condition on a case.
        group_by: ``name``, ``task``, ``service``, or ``metadata.KEY``; cases without it are of one group, ``all``.
        good: ``all`` takes every run for a good one, ``passed`` those that pass ``run_health``, ``labels`` those that
            their label or their reward marks as good.
        reward: The metadata key that holds a reward or a mark, a share in [0, 1] or a truth value; None for none.
        labels: Whether a case is good, by its id; from a file of labels.
    """

    match: MatchSection
    group_by: str
    good: Good
    reward: str | None
    labels: dict[str, bool]

    def read(
        self,
        files: Sequence[Path],
        complain: Callable[[str], None],
        histories: Sequence[str] = (),
        engine: Engine | None = None,
    ) -> Iterator[ObservedRun]:
        """The runs of all files and histories; a line that is no case is complained of.

        ``engine`` is where the lines of cases are read; None: here.
        """
        for history in histories:
            yield from self._stored(history_runs(history))
        recorded = [file for file in files if file.suffix in _RECORDED]
        for file in files:
            if is_store(file):
                yield from self._stored(stored_runs(file))
            elif file not in recorded:
                yield from self._of_cases(file, complain, engine or Here())
        if recorded:
            for spans in recorded_traces(RecordedFile.at(file) for file in recorded):
                yield from self.observed(found.case for found in inspect_spans(spans))

    def _of_cases(self, file: Path, complain: Callable[[str], None], engine: Engine) -> Iterator[ObservedRun]:
        with case_lines(file) as found:
            for runs, problems in engine.map(_observing, self, chunks(found)):
                for problem in problems:
                    complain(f"{file}: {problem}")
                yield from runs

    def observed(self, cases: Iterable[Case]) -> Iterator[ObservedRun]:
        """The runs of cases that match."""
        for case in cases:
            run = self._run(case, None)
            if run is not None:
                yield run

    def _stored(self, runs: Iterable[StoredRun]) -> Iterator[ObservedRun]:
        for stored in runs:
            run = self._run(stored.case, stored)
            if run is not None:
                yield run

    def _run(self, case: Case, stored: StoredRun | None) -> ObservedRun | None:
        if not self.match.matches(case):
            return None
        good = stored.passed if stored is not None and self.good == "passed" else self._good(case)
        return observe_run(
            case, group=self._group(case), good=good, names_only=stored is not None and stored.names_only
        )

    def _group(self, case: Case) -> str:
        if self.group_by.startswith("metadata."):
            held: Json = case.metadata.get(self.group_by.removeprefix("metadata."))
        else:
            held = {"name": case.name, "task": case.task, "service": case.service}.get(self.group_by)
        return str(held) if held not in (None, "") else "all"

    def _good(self, case: Case) -> bool | None:
        if self.good == "all":
            return None
        if self.good == "passed":
            return score(case, RUBRICS["run_health"], created_at="").passed
        if case.case_id in self.labels:
            return self.labels[case.case_id]
        return None if self.reward is None else _rewarded(case.metadata.get(self.reward))


def _rewarded(mark: Json) -> bool | None:
    """Whether a mark is the best there is: a reward of 1, or true."""
    if mark is None:
        return None
    return mark.lower() in _TRUE if isinstance(mark, str) else mark in _TRUE


def _observing(source: RunSource) -> Callable[[Sequence[NumberedLine]], tuple[list[ObservedRun], list[str]]]:
    return partial(_observed, source)


def _observed(source: RunSource, chunk: Sequence[NumberedLine]) -> tuple[list[ObservedRun], list[str]]:
    """The runs of some lines, and why lines are no cases."""
    cases, problems = [], []
    for line in chunk:
        if line.text is None:
            problems.append(f"line {line.number} is too long")
            continue
        try:
            cases.append(read_case(line.text, line.number))
        except CaseError as error:
            problems.append(str(error))
    return list(source.observed(cases)), problems
