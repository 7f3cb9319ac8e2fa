"""Sending: one batch of scores to Langfuse, in whichever body it takes, and what became of each of them.

From 4.59 on scores are taken as an array, before that one by one. Which it is is found by trying: a server that takes
one object refuses an array and stores nothing of it. A 207 says how many of an array were refused and not which: so
every score of it is sent once more on its own, which replaces those that were stored and names the one at fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .client import Langfuse, encoded
from .errors import LangfuseError, LangfuseErrorKind

BATCH: Final = 15
"""Scores in an array: as many as the SDK sends."""
_MOST_BYTES: Final = 900_000
"""Of a body; Langfuse takes 1 MiB."""


@dataclass(slots=True)
class SendResult:
    """What became of a batch: indices of scores that were taken, and of those that were refused, with the reason.

    ``error`` is what kept the rest from being sent; it concerns none of them more than another.
    """

    taken: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    error: LangfuseError | None = None


class ScoreSender:
    """Sends scores; remembers in which body they are taken."""

    def __init__(self, langfuse: Langfuse, *, arrays: bool) -> None:
        self._langfuse = langfuse
        self.arrays = arrays

    async def send(self, scores: Sequence[Mapping[str, Any]]) -> SendResult:
        """Send them in order. Never raises for an answer; an outage ends the batch with ``error``."""
        outcome = SendResult()
        for group in _groups(scores) if self.arrays else [[index] for index in range(len(scores))]:
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

    async def _group(self, scores: Sequence[Mapping[str, Any]], group: list[int], outcome: SendResult) -> None:
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

    async def _apart(
        self, scores: Sequence[Mapping[str, Any]], group: list[int], outcome: SendResult, why: str
    ) -> None:
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

    async def _single(self, scores: Sequence[Mapping[str, Any]], index: int, outcome: SendResult) -> None:
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


def _groups(scores: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    groups: list[list[int]] = []
    size = 0
    for index, score in enumerate(scores):
        length = len(encoded(score)) + 1
        if not groups or len(groups[-1]) >= BATCH or size + length > _MOST_BYTES:
            groups.append([])
            size = 2
        groups[-1].append(index)
        size += length
    return groups


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


def _first_error(body: Any) -> str:
    errors = body.get("errors") if isinstance(body, Mapping) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    said = first.get("message", "") if isinstance(first, Mapping) else ""
    return f"refused: {said}"[:300]
