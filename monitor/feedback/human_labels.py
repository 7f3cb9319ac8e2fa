"""Reads people's labels in Langfuse as they come, and measures how far our verdicts agree with them.

It reads a moving window of time. The last day is read again each time, and one day of the month before: a label may be
edited (which leaves no trace but its value), deleted, or come before its verdict. Older labels that count are requested
by their ids, some each time. None counts twice, because a pair replaces itself. A label that no longer exists leaves
the agreement; a request for its id decides that, and no list, because pages may shift while they are read. One of more
than a month stays where no score as old is shown: plans of Langfuse's cloud hide what is older. The labels that count
are kept over restarts, and only kept ones count.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sidejudge.integrations.langfuse.annotations import ListedScore, annotations_named, any_as_old, read_annotations
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.probe import LangfuseServer
from sidejudge.monitor.config.langfuse import AnnotationsSection
from sidejudge.monitor.feedback.comparison import LabelledScore, failing, requested
from sidejudge.scoring.alerts.agreements import Agreements
from sidejudge.scoring.alerts.condition import Agreement
from sidejudge.scoring.calibration.calibrated import Calibrated
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot
from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS
from sidejudge.scoring.verdict.rubric import Rubric

from .comparison import CORRECTING, OTHER_VERSION, TAUGHT, UNMET, UNREADABLE, Label, LabelComparison
from .parts import FeedbackParts

log = logging.getLogger("sidejudge.langfuse")

FACT: Final = "people"
"""Name of the fact that records how far labels were read; the pairs of a rubric are kept as ``people/RUBRIC``."""
LABELS: Final = " labels"
"""End of the name of the fact that holds the labels that count."""
FIRST_NS: Final = 30 * DAY_NS
"""How far back labels are read the first time."""
AGAIN_NS: Final = DAY_NS
"""The period that is read again each time."""
SWEEP_NS: Final = DAY_NS
"""The period before that one that is read again each time, another each time."""
MOST_LABELS: Final = 10_000
"""Labels that count at most, by their time the latest; as many that do not count are remembered."""
ASKED_AT_ONCE: Final = 200
"""Labels older than a month that are requested each time: all of them within 50 times."""
AT_ONCE: Final = 25
"""Labels that are compared together."""
UNSIGNED: Final = "unsigned"
"""No person is named: a prefill, which a program wrote."""
UNMAPPED: Final = "unmapped"
"""The name matches none of our scores."""
ASKED_FOR: Final = "asked_for"
"""We asked people to look because the verdict was in doubt: such labels are no random sample of our verdicts."""
PASSED_OVER: Final = (UNSIGNED, UNMAPPED, ASKED_FOR, UNREADABLE, UNMET, OTHER_VERSION, TAUGHT)
"""Why a label does not count for agreement."""


@dataclass(slots=True)
class _Read:
    """A label as it was read last. ``given`` None: it is to be compared again.

    ``about`` are the rubrics and metrics that it is compared with, ``why`` is why it does not count; None: it does.
    """

    at_ns: int
    subject: str
    by: str
    about: tuple[tuple[str, str], ...] = ()
    given: ListedScore | None = None
    why: str | None = None


class HumanLabels:
    """Reads labels in ticks. ``requested_for`` returns whether we asked people to look at a label's subject."""

    def __init__(
        self, section: AnnotationsSection, parts: FeedbackParts, requested_for: Callable[[ListedScore], bool]
    ) -> None:
        self._scores_out, self._store, self._clock_ns = parts.scores_out, parts.store, parts.clock_ns
        self._langfuse, self._rubrics = parts.scores_out.langfuse, dict(parts.rubrics)
        self._section, self._requested_for = section, requested_for
        self._find_scores()
        self._agreements = Agreements()
        self._judges = {name: tuple(parts.judges.get(name, ())) for name in self._rubrics}
        self._comparison = LabelComparison(self._langfuse, self._rubrics, self._judges, self._agreements)
        self._labels: dict[str, _Read] = {}
        self._others: dict[str, _Read] = {}
        self._compared_ns = 0
        self._swept_ns = 0
        self._asked_last = ""
        self._slice_ns = FIRST_NS
        self._read_ns: int | None = None
        self._project: str | None = None
        self._reason = ""
        self._passed_over: Counter[str] = Counter()
        self._measured: list[Calibrated] = []
        self._reported: list[Agreement] = []
        self._kept: dict[str, Mapping[str, object]] = {}

    def _find_scores(self) -> None:
        rubrics = list(self._rubrics.values())
        self._requested: Mapping[str, list[LabelledScore]] = requested(rubrics, self._section.scores)
        self._failing = [failing(rubric) for rubric in rubrics if rubric.id in self._section.corrections_fail]

    def take_rubrics(self, changed: Mapping[str, Rubric], judges: Mapping[str, Sequence[str]]) -> None:
        """Compare with these rubrics and judges from now on. Labels on verdicts by earlier ones are dropped."""
        self._rubrics |= changed
        others = {name: tuple(judges.get(name, ())) for name in self._rubrics}
        moved = [name for name in self._rubrics if others[name] != self._judges.get(name)]
        self._judges |= others
        for name in {*changed, *moved}:
            self._agreements.forget(name)
            self._comparison.corrected.pop(name, None)
        self._find_scores()
        self._compare_again()
        self._measure()

    def restore(self) -> None:
        """Restore the earlier state; pairs of another version of a rubric, or of another judge, are dropped."""
        known = self._store.fact(FACT)
        if known is not None:
            self._read_ns, self._project = known["read_ns"], known["project"]
            self._comparison.corrected = known["corrected"]
            self._swept_ns, self._asked_last = known.get("swept_ns", 0), known.get("asked_last", "")
        for rubric in self._rubrics.values():
            stated = self._store.fact(f"{FACT}/{rubric.id}")
            judges = list(self._judges[rubric.id])
            if stated is not None and stated["version"] == rubric.version and stated.get("judges", judges) == judges:
                self._agreements.restore(rubric.id, stated)
        for name, (at_ns, subject, by, about) in (self._store.fact(f"{FACT}{LABELS}") or {}).items():
            self._labels[name] = _Read(at_ns, subject, by, tuple((rubric, metric) for rubric, metric in about))
        self._measure()

    async def tick(self) -> None:
        """Read new labels; unanswered requests are repeated the next time. Raises ``StoreError``."""
        server = self._scores_out.server
        if server is None:
            return
        if not (server.scores_v3 or server.legacy_reads):
            self._reason = "this Langfuse has no way to read scores"
            return
        try:
            await self._read(server)
        except LangfuseError as error:
            if not self._reason:
                log.warning("labels of people cannot be read; they are read later", extra={"cause": str(error)})
            self._reason = str(error)
        else:
            self._reason = ""

    @property
    def is_read(self) -> bool:
        """Whether the latest tick read all labels."""
        return self._read_ns is not None and not self._reason

    def agreements(self) -> list[Agreement]:
        """Kappa by rubric, for the condition that watches it."""
        return self._reported

    def snapshot(self) -> AgreementSnapshot:
        """Agreement as measured so far."""
        corrected = {rubric: found.values() for rubric, found in self._comparison.corrected.items()}
        return AgreementSnapshot(
            source="langfuse",
            reason=self._reason,
            read_s=None if self._read_ns is None else self._read_ns / 1e9,
            measured=self._measured,
            passed_over={reason: self._passed_over[reason] for reason in PASSED_OVER},
            corrections={rubric: len(passed) for rubric, passed in corrected.items()},
            corrected_passes={rubric: sum(map(bool, passed)) for rubric, passed in corrected.items()},
        )

    async def _read(self, server: LangfuseServer) -> None:
        now_ns = self._clock_ns()
        if self._project != server.project_id:
            await self._begin_anew(server.project_id)
        if not 0 <= now_ns - self._compared_ns <= HOUR_NS:  # verdicts may have been revised since they were compared
            self._compare_again()
            self._compared_ns = now_ns
        if self._read_ns is not None:
            self._read_ns = min(self._read_ns, now_ns)  # later where the clock was set back
        start_ns = now_ns - FIRST_NS if self._read_ns is None else self._read_ns - AGAIN_NS
        recent_ns, passed_over = start_ns, Counter[str]()
        while start_ns < now_ns:
            end_ns = min(now_ns, start_ns + self._slice_ns)
            try:
                passed_over += await self._slice(server, start_ns, end_ns)
            except LangfuseError as error:
                if error.kind is not LangfuseErrorKind.TOO_EXPENSIVE or self._slice_ns <= HOUR_NS:
                    raise
                self._slice_ns //= 2
                continue
            start_ns = end_ns
            await self._remember(end_ns)
        self._passed_over = passed_over
        await self._sweep(server, now_ns - FIRST_NS, recent_ns)
        await self._ask_for_older(server, now_ns - FIRST_NS)

    async def _begin_anew(self, project: str) -> None:
        """Labels of another project are not this one's."""
        if self._project is not None:
            for rubric in self._agreements.rubrics():
                self._agreements.forget(rubric)
                await self._store.keep_fact(f"{FACT}/{rubric}", {"version": "", "metrics": {}})
            for kept in (self._labels, self._others, self._comparison.corrected, self._kept):
                kept.clear()
        self._read_ns, self._project = None, project

    async def _sweep(self, server: LangfuseServer, from_ns: int, until_ns: int) -> None:
        """Read one earlier day again."""
        if until_ns <= from_ns:
            return
        start_ns = self._swept_ns if from_ns <= self._swept_ns < until_ns else from_ns
        end_ns = min(until_ns, start_ns + SWEEP_NS)
        for held in self._known():
            if start_ns <= held.at_ns < end_ns:
                held.given = None
        await self._slice(server, start_ns, end_ns)
        self._swept_ns = end_ns if end_ns < until_ns else 0  # then from the beginning
        await self._remember(self._read_ns or 0)

    async def _ask_for_older(self, server: LangfuseServer, until_ns: int) -> None:
        """Ask for some of the labels whose time is listed no more, in the order of their ids."""
        older = sorted(name for name, held in self._labels.items() if held.at_ns < until_ns)
        if not older:
            return
        start = bisect_right(older, self._asked_last) % len(older)
        some = older[start : start + ASKED_AT_ONCE]
        rows = await annotations_named(self._langfuse, some, v3=server.scores_v3)
        gone = {*some} - {given.id for given in rows}
        oldest_ns = min((self._labels[name].at_ns for name in gone), default=0)
        if gone and await any_as_old(self._langfuse, oldest_ns, v3=server.scores_v3):
            self._remove(gone)
        await self._take(server, rows)
        self._asked_last = some[-1]
        await self._remember(self._read_ns or 0)

    def _known(self) -> list[_Read]:
        """All remembered labels, including ones that do not count, so that they are not compared again."""
        return [*self._labels.values(), *self._others.values()]

    def _compare_again(self) -> None:
        for held in self._known():
            held.given = None

    async def _slice(self, server: LangfuseServer, start_ns: int, end_ns: int) -> Counter[str]:
        """Read one stretch of time; why labels of it were passed over."""
        listed: list[ListedScore] = []
        async for page in read_annotations(self._langfuse, since_ns=start_ns, until_ns=end_ns, v3=server.scores_v3):
            listed += page
        rows = {given.id: given for given in reversed(listed)}  # of several, the latest
        missed = [n for n, held in self._labels.items() if start_ns <= held.at_ns < end_ns and n not in rows]
        found = await annotations_named(self._langfuse, missed, v3=server.scores_v3)
        self._remove({*missed} - {given.id for given in found})
        return await self._take(server, [*rows.values(), *found])

    async def _take(self, server: LangfuseServer, rows: Sequence[ListedScore]) -> Counter[str]:
        """Compare new or changed labels, the oldest first; returns why labels were passed over."""
        labels, corrections = self._changed(rows)
        given_as = {given.id: given for given in rows}
        for given in corrections:
            self._settle(given, None, self._failing)
        # After the labels, which are better evidence on the verdict than a correction.
        labels += [
            (replace(given, value=0.0), self._failing)
            for given in corrections
            if self._failing and not self._requested_for(given)
        ]
        for start in range(0, len(labels), AT_ONCE):
            some = labels[start : start + AT_ONCE]
            found = await self._comparison.compare(some, v3=server.scores_v3)
            for (given, about), why in zip(some, found, strict=True):
                self._settle(given_as[given.id], why, about)
        await self._comparison.look_at(corrections, v3=server.scores_v3)
        passed_over = Counter(self._others[given.id].why or "" for given in rows if given.id in self._others)
        # of many labels the latest count, and the latest of the others are remembered
        for kept in (self._labels, self._others):
            if len(kept) > MOST_LABELS:
                self._remove(sorted(kept, key=lambda name: kept[name].at_ns)[:-MOST_LABELS])
        return passed_over

    def _changed(self, rows: Sequence[ListedScore]) -> tuple[list[Label], list[ListedScore]]:
        """Labels and corrections that are new, or not as they were; the oldest first: of many, the latest are kept."""
        labels: list[Label] = []
        corrections: list[ListedScore] = []
        for given in rows:
            held = self._labels.get(given.id) or self._others.get(given.id)
            if held is not None and held.given == given:
                continue
            if held is not None and (held.given is not None or not self._concerns_the_same(held, given)):  # edited
                self._remove({given.id})
            why = self._why_not(given)
            if why is not None:
                self._settle(given, why)
            elif given.correction:
                corrections.append(given)
            else:
                labels.append((given, self._requested[given.name]))
        return labels, corrections

    def _concerns_the_same(self, held: _Read, given: ListedScore) -> bool:
        """Whether a label has its author and is compared with what it was: others may edit it, and be configured."""
        about = self._failing if given.correction else self._requested.get(given.name, ())
        return held.by == (given.author or "") and held.about == _about(about)

    def _settle(self, given: ListedScore, why: str | None, about: Sequence[LabelledScore] = ()) -> None:
        self._others.pop(given.id, None)
        before = self._labels.pop(given.id, None)
        if before is not None and why is not None:  # it counted, as it was
            self._drop_pairs(before)
        (self._labels if why is None else self._others)[given.id] = _Read(
            given.at_ns, given.subject, given.author or "", _about(about),
            None if why == UNMET else given, why,  # a verdict may still come
        )  # fmt: skip

    def _remove(self, names: Collection[str]) -> None:
        """Labels are not there any more, or not as they were: they count no more."""
        gone = [self._labels.pop(name) for name in names if name in self._labels]
        for name in names:
            self._others.pop(name, None)
        for held in gone:
            self._drop_pairs(held)
            for passes in self._comparison.corrected.values():
                passes.pop(held.subject, None)
        subjects = {held.subject for held in gone}
        for other in self._known() if subjects else ():
            if other.subject in subjects:  # the same person may have given the same under another name
                other.given = None

    def _drop_pairs(self, held: _Read) -> None:
        for rubric, metric in held.about:
            for by in (held.by, held.by + CORRECTING):
                self._agreements.drop(rubric=rubric, subject=held.subject, by=by, metric=metric, at_ns=held.at_ns)

    def _why_not(self, given: ListedScore) -> str | None:
        """Why a score is no label; None for one that is, and for a correction."""
        if given.author is None:
            return UNSIGNED
        if given.correction:
            return None
        if given.name not in self._requested:
            return UNMAPPED
        return ASKED_FOR if self._requested_for(given) else None

    async def _remember(self, read_ns: int) -> None:
        for rubric in self._agreements.rubrics():
            stated = {**self._agreements.to_json(rubric), "judges": list(self._judges[rubric])}
            if stated != self._kept.get(rubric):
                await self._store.keep_fact(f"{FACT}/{rubric}", stated)
                self._kept[rubric] = stated
        counted = {
            name: [held.at_ns, held.subject, held.by, [list(each) for each in held.about]]
            for name, held in self._labels.items()
        }
        if counted != self._kept.get(LABELS):
            await self._store.keep_fact(f"{FACT}{LABELS}", counted)
            self._kept[LABELS] = counted
        # After the pairs: killed in between, they are only recorded once more.
        self._read_ns = max(self._read_ns or 0, read_ns)
        known = {
            "read_ns": self._read_ns, "project": self._project, "corrected": self._comparison.corrected,
            "swept_ns": self._swept_ns, "asked_last": self._asked_last,
        }  # fmt: skip
        await self._store.keep_fact(FACT, known)
        self._measure()

    def _measure(self) -> None:
        self._measured, self._reported = self._agreements.report(), self._agreements()


def _about(scores: Sequence[LabelledScore]) -> tuple[tuple[str, str], ...]:
    """The rubrics and metrics of these."""
    return tuple((each.rubric, each.metric) for each in scores)
