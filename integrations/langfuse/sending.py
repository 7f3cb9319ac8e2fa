"""Sends one batch of scores to Langfuse in the best body that it accepts, and reports the result for each.

There are three bodies. ``POST scores`` takes an array from 4.59 on, which is what the SDK of this winter sends; before
that one score, and up to 4.16 it stamps the time of delivery. ``POST ingestion`` takes many scores at once in every
version from 3 on until it is gone, keeps their timestamps and answers for each of them. Both are probed; what a server
answers decides in the end: one that takes one object refuses an array and stores nothing of it. A 207 to an array
counts the scores that were refused without naming them, so every score of it is sent once more on its own, which
replaces those that were stored.

Of several writings of a score the server shows one. An event of ``ingestion`` bears a time of its own, and the latest
is shown whatever comes first; of two of one millisecond the earlier (up to 4.16). So a ``Writing`` has a time, which
grows with each writing of a score, and is that of the score for the first: from there the server has the score's own.
In an array a score is sent with its own time, for by that and its id it is replaced.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sidejudge.integrations.langfuse.existing_scores import MOST_IDS
from sidejudge.scoring.trace.jsontext import mapping, objects

from .client import Langfuse, encoded
from .errors import LangfuseError, LangfuseErrorKind
from .observations import instant
from .scores import ScoreOfLangfuse

BATCH: Final = 15
"""Scores in an array: as many as the SDK sends."""
EVENTS: Final = 40
"""Scores in a request to ``ingestion``: as many as were tried on a real server."""
_MOST_BYTES: Final = 900_000
"""The largest body; Langfuse takes 1 MiB."""
_EVENT_BYTES: Final = 200
"""The most bytes that an event adds to its score."""

_OF_CONTENTS: Final = frozenset(
    {
        LangfuseErrorKind.REFUSED,
        LangfuseErrorKind.FORBIDDEN,
        LangfuseErrorKind.NOT_FOUND,
        LangfuseErrorKind.NOT_LANGFUSE,
    }
)


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


@dataclass(frozen=True, slots=True)
class Writing:
    """One writing of a score. ``at_ms`` is its time among all writings of it, ms since the epoch."""

    score: ScoreOfLangfuse
    at_ms: int


@dataclass(slots=True)
class SendResult:
    """The result of a batch: indices of accepted scores, and of refused ones with the reason.

    ``doubtful`` failed by themselves while others were let by: their contents may be why. ``error`` kept the rest from
    being sent; it concerns all of them equally. ``sent`` are the indices of all that were in a request.
    """

    taken: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    doubtful: dict[int, LangfuseError] = field(default_factory=dict)
    error: LangfuseError | None = None
    sent: set[int] = field(default_factory=set)

    @property
    def done(self) -> set[int]:
        """Indices of the scores that were tried: taken, refused or doubtful."""
        return {*self.taken, *self.refused, *self.doubtful}


class ScoreSender:
    """Sends scores: in arrays where these are accepted, else as events, else one by one; and remembers which works.

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

    async def send(self, writings: Sequence[Writing]) -> SendResult:
        """Send them in order. Never raises for an answer; an outage ends the batch with ``error``."""
        outcome = SendResult()
        scores = [each.score for each in writings]
        left = list(range(len(scores)))
        if self.arrays:
            for group in _groups(scores, left, BATCH):
                await self._array(scores, group, outcome)
                if outcome.error is not None or not self.arrays:
                    break
            left = _left(left, outcome)
        if self.events and outcome.error is None:
            for group in _groups(scores, left, EVENTS):
                await self._events(writings, group, outcome)
                if outcome.error is not None or not self.events:
                    break
            left = _left(left, outcome)
        if outcome.error is None:
            await self._one_by_one(left, lambda index: self._single(scores, index, outcome), outcome)
        return outcome

    async def delete(self, score_id: str) -> None:
        """Delete a score; one that is not there is as good. Raises ``LangfuseError``."""
        await self._langfuse.delete("scores", score_id)

    async def _events(self, writings: Sequence[Writing], group: list[int], outcome: SendResult) -> None:
        events = {self._event_id(writings[index].score): index for index in group}
        batch = [
            {
                "id": name, "type": "score-create", "timestamp": instant(writings[index].at_ms * 10**6),
                "body": writings[index].score,
            }
            for name, index in events.items()
        ]  # fmt: skip
        outcome.sent.update(group)
        try:
            reply = await self._langfuse.post("ingestion", {"batch": batch})
        except LangfuseError as error:
            if _is_absent(error):
                self.events = False
            elif (error.kind is LangfuseErrorKind.TOO_LARGE or is_of_contents(error)) and len(group) > 1:
                await self._one_by_one(group, lambda index: self._events(writings, [index], outcome), outcome)
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
        """A new id for each event: one that comes under an id that was there before replaces that event."""
        self._last_ns = max(self._last_ns + 1, self._clock_ns())
        return f"{self._last_ns:020d}-{score['id']}"

    async def _array(self, scores: Sequence[ScoreOfLangfuse], group: list[int], outcome: SendResult) -> None:
        outcome.sent.update(group)
        try:
            reply = await self._langfuse.post("scores", [scores[index] for index in group])
        except LangfuseError as error:
            if wants(error, "object"):
                self.arrays = False
            elif error.kind is LangfuseErrorKind.TOO_LARGE or _is_refusal(error):
                await self._apart(scores, group, outcome, str(error))
            elif is_of_contents(error) and len(group) > 1:
                await self._one_by_one(group, lambda index: self._array(scores, [index], outcome), outcome)
            else:
                outcome.error = error
            return
        if reply.status == 207 and _counts_refused(reply.body):
            await self._apart(scores, group, outcome, _first_error(reply.body))
        else:
            outcome.taken += group

    async def _apart(self, scores: Sequence[ScoreOfLangfuse], group: list[int], outcome: SendResult, why: str) -> None:
        """Each of a group in an array of its own."""
        if len(group) == 1:
            outcome.refused[group[0]] = why
            return
        await self._one_by_one(group, lambda index: self._array(scores, [index], outcome), outcome)

    async def _one_by_one(
        self, indices: Sequence[int], send: Callable[[int], Awaitable[None]], outcome: SendResult
    ) -> None:
        """Each by itself. What fails while others are let by is doubtful; many in a row, or all, are an outage."""
        in_a_row: dict[int, LangfuseError] = {}
        by = False
        for index in indices:
            await send(index)
            error, outcome.error = outcome.error, None
            if error is None:
                by, outcome.doubtful, in_a_row = True, outcome.doubtful | in_a_row, {}
                continue
            in_a_row[index] = error
            if not is_of_contents(error) or len(in_a_row) >= BATCH:
                outcome.error = error
                return
        if by:
            outcome.doubtful |= in_a_row
        else:
            outcome.error = next(reversed(in_a_row.values()), None)

    async def _single(self, scores: Sequence[ScoreOfLangfuse], index: int, outcome: SendResult) -> None:
        outcome.sent.add(index)
        try:
            await self._langfuse.post("scores", scores[index])
        except LangfuseError as error:
            if wants(error, "array"):
                self.arrays = True
                await self._array(scores, [index], outcome)
            elif error.kind is LangfuseErrorKind.TOO_LARGE or _is_refusal(error):
                outcome.refused[index] = str(error)
            else:
                outcome.error = error
        else:
            outcome.taken.append(index)


