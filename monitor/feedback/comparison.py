"""Compares people's labels with our own scores on the same subject, both read from Langfuse.

Our scores are read back rather than taken from the store: people look at traces days after the store let go of them.
Our score is found by the name of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sidejudge.integrations.langfuse.annotations import ListedScore, value_of
from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.existing_scores import read_back
from sidejudge.integrations.langfuse.scores import metric_of, score_id
from sidejudge.monitor.config.langfuse import PeopleScore
from sidejudge.scoring.alerts.agreements import Agreements
from sidejudge.scoring.questions.teaching import teaches
from sidejudge.scoring.runs.label_line import PASS, LabelValue
from sidejudge.scoring.verdict.rubric import Rubric, all_criteria
from sidejudge.scoring.verdict.score import pass_name, score_name, state_name

UNMET: Final = "unmet"
"""There is no verdict of ours on it, as yet."""
OTHER_VERSION: Final = "other_version"
"""The verdict came from another version of the rubric, or from a judge that no longer answers for it."""
TAUGHT: Final = "taught"
"""The judge is shown examples out of labels, and this trace may be one of them."""
UNREADABLE: Final = "unreadable"
"""The value is neither pass nor failure, or is a number where others are categories."""
MOST_CORRECTIONS: Final = 2000
"""Corrected answers of one rubric that are remembered."""
CORRECTING: Final = " (correction)"
"""Suffix of the labeller's name, where a label is a correction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledScore:
    """The subject of a score of this name: a metric of a rubric, or its pass. ``ours`` is the name of our own score."""

    rubric: str
    metric: str
    ours: str
    passes: tuple[str, ...] = ()
    pass_at: float | None = None

    def read(self, value: LabelValue) -> LabelValue | None:
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
    """By name of a person's score, its subject: as configured, else by the names of our own scores."""
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
        for metric in (PASS, *(c.metric.id for c in all_criteria(rubric))):
            name = _name(rubric, metric)
            found.setdefault(name, [LabelledScore(rubric=rubric.id, metric=metric, ours=name)])
    return found


def failing(rubric: Rubric) -> LabelledScore:
    """The subject of a correction: the answer's pass, with the value false."""
    return LabelledScore(rubric=rubric.id, metric=PASS, ours=pass_name(rubric.id))


def _name(rubric: Rubric, metric: str) -> str:
    if metric == PASS:
        return pass_name(rubric.id)
    return next(score_name(rubric.id, c.metric) for c in all_criteria(rubric) if c.metric.id == metric)


Label = tuple[ListedScore, Sequence[LabelledScore]]
"""A person's score and its subject."""


