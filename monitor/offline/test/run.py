"""The run: each test is put to the agent, a few at a time, and its answer judged and kept as soon as it is there.

The file of results has one line for each test that was run, in the order in which they finished. The last line of a
test (and of its run, where every test runs several times) is the valid one; earlier ones stay. Nothing is rewritten, so
that a kill at any moment loses no finished test; a partial line at the end is removed.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from sidejudge.integrations.agents import AgentError, Request
from sidejudge.integrations.jsonl import line
from sidejudge.monitor.offline.score.resume import AnotherRunError, AppendFile, case_digest
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.runs.summary import NO_OUTPUT, RunSummary, evaluated
from sidejudge.scoring.trace.jsontext import mapping
from sidejudge.scoring.trace.span import Json, JsonRecord
from sidejudge.scoring.trace.time_units import iso_time

from .judge import AnswerError, RunJudge, read_answer
from .test_file import CASE_FIELDS

if TYPE_CHECKING:
    from sidejudge.integrations.agents.http import HttpAgent
    from sidejudge.integrations.agents.python import PythonAgent


class ResultsFile:
    """Results by test id and run. ``agent`` gave the file's answers; another agent's are never mixed in.

    Without a ``path`` there are no earlier results, and none are kept.
    """

    def __init__(self, path: Path | None, agent: str) -> None:
        self._path = path
        self._agent = agent
        self._file: AppendFile | None = None
        self._existing: dict[tuple[str, int], JsonRecord] = {}

    def __enter__(self) -> Self:
        if self._path is not None:
            self._file = AppendFile(self._path)
            try:
                self._read(self._path, self._file)
            except BaseException:
                self._file.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def existing(self, test_id: str, run: int, digest: str) -> JsonRecord | None:
        """The result that holds for this test, unless the test has changed since; ``None`` when there is none."""
        record = self._existing.get((test_id, run))
        return record if record is not None and record.get("digest") == digest else None

    def append(self, result: Mapping[str, object]) -> None:
        """Add a result; it is in the file when this returns."""
        if self._file is not None:
            self._file.write(line({"agent": self._agent, **result}))

    def _read(self, path: Path, file: AppendFile) -> None:
        if not path.is_file():  # a pipe or a device: nothing stands in it
            return
        kept = 0
        with path.open("rb") as old:
            for number, text in enumerate(old, 1):
                if not text.endswith(b"\n"):
                    file.cut(kept)
                    break
                kept += len(text)
                record = self._result(text, number)
                self._existing[record["id"], record["run"]] = record

    def _result(self, text: bytes, number: int) -> dict[str, Any]:
        try:
            # It reads all that it writes: halves of surrogate pairs, whole numbers of any size.
            record = json.loads(text)
        except (ValueError, RecursionError):
            record = None
        if (
            not isinstance(record, dict)
            or not isinstance(record.get("id"), str)
            or type(record.get("run")) is not int
            or not isinstance(record.get("case", ""), dict | None)
            or not isinstance(record.get("verdicts"), list)
            or not isinstance(record.get("error"), str | None)
            or (record["case"] is None) is (record["error"] is None)
        ):
            raise AnotherRunError(f"{self._path}, line {number}: is not the result of a test")
        if record.get("agent") != self._agent:
            raise AnotherRunError(
                f"{self._path}, line {number}: is an answer of {str(record.get('agent'))[:200]}, not of {self._agent}"
            )
        return record


UNREACHABLE_LIMIT = 3
"""Tests for which the agent could not be reached, with none before for which it could, after which a run gives up."""


Agent: TypeAlias = "HttpAgent | PythonAgent"
"""Whatever answers tests."""


class AgentUnreachableError(SidejudgeError):
    """No request reached the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedTest:
    """One test, run once: its result, and its verdicts as the format page writes them."""

    outcome: RunSummary
    verdicts: Sequence[Mapping[str, object]] = ()
    resumed: bool = False


