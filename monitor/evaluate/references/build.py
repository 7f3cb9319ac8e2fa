"""Setup: the configured references, put together."""

from __future__ import annotations

from collections.abc import Callable

from sidejudge.integrations.langfuse.client import Connections, Langfuse
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.rubrics import reached, reported_names
from sidejudge.monitor.config.sources import ReferenceSection
from sidejudge.monitor.ingest.assembler import Assembler

from .lookup import LateReferences, References
from .places import InCorrections, InDataset, InFile, InScores, ReferencePlace


def references(
    config: Config,
    connections: Connections,
    store: Store,
    assembler: Assembler,
    clock_ns: Callable[[], int],
    *,
    under_way: Callable[[bytes], bool] = lambda _: False,
    late_references: LateReferences | None = None,
    shared: Callable[[ReferencePlace], ReferencePlace] = lambda place: place,
) -> References | None:
    """What looks references up; None where they are in the traces alone.

    ``shared`` has a fleet read what is in Langfuse once.
    ``under_way`` returns whether a trace that the assembler does not hold is being judged.
    """
    sink = config.sinks.langfuse
    if config.revised_within is None and sink is None:
        return None

    def reopen(trace_id: bytes) -> bool:
        here = assembler.reopen(trace_id, clock_ns())
        return here or assembler.knows(trace_id) or under_way(trace_id)

    project = config.langfuse
    wanted = any(each.in_langfuse for each in config.references)
    langfuse = connections.to(project.access) if project is not None and wanted else None
    others = None if sink is None else connections.to(sink.access)
    # Twice as far back: whatever a verdict was held against is read anew for as long as it may be revised.
    kept_ns = 2 * (config.kept_for if sink is None else max(config.kept_for, sink.reevaluate_within)).ns
    sources = [_source(each, langfuse, clock_ns, kept_ns) for each in config.references]
    found = References(
        # A place in Langfuse is the same for every monitor with these keys; a file may be another on each machine.
        [each if isinstance(each, str | InFile) else shared(each) for each in sources],
        store=store,
        reopen=reopen,
        clock_ns=clock_ns,
        late_ns=config.late_for.ns,
        within_ns=[each.within.ns for each in config.references if each.metadata is None],
        late_references=late_references,
        scores=None if others is None else lambda name: shared(InScores(others, name, clock_ns, kept_ns)),
        scores_within_ns=0 if sink is None else sink.reevaluate_within.ns,
    )
    found.follow(reported_names(reached(config).values()))
    return found


def _source(
    each: ReferenceSection, langfuse: Langfuse | None, clock_ns: Callable[[], int], kept_ns: int
) -> str | ReferencePlace:
    if each.metadata is not None:
        return each.metadata
    if each.file is not None and each.key is not None:
        return InFile(each.file, each.key)
    if langfuse is None:
        raise ValueError("a reference in Langfuse needs its address and keys")
    if each.langfuse_dataset is not None:
        return InDataset(langfuse, each.langfuse_dataset, each.key)
    return InCorrections(langfuse, clock_ns, kept_ns)
