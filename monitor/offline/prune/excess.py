"""Excess: our scores in Langfuse that ``sinks.langfuse.scores`` does not ask for, left there by an earlier setting.

A score is ours where its id is the one that its subject and its name make. The pass and the composite stay.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sidejudge.integrations.langfuse.annotations import listed_scores
from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.existing_scores import MOST_IDS, read_back
from sidejudge.integrations.langfuse.scores import ScoreSelection, names_of, score_id
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.score_name import composite_name, pass_name

DAY_NS: Final = 24 * 3600 * 10**9


@dataclass(frozen=True, slots=True)
class ExcessScore:
    """A score that is not asked for, by its id and its name."""

    id: str
    name: str


class ExcessScores:
    """Finds what is not asked for. ``which`` is the setting, ``v3`` the way in which the server lists scores."""

    def __init__(self, langfuse: Langfuse, rubrics: Iterable[Rubric], which: ScoreSelection, *, v3: bool) -> None:
        self._langfuse, self._v3 = langfuse, v3
        self._excess: set[str] = set()
        for rubric in rubrics:
            stays = {pass_name(rubric.id), composite_name(rubric.id)}
            self._excess |= names_of(rubric, "all") - names_of(rubric, which) - stays

    async def found(self, *, from_ns: int, to_ns: int) -> AsyncIterator[list[ExcessScore]]:
        """What is not asked for, a day of timestamps at a time. Raises ``LangfuseError``."""
        if not self._excess:
            return
        for start_ns in range(from_ns, to_ns, DAY_NS):
            end_ns = min(to_ns, start_ns + DAY_NS)
            yield [
                ExcessScore(row.id, row.name)
                async for row in listed_scores(self._langfuse, since_ns=start_ns, until_ns=end_ns, v3=self._v3)
                if row.name in self._excess
                and row.id == score_id(row.subject, row.name, observation_id=row.observation)
            ]


async def still_there(langfuse: Langfuse, ids: Sequence[str], *, v3: bool) -> int:
    """How many of these scores are there. Raises ``LangfuseError``."""
    found = 0
    for start in range(0, len(ids), MOST_IDS):
        found += len(await read_back(langfuse, ids[start : start + MOST_IDS], v3=v3))
    return found


async def delete(langfuse: Langfuse, scores: Iterable[ExcessScore]) -> tuple[list[str], LangfuseError | None]:
    """Ask for the deletion of scores, one request each, until the server refuses more; it queues them.

    Returns:
        The ids that were asked for, and why it ended early; None where all were.
    """
    done: list[str] = []
    for each in scores:
        try:
            await langfuse.delete("scores", each.id)
        except LangfuseError as error:
            if error.kind is LangfuseErrorKind.NOT_FOUND and error.body is not None:
                continue
            return done, error
        done.append(each.id)
    return done, None
