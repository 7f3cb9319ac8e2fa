"""Numbering: new verdicts on old traces compared with those in Langfuse, from any writer.

An equal verdict in Langfuse stays. A different one becomes its next revision, under the time of the first version.
Langfuse is read again before scores are sent: a monitor that judged a trace meanwhile takes precedence, because it has
seen later spans.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.declared_scores import ScoreSelection, declared
from sidejudge.integrations.langfuse.existing_scores import REVISION, ExistingScore, existing_scores
from sidejudge.integrations.langfuse.scores import ScoreOfLangfuse, score_id, scores_of, withdrawn
from sidejudge.integrations.store.outbox import PendingScore, ScoreRow
from sidejudge.monitor.config.langfuse import LangfuseSink
from sidejudge.scoring.verdict.rubric import Rubric, all_criteria
from sidejudge.scoring.verdict.score import composite_name, pass_name, score_name
from sidejudge.scoring.verdict.verdict import Verdict

WITHIN_MS: Final = 2.0
"""Durations may be this far apart: Langfuse keeps times to the millisecond, exporters to the nanosecond."""
_QUOTES: Final = 1e-9
"""Numbers of a verdict agree exactly. Its comments quote the values of metrics: not compared where these may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """A verdict with its number, and its scores for the outbox. ``stands``: Langfuse already has it."""

    verdict: Verdict
    scores: tuple[ScoreRow, ...]
    revises: bool = False
    stands: bool = False


class Numbering:
    """Reads one Langfuse, None where it cannot be read; ``v3`` is whether by the old API. ``sink`` chooses scores."""

    def __init__(
        self, langfuse: Langfuse | None, rubrics: Mapping[str, Rubric], sink: LangfuseSink, *, v3: bool
    ) -> None:
        self._langfuse, self._rubrics, self._v3 = langfuse, rubrics, v3
        self._which, self._link_base = sink.scores, sink.link_base
        self._names = {
            rubric.id: tuple(dict.fromkeys(each.name for each in declared(rubric))) for rubric in rubrics.values()
        }
        self._within = {
            score_name(rubric.id, c.metric): WITHIN_MS
            for rubric in rubrics.values() for c in all_criteria(rubric) if c.metric.unit == "ms"
        } | {
            name: _QUOTES
            for rubric in rubrics.values() if any(c.metric.unit == "ms" for c in rubric.criteria)
            for name in (composite_name(rubric.id), pass_name(rubric.id))
        }  # fmt: skip

    async def number(self, verdicts: Sequence[Verdict], at_ns: int, *, of_part: bool = False) -> list[Numbered]:
        """Number the verdicts of one trace or session; new ones are dated ``at_ns``. Raises ``LangfuseError``.

        ``of_part``: a part of the session was judged, so what Langfuse has stays.
        """
        ids = list(dict.fromkeys(score for v in verdicts if _subject(v) for score in self._ids(v)))
        there = await self._there(ids)
        return [self._numbered(verdict, there, at_ns, of_part=of_part) for verdict in verdicts]

    async def overtaken_by(self, rows: Iterable[PendingScore]) -> frozenset[str]:
        """Ids of scores that Langfuse has in a version not older than ours. Raises ``LangfuseError``."""
        bodies = {row.id: json.loads(row.body) for row in rows if row.body is not None}
        there = await self._there(list(bodies))
        return frozenset(
            name
            for name, existing in there.items()
            if existing.revision >= bodies[name]["metadata"][REVISION] and not self._states(existing, bodies[name])
        )

    async def _there(self, ids: list[str]) -> Mapping[str, ExistingScore]:
        return await existing_scores(self._langfuse, ids, v3=self._v3) if ids and self._langfuse is not None else {}

    def _numbered(self, verdict: Verdict, there: Mapping[str, ExistingScore], at_ns: int, *, of_part: bool) -> Numbered:
        rubric = self._rubrics[verdict.rubric]
        bodies = _bodies(verdict, rubric, "all", self._link_base)
        known = {
            score: there[score]
            for score in self._ids(verdict)
            if score in there and not (there[score].withdrawn and score not in bodies)
        }
        if not known:
            bodies = _bodies(verdict, rubric, self._which, self._link_base)
            return Numbered(verdict=verdict, scores=_out(bodies, {}, at_ns))
        latest, first_ns = max(each.revision for each in known.values()), min(each.at_ns for each in known.values())
        if of_part:
            verdict = replace(verdict, revision=latest)
            return Numbered(verdict=verdict, scores=tuple(_standing(each, verdict) for each in known.values()))
        same = known.keys() <= bodies.keys() and all(self._states(known[score], bodies[score]) for score in known)
        revision = latest if same else max(verdict.revision, latest + 1)
        verdict = replace(verdict, revision=revision)
        # What another setting left there stays, and is kept true.
        wanted = _bodies(verdict, rubric, self._which).keys() | known.keys()
        every = _bodies(verdict, rubric, "all", self._link_base)
        bodies = {score: body for score, body in every.items() if score in wanted}
        gone = tuple(_withdrawn(each, verdict) for score, each in known.items() if score not in bodies)
        scores = (*_out(bodies, known, first_ns, stand=same), *gone)
        return Numbered(verdict=verdict, scores=scores, revises=not same, stands=same)

    def _ids(self, verdict: Verdict) -> list[str]:
        """Ids of all scores that the verdict may have in Langfuse; on steps, only of its present scores."""
        names = [score_id(_subject(verdict), name) for name in self._names[verdict.rubric]]
        return list(dict.fromkeys([*names, *_bodies(verdict, self._rubrics[verdict.rubric], "all")]))

    def _states(self, existing: ExistingScore, body: ScoreOfLangfuse) -> bool:
        return existing.states(body, within=self._within.get(body["name"], 0.0))