class LabelComparison:
    """Records labels together with our scores in ``agreements``, and remembers which answers people corrected.

    ``judges`` are those of each rubric, as verdicts name them. ``corrected`` holds by rubric and subject whether we had
    passed the answer; None: our verdict was neither.
    """

    def __init__(
        self,
        langfuse: Langfuse,
        rubrics: Mapping[str, Rubric],
        judges: Mapping[str, Sequence[str]],
        agreements: Agreements,
    ) -> None:
        self._langfuse, self._rubrics, self._judges, self._agreements = langfuse, rubrics, judges, agreements
        self.corrected: dict[str, dict[str, bool | None]] = {}

    async def compare(self, labels: Sequence[Label], *, v3: bool) -> list[str | None]:
        """For each label, why it could not be compared, or None if it was. Raises ``LangfuseError``."""
        wanted = [score for given, about in labels for each in about for score in each.ids(given.subject)]
        rows = await self._rows(wanted, v3=v3)
        return [_gravest([self._record(given, each, rows) for each in about]) for given, about in labels]

    async def look_at(self, corrections: Sequence[ListedScore], *, v3: bool) -> None:
        """Note of corrected answers whether we had passed them. Raises ``LangfuseError``."""
        passes = {name: LabelledScore(rubric=name, metric=PASS, ours=pass_name(name)) for name in self._rubrics}
        wanted = [score for given in corrections for each in passes.values() for score in each.ids(given.subject)]
        rows = await self._rows(wanted, v3=v3)
        for given in corrections:
            for rubric, each in passes.items():
                score, _, state = map(rows.get, each.ids(given.subject))
                if score is not None or state is not None:
                    self._correct(rubric, given.subject, None if score is None else bool(value_of(score)))

    def _correct(self, rubric: str, subject: str, passed: bool | None) -> None:  # noqa: FBT001  # what was found
        known = self.corrected.setdefault(rubric, {})
        known.pop(subject, None)
        known[subject] = passed
        if len(known) > MOST_CORRECTIONS:
            del known[next(iter(known))]

    def _record(self, given: ListedScore, about: LabelledScore, rows: Mapping[str, Mapping[str, object]]) -> str | None:
        stated = about.read(given.value)
        if stated is None:
            return UNREADABLE
        if teaches(given.subject) and any(metric.taught for metric in self._rubrics[about.rubric].metrics):
            return TAUGHT
        score, passes, state = map(rows.get, about.ids(given.subject))
        if score is not None and score.get("source") == "ANNOTATION":  # a person has changed it: ours is there no more
            if about.metric == PASS:
                return UNMET
            score = None
        row = score or passes or state
        if row is None:
            return UNMET
        metadata = _metadata(row)
        version = self._rubrics[about.rubric].version
        judge = metadata.get("judge")  # none decided what words alone did
        if metadata.get("rubric_version") != version or not (judge is None or judge in self._judges[about.rubric]):
            return OTHER_VERSION
        by = self._labeller(given, about)
        if by is None:
            return None
        ours = _held(about, stated, passes or state or {}) if score is None else _ours(stated, score)
        kept = self._agreements.record(
            rubric=about.rubric, version=version, metric=about.metric, subject=given.subject, by=by,
            people=stated, ours=ours, weight=_weight(metadata), at_ns=given.at_ns,
        )  # fmt: skip
        return None if kept else UNREADABLE

    def _labeller(self, given: ListedScore, about: LabelledScore) -> str | None:
        """The source of a pair's label. A label on the verdict itself precedes one implied by a correction."""
        by = given.author or ""
        rubric, metric, subject = about.rubric, about.metric, given.subject
        if not given.correction:
            self._agreements.drop(rubric=rubric, metric=metric, subject=subject, by=by + CORRECTING)
            return by
        known = self._agreements.knows(rubric=rubric, metric=metric, subject=subject, by=by)
        return None if known else by + CORRECTING

    async def _rows(self, ids: Sequence[str], *, v3: bool) -> dict[str, Mapping[str, object]]:
        rows = await read_back(self._langfuse, list(dict.fromkeys(ids)), v3=v3, fields="details")
        return {str(row["id"]): row for row in reversed(rows)}  # of several, the latest


def _ours(stated: LabelValue, score: Mapping[str, object]) -> LabelValue | None:
    """Our result in a person's terms: a category is compared with our rating, a number with our value."""
    if not isinstance(stated, str):
        return value_of(score)
    rating = _metadata(score).get("rating")
    return rating if isinstance(rating, str) else None


def _held(about: LabelledScore, stated: LabelValue, verdict: Mapping[str, object]) -> LabelValue | None:
    """The same where the metric has no score of its own: its value stands beside the verdict."""
    value, rating = metric_of(_metadata(verdict), about.metric) or (None, None)
    return rating if isinstance(stated, str) else value


def _metadata(row: Mapping[str, object]) -> Mapping[str, object]:
    reported = row.get("metadata")
    return reported if isinstance(reported, Mapping) else {}


def _weight(metadata: Mapping[str, object]) -> float:
    probability = metadata.get("sampling_probability")
    return 1 / probability if isinstance(probability, int | float) and 0 < probability <= 1 else 1.0


def _gravest(outcomes: Sequence[str | None]) -> str | None:
    """The result for a label: compared where one of them could be; without a verdict only where none has one."""
    if None in outcomes:
        return None
    return next((each for each in outcomes if each != UNMET), UNMET)
