"""Reads traces once more, judges them, and commits the revision of their verdicts.

Langfuse gives their spans back; other facts on a trace come from its first verdict. Stages, router and backends are the
live ones, with a separate judge queue: nothing else waits. The spans are held in memory until the revision is on disk,
so few traces are judged at a time; after a kill they are still due (``monitor/revise/schedule.py``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from msgspec import structs

from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.observations import Window
from sidejudge.integrations.langfuse.probe import LangfuseServer
from sidejudge.integrations.otlp.wire.chunk import ChunkOrigin
from sidejudge.integrations.otlp.wire.encode import encode_spans
from sidejudge.integrations.otlp.wire.tracestate import NEVER, random_bits
from sidejudge.integrations.raw import RawSpan
from sidejudge.integrations.store.pulled import DueRevision
from sidejudge.monitor.deliver.commit import Commit
from sidejudge.monitor.evaluate.judge_queue import DeferredTraces, JudgeQueue
from sidejudge.monitor.evaluate.pipeline import Pipeline, one_by_one
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.langfuse.fetch import UnreadError, spans_of
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.ingest.sampler import Decision
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.result import Failed
from sidejudge.scoring.trace.span import JsonRecord
from sidejudge.scoring.trace.time_units import MINUTE_NS, iso_time
from sidejudge.scoring.verdict.documents import TraceDocument, VerdictDocument
from sidejudge.scoring.verdict.verdict import Verdict


class RevisionFailure(StrEnum):
    """Why a verdict is kept although its reference has changed. A worse verdict never replaces a better one.

    The values are labels of a metric, so there are few and they stay.
    """

    GONE = "gone"
    """Langfuse has nothing of the trace, or not yet."""
    INCOMPLETE = "incomplete"
    """Langfuse has fewer spans, or less of the contents, than was judged."""
    TOO_LARGE = "too_large"
    """It is more than is held in memory for one trace."""
    UNREADABLE = "unreadable"
    """Langfuse answers, but not for this trace."""
    OTHER_RUBRICS = "other_rubrics"
    """With Langfuse's spans and the present routes, not all earlier rubrics would judge it."""
    JUDGE_FAILED = "judge_failed"
    """A judge that is needed could not be asked, or failed."""
    ERROR = "error"
    """Judging it failed for a reason of our own."""
    FORGOTTEN = "forgotten"
    """The verdict itself was dropped early, for lack of space: its result and revision are unknown."""
    NO_LANGFUSE = "no_langfuse"
    """No Langfuse is configured that the trace could be read from."""


FINAL: Final = frozenset(
    {RevisionFailure.TOO_LARGE, RevisionFailure.OTHER_RUBRICS, RevisionFailure.FORGOTTEN, RevisionFailure.NO_LANGFUSE}
)
"""Failures that no further attempt would change."""


_AT_LEAST: Final = ("spans", "complete", "content_captured", "answered", "agents", "tools")
"""Details of a trace that show how much of it was seen: numbers, or whether."""


def worse(before: TraceDocument, result: TraceResult) -> RevisionFailure | None:
    """Why a result must not replace the verdicts before it; None when it may."""
    details = result.details
    if result.reason in (EndReason.ERROR, EndReason.UNDECODABLE):
        return RevisionFailure.ERROR
    if any(_number(before.get(key)) > _number(details.get(key)) for key in _AT_LEAST):
        return RevisionFailure.INCOMPLETE
    if result.reason is EndReason.OVER_BUDGET or _over_budget(details) - _over_budget(before):
        return RevisionFailure.JUDGE_FAILED
    if result.withdrawn:
        return RevisionFailure.OTHER_RUBRICS
    decided = {str(stated["rubric"]): stated for stated in before["verdicts"] if stated["passed"] is not None}
    undone = [v for v in result.verdicts if v.rubric in decided and _knows_less(v, decided[v.rubric])]
    if any(isinstance(score.result, Failed) for verdict in undone for score in verdict.scores):
        return RevisionFailure.JUDGE_FAILED
    return None


