"""Failures: the failing verdicts of a period in groups, for pages, the daily report and metrics; examples for alerts.

An alert is illustrated by failing traces, what most have in common, and where they are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from sidejudge.integrations.store.bounded_read import ComparedFilter, ComparedVerdict
from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.sqlite import Store
from sidejudge.scoring.alerts.condition import Condition
from sidejudge.scoring.alerts.event import AlertEvent, Example, MainFailure
from sidejudge.scoring.alerts.explanation import GROUP, TOOL, Cause, Explanation, SlicedVerdict, explain, with_causes
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.alerts.quality import PASS_RATES, place_of
from sidejudge.scoring.evaluators.embedding import SAME_STATEMENT, Vector
from sidejudge.scoring.lexical.shown_text import label, label_of
from sidejudge.scoring.result.reason import Rights, outline, shown_name
from sidejudge.scoring.status.failure_groups import FailureGroup, Subject, alike, failure_groups, reasons
from sidejudge.scoring.trace.time_units import DAY_NS, MINUTE_NS
from sidejudge.scoring.verdict.documents import VerdictDocument

from .observation import Key

log = logging.getLogger("sidejudge.failures")

MOST: Final = 2000
"""Most failing verdicts of a period that are read, the latest ones: some 60 ms of reading."""
_FRESH_NS: Final = 30 * 10**9
_HARDLY_NS: Final = 5 * MINUTE_NS
"""How much of a period may be purged before it is counted."""
REFRESH_S: Final = 300.0
"""How often the groups of the last day are counted for the metrics."""

FindVectors: TypeAlias = Callable[[Sequence[str]], Awaitable[Mapping[str, Vector]]]


@dataclass(slots=True)
class FailureGroups:
    """Groups failures. ``vectors`` embeds texts, leaving out a text that it cannot embed; None: no embeddings.

    ``kept_since`` returns since when the store holds all verdicts, at a time; None: for ever.

    ``latest`` are the last counted groups of the last day, over all services.
    """

    store: Store
    clock_ns: Callable[[], int]
    vectors: FindVectors | None = None
    kept_since: Callable[[int], int] | None = None
    latest: tuple[FailureGroup, ...] = ()
    _counted_ns: int | None = None
    _counting: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def over(
        self, span_ns: int, end_ns: int | None = None, *, rubric: str | None = None, service: str | None = None,
        environment: str | None = None,
    ) -> tuple[FailureGroup, ...]:  # fmt: skip
        """The groups of a time that ends then, or now, the largest first. Raises ``StoreError``.

        The preceding period of the same length counts as ``before``.
        """
        begin_ns = (self.clock_ns() if end_ns is None else end_ns) - span_ns

        def latest(since_ns: int, after: tuple[int, str, str] | None) -> list[VerdictDocument]:
            return self.store.verdicts(
                passed="false", since_ns=since_ns, after=after, limit=MOST, rubric=rubric, service=service,
                environment=environment,
            )  # fmt: skip

        # Each period for itself: where failures are many, the latest of both together would be of the second alone.
        found = await asyncio.to_thread(
            lambda: [
                *latest(begin_ns, None if end_ns is None else (end_ns, "", "")),
                *latest(begin_ns - span_ns, (begin_ns, "", "")),
            ]
        )
        same: dict[Subject, str] = {}
        if self.vectors is not None:
            for (of, metric), texts in (await asyncio.to_thread(reasons, found)).items():
                vectors = await self.vectors(texts)
                leaders = await asyncio.to_thread(alike, texts, vectors, SAME_STATEMENT)
                same |= {(of, metric, text): leader for text, leader in leaders.items()}
        groups = await asyncio.to_thread(failure_groups, found, begin_ns, same)
        if self.kept_since is None or self.kept_since(self.clock_ns()) <= begin_ns - span_ns + _HARDLY_NS:
            return groups
        return tuple([replace(group, before=None) for group in groups if group.count])

    async def recent(self) -> tuple[FailureGroup, ...]:
        """The groups of the last day, counted within the last half minute for whoever looks."""
        async with self._counting:
            now_ns = self.clock_ns()
            if not self.latest or self._counted_ns is None or not 0 <= now_ns - self._counted_ns < _FRESH_NS:
                await self.refresh()
            return self.latest

    async def refresh(self) -> None:
        """Count the groups of the last day anew; if the store cannot be read, keep the previous ones."""
        self._counted_ns = self.clock_ns()
        try:
            self.latest = await self.over(DAY_NS)
        except StoreError as error:
            log.warning("could not group failures", extra={"cause": str(error)})


MOST_EXAMPLES = 3
_LOOKED_AT = 200
"""How many of the latest failures the worst are chosen from."""
_REASON = 300
_CAUSES_IN = 1_000
"""Failing verdicts whose causes are counted, the latest: some 30 ms of reading."""
_EXPLAINED_BY = 10_000
"""Verdicts by which an alert on a pass ratio is explained, the latest: half a second, at most once for each notice."""
_LATE_NS = MINUTE_NS
"""A verdict may be committed this much after the look that counts it was due."""


def illustrated(store: Store, event: AlertEvent, since_ns: int) -> AlertEvent:
    """The event with the worst of the latest failures under its labels, the worst first, and the main failure.

    They are those since ``since_ns``, or since the event's figures are measured. Without a rubric in the labels there
    are none. A verdict without a composite (invalid, disqualified) is worse than any with one.
    """
    about = dict(event.labels)
    if "rubric" not in about:
        return event
    since_ns = since_ns if event.measured_ns is None else min(since_ns, event.measured_ns)
    mine = _failing(store, about, since_ns, _LOOKED_AT)
    if "slice" in about:
        traces = _of_slice(store, event, about, since_ns)
        mine = [verdict for verdict in mine if _trace(verdict) in traces]
    began_ns = event.since_ns if event.changed_ns is None else event.changed_ns
    failure = _main(mine, began_ns)
    explained = _explained(store, event, about, began_ns) if event.condition in PASS_RATES else None
    mine.sort(key=lambda stated: -1.0 if stated["composite_norm"] is None else float(stated["composite_norm"]))
    return replace(
        event, examples=tuple(_example(stated) for stated in mine[:MOST_EXAMPLES]), failure=failure, explained=explained
    )


def illustrated_firing(store: Store, condition: Condition, event: AlertEvent, window_ns: int) -> AlertEvent:
    """The event as by ``illustrated``, where it reports a firing alert whose condition has examples, and is sent."""
    if not condition.examples or event.transition is not AlertTransition.FIRING or event.muted:
        return event
    return illustrated(store, event, min(event.since_ns, event.at_ns) - window_ns)


def _failing(store: Store, about: Mapping[str, str], since_ns: int, most: int) -> list[VerdictDocument]:
    """The latest failing verdicts that an event is about, of those on its service."""
    found = store.verdicts(
        rubric=about["rubric"], service=about.get("service"), environment=about.get("environment"),
        passed="false", since_ns=since_ns, limit=most,
    )  # fmt: skip
    return [verdict for verdict in found if _speaks_of(verdict, about)]


def _of_slice(store: Store, event: AlertEvent, about: Mapping[str, str], since_ns: int) -> set[str]:
    """The traces of the event's slice of the traffic; none where they cannot be read."""
    found = _compared(store, event, about, since_ns)
    return {each.trace_id for each in found if label_of(each.slices.get(about["slice"], "")) == about["value"]}


