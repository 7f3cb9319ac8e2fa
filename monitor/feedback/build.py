"""Builds the exchange with people through Langfuse from the configuration: labels, reviews, and failing traces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from sidejudge.integrations.store.sqlite import StoreError
from sidejudge.monitor.config.langfuse import LangfuseSink
from sidejudge.scoring.alerts.condition import Agreement
from sidejudge.scoring.statistics.ppi import LabelSums
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot
from sidejudge.scoring.status.snapshots import ExportSnapshot
from sidejudge.scoring.verdict.rubric import Rubric

from .annotation_queue import AnnotationQueueFeeder
from .failure_dataset import FailureDatasetFeeder
from .human_labels import HumanLabels
from .parts import FeedbackParts
from .shared_labels import SharedLabels

log = logging.getLogger("sidejudge.langfuse")

TICK_S: Final = 5.0
"""How often it is seen whether something is due."""
_EARLY_S: Final = 0.5
"""The same until Langfuse has answered."""
ROUTE_NS: Final = 30 * 10**9
"""How often verdicts in doubt are put into the queue, and failing traces into the dataset."""

ELSEWHERE: Final = "another monitor of the fleet reads the labels"


class LangfuseFeedback:
    """Reads labels, asks for reviews and feeds the dataset of failures, in its own task."""

    def __init__(self, config: LangfuseSink, parts: FeedbackParts) -> None:
        self._scores_out, self._clock_ns, fleet = parts.scores_out, parts.clock_ns, parts.fleet
        self._rubrics = dict(parts.rubrics)
        parts = replace(parts, rubrics=self._rubrics)
        queue, read, failures = config.annotation_queue, config.annotations, config.failure_dataset
        self._routing = None if queue is None else AnnotationQueueFeeder(queue, parts)
        asked = self._routing.requested_for if self._routing else lambda _: False
        self._people = None if read is None else HumanLabels(read, parts, requested_for=asked)
        self._failures = None if failures is None else FailureDatasetFeeder(failures, parts)
        self._shared = None if fleet is None or read is None else SharedLabels(fleet, self._labels_read, self._version)
        self._every_ns = read.every.ns if read else 0
        self._read_ns = self._routed_ns = 0
        self._has_read = False
        self._task: asyncio.Task[None] | None = None

    def agreements(self) -> list[Agreement]:
        """Kappa by rubric."""
        return self._people.agreements() if self._people else []

    def labels(self) -> Mapping[str, LabelSums]:
        """A label for each labelled verdict, by rubric, of the whole fleet where there is one."""
        return self.snapshot().labels

    def _labels_read(self) -> Mapping[str, LabelSums] | None:
        """The same as this monitor has read it since it may."""
        return self._people.snapshot().labels if self._people is not None and self._has_read else None

    def _version(self, rubric: str) -> str | None:
        known = self._rubrics.get(rubric)
        return None if known is None else known.version

    def snapshot(self) -> AgreementSnapshot:
        """Agreement and the queue, at this moment."""
        found = self._people.snapshot() if self._people else AgreementSnapshot(source="langfuse")
        if self._people is not None and not self._reads_labels:
            found = replace(found, reason=found.reason or ELSEWHERE)
        if self._shared is not None and not (self._reads_labels and self._has_read):
            found = replace(found, elsewhere=self._shared.sums())
        return replace(found, queue=self._routing.snapshot()) if self._routing else found

    def exports(self) -> list[ExportSnapshot]:
        """The progress of failing traces into a dataset; empty where none is configured."""
        return [self._failures.snapshot()] if self._failures else []

    def take_rubrics(self, changed: Mapping[str, Rubric], judges: Mapping[str, Sequence[str]]) -> None:
        """Go by these rubrics, which are new or have another version, and by these judges of all from now on."""
        self._rubrics |= changed
        if self._people is not None:
            self._people.take_rubrics(changed, judges)

    def restore(self) -> None:
        """Restore the earlier state before statuses depend on it."""
        if self._people is not None:
            self._people.restore()
        for feeder in (self._routing, self._failures):
            if feeder is not None:
                feeder.restore()

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End; unread labels are read after the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def _reads_labels(self) -> bool:
        """Whether no other monitor does: reading all labels of a project is for one of a fleet."""
        return self._shared is None or self._shared.reads

    async def _run(self) -> None:
        while True:
            try:
                await self._tick()
            except StoreError as error:
                log.warning("labels could not be stored; they are read again", extra={"cause": str(error)})
            except Exception:
                # Verdicts and scores do not depend on it: it tries again, and what it read last stands with its time.
                log.exception("labels could not be read; it is tried again")
            await asyncio.sleep(TICK_S if self._scores_out.server is not None else _EARLY_S)

    async def _tick(self) -> None:
        now_ns = self._clock_ns()
        if self._scores_out.server is None:
            return
        self._has_read &= self._reads_labels  # what was read under an earlier lease is another's by now
        # Since a time to come: the clock was set back.
        if self._people is not None and self._reads_labels and not 0 <= now_ns - self._read_ns < self._every_ns:
            self._read_ns = now_ns
            await self._people.tick()
            self._has_read |= self._people.is_read
        if not 0 <= now_ns - self._routed_ns < ROUTE_NS:
            self._routed_ns = now_ns
            for feeder in (self._routing, self._failures):
                if feeder is not None:
                    await feeder.tick()
