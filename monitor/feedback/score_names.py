"""Finds which of our scores a person's score is about, and what its value means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sidejudge.integrations.langfuse.scores import score_id
from sidejudge.monitor.config.annotations import PeopleScore
from sidejudge.scoring.runs.label_line import PASS, Said
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.score_name import pass_name, score_name, state_name


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledScore:
    """The subject of a score of this name: a metric of a rubric, or its pass. ``ours`` is the name of our own score."""

    rubric: str
    metric: str
    ours: str
    passes: tuple[str, ...] = ()
    pass_at: float | None = None

    def read(self, value: Said) -> Said | None:
        """The meaning of a person's value: for a pass 1 or 0, None for neither; for a metric the value itself."""
        if self.metric != PASS:
            return value
        if isinstance(value, str):
            return float(value in self.passes) if self.passes else None
        if self.pass_at is not None:
            return float(value >= self.pass_at)
        return value if value in (0.0, 1.0) else None

    def ids(self, subject: str) -> tuple[str, str, str]:
        """The ids of our score on this subject, and of the pass and the state of its verdict."""
        named = (self.ours, pass_name(self.rubric), state_name(self.rubric))
        return score_id(subject, named[0]), score_id(subject, named[1]), score_id(subject, named[2])


def requested(rubrics: Iterable[Rubric], mapped: Iterable[PeopleScore]) -> Mapping[str, list[LabelledScore]]:
    """By name of a person's score, what it is about: as configured, else the names of our own scores."""
    rubrics = list(rubrics)
    found: dict[str, list[LabelledScore]] = {}
    for score in mapped:
        for rubric in rubrics:
            if rubric.id == score.rubric:
                metric = score.metric or PASS
                stated = LabelledScore(
                    rubric=rubric.id,
                    metric=metric,
                    ours=_name(rubric, metric),
                    passes=score.passes,
                    pass_at=score.pass_at,
                )
                found.setdefault(score.name, []).append(stated)
    for rubric in rubrics:
        for metric in (PASS, *(c.metric.id for c in (*rubric.criteria, *rubric.opt_in))):
            name = _name(rubric, metric)
            found.setdefault(name, [LabelledScore(rubric=rubric.id, metric=metric, ours=name)])
    return found


def failing(rubric: Rubric) -> LabelledScore:
    """The subject of a correction: the pass of the answer, which is false."""
    return LabelledScore(rubric=rubric.id, metric=PASS, ours=pass_name(rubric.id))


def _name(rubric: Rubric, metric: str) -> str:
    if metric == PASS:
        return pass_name(rubric.id)
    return next(score_name(rubric.id, c.metric) for c in (*rubric.criteria, *rubric.opt_in) if c.metric.id == metric)
