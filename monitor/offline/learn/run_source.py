"""Runs read from files, a monitor's store, or cases, each with its group and with what is known of how good it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from integrations.cases import CaseError, read_case
from integrations.otlp.wire.recording import read_files
from monitor.api.inspect import inspect_spans
from monitor.config.match import MatchSection
from monitor.offline.score.case_lines import case_lines
from scoring.case.case import Case
from scoring.learning.observed_run import ObservedRun, observe_run
from scoring.trace.span import Json

from .history_source import history_runs
from .store_source import StoredRun, is_store, stored_runs

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
        passes: Returns whether a case passes; called for ``passed`` alone.
    """

    match: MatchSection
    group_by: str
    good: Good
    reward: str | None
    labels: dict[str, bool]
    passes: Callable[[Case], bool | None]

    def read(
        self, files: Sequence[Path], complain: Callable[[str], None], histories: Sequence[str] = ()
    ) -> Iterator[ObservedRun]:
        """The runs of all files and histories; a line that is no case is complained of."""
        for history in histories:
            yield from self._stored(history_runs(history))
        recorded = [file for file in files if file.suffix in _RECORDED]
        for file in files:
            if is_store(file):
                yield from self._stored(stored_runs(file))
            elif file not in recorded:
                yield from self.observed(_cases(file, complain))
        if recorded:
            yield from self.observed(found.case for found in inspect_spans(read_files(recorded).spans))

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
            return self.passes(case)
        if case.case_id in self.labels:
            return self.labels[case.case_id]
        return None if self.reward is None else _rewarded(case.metadata.get(self.reward))


def _rewarded(mark: Json) -> bool | None:
    """Whether a mark is the best there is: a reward of 1, or true."""
    if mark is None:
        return None
    return mark.lower() in _TRUE if isinstance(mark, str) else mark in _TRUE


def _cases(file: Path, complain: Callable[[str], None]) -> Iterator[Case]:
    with case_lines(file) as found:
        for line in found:
            if line.text is None:
                complain(f"{file}: line {line.number} is too long")
                continue
            try:
                yield read_case(line.text, line.number)
            except CaseError as error:
                complain(f"{file}: {error}")
