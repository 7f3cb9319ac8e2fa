"""Source: reading traces from one Langfuse, put together from the configuration."""

from __future__ import annotations

import random
from collections.abc import Callable

from sidejudge.integrations.backoff import Backoff
from sidejudge.integrations.langfuse.client import Connections
from sidejudge.integrations.store.erasure import erase
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.ingest.assembler import Assembler
from sidejudge.monitor.ingest.intake import Intake
from sidejudge.monitor.ingest.outcomes import TraceOutcomes
from sidejudge.monitor.ingest.sampler import Sampler

from .fetch import Share
from .pull import Pull

MOST_WAITING = 500
"""Closed traces that may wait for judging before reading pauses."""


def traces_in(
    config: Config,
    connections: Connections,
    *,
    store: Store,
    intake: Intake,
    outcomes: TraceOutcomes,
    sampler: Sampler,
    assembler: Assembler,
    waiting: Callable[[], int],
    clock_ns: Callable[[], int],
    share: Share | None = None,
) -> Pull | None:
    """What reads the configured Langfuse; None where none is.

    It pauses while traces wait that could not be judged as fast as they came.
    ``share`` is its part, where others read too.
    """
    source = config.sources.langfuse
    if source is None:
        return None
    most_open = config.assembly.max_open_traces // 2

    def busy() -> bool:
        return waiting() > MOST_WAITING or assembler.open_traces > most_open

    return Pull(
        langfuse=connections.to(source.access), pulled=store.pulled, facts=store, intake=intake, outcomes=outcomes,
        sampler=sampler, busy=busy,
        clock_ns=clock_ns, patience=Backoff(random.random), poll_ns=source.poll.ns, settle_ns=source.settle.ns,
        look_back_ns=source.look_back.ns, rootless_ns=config.assembly.deadline.ns,
        retention_ns=config.kept_for.ns,
        share=share,
        erase=lambda traces: erase(store.path, traces, scores=False, now_ns=clock_ns()),
    )  # fmt: skip
