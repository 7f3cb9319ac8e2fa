"""Builds the re-evaluation of verdicts whose reference came late, from the configuration."""

from __future__ import annotations

import random
from collections.abc import Callable

from sidejudge.integrations.backoff import Backoff
from sidejudge.integrations.langfuse.client import Connections
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.deliver.commit import Commit
from sidejudge.monitor.evaluate.pipeline import Pipeline
from sidejudge.monitor.evaluate.references.lookup import References

from .reevaluation import Reevaluation
from .schedule import RevisionSchedule

MOST_WAITING = 100
"""Traces that may wait for judging before those that were judged before pause."""
_WAITS_NS = 3600 * 10**9
"""The wait for a judge that is down, where none is configured."""


def revision_schedule(
    config: Config,
    connections: Connections,
    *,
    store: Store,
    pipeline: Pipeline,
    references: References | None,
    commit: Commit,
    under_way: Callable[[bytes], bool],
    clock_ns: Callable[[], int],
) -> RevisionSchedule | None:
    """What revises verdicts after their spans were let go; None where references are in the traces alone."""
    if references is None:
        return None
    judge, project = config.evaluators.judge, config.langfuse

    def still_owed(trace_id: bytes) -> bool:
        return not under_way(trace_id) and references.wanted(trace_id) is not None

    return RevisionSchedule(
        owed=store.late_references,
        details=store.details,
        still_owed=still_owed,
        langfuse=connections.to(project.access) if project is not None else None,
        rejudging=Reevaluation(
            pipeline.stages, commit=commit, listeners=pipeline.listeners, details=store.details, still_owed=still_owed,
            hash_key=config.sampling.hash_key, clock_ns=clock_ns,
            max_wait_ns=judge.max_wait.ns if judge else _WAITS_NS,
        ),
        busy=lambda: len(pipeline.waiting) + pipeline.judge_queue.waiting > MOST_WAITING,
        clock_ns=clock_ns,
        backoff=Backoff(random.random),
    )  # fmt: skip
