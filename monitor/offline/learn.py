"""Learning: the runs of files, stores, histories and Langfuse come in; scenarios that good runs keep to go out.

Each run has its group, and how good it was as far as that is known. A store lets go of spans once late ones can no
longer come, and keeps what became of each trace as long as ``store.retention``: the names of its tools in order, its
agents, tokens and verdicts. So order and number of calls are learned from all of it, arguments from what is held. A
history of Parquet files holds names of calls alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Final, Literal, TypeAlias

from sidejudge.integrations.history.reading import history_records
from sidejudge.integrations.langfuse.client import Connections
from sidejudge.integrations.langfuse.observations import Window
from sidejudge.integrations.langfuse.probe import probe
from sidejudge.integrations.otlp.wire.kept import decode_kept
from sidejudge.integrations.otlp.wire.recording import RecordedFile, recorded_traces
from sidejudge.integrations.store.archive import read_chunks, read_traces
from sidejudge.monitor.api.inspect import inspect_spans
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.langfuse import LangfuseProject
from sidejudge.monitor.config.match import MatchSection, metadata_text, task_of
from sidejudge.monitor.offline.backfill.job import evenly
from sidejudge.monitor.offline.backfill.listing import AROUND_NS, Reader, case_of, case_of_spans, met, sampler_of
from sidejudge.monitor.offline.engine import Engine, Here
from sidejudge.monitor.offline.score.case_lines import RECORDED, NumberedLine, case_lines, read_cases
from sidejudge.monitor.offline.score.chunks import chunks
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.learning.observed_run import ObservedRun, observe_run
from sidejudge.scoring.rubrics import RUBRICS, run_health
from sidejudge.scoring.runs.label_line import Subject
from sidejudge.scoring.trace.jsontext import mapping
from sidejudge.scoring.trace.span import Json, ToolCall
from sidejudge.scoring.verdict.documents import TraceDocument

_LISTS = (
    "agents_should_include", "tools_should_include", "tools_may_include", "tools_should_exclude", "before", "after",
    "not_after", "not_both", "any_of",
)  # fmt: skip
_MAPS = ("max_calls", "min_calls", "arguments_schema", "values_from")
_NUMBERS = ("max_tokens", "max_seconds")


@dataclass(frozen=True, slots=True)
class Differences:
    """Lines that are new, gone or changed; each ``key: what``."""

    new: tuple[str, ...]
    gone: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.changed)


def differences(before: Mapping[str, Json], now: Mapping[str, Json]) -> Differences:
    """The differences of two scenarios of one group."""
    new: list[str] = []
    gone: list[str] = []
    changed: list[str] = []
    for key in _LISTS:
        old, learned = _listed(before.get(key)), _listed(now.get(key))
        new += [f"{key}: {_words(one)}" for one in learned if one not in old]
        gone += [f"{key}: {_words(one)}" for one in old if one not in learned]
    for key in _MAPS:
        held, learned_map = mapping(before.get(key)), mapping(now.get(key))
        new += [f"{key}: {name}" for name in learned_map if name not in held]
        gone += [f"{key}: {name}" for name in held if name not in learned_map]
        changed += [f"{key}: {name}" for name in held if name in learned_map and held[name] != learned_map[name]]
    for key in _NUMBERS:
        was, limit = before.get(key), now.get(key)
        new += [f"{key}: {limit}"] if was is None is not limit else []
        gone += [f"{key}: {was}"] if limit is None is not was else []
        changed += [f"{key}: {limit}, was {was}"] if None not in (was, limit) and was != limit else []
    if isinstance(now.get("signs"), dict) or isinstance(before.get("signs"), dict):
        signs = differences(mapping(before.get("signs")), mapping(now.get("signs")))
        new += [f"signs: {line}" for line in signs.new]
        gone += [f"signs: {line}" for line in signs.gone]
        changed += [f"signs: {line}" for line in signs.changed]
    return Differences(tuple(new), tuple(gone), tuple(changed))


def _listed(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else []


def _words(one: Json) -> str:
    return " → ".join(map(str, one)) if isinstance(one, list) else str(one)


Good: TypeAlias = Literal["all", "passed", "labels"]
ALL: Final = "all"
"""The group of cases that lack the grouping field."""
_TRUE = frozenset({"true", "yes", "pass", "passed", "good", "success"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSource:
    """Which of the files' cases to use, under which name, and when a case counts as good.

    Attributes:
        match: The condition on a case.
        group_by: ``name``, ``task``, ``service``, or ``metadata.KEY``; cases without it are of one group, ``ALL``.
        good: ``all`` takes every run for a good one, ``passed`` those that pass ``run_health``, ``labels`` those that
            their label or their reward marks as good. A run of which that is unknown is left out.
        reward: The metadata key that holds a reward or a mark, a share in [0, 1] or a truth value; None for none.
        labels: Whether a run is good, by its case or its trace; from a file of labels.
    """

    match: MatchSection
    group_by: str
    good: Good
    reward: str | None
    labels: Mapping[Subject, bool]

    def read(
        self,
        files: Sequence[Path],
        complain: Callable[[str], None],
        histories: Sequence[str] = (),
        engine: Engine | None = None,
    ) -> Iterator[ObservedRun]:
        """The runs of all files and histories; ``complain`` gets each line that is not a case.

        ``engine`` is where the lines of cases are read; None: here.
        """
        for history in histories:
            yield from self._stored(history_runs(history))
        recorded = [file for file in files if file.suffix in RECORDED]
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
            for runs, problems in engine.map(self._observed, chunks(found)):
                for problem in problems:
                    complain(f"{file}: {problem}")
                yield from runs

    def _observed(self, chunk: Sequence[NumberedLine]) -> tuple[list[ObservedRun], list[str]]:
        """The runs of some lines, and why lines are no cases."""
        problems: list[str] = []
        return list(self.observed(read_cases(chunk, problems.append))), problems

    def observed(self, cases: Iterable[Case]) -> Iterator[ObservedRun]:
        """The runs of cases that match."""
        return (run for case in cases if (run := self._run(case, None)) is not None)

    def _stored(self, runs: Iterable[StoredRun]) -> Iterator[ObservedRun]:
        return (run for each in runs if (run := self._run(each.case, each)) is not None)

    def _run(self, case: Case, stored: StoredRun | None) -> ObservedRun | None:
        if not self.match.matches(case):
            return None
        good = self._good(case, stored)
        if good is None and self.good != "all":
            return None
        return observe_run(
            case, group=self._group(case), good=good, names_only=stored is not None and stored.names_only
        )

    def _group(self, case: Case) -> str:
        if self.group_by.startswith("metadata."):
            held = metadata_text(case.metadata, self.group_by.removeprefix("metadata."))
        else:
            held = {"name": case.name, "task": task_of(case), "service": case.service}.get(self.group_by)
        return held or ALL

    def _good(self, case: Case, stored: StoredRun | None) -> bool | None:
        if self.good == "all":
            return None
        if self.good == "passed":
            if stored is not None and (stored.names_only or stored.passed is not None):
                return stored.passed
            return score(case, RUBRICS["run_health"], created_at="").passed
        subjects: tuple[Subject, ...] = (("case_id", case.case_id), ("trace_id", case.trace_id or case.case_id))
        if labelled := [self.labels[subject] for subject in subjects if subject in self.labels]:
            return all(labelled)
        return None if self.reward is None else _rewarded(case.metadata.get(self.reward))


def _rewarded(mark: Json) -> bool | None:
    """Whether a mark is the best there is: a reward of 1, or true."""
    if not isinstance(mark, str):
        return None if mark is None else mark == 1
    try:
        return float(mark) == 1
    except ValueError:
        return mark.strip().lower() in _TRUE


MOST: Final = 10_000
"""Traces that are read at most, the latest."""
_SQLITE: Final = b"SQLite format 3\0"
_SESSION: Final = "session"
"""The kind of a conversation: it is not a run; its turns are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run of a store. ``passed`` is its verdict by run_health, or None; ``names_only``: its spans are gone."""

    case: Case
    passed: bool | None
    names_only: bool


def is_store(path: Path) -> bool:
    """Whether a file is a store, by how it begins."""
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def stored_runs(path: Path) -> Iterator[StoredRun]:
    """The runs that ended last. Raises ``StoreUnavailable``."""
    ended = read_traces(path, reason=None, service=None, limit=MOST)
    ended = [each for each in ended if each.get("kind") != _SESSION]
    wanted = {str(each["trace_id"]) for each in ended}
    held = {trace_id: payloads for found, payloads in read_chunks(path, MOST) if (trace_id := found.hex()) in wanted}
    for each in reversed(ended):
        trace_id = str(each["trace_id"])
        spans = decode_kept(held.pop(trace_id, [])).spans
        case = case_of_spans(spans) if spans else named_run(trace_id, each)
        if case is not None and each.get("complete") is not False:
            yield StoredRun(case=case, passed=_passed(each), names_only=case.trace is None)


def named_run(trace_id: str, details: TraceDocument) -> Case | None:
    """The case of a trace known only by its details; None if they name no calls."""
    calls = details.get("calls")
    if not isinstance(calls, list):
        return None
    tokens = (details.get("effort") or {}).get("tokens")
    return Case(
        case_id=trace_id,
        model_output=None,
        name=details.get("name"),
        service=details.get("service"),
        environment=details.get("environment"),
        tools_used=tuple(ToolCall(name=str(name)) for name in calls),
        agents_called=tuple(map(str, details.get("agents_called") or ())),
        input_tokens=None if tokens is None else int(tokens),
        output_tokens=None if tokens is None else 0,
    )


def _passed(details: TraceDocument) -> bool | None:
    verdicts = [verdict for verdict in details["verdicts"] if verdict["rubric"] == run_health.RUBRIC.id]
    return verdicts[0]["passed"] if verdicts else None


def history_runs(path: str) -> Iterator[StoredRun]:
    """The runs that ended last, each by its last revision. Raises ``HistoryError``."""
    latest: dict[str, TraceDocument] = {}
    for outcome in history_records(path, "outcomes"):
        trace_id = str(outcome["trace_id"])
        former = latest.pop(trace_id, None)
        latest[trace_id] = outcome if former is None or former["revision"] <= outcome["revision"] else former
        if len(latest) > MOST:
            del latest[next(iter(latest))]
    passed: dict[str, tuple[int, bool | None]] = {}
    for verdict in history_records(path, "verdicts"):
        trace_id, revision = str(verdict["trace_id"]), int(verdict["revision"])
        if verdict["rubric"] == run_health.RUBRIC.id and trace_id in latest:
            passed[trace_id] = max(passed.get(trace_id, (0, None)), (revision, verdict["passed"]), key=itemgetter(0))
    for trace_id, outcome in latest.items():
        case = named_run(trace_id, outcome) if outcome.get("kind") != _SESSION else None
        if case is not None:
            yield StoredRun(case=case, passed=passed.get(trace_id, (0, None))[1], names_only=True)


async def langfuse_cases(
    config: Config,
    source: LangfuseProject,
    window: Window,
    wanted: MatchSection,
    *,
    most: int,
    complain: Callable[[str], None],
) -> list[Case]:
    """The cases of the traces that began in the window. Raises ``LangfuseError``.

    Args:
        config: How traces are read; its sampling is left aside.
        source: The project.
        window: First and last start time.
        wanted: A condition; what the listing can decide of it is applied, the rest is left to the caller.
        most: Traces that are read, each with a request or more.
        complain: Gets one line for each wait while Langfuse is busy at first, and for each trace that is left out, and
            then one with their number.
    """
    sampling = config.sampling.model_copy(update={"rate": 1.0, "rules": ()})
    config = config.model_copy(update={"sampling": sampling, "sessions": None})
    connections = Connections((source.access,))
    langfuse = connections.to(source.access)
    try:
        server = await met(lambda: probe(langfuse), complain)
        reader = Reader(langfuse=langfuse, server=server, window=window, around_ns=AROUND_NS)
        found = await reader.listing(sampler_of(config, wanted), wanted)
        wanted_traces = evenly(found.drawn, most)
        read = reader.readable(
            wanted_traces, lambda trace_id, error: complain(f"trace {trace_id} is left out: {error}")
        )
        cases = [case_of(config, spans) async for spans in read]
        if len(cases) < len(wanted_traces):
            complain(f"{len(wanted_traces) - len(cases):,} of {len(wanted_traces):,} traces are left out")
        return cases
    finally:
        await connections.close()