def _compared(store: Store, event: AlertEvent, about: Mapping[str, str], since_ns: int) -> Sequence[ComparedVerdict]:
    """The latest verdicts on the event's service; none where they cannot be read, for the alert is worth more."""
    wanted = ComparedFilter(
        since_ns=since_ns, until_ns=event.at_ns + _LATE_NS, rubric=about["rubric"], most=_EXPLAINED_BY,
        service=about.get("service"), environment=about.get("environment"),
    )  # fmt: skip
    try:
        return store.compared(wanted)
    except StoreError:
        return ()


def _explained(store: Store, event: AlertEvent, about: Mapping[str, str], began_ns: int) -> Explanation | None:
    """How many failed before, and of which version, tenant or name those are that fail now; None where unknown."""
    mine = [
        each for each in _compared(store, event, about, began_ns - DAY_NS)
        if each.passed is not None and all(
            about.get(name, value) == value for name, value in place_of(each.service, each.environment, each.rubric)
        )
    ]  # fmt: skip
    known = explain(map(_sliced, mine), began_ns)
    return None if known is None else _caused(store, known, about, {each.trace_id for each in mine})


def _caused(store: Store, known: Explanation, about: Mapping[str, str], counted: Collection[str]) -> Explanation:
    """The explanation with the tools and the failure groups that have a good part in the failures of these traces.

    What failed since they were counted would make a cause larger than all that failed.
    """
    began_ns = known.since_ns
    failing = _failing(store, about, began_ns - DAY_NS, _CAUSES_IN)
    mine = [verdict for verdict in failing if _trace(verdict) in counted]
    tools: dict[str, list[int]] = {}
    for verdict in mine:
        for tool in _failed_tools(verdict):
            tools.setdefault(tool, [0, 0])[verdict["closed_ns"] < began_ns] += 1
    causes = [(Cause(by=TOOL, value=tool, count=now, share=0.0), before) for tool, (now, before) in tools.items()]
    for group in failure_groups(mine, began_ns):
        words, nameless = (
            f"{group.metric}: {label(text, _REASON)}" if text else group.metric
            for text in (group.outline.shown(), group.outline.shown(Rights.OWN))
        )
        cause = Cause(by=GROUP, value=group.group, count=group.count, share=0.0, words=words, nameless=nameless)
        causes.append((cause, group.before or 0))
    failed = sum(verdict["closed_ns"] >= began_ns for verdict in mine)
    return with_causes(known, causes, failed, len(mine) - failed)