def _knows_less(verdict: Verdict, before: VerdictDocument) -> bool:
    """Whether a decided verdict would become open, or an equal one lose its composite."""
    if verdict.passed is None:
        return True
    same = verdict.passed == before.get("passed") and set(verdict.blockers) == set(before.get("blockers") or ())
    return same and verdict.composite is None and before.get("composite") is not None


def _number(reported: object) -> int:
    return reported if isinstance(reported, int) else 0


def _over_budget(details: Mapping[str, object]) -> set[str]:
    sampling = details.get("sampling")
    dropped: Iterable[str] = sampling.get("over_budget", ()) if isinstance(sampling, Mapping) else ()
    return set(dropped)


_REACHES_ALL: Final = NEVER - 1
_AROUND_NS: Final = 30 * MINUTE_NS
"""How far from the times of the spans that were judged they are looked for."""
MOST_HELD: Final = 4
"""Traces that are held in memory while they are judged."""


def spans_as_they_were(spans: Sequence[RawSpan], before: TraceDocument) -> list[RawSpan]:
    """With the service and the environment under which the trace was judged: verdicts stay where they are counted."""
    resource = {"service.name": before["service"]} if before.get("service") else {}
    attribute = {"langfuse.environment": before["environment"]} if before.get("environment") else {}
    return [
        structs.replace(span, resource={**span.resource, **resource}, attributes={**span.attributes, **attribute})
        for span in spans
    ]


def drawn_as_before(before: TraceDocument, trace_id: bytes, hash_key: bytes) -> Decision:
    """The decision that was made when the trace was drawn: it is not drawn again."""
    sampling = before.get("sampling") or {}
    first = before["verdicts"][0] if before["verdicts"] else {}
    chance = float(sampling.get("probability") or first.get("sampling_probability") or 1.0)
    bits = random_bits(trace_id, hash_key)
    if sampling.get("judged_share") is not None:  # so was what the judge's budget could pay for
        bits = 0 if sampling.get("over_budget") else _REACHES_ALL
    return Decision(
        kept=True, probability=chance, base_probability=chance, rule=sampling.get("rule"), randomness=bits,
        selection="forced" if sampling.get("selection") == "forced" else "random",
        upstream=float(sampling.get("upstream", 1.0)),
    )  # fmt: skip


async def read(
    langfuse: Langfuse, server: LangfuseServer, trace_id: str, before: TraceDocument
) -> list[RawSpan] | RevisionFailure:
    """All spans of a trace, at least as many as were judged before. Raises ``LangfuseError``."""
    try:
        spans = await spans_of(langfuse, server, trace_id, window=_around(before))
    except UnreadError:
        return RevisionFailure.TOO_LARGE
    if not spans:
        return RevisionFailure.GONE
    judged = int(before.get("spans") or 0)
    return spans if len({span.span_id for span in spans}) >= judged else RevisionFailure.INCOMPLETE