def _left(indices: Sequence[int], outcome: SendResult) -> list[int]:
    return [index for index in indices if index not in outcome.done]


def _groups(scores: Sequence[ScoreOfLangfuse], indices: Sequence[int], most: int) -> list[list[int]]:
    groups: list[list[int]] = []
    size = _MOST_BYTES
    for index in indices:
        length = len(encoded(scores[index])) + _EVENT_BYTES
        if size + length > _MOST_BYTES or len(groups[-1]) >= most:
            groups.append([])
            size = 2
        groups[-1].append(index)
        size += length
    return groups


def _is_absent(error: LangfuseError) -> bool:
    """Whether the server does not take batches: a score that is wrong is refused within a 207."""
    return error.kind in (LangfuseErrorKind.NOT_FOUND, LangfuseErrorKind.GONE, LangfuseErrorKind.REFUSED)


def _answered(body: object) -> tuple[set[str], dict[str, str]]:
    """The accepted events, and the events refused for their contents with the reason; none is both."""
    taken = {str(each.get("id")) for each in objects(mapping(body).get("successes"))}
    refused = {
        str(each.get("id")): f"refused: {each.get('message', '')}: {each.get('error', '')}"[:300]
        for each in objects(mapping(body).get("errors"))
        if each.get("status") == 400 and str(each.get("id")) not in taken
    }
    return taken, refused


def _is_refusal(error: LangfuseError) -> bool:
    """A refusal in Langfuse's own words; anything else that answers 400 is not Langfuse."""
    return error.kind is LangfuseErrorKind.REFUSED and error.status == 400 and "message" in mapping(error.body)


def is_of_contents(error: LangfuseError) -> bool:
    """Whether something in between may have refused the contents of one score, while it lets others by."""
    return error.kind in _OF_CONTENTS


def wants(error: LangfuseError, expected: str) -> bool:
    """Whether a body was refused because it is not an ``object``, or an ``array``, as a whole."""
    first = _issue(error)
    return error.status == 400 and first.get("path") == [] and first.get("expected") == expected


def is_too_short(error: LangfuseError) -> bool:
    """Whether an array was refused because there is nothing in it."""
    first = _issue(error)
    return error.status == 400 and first.get("path") == [] and first.get("code") == "too_small"


def _issue(error: LangfuseError) -> Mapping[str, object]:
    issues = mapping(error.body).get("error")
    return issues[0] if isinstance(issues, list) and issues and isinstance(issues[0], Mapping) else {}


def _counts_refused(body: object) -> bool:
    """Whether an answer to an array has a refused score. What it says nothing about is believed, and read back."""
    return isinstance(body, Mapping) and bool(body.get("errors") or body.get("rejected"))


def _first_error(body: object) -> str:
    errors = mapping(body).get("errors")
    first = errors[0] if isinstance(errors, list) and errors else None
    return f"refused: {mapping(first).get('message', '')}"[:300]
