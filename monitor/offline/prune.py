"""Prune: deletes our scores in Langfuse that ``sinks.langfuse.scores`` no longer asks for.

A score is ours where its id is the one that its subject and its name make. The pass and the composite stay. Deletions
that were requested and that Langfuse may not have done yet stand in a file beside the store.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidejudge.integrations.langfuse.annotations import listed_scores
from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.declared_scores import ScoreSelection, names_of
from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.integrations.langfuse.scores import score_id
from sidejudge.scoring.trace.time_units import DAY_NS
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.score import composite_name, pass_name


@dataclass(frozen=True, slots=True)
class ExcessScore:
    """An unwanted score, by its id and its name."""

    id: str
    name: str


class ExcessScores:
    """Finds unwanted scores. ``which`` is ``sinks.langfuse.scores``; ``v3``: the server lists scores by its API v3."""

    def __init__(self, langfuse: Langfuse, rubrics: Iterable[Rubric], which: ScoreSelection, *, v3: bool) -> None:
        self._langfuse, self._v3 = langfuse, v3
        self._excess: set[str] = set()
        for rubric in rubrics:
            stays = {pass_name(rubric.id), composite_name(rubric.id)}
            self._excess |= names_of(rubric, "all") - names_of(rubric, which) - stays

    async def found(self, *, from_ns: int, to_ns: int) -> AsyncIterator[list[ExcessScore]]:
        """The unwanted scores, a day of timestamps at a time. Raises ``LangfuseError``."""
        if not self._excess:
            return
        for start_ns in range(from_ns, to_ns, DAY_NS):
            end_ns = min(to_ns, start_ns + DAY_NS)
            yield [
                ExcessScore(row.id, row.name)
                async for row in listed_scores(self._langfuse, since_ns=start_ns, until_ns=end_ns, v3=self._v3)
                if row.name in self._excess
                and row.id == score_id(row.subject, row.name, observation_id=row.observation or "")
            ]


async def delete(langfuse: Langfuse, scores: Iterable[ExcessScore]) -> tuple[list[str], LangfuseError | None]:
    """Request the deletion of each score, until the server refuses one. The server queues deletions.

    Returns:
        The ids whose deletion was requested, and the refusal; None where there was none.
    """
    done: list[str] = []
    for each in scores:
        try:
            if await langfuse.delete("scores", each.id):
                done.append(each.id)
        except LangfuseError as error:
            return done, error
    return done, None


KEPT_S: Final = 7 * 24 * 3600.0
"""How long an id is kept, in s: a server that deletes one score in two minutes deletes 5,000 in this time."""


class AskedDeletions:
    """The ids of scores of one Langfuse whose deletion was requested, kept between calls of the command.

    A file that cannot be read or written costs no more than a second request for the same deletion.
    """

    def __init__(self, store: Path, base_url: str) -> None:
        self._path, self._base_url = store.with_name(f"{store.name}.deletions.json"), base_url
        self._known = self._read()

    def __contains__(self, score_id: object) -> bool:
        return score_id in self._known

    def add(self, ids: Iterable[str]) -> None:
        """Remember these too."""
        self._known |= dict.fromkeys(ids, time.time())
        with suppress(OSError):
            self._path.write_text(json.dumps({"base_url": self._base_url, "asked": self._known}), "utf-8")

    def _read(self) -> dict[str, float]:
        try:
            held = json.loads(self._path.read_text("utf-8"))
            if held["base_url"] != self._base_url:
                return {}
            return {str(name): float(at_s) for name, at_s in held["asked"].items() if at_s > time.time() - KEPT_S}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}
