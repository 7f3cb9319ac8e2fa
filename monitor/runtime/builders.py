"""Converts sections of the configuration to the limits and parts that the rooms take."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from sidejudge.integrations.store.part import JudgeCacheTable
from sidejudge.integrations.store.salvage import is_damaged, salvage
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.model import AssemblySection, SessionsSection, StoreSection
from sidejudge.monitor.evaluate.build import EvaluationBackends
from sidejudge.monitor.evaluate.judge_queue import DeferredTraces, JudgedShares, JudgeQueue
from sidejudge.monitor.evaluate.pipeline import BATCH
from sidejudge.monitor.evaluate.references.places import ReferencePlace
from sidejudge.monitor.evaluate.stages import EvaluationStages
from sidejudge.monitor.fleet.fleet import Fleet
from sidejudge.monitor.ingest.assembler import AssemblyLimits
from sidejudge.monitor.ingest.langfuse.fetch import Share
from sidejudge.monitor.route.router import Router
from sidejudge.monitor.sessions.turns import SessionTurns
from sidejudge.monitor.sessions.windows import SessionLimits

log = logging.getLogger("sidejudge")


def opened(section: StoreSection) -> Store:
    """The store; one that is damaged is salvaged before, where that is configured. Raises ``StoreError``."""
    if section.on_damage == "recover" and is_damaged(section.path):
        found = salvage(section.path)
        log.warning(
            "the store was damaged; what could be read goes on in a new one",
            extra={"kept_as": str(found.kept_as), "rows": found.rows, "lost": found.lost},
        )
    return Store(section.path, max_bytes=section.max_bytes)


def limits(config: Config) -> AssemblyLimits:
    """When traces are closed, and how much of them is held."""
    assembly = config.assembly
    return AssemblyLimits(
        grace_ns=assembly.grace.ns,
        idle_ns=assembly.idle.ns,
        idle_max_ns=assembly.idle_max.ns if assembly.idle_max else 4 * assembly.idle.ns,
        deadline_ns=assembly.deadline.ns,
        late_ns=config.late_for.ns,
        max_open_traces=assembly.max_open_traces,
        root_wait_ns=assembly.root_wait.ns,
        max_open_bytes=assembly.max_open_bytes,
        max_open_spans=max_open_spans(assembly),
    )


def max_open_spans(assembly: AssemblySection) -> int:
    """Most spans of open traces: only their ids are in memory, and spans usually have a kilobyte and more."""
    return max(1, assembly.max_open_bytes >> 10)


def session_limits(section: SessionsSection) -> SessionLimits:
    """When sessions close, and how long they may be."""
    return SessionLimits(idle_ns=section.idle.ns, late_ns=section.late.ns, max_turns=section.max_turns)


def conversations(config: Config) -> SessionTurns | None:
    """How sessions are scored; None where they are not."""
    section = config.sessions
    if section is None:
        return None
    rate = config.sampling.fixed_rate if section.sampling_rate is None else section.sampling_rate
    hash_key = config.sampling.hash_key if config.sampling.randomness_key is not None else b""
    return SessionTurns(rate=rate, router=Router(section.routes, config.scenarios), hash_key=hash_key)


def judge_queue(config: Config, stages: EvaluationStages, clock_ns: Callable[[], int], store: Store) -> JudgeQueue:
    """The stages that wait for an answer: as many at once as the judge takes."""
    judge, embedding = config.evaluators.judge, config.evaluators.embedding
    return JudgeQueue(
        stages=stages,
        deferred=DeferredTraces(
            max_waiting=judge.max_waiting if judge else BATCH, max_wait_ns=judge.max_wait.ns if judge else 10**9
        ),
        without_vectors=DeferredTraces(
            max_waiting=embedding.max_waiting if embedding else BATCH,
            max_wait_ns=embedding.max_wait.ns if embedding else 10**9,
            in_turn=True,
        ),
        clock_ns=clock_ns,
        capacity=judge.concurrency if judge else BATCH,
        shares=JudgedShares(store.kept.room("judged_shares"), clock_ns=clock_ns),
    )


def fleet_of(config: Config, store: Store) -> Fleet | None:
    """This monitor's part in the fleet; None where none is configured."""
    return None if config.fleet is None else Fleet(config.fleet, store.kept.room("fleet"))


if TYPE_CHECKING:
    from sidejudge.monitor.fleet.judge_budget import SharedAnswers


def share_judging(fleet: Fleet | None, backends: EvaluationBackends, clock_ns: Callable[[], int]) -> None:
    """Have judges keep the budget of the whole fleet, where there are both."""
    if fleet is None or backends.judge is None or not backends.judge.budget.limited:
        return
    from sidejudge.monitor.fleet.judge_budget import FleetBudget  # noqa: PLC0415  # only where both are configured

    FleetBudget(backends.judge.budget, fleet, lambda: clock_ns() / 1e9)


def share_upkeep(fleet: Fleet | None, config: Config) -> None:
    """Have one monitor of the fleet delete old rows."""
    if fleet is None or config.fleet is None:
        return
    from sidejudge.monitor.fleet.fleet import Upkeep  # noqa: PLC0415  # only where it is configured

    archive, alerts = config.fleet.archive, config.alerts
    longest = max(alerts.window.seconds, alerts.longest_window.seconds)
    Upkeep(fleet, results_s=archive.keep.seconds if archive is not None else 0.0, windows_s=longest + 3_600.0)


def langfuse_share(fleet: Fleet | None, config: Config) -> Share | None:
    """This monitor's part of the traces in Langfuse, where a fleet reads them."""
    source = config.sources.langfuse
    if fleet is None or source is None:
        return None
    from sidejudge.monitor.fleet.langfuse_share import FleetShare  # noqa: PLC0415  # only where both are configured

    return FleetShare(fleet, f"{source.access.base_url} {source.access.public_key}")


def shared_references(fleet: Fleet | None, config: Config) -> Callable[[ReferencePlace], ReferencePlace]:
    """Have one monitor of the fleet read each place of references in Langfuse."""
    if fleet is None or config.langfuse is None:
        return lambda place: place
    from sidejudge.monitor.fleet.references import SharedPlace  # noqa: PLC0415  # only where both are configured

    projects, kept_ns = [(each.base_url, each.public_key) for each in config.langfuse_projects], config.kept_for.ns

    def shared(place: ReferencePlace) -> ReferencePlace:
        identity = (projects, place.entries.place, place.key, kept_ns)
        return SharedPlace(place, json.dumps(identity), fleet)

    return shared


def shared_answers(
    fleet: Fleet | None, config: Config, own: JudgeCacheTable, clock_ns: Callable[[], int]
) -> JudgeCacheTable | SharedAnswers:
    """Where judged answers are kept: in the monitor's own store, and shared where there is a fleet and a judge."""
    if fleet is None or config.evaluators.judge is None:
        return own
    from sidejudge.monitor.fleet.judge_budget import SharedAnswers  # noqa: PLC0415  # only where both are configured

    return SharedAnswers(own, fleet, clock_ns, most=config.evaluators.judge.cache_entries)