@dataclass(slots=True, kw_only=True)
class Runner:
    """Runs tests. ``timeout_s`` is each test's, all attempts together; ``on_result`` gets each that has finished.

    A test with an answer in ``results`` is not put to the agent again, and is judged again only where its judging has
    changed; a test without an answer is repeated.
    """

    agent: Agent
    judge: RunJudge
    results: ResultsFile
    concurrency: int
    timeout_s: float
    on_result: Callable[[FinishedTest], None] = lambda _: None
    _reached: bool = field(default=False, init=False)
    _unreachable: int = field(default=0, init=False)
    _limit: int = field(default=UNREACHABLE_LIMIT, init=False)

    async def run(self, tests: Sequence[Mapping[str, Json]], repeat: int = 1) -> list[FinishedTest]:
        """All results, by run and then in the order of the tests, whichever finished first."""
        todo = [(test, run) for run in range(1, repeat + 1) for test in tests]
        found: list[FinishedTest | None] = [None] * len(todo)
        self._limit = min(UNREACHABLE_LIMIT, len(todo))
        waiting = iter(enumerate(todo))

        async def work() -> None:
            for place, (test, run) in waiting:
                found[place] = finished = await self._test(test, run)
                self.on_result(finished)

        async with self.agent:
            workers: list[asyncio.Task[None]] = []
            try:
                await self.judge.start()  # what cannot be judged need not be run
                workers += (asyncio.create_task(work()) for _ in range(min(self.concurrency, len(todo))))
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
                await self.judge.close()
        return [one for one in found if one is not None]

    async def _test(self, test: Mapping[str, Json], run: int) -> FinishedTest:
        digest = case_digest(line(test), None)
        known = self.results.existing(str(test["id"]), run, digest)
        resumed = known is not None and known["case"] is not None
        record = dict(known) if known is not None and resumed else await self._requested(test)
        verdicts = await self._judged(record)
        if not resumed or verdicts is not record["verdicts"]:
            record = {"id": test["id"], "run": run, "digest": digest, **record, "verdicts": verdicts}
            self.results.append(record)
        error = record["error"]
        outcome = RunSummary(
            test=test,
            output=record["case"]["model_output"] if record["case"] is not None else None,
            evaluation=evaluated(verdicts) if error is None else NO_OUTPUT,
            error=error,
            run=run,
        )
        return FinishedTest(outcome=outcome, verdicts=verdicts, resumed=resumed)

    async def _requested(self, test: Mapping[str, Json]) -> dict[str, Any]:
        """The part of a result that describes the call: the resulting case, or why there is none."""
        case, error, timed_out = None, None, False
        request = Request(input=test["input"], test_id=str(test["id"]), metadata=mapping(test.get("metadata")))
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self.timeout_s):
                reply = await self.agent.ask(request)
            latency_ms, self._reached = reply.latency_ms, True
            case = {**_case(test, read_answer(reply.stated)), "latency_e2e_ms": latency_ms}
        except TimeoutError:
            latency_ms, timed_out = _ms_since(started), True
            error = f"timed out after {latency_ms / 1000:.1f} s"
        except AgentError as refused:
            latency_ms, error = _ms_since(started), refused.reason
            self._give_up_if_never_reached(refused)
        except AnswerError as wrong:
            latency_ms, error = _ms_since(started), str(wrong)
        return {
            "error": error, "timed_out": timed_out, "latency_e2e_ms": latency_ms,
            "attempts": max(1, request.attempts), "case": case, "verdicts": [], "finished_at": iso_time(time.time_ns()),
        }  # fmt: skip

    async def _judged(self, record: JsonRecord) -> Sequence[Mapping[str, object]]:
        return [] if record["case"] is None else await self.judge.verdicts(record["case"], record["verdicts"])

    def _give_up_if_never_reached(self, refused: AgentError) -> None:
        self._reached |= not refused.unreachable
        self._unreachable += refused.unreachable
        if not self._reached and self._unreachable >= self._limit:
            raise AgentUnreachableError(refused.reason)


def _case(test: Mapping[str, Json], answer: Mapping[str, Json]) -> dict[str, Json]:
    """The fields of the case. An answer that names neither tools, a context nor its trace rests on no source."""
    plain: dict[str, Json] = {} if answer.get("tools_used") or "trace_id" in answer else {"context": []}
    return {**plain, **_given(test), **answer}


def _given(test: Mapping[str, Json]) -> dict[str, Json]:
    """The fields of the case that the test gives."""
    given = {name: test[name] for name in CASE_FIELDS if name in test}
    expected = {"expected_outcome": test["expected"]} if "expected" in test else {}
    return {"case_id": test["id"], **given, **expected}


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
