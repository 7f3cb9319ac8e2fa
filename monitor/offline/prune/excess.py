"""Excess: our scores in Langfuse that an earlier setting of ``sinks.langfuse.scores`` left there.

A score is ours where its id is the one that its subject and its name make. What is to stay depends on the verdict: its
pass is listed together with the other scores of its subject, or else read by its id. The pass and the composite stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from integrations.langfuse.annotations import value_of
from integrations.langfuse.client import Langfuse
from integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from integrations.langfuse.listed_scores import ListedScore, listed_scores
from integrations.langfuse.reading_back import MOST_IDS, read_back
from integrations.langfuse.scores import STEP, ScoreSelection, score_id
from scoring.verdict.rubric import Rubric
from scoring.verdict.score_name import composite_name, pass_name, score_name, state_name
from scoring.verdict.verdict import State

DAY_NS: Final = 24 * 3600 * 10**9


@dataclass(frozen=True, slots=True)
class ExcessScore:
    """A score that is not asked for, by its id and its name."""

    id: str
    name: str


class ExcessScores:
    """Finds what is not asked for. ``which`` is the setting, ``v3`` the way in which the server lists scores."""

    def __init__(self, langfuse: Langfuse, rubrics: Iterable[Rubric], which: ScoreSelection, *, v3: bool) -> None:
        self._langfuse, self._which, self._v3 = langfuse, which, v3
        self._rubric_of: dict[str, str] = {}
        self._metrics: set[str] = set()
        for rubric in rubrics:
            self._rubric_of[state_name(rubric.id)] = self._rubric_of[pass_name(rubric.id)] = rubric.id
            self._rubric_of[composite_name(rubric.id)] = rubric.id
            for criterion in (*rubric.criteria, *rubric.opt_in):
                name = score_name(rubric.id, criterion.metric)
                self._rubric_of[name] = rubric.id
                self._metrics.add(name)
                self._rubric_of[f"{name}{STEP}"] = rubric.id

    async def found(self, *, from_ns: int, to_ns: int) -> AsyncIterator[list[ExcessScore]]:
        """What is not asked for, a day of timestamps at a time. Raises ``LangfuseError``."""
        if self._which == "all":
            return
        for start_ns in range(from_ns, to_ns, DAY_NS):
            end_ns = min(to_ns, start_ns + DAY_NS)
            rows = [
                row
                async for row in listed_scores(self._langfuse, since_ns=start_ns, until_ns=end_ns, v3=self._v3)
                if row.name in self._rubric_of
                and row.id == score_id(row.subject, row.name, observation_id=row.observation)
            ]
            yield await self._excess(rows)

    async def _excess(self, rows: Sequence[ListedScore]) -> list[ExcessScore]:
        passed = await self._passed(rows)
        return [
            ExcessScore(row.id, row.name)
            for row in rows
            if self._is_excess(row, passed.get((row.subject, self._rubric_of[row.name])))
        ]

    def _is_excess(self, row: ListedScore, passed: bool | None) -> bool:  # noqa: FBT001  # what was found
        if row.name.endswith(STEP) and row.name.removesuffix(STEP) in self._metrics:
            return row.metadata.get("rating") not in ("fail", "blocker")
        if row.name in self._metrics:
            rated = row.metadata.get("rating")
            kept = passed is False or (self._which == "failing" and rated in ("fail", "blocker"))
            return not kept
        return row.name.endswith("_state") and row.metadata.get("state") == State.VALID.value

    async def _passed(self, rows: Sequence[ListedScore]) -> Mapping[tuple[str, str], bool | None]:
        """Whether each verdict passes, by subject and rubric; None where it has no pass."""
        wanted = {(row.subject, self._rubric_of[row.name]) for row in rows}
        found = {
            (row.subject, self._rubric_of[row.name]): bool(row.value)
            for row in rows
            if row.name == pass_name(self._rubric_of[row.name])
        }
        left = {score_id(subject, pass_name(rubric)): (subject, rubric) for subject, rubric in wanted - found.keys()}
        ids = list(left)
        for start in range(0, len(ids), MOST_IDS):
            for row in await read_back(self._langfuse, ids[start : start + MOST_IDS], v3=self._v3):
                found[left[str(row["id"])]] = bool(value_of(row))
        return found


async def delete(langfuse: Langfuse, scores: Iterable[ExcessScore]) -> tuple[dict[str, int], LangfuseError | None]:
    """Delete scores, one request each, until the server refuses more.

    Returns:
        How many were deleted, by name, and why it ended early; None where all are deleted.
    """
    done: dict[str, int] = defaultdict(int)
    for each in scores:
        try:
            await langfuse.delete("scores", each.id)
        except LangfuseError as error:
            if error.kind is LangfuseErrorKind.NOT_FOUND and error.body is not None:
                continue
            return dict(done), error
        done[each.name] += 1
    return dict(done), None
