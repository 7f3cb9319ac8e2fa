"""Why a verdict is kept although its reference has changed. A worse verdict never replaces a better one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.result.result import Failed
from sidejudge.scoring.verdict.documents import TraceDocument, VerdictDocument
from sidejudge.scoring.verdict.verdict import Verdict


class RevisionFailure(StrEnum):
    """The values are labels of a metric, so there are few and they stay."""

    GONE = "gone"
    """Langfuse has nothing of the trace, or not yet."""
    INCOMPLETE = "incomplete"
    """Langfuse has fewer spans, or less of the contents, than was judged."""
    TOO_LARGE = "too_large"
    """It is more than is held in memory for one trace."""
    UNREADABLE = "unreadable"
    """Langfuse answers, but not for this trace."""
    OTHER_RUBRICS = "other_rubrics"
    """As it is there, and as routes are now, not all rubrics would judge it that did."""
    JUDGE_FAILED = "judge_failed"
    """A judge that is needed could not be asked, or failed."""
    ERROR = "error"
    """Judging it failed for a reason of our own."""
    FORGOTTEN = "forgotten"
    """The verdict itself was let go early, for lack of room: what it was, and which revision, is not known any more."""
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
