"""Setup: the configured references, put together."""

from __future__ import annotations

from collections.abc import Callable

from integrations.langfuse.client import Langfuse
from integrations.store.sqlite import Store
from monitor.assembler import Assembler
from monitor.config import Config
from monitor.config.references import Reference
from monitor.langfuse.connections import Connections

from .book import References
from .places import InCorrections, InDataset, InFile, Place


def references(
    config: Config, connections: Connections, store: Store, assembler: Assembler, clock_ns: Callable[[], int]
) -> References | None:
    """What looks references up; None where they are in the traces alone."""
    if all(each.metadata is not None for each in config.references):
        return None
    project = config.langfuse
    wanted = any(each.in_langfuse for each in config.references)
    langfuse = connections.to(project) if project is not None and wanted else None
    return References(
        [_source(each, langfuse, clock_ns, config.store.retention.ns) for each in config.references],
        store=store,
        reopen=lambda trace_id: assembler.reopen(trace_id, clock_ns()),
        clock_ns=clock_ns,
        late_ns=config.assembly.late.ns,
    )


def _source(each: Reference, langfuse: Langfuse | None, clock_ns: Callable[[], int], kept_ns: int) -> str | Place:
    if each.metadata is not None:
        return each.metadata
    if each.file is not None and each.key is not None:
        return InFile(each.file, each.key)
    if langfuse is None:
        raise ValueError("a reference in Langfuse needs to be told which")
    if each.langfuse_dataset is not None:
        return InDataset(langfuse, each.langfuse_dataset, each.key)
    return InCorrections(langfuse, clock_ns, kept_ns)
