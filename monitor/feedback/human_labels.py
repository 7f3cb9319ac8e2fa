"""Reads people's labels in Langfuse as they come, and measures how far our verdicts agree with them.

What is read is a window of time that moves on. The last day of it is read again each time, and one day of the month
before it: a label may be edited (which leaves no trace but its value), be deleted, or come before the verdict that it
is about. Nothing counts twice by that, for a pair replaces itself. A label that is not listed any more leaves the
agreement; the labels that count are remembered over restarts, so that one that goes meanwhile is missed too.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sidejudge.integrations.langfuse.annotations import Annotation, read_annotations
from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.probe import LangfuseServer
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config.annotations import PeopleScore
from sidejudge.scoring.alerts.agreements import Agreements
from sidejudge.scoring.alerts.observed import Agreement
from sidejudge.scoring.runs.calibrated import Calibrated
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot
from sidejudge.scoring.verdict.rubric import Rubric

from .comparison import CORRECTING, OTHER_VERSION, UNMET, UNREADABLE, Label, LabelComparison
from .score_names import LabelledScore, failing, requested

log = logging.getLogger("sidejudge.langfuse")

FACT: Final = "people"
"""Name of the fact that records how far labels were read; the pairs of a rubric are kept as ``people/RUBRIC``."""
LABELS: Final = " labels"
"""End of the name of the fact that holds the labels that count."""
_HOUR_NS: Final = 3600 * 10**9
FIRST_NS: Final = 30 * 24 * _HOUR_NS
"""How far back labels are read the first time."""
AGAIN_NS: Final = 24 * _HOUR_NS
"""The period that is read again each time."""
SWEEP_NS: Final = 24 * _HOUR_NS
"""The period before that one that is read again each time, another each time."""
MOST_LABELS: Final = 10_000
"""Labels that are remembered, the latest read: so many are missed where they are deleted."""
AT_ONCE: Final = 25
"""Labels that are compared together."""
UNSIGNED: Final = "unsigned"
"""No person is named: a prefill, which a program wrote."""
UNMAPPED: Final = "unmapped"
"""The name matches none of our scores."""
ASKED_FOR: Final = "asked_for"
"""We asked people to look because the verdict was in doubt: such labels are no sample of our verdicts."""
PASSED_OVER: Final = (UNSIGNED, UNMAPPED, ASKED_FOR, UNREADABLE, UNMET, OTHER_VERSION)
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
    given: Annotation | None = None
    why: str | None = None


class HumanLabels:
    """Reads labels in ticks. ``requested_for`` returns whether we asked people to look at what a label is about.

    ``corrections_fail`` are rubrics for which a corrected answer is one that a person failed.
    """

    def __init__(
        self,
        *,
        langfuse: Langfuse,
        server: Callable[[], LangfuseServer | None],
        rubrics: Sequence[Rubric],
        scores: Sequence[PeopleScore],
        store: Store,
        clock_ns: Callable[[], int],
        requested_for: Callable[[Annotation], bool] = lambda _: False,
        corrections_fail: Sequence[str] = (),
    ) -> None:
        self._langfuse, self._server, self._store, self._clock_ns = langfuse, server, store, clock_ns
        self._rubrics = {rubric.id: rubric for rubric in rubrics}
        self._scores, self._corrections_fail, self._requested_for = scores, corrections_fail, requested_for
        self._find_scores()
        self._agreements = Agreements()
        self._comparison = LabelComparison(langfuse, self._rubrics, self._agreements)
        self._labels: dict[str, _Read] = {}
        self._compared_ns = 0
        self._swept_ns = 0
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
        self._requested: Mapping[str, list[LabelledScore]] = requested(rubrics, self._scores)
        self._failing = [failing(rubric) for rubric in rubrics if rubric.id in self._corrections_fail]

    def take_rubrics(self, changed: Mapping[str, Rubric]) -> None:
        """Compare with these rubrics from now on. Labels on verdicts by an earlier version are let go."""
        self._rubrics |= changed
        for name in changed:
            self._agreements.forget(name)
            self._comparison.corrected.pop(name, None)
        self._find_scores()
        self._compare_again()
        self._measure()

    def restore(self) -> None:
        """Take up what was known before; pairs of another version of a rubric are let go."""
        known = self._store.fact(FACT)
        if known is not None:
            self._read_ns, self._project = known["read_ns"], known["project"]
            self._comparison.corrected = known["corrected"]
        for rubric in self._rubrics.values():
            stated = self._store.fact(f"{FACT}/{rubric.id}")
            if stated is not None and stated["version"] == rubric.version:
                self._agreements.restore(rubric.id, stated)
        for name, (at_ns, subject, by, about) in (self._store.fact(f"{FACT}{LABELS}") or {}).items():
            self._labels[name] = _Read(at_ns, subject, by, tuple((rubric, metric) for rubric, metric in about))
        self._measure()

    async def tick(self) -> None:
        """Read what is new; what Langfuse does not answer is read the next time. Raises ``StoreError``."""
        server = self._server()
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
        """Whether the latest tick read everything that there is."""
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
            self._read_ns, self._project = None, server.project_id
        if now_ns - self._compared_ns > _HOUR_NS:  # verdicts may have been revised since they were compared
            self._compare_again()
            self._compared_ns = now_ns
        start_ns = now_ns - FIRST_NS if self._read_ns is None else min(self._read_ns, now_ns) - AGAIN_NS
        recent_ns, passed_over = start_ns, Counter[str]()
        while start_ns < now_ns:
            end_ns = min(now_ns, start_ns + self._slice_ns)
            try:
                passed_over += await self._slice(server, start_ns, end_ns)
            except LangfuseError as error:
                if error.kind is not LangfuseErrorKind.TOO_EXPENSIVE or self._slice_ns <= _HOUR_NS:
                    raise
                self._slice_ns //= 2
                continue
            start_ns = end_ns
            await self._remember(end_ns)
        self._passed_over = passed_over
        await self._sweep(server, now_ns - FIRST_NS, recent_ns)

    async def _sweep(self, server: LangfuseServer, from_ns: int, until_ns: int) -> None:
        """Read one day of what is older again."""
        if until_ns <= from_ns:
            return
        start_ns = self._swept_ns if from_ns <= self._swept_ns < until_ns else from_ns
        end_ns = min(until_ns, start_ns + SWEEP_NS)
        for held in self._labels.values():
            if start_ns <= held.at_ns < end_ns:
                held.given = None
        await self._slice(server, start_ns, end_ns)
        self._swept_ns = end_ns
        await self._remember(self._read_ns or 0)

    def _compare_again(self) -> None:
        for held in self._labels.values():
            held.given = None

    async def _slice(self, server: LangfuseServer, start_ns: int, end_ns: int) -> Counter[str]:
        """Read one stretch of time; why labels of it were passed over."""
        rows: list[Annotation] = []
        async for page in read_annotations(self._langfuse, since_ns=start_ns, until_ns=end_ns, v3=server.scores_v3):
            rows += page
        self._miss({given.id for given in rows}, start_ns, end_ns)
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
        return Counter(why for given in rows if (why := self._labels[given.id].why) is not None)

    def _miss(self, listed: set[str], start_ns: int, end_ns: int) -> None:
        """Let go of labels of this stretch that are not listed any more."""
        known = [name for name, held in self._labels.items() if start_ns <= held.at_ns < end_ns]
        for name in known:
            if name not in listed:
                self._let_go(name)

    def _changed(self, rows: Sequence[Annotation]) -> tuple[list[Label], list[Annotation]]:
        """Labels and corrections that are new, or not as they were; the oldest first: of many, the latest are kept."""
        labels: list[Label] = []
        corrections: list[Annotation] = []
        for given in reversed(rows):
            held = self._labels.get(given.id)
            if held is not None and held.given == given:
                continue
            if held is not None and held.given is not None:  # edited
                self._let_go(given.id)
            why = self._why_not(given)
            if why is not None:
                self._settle(given, why)
            elif given.correction:
                corrections.append(given)
            else:
                labels.append((given, self._requested[given.name]))
        return labels, corrections

    def _settle(self, given: Annotation, why: str | None, about: Sequence[LabelledScore] = ()) -> None:
        before = self._labels.pop(given.id, None)
        if before is not None and why is not None and before.about and before.why is None:  # it counted, as it was
            self._drop(before)
        self._labels[given.id] = _Read(
            given.at_ns, given.subject, given.author or "", tuple((each.rubric, each.metric) for each in about),
            None if why == UNMET else given, why,  # a verdict may still come
        )  # fmt: skip
        if len(self._labels) > MOST_LABELS:
            del self._labels[next(iter(self._labels))]

    def _let_go(self, name: str) -> None:
        """A label is not there any more, or not as it was: it counts no more."""
        held = self._labels.pop(name)
        self._drop(held)
        for passes in self._comparison.corrected.values():
            passes.pop(held.subject, None)
        for other in self._labels.values():
            if other.subject == held.subject:  # the same person may have given the same under another name
                other.given = None

    def _drop(self, held: _Read) -> None:
        for rubric, metric in held.about:
            for by in (held.by, held.by + CORRECTING):
                self._agreements.drop(rubric=rubric, subject=held.subject, by=by, metric=metric)

    def _why_not(self, given: Annotation) -> str | None:
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
            stated = self._agreements.to_json(rubric)
            if stated != self._kept.get(rubric):
                await self._store.keep_fact(f"{FACT}/{rubric}", stated)
                self._kept[rubric] = stated
        counted = {
            name: [held.at_ns, held.subject, held.by, [list(each) for each in held.about]]
            for name, held in self._labels.items()
            if held.why is None
        }
        if counted != self._kept.get(LABELS):
            await self._store.keep_fact(f"{FACT}{LABELS}", counted)
            self._kept[LABELS] = counted
        # After the pairs: killed in between, they are only recorded once more.
        self._read_ns = max(self._read_ns or 0, read_ns)
        known = {"read_ns": self._read_ns, "project": self._project, "corrected": self._comparison.corrected}
        await self._store.keep_fact(FACT, known)
        self._measure()

    def _measure(self) -> None:
        self._measured, self._reported = self._agreements.report(), self._agreements()