def _bodies(
    verdict: Verdict, rubric: Rubric, which: ScoreSelection, link_base: str | None = None
) -> dict[str, ScoreOfLangfuse]:
    return {body["id"]: body for body in scores_of(verdict, rubric, which, link_base=link_base)}


def _withdrawn(existing: ExistingScore, verdict: Verdict) -> ScoreRow:
    """A score that the verdict has no more: it is overwritten, then deleted, for deletions have a limit by the day."""
    stated = _named(existing, verdict)
    body = {**withdrawn(stated), "metadata": {REVISION: verdict.revision}, "withdrawn": True}
    text = json.dumps(body, separators=(",", ":"))
    return ScoreRow(id=stated["id"], at_ns=existing.at_ns, body=text, after_ms=existing.latest_ms)


def _standing(existing: ExistingScore, verdict: Verdict) -> ScoreRow:
    """A score that is left as it is, whatever it says."""
    text = json.dumps({**_named(existing, verdict), "metadata": {REVISION: existing.revision}}, separators=(",", ":"))
    return ScoreRow(
        id=str(existing.row["id"]), at_ns=existing.at_ns, body=text, stands=True, after_ms=existing.latest_ms
    )


def _named(existing: ExistingScore, verdict: Verdict) -> ScoreOfLangfuse:
    environment = existing.row.get("environment")
    stated: ScoreOfLangfuse = {
        "id": str(existing.row["id"]), "name": str(existing.row["name"]),
        "environment": environment if isinstance(environment, str) else None,
    }  # fmt: skip
    if verdict.trace_id:
        stated["traceId"] = verdict.trace_id
    elif verdict.session_id:
        stated["sessionId"] = verdict.session_id
    return stated


def _out(
    bodies: Mapping[str, ScoreOfLangfuse], known: Mapping[str, ExistingScore], at_ns: int, *, stand: bool = False
) -> tuple[ScoreRow, ...]:
    return tuple(
        ScoreRow(
            id=score, at_ns=known[score].at_ns if score in known else at_ns,
            body=json.dumps(body, separators=(",", ":"), allow_nan=False), stands=stand and score in known,
            after_ms=known[score].latest_ms if score in known else None,
        )
        for score, body in bodies.items()
    )  # fmt: skip


def _subject(verdict: Verdict) -> str:
    return verdict.trace_id or verdict.session_id or ""
