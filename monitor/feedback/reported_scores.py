"""Reads scores of others in Langfuse that a rubric asks for, and takes them in as if they had come as telemetry.

A score becomes a log record of its trace, which revises the verdict as long as late spans would (``assembly.late``). A
score has its time when it was given, and an edit leaves that as it is: what is recent is read each time, and the whole
window once an hour. Scores of traces that are still to be judged wait for them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from sidejudge.integrations.langfuse.annotations import ForeignScore, scores_named
from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.probe import LangfuseServer
from sidejudge.integrations.raw import EVALUATION, REPORTED_VIA
from sidejudge.integrations.store.sqlite import Store
from sidejudge.scoring.metrics.reported_score import ReportedMeasure
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.verdict.documents import TraceDocument
from sidejudge.scoring.verdict.rubric import Rubric

FACT: Final = "reported/langfuse"
_HOUR_NS: Final = 3600 * 10**9
_AGAIN_NS: Final = 300 * 10**9
"""What is read again each time: Langfuse shows what it was sent some seconds later."""
_MOST: Final = 10_000
"""Scores that are remembered as taken, and such that wait; the latest."""
_TRACE, _SPAN = 32, 16
"""Digits of an id."""


def names_asked(rubrics: Iterable[Rubric]) -> tuple[str, ...]:
    """The names of scores that metrics of these rubrics take from others."""
    measures = (criterion.metric.measure for rubric in rubrics for criterion in rubric.criteria)
    return tuple(sorted({each.name for each in measures if isinstance(each, ReportedMeasure)}))


class ReportedScores:
    """Reads in ticks. ``take`` takes in a request for log records, as JSON; ``window_ns`` is how long that revises."""

    def __init__(
        self,
        rubrics: Iterable[Rubric],
        *,
        langfuse: Langfuse,
        server: Callable[[], LangfuseServer | None],
        store: Store,
        take: Callable[[bytes], Awaitable[object]],
        window_ns: int,
        clock_ns: Callable[[], int],
    ) -> None:
        self._names = names_asked(rubrics)
        self._langfuse, self._server, self._store, self._take = langfuse, server, store, take
        self._window_ns, self._clock_ns = window_ns + _HOUR_NS, clock_ns
        self._project = ""
        self._taken: dict[str, str] = {}
        self._waiting: dict[str, ForeignScore] = {}
        self._read_ns = self._whole_ns = 0

    def take_rubrics(self, rubrics: Iterable[Rubric]) -> None:
        """Go by these rubrics from now on."""
        self._names, self._whole_ns = names_asked(rubrics), 0

    def restore(self) -> None:
        """Take up which scores were taken in, so that a restart revises nothing."""
        known = self._store.fact(FACT) or {}
        self._project, self._taken = str(known.get("project", "")), dict(known.get("taken", {}))

    async def tick(self) -> None:
        """Read once. Raises ``LangfuseError`` and ``StoreError``; what was not taken in is read again."""
        server = self._server()
        if server is None or not self._names:
            return
        now_ns = self._clock_ns()
        if server.project_id != self._project:
            self._project, self._taken, self._waiting, self._whole_ns = server.project_id, {}, {}, 0
        whole = now_ns - self._whole_ns >= _HOUR_NS
        since_ns = now_ns - self._window_ns if whole else self._read_ns - _AGAIN_NS
        found = self._waiting.copy()
        for name in self._names:
            async for score in scores_named(
                self._langfuse, name, since_ns=since_ns, until_ns=now_ns + _HOUR_NS, v3=server.scores_v3
            ):
                found[score.id] = score
        self._read_ns, self._whole_ns = now_ns, now_ns if whole else self._whole_ns
        await self._take_in([each for each in found.values() if self._taken.get(each.id) != _digest(each)])

    async def _take_in(self, scores: Sequence[ForeignScore]) -> None:
        waiting: dict[str, ForeignScore] = {}
        before = self._taken.copy()
        for score in sorted(scores, key=lambda each: each.at_ns):
            details = await asyncio.to_thread(self._details, score.trace_id)
            if details is None:
                waiting[score.id] = score
                continue
            await self._take(_request(score, details))
            self._taken.pop(score.id, None)
            self._taken[score.id] = _digest(score)
        oldest_ns = self._clock_ns() - self._window_ns
        self._waiting = dict([each for each in waiting.items() if each[1].at_ns >= oldest_ns][-_MOST:])
        if self._taken != before:
            self._taken = dict(list(self._taken.items())[-_MOST:])
            await self._store.keep_fact(FACT, {"project": self._project, "taken": self._taken})

    def _details(self, trace_id: str) -> TraceDocument | None:
        try:
            return self._store.details(trace_id) if len(trace_id) == _TRACE else None
        except ValueError:  # no id of OTLP
            return None


def _digest(score: ForeignScore) -> str:
    return blake2b(repr((score.value, score.comment, score.by)).encode(), digest_size=6).hexdigest()


def _request(score: ForeignScore, details: TraceDocument) -> bytes:
    """A request for one log record, of the service and environment under which the trace was judged."""
    stated: dict[str, Json] = {
        "gen_ai.evaluation.name": score.name, REPORTED_VIA: "langfuse", "evaluator.name": score.by,
        "gen_ai.evaluation.explanation": score.comment,
        "gen_ai.evaluation.score.label": score.value if isinstance(score.value, str) else None,
        "gen_ai.evaluation.score.value": None if isinstance(score.value, str) else score.value,
    }  # fmt: skip
    resource = {"service.name": details.get("service"), "deployment.environment.name": details.get("environment")}
    record: dict[str, Json] = {
        "traceId": score.trace_id, "timeUnixNano": str(score.at_ns), "eventName": EVALUATION,
        "attributes": _pairs(stated),
    }  # fmt: skip
    if score.observation is not None and len(score.observation) == _SPAN:
        record["spanId"] = score.observation
    logs = [{"resource": {"attributes": _pairs(resource)}, "scopeLogs": [{"logRecords": [record]}]}]
    return json.dumps({"resourceLogs": logs}).encode()


def _pairs(found: Mapping[str, object]) -> list[Json]:
    return [
        {"key": key, "value": {"stringValue" if isinstance(value, str) else "doubleValue": value}}
        for key, value in found.items() if isinstance(value, str | float)
    ]  # fmt: skip