def _around(before: TraceDocument) -> Window | None:
    """Where its spans are, which spares Langfuse a search through everything; None where the details do not hold it."""
    first, last = before.get("first_ns"), before.get("last_ns")
    if not isinstance(first, int) or not isinstance(last, int):
        return None
    return Window(from_ns=max(0, first - _AROUND_NS), to_ns=last + _AROUND_NS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReevaluationOutcome:
    """The result for a trace. ``written``: its revision is on disk; ``changed``: with other verdicts than before.

    A trace that is neither written nor a failure must be checked anew, because it changed meanwhile.
    """

    due: DueRevision
    failure: RevisionFailure | None = None
    written: bool = False
    changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    due: DueRevision
    before: TraceDocument
    payload: bytes


class Reevaluation:
    """Judges the given traces. ``live`` is the monitor's pipeline: its stages judge, its listeners get the results.

    ``still_owed`` returns whether a trace's references are others than those of its verdict, and nobody else judges it.
    """

    def __init__(
        self, live: Pipeline, *, commit: Commit, details: Callable[[bytes], TraceDocument | None],
        still_owed: Callable[[bytes], bool], hash_key: bytes, clock_ns: Callable[[], int],
        judge_wait_ns: int, embedding_wait_ns: int,
    ) -> None:  # fmt: skip
        own = replace(live.stages, archive=self, sampler=self, conversations=None)
        waiting, vectorless = (
            DeferredTraces(max_waiting=MOST_HELD, max_wait_ns=wait_ns) for wait_ns in (judge_wait_ns, embedding_wait_ns)
        )
        self._pipeline = Pipeline(
            stages=own,
            judge_queue=JudgeQueue(
                stages=own, deferred=waiting, without_vectors=vectorless, clock_ns=clock_ns, capacity=1
            ),
            commit=one_by_one(self._commit),
            clock_ns=clock_ns,
        )  # fmt: skip
        self._commit_results, self._listeners, self._details = commit, live.listeners, details
        self._still_owed, self._hash_key = still_owed, hash_key
        self._held: dict[bytes, _Held] = {}
        self._through: list[ReevaluationOutcome] = []

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._held

    @property
    def room(self) -> int:
        """Traces that may be taken now."""
        return MOST_HELD - len(self._held)

    async def take(self, due: DueRevision, spans: Sequence[RawSpan], before: TraceDocument) -> None:
        """Take a trace as it was read, with its details and verdicts so far."""
        payload = await asyncio.to_thread(lambda: encode_spans(spans_as_they_were(spans, before)))
        self._held[due.trace_id] = _Held(due=due, before=before, payload=payload)
        self._pipeline.waiting.append(
            Closing(
                trace_id=due.trace_id, completion=before["completion"], revision=int(before["revision"]) + 1,
                origin=ChunkOrigin(before.get("service"), before.get("environment"), 0),
            )
        )  # fmt: skip

    async def go_on(self) -> list[ReevaluationOutcome]:
        """Judge as far as answers allow; returns the finished ones. Raises ``StoreError``."""
        if self._held:
            await self._pipeline.drain()
        through, self._through = self._through, []
        return through

    async def close(self) -> None:
        """End the open work; it stays due."""
        await self._pipeline.close()

    async def _commit(self, result: TraceResult) -> None:
        held = self._held[result.trace_id]
        failure = worse(held.before, result)
        writes = failure is None and await asyncio.to_thread(self._as_expected, held)
        if writes:
            placed = replace(
                result, place_ns=int(held.before["closed_ns"]), chunks=0, details=_details(result, held.before)
            )
            for error in (await self._commit_results.commit([placed])).values():
                raise error
            for listener in self._listeners:
                listener(placed)
        del self._held[result.trace_id]
        self._through.append(
            ReevaluationOutcome(due=held.due, failure=failure, written=writes, changed=bool(result.changed))
        )

    def _as_expected(self, held: _Held) -> bool:
        """Whether nothing happened meanwhile that makes this revision one too many."""
        now = self._details(held.due.trace_id)
        same = now is not None and now["revision"] == held.before["revision"]
        return same and self._still_owed(held.due.trace_id)

    def chunks_and_stories(self, trace_ids: Iterable[bytes]) -> list[tuple[list[bytes], TraceDocument | None]]:
        """The spans of traces, for the stages, and their details so far."""
        held = map(self._held.__getitem__, trace_ids)
        return [([each.payload], each.before.copy()) for each in held]

    def turns(self, _key: bytes) -> list[tuple[int, JsonRecord]]:
        """None: sessions are not held against references."""
        return []

    def holds_judged(self, _trace_id: bytes) -> bool:
        """Yes: it was read whole."""
        return True

    def decide(self, _case: Case, _admission: int, trace_id: bytes, _states: Iterable[str] = ()) -> Decision:
        """As it was drawn then."""
        return drawn_as_before(self._held[trace_id].before, trace_id, self._hash_key)


def _details(result: TraceResult, before: TraceDocument) -> TraceDocument:
    """The revision's details, with details that only the first evaluation knew."""
    details: TraceDocument = {**result.details, "read_again_at": iso_time(result.ended_ns)}
    if "session" in before:
        details["session"] = before["session"]
    if "backfill" in before:
        details["backfill"] = before["backfill"]
    return details
