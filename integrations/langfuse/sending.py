"""Sends one batch of scores to Langfuse in the best body that it takes, and reports what became of each of them.

There are three bodies. ``POST ingestion`` takes many scores at once in every version from 3 on, keeps their timestamps
and answers for each of them. ``POST scores`` takes an array from 4.59 on, before that one score, and up to 4.16 it
stamps the time of delivery. Whether a server takes the first is probed; whether it takes arrays is found by trying: a
server that takes one object refuses an array and stores nothing of it. A 207 to an array counts the scores that were
refused without naming them, so every score of it is sent once more on its own, which replaces those that were stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from integrations.langfuse.score_document import ScoreOfLangfuse

from .client import Langfuse, encoded
from .errors import LangfuseError, LangfuseErrorKind
from .reading_back import MOST_IDS

BATCH: Final = 15
"""Scores in an array: as many as the SDK sends."""
EVENTS: Final = 40
"""Scores in a request to ``ingestion``: as many as were tried on a real server."""
_MOST_BYTES: Final = 900_000
"""The largest body; Langfuse takes 1 MiB."""
_EVENT_BYTES: Final = 200
"""The most bytes that an event adds to its score."""


def traces_per_minute(requests_per_minute: float, scores_per_trace: int, *, scores_per_request: int) -> float:
    """How many traces a minute a budget of requests allows, when each score is sent once and read back once.

    Args:
        requests_per_minute: the budget; > 0.
        scores_per_trace: scores that a trace has, by its rubrics; >= 1.
        scores_per_request: ``EVENTS``, ``BATCH`` or 1, as the server takes them.

    >>> round(traces_per_minute(600, 13, scores_per_request=EVENTS))
    1026
    >>> round(traces_per_minute(600, 13, scores_per_request=1))
    45
    """
    return requests_per_minute / (scores_per_trace * (1 / scores_per_request + 1 / MOST_IDS))


@dataclass(slots=True)
class SendResult:
    """What became of a batch: indices of scores that were taken, and of those that were refused, with the reason.

    ``error`` is what kept the rest from being sent; it concerns none of them more than another.
    """

    taken: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    error: LangfuseError | None = None


class ScoreSender:
    """Sends scores, and remembers in which body they are taken.

    Args:
        langfuse: the project.
        arrays: ``POST scores`` takes arrays, as far as is known.
        events: ``POST ingestion`` is there.
        clock_ns: ns since the epoch; ids of events are made of it.
    """

    def __init__(
        self, langfuse: Langfuse, *, arrays: bool, events: bool = False, clock_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._langfuse, self._clock_ns = langfuse, clock_ns
        self.arrays, self.events = arrays, events
        self._last_ns = 0

    @property
    def several(self) -> bool:
        """Whether a request holds more than one score."""
        return self.arrays or self.events

    async def send(self, scores: Sequence[ScoreOfLangfuse]) -> SendResult:
        """Send them in order. Never raises for an answer; an outage ends the batch with ``error``."""
        outcome = SendResult()
        left = list(range(len(scores)))
        if self.events:
            for group in _groups(scores, left, EVENTS):
                await self._events(scores, group, outcome)
                if outcome.error is not None or not self.events:
                    break
            if self.events:
                return outcome
            left = [index for index in left if index not in {*outcome.taken, *outcome.refused}]
        for group in _groups(scores, left, BATCH) if self.arrays else [[index] for index in left]:
            await self._group(scores, group, outcome)
            if outcome.error is not None:
                break
        return outcome

    async def delete(self, score_id: str) -> None:
        """Delete a score; one that is not there is as good. Raises ``LangfuseError``."""
        try:
            await self._langfuse.delete("scores", score_id)
        except LangfuseError as error:
            if error.kind is not LangfuseErrorKind.NOT_FOUND or error.body is None:
                raise

    async def _events(self, scores: Sequence[ScoreOfLangfuse], group: list[int], outcome: SendResult) -> None:
        events = {self._event_id(scores[index]): index for index in group}
        batch = [
            {"id": name, "type": "score-create", "timestamp": scores[index]["timestamp"], "body": scores[index]}
            for name, index in events.items()
        ]
        try:
            reply = await self._langfuse.post("ingestion", {"batch": batch})
        except LangfuseError as error:
            if _is_absent(error):
                self.events = False
            elif error.kind is LangfuseErrorKind.TOO_LARGE and len(group) > 1:
                for index in group:
                    await self._events(scores, [index], outcome)
            elif error.kind is LangfuseErrorKind.TOO_LARGE:
                outcome.refused[group[0]] = str(error)
            else:
                outcome.error = error
            return
        taken, refused = _answered(reply.body)
        outcome.taken += [index for name, index in events.items() if name in taken]
        outcome.refused |= {index: refused[name] for name, index in events.items() if name in refused}
        if events.keys() - taken - refused.keys():
            outcome.error = LangfuseError(
                LangfuseErrorKind.SERVER_ERROR,
                "it neither took nor refused some scores of a batch",
                status=reply.status,
            )

    def _event_id(self, score: ScoreOfLangfuse) -> str:
        """A new id for each writing of a score, for one id counts once.

        Writings of a score with the same timestamp are merged in the order of their ids, so ids grow with time.
        """
        self._last_ns = max(self._last_ns + 1, self._clock_ns())
        return f"{self._last_ns:020d}-{score['id']}"

    async def _group(self, scores: Sequence[ScoreOfLangfuse], group: list[int], outcome: SendResult) -> None:
        if not self.arrays:  # found out by the group before
            for index in group:
                await self._single(scores, index, outcome)
                if outcome.error is not None:
                    return
            return
        try:
            reply = await self._langfuse.post("scores", [scores[index] for index in group])
        except LangfuseError as error:
            if _wants_an_object(error):
                self.arrays = False
            elif not (error.kind is LangfuseErrorKind.TOO_LARGE or _is_refusal(error)):
                outcome.error = error
                return
            await self._apart(scores, group, outcome, str(error))
            return
        if reply.status == 207:
            await self._apart(scores, group, outcome, _first_error(reply.body))
        else:
            outcome.taken += group

    async def _apart(self, scores: Sequence[ScoreOfLangfuse], group: list[int], outcome: SendResult, why: str) -> None:
        """Each of a group on its own: in an array of one where arrays are taken."""
        if self.arrays and len(group) == 1:
            outcome.refused[group[0]] = why
            return
        for index in group:
            if self.arrays:
                await self._group(scores, [index], outcome)
            else:
                await self._single(scores, index, outcome)
            if outcome.error is not None:
                return

    async def _single(self, scores: Sequence[ScoreOfLangfuse], index: int, outcome: SendResult) -> None:
        try:
            await self._langfuse.post("scores", scores[index])
        except LangfuseError as error:
            if _wants_an_array(error):
                self.arrays = True
                await self._group(scores, [index], outcome)
            elif error.kind is LangfuseErrorKind.TOO_LARGE or _is_refusal(error):
                outcome.refused[index] = str(error)
            else:
                outcome.error = error
        else:
            outcome.taken.append(index)


def _groups(scores: Sequence[ScoreOfLangfuse], indices: Sequence[int], most: int) -> list[list[int]]:
    groups: list[list[int]] = []
    size = 0
    for index in indices:
        length = len(encoded(scores[index])) + _EVENT_BYTES
        if not groups or len(groups[-1]) >= most or size + length > _MOST_BYTES:
            groups.append([])
            size = 2
        groups[-1].append(index)
        size += length
    return groups


def _is_absent(error: LangfuseError) -> bool:
    """Whether the server does not take batches: a score that is wrong is refused within a 207."""
    return error.kind in (LangfuseErrorKind.NOT_FOUND, LangfuseErrorKind.GONE, LangfuseErrorKind.REFUSED)


def _answered(body: object) -> tuple[set[str], dict[str, str]]:
    """The events that were taken, and those that were refused as they are, with the reason."""
    successes = body.get("successes") if isinstance(body, Mapping) else None
    errors = body.get("errors") if isinstance(body, Mapping) else None
    taken = {str(each.get("id")) for each in successes or () if isinstance(each, Mapping)}
    refused = {
        str(each.get("id")): f"refused: {each.get('message', '')}: {each.get('error', '')}"[:300]
        for each in errors or ()
        if isinstance(each, Mapping) and each.get("status") == 400
    }
    return taken, refused


def _is_refusal(error: LangfuseError) -> bool:
    """A refusal in Langfuse's own words; anything else that answers 400 is not Langfuse."""
    return error.kind is LangfuseErrorKind.REFUSED and error.status == 400 and isinstance(error.body, Mapping)


def _wants(error: LangfuseError, expected: str) -> bool:
    issues = error.body.get("error") if isinstance(error.body, Mapping) else None
    first = issues[0] if isinstance(issues, list) and issues and isinstance(issues[0], Mapping) else {}
    return error.status == 400 and first.get("path") == [] and first.get("expected") == expected


def _wants_an_object(error: LangfuseError) -> bool:
    return _wants(error, "object")


def _wants_an_array(error: LangfuseError) -> bool:
    return _wants(error, "array")


def _first_error(body: object) -> str:
    errors = body.get("errors") if isinstance(body, Mapping) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    stated = first.get("message", "") if isinstance(first, Mapping) else ""
    return f"refused: {stated}"[:300]