def _failed_tools(verdict: VerdictDocument) -> set[str]:
    counted = [(score.get("details") or {}).get("failed_by_tool") for score in verdict.get("scores", ())]
    return {shown_name(tool) for each in counted if isinstance(each, Mapping) for tool in each}


def _sliced(verdict: ComparedVerdict) -> SlicedVerdict:
    versions = {
        "version": verdict.release, "prompt": verdict.prompt, "model": verdict.model, "rubric": verdict.rubric_version,
    }  # fmt: skip
    return SlicedVerdict(
        at_ns=verdict.closed_ns, passed=bool(verdict.passed), weight=verdict.weight, cluster=verdict.session,
        slices=verdict.slices, versions={by: value for by, value in versions.items() if value},
    )  # fmt: skip


def _main(failing: Sequence[VerdictDocument], began_ns: int) -> MainFailure | None:
    """The largest group of similar failures since the beginning, or of all if these are too few; None without any."""
    young = [verdict for verdict in failing if verdict["closed_ns"] >= began_ns]
    looked_at = young if len(young) >= MOST_EXAMPLES else failing
    largest = next(iter(failure_groups(looked_at, 0)), None)
    if largest is None or largest.count < MOST_EXAMPLES:
        return None
    shown, quoted, nameless = (
        f"{largest.metric}: {label(text, _REASON)}" if text else largest.metric
        for text in (largest.outline.shown(), largest.words, largest.outline.shown(Rights.OWN))
    )
    return MainFailure(
        reason=shown, count=largest.count, of=len(looked_at), quoted=_other(quoted, shown),
        nameless=_other(nameless, shown),
    )  # fmt: skip


def _example(verdict: VerdictDocument) -> Example:
    kept = outline(verdict)
    whole, shown, nameless = (
        label(text, _REASON) for text in (str(verdict["reason"]), kept.shown(), kept.shown(Rights.OWN))
    )
    return Example(
        trace_id=_trace(verdict),
        reason=shown,
        composite=verdict["composite"],
        closed_ns=int(verdict["closed_ns"]),
        quoted=_other(whole, shown),
        nameless=_other(nameless, shown),
    )


def _trace(verdict: VerdictDocument) -> str:
    """The trace's id; a session has none, and its key is the id of its case."""
    return str(verdict["trace_id"] or verdict["case_id"])


def _other(text: str, shown: str) -> str | None:
    return None if text == shown else text


def _speaks_of(verdict: VerdictDocument, about: Mapping[str, str]) -> bool:
    where = place_of(*Key.of(verdict["service"], verdict["environment"], verdict["rubric"]))
    if any(about.get(name, value) != value for name, value in where):
        return False
    return "metric" not in about or about["metric"] in verdict["blockers"]
