"""Failures: the failing verdicts of a time, put into groups, for pages, the daily report and metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.sqlite import Store
from sidejudge.scoring.evaluators.embedding import SAME_STATEMENT, Vector
from sidejudge.scoring.status.failure_groups import FailureGroup, Subject, alike, failure_groups, reasons

log = logging.getLogger("sidejudge.failures")

MOST: Final = 2000
"""Failing verdicts that are looked at, the latest: some 60 ms of reading."""
DAY_NS: Final = 86_400 * 10**9
_FRESH_NS: Final = 30 * 10**9
REFRESH_S: Final = 300.0
"""How often the groups of the last day are counted for the metrics."""

FindVectors: TypeAlias = Callable[[Sequence[str]], Awaitable[Mapping[str, Vector]]]


@dataclass(slots=True)
class FailureGroups:
    """Groups failures. ``vectors`` gives those of texts, none for a text that it cannot embed; None: no embeddings.

    ``latest`` are the groups of the last day as they were counted last, of all services.
    """

    store: Store
    clock_ns: Callable[[], int]
    vectors: FindVectors | None = None
    latest: tuple[FailureGroup, ...] = ()
    _counted_ns: int | None = None
    _counting: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def over(
        self, span_ns: int, *, rubric: str | None = None, service: str | None = None, environment: str | None = None
    ) -> tuple[FailureGroup, ...]:
        """The groups of a time that ends now, the largest first. Raises ``StoreError``.

        As long a time before it is counted as ``before``.
        """
        now_ns = self.clock_ns()
        found = await asyncio.to_thread(
            lambda: self.store.verdicts(
                passed="false", since_ns=now_ns - 2 * span_ns, limit=MOST, rubric=rubric, service=service,
                environment=environment,
            )
        )  # fmt: skip
        same: dict[Subject, str] = {}
        if self.vectors is not None:
            for (of, metric), texts in (await asyncio.to_thread(reasons, found)).items():
                vectors = await self.vectors(texts)
                leaders = await asyncio.to_thread(alike, texts, vectors, SAME_STATEMENT)
                same |= {(of, metric, text): leader for text, leader in leaders.items()}
        return await asyncio.to_thread(failure_groups, found, now_ns - span_ns, same)

    async def recent(self) -> tuple[FailureGroup, ...]:
        """The groups of the last day, counted within the last half minute for whoever looks."""
        async with self._counting:
            now_ns = self.clock_ns()
            if not self.latest or self._counted_ns is None or not 0 <= now_ns - self._counted_ns < _FRESH_NS:
                await self.refresh()
            return self.latest

    async def refresh(self) -> None:
        """Count the groups of the last day anew; a store that cannot be read leaves them as they were."""
        self._counted_ns = self.clock_ns()
        try:
            self.latest = await self.over(DAY_NS)
        except StoreError as error:
            log.warning("could not group failures", extra={"cause": str(error)})
