"""Sample: the cases behind a proposed configuration, from a monitor, its store, Langfuse or files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sidejudge.integrations.cases.fields import FieldError, case_of
from sidejudge.integrations.langfuse.client import Access, Langfuse
from sidejudge.integrations.langfuse.observations import Window
from sidejudge.integrations.langfuse.probe import probe
from sidejudge.integrations.otlp.wire.kept import decode_kept
from sidejudge.integrations.otlp.wire.recording import read_files
from sidejudge.integrations.store.archive import read_chunks
from sidejudge.monitor.api.inspect import inspect_spans
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.config.sampling import SamplingSection
from sidejudge.monitor.ingest.sampler import Sampler
from sidejudge.monitor.offline.backfill.listing import AROUND_NS, Reader, case_of_spans, list_traces
from sidejudge.monitor.offline.score.case_lines import RECORDED, case_lines, read_cases
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.trace.time_units import DAY_NS

MOST: Final = 500
"""Traces that are read: enough to learn a scenario with one violation in a hundred."""
_NO_RUNS: Final = frozenset({"not_a_run", "excluded"})
_FROM_LANGFUSE: Final = 100
"""Traces read from Langfuse: each takes one of the requests that its rate limit allows."""


def recordings(folder: Path) -> list[Path]:
    """The recorded requests and files of cases in a folder; where there are none, the JSON in it, at whatever depth."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path for path in found if path.suffix in {".pb", ".gz", ".jsonl"}] or [
        path for path in found if path.suffix == ".json"
    ]


def from_files(files: Sequence[Path], complain: Callable[[str], None]) -> Iterator[Case]:
    """The cases of recorded OTLP requests and of files of cases. Raises ``RecordingError``."""
    recorded = [file for file in files if file.suffix in RECORDED]
    if recorded:
        yield from (found.case for found in inspect_spans(read_files(recorded).spans))
    for file in files:
        if file in recorded:
            continue
        with case_lines(file) as found:
            yield from read_cases(found, lambda why, file=file: complain(f"{file}: {why}"))  # type: ignore[misc]  # bound now


def from_store(path: Path) -> Iterator[Case]:
    """The cases of the traces whose spans a store still holds, the latest first. Raises ``StoreUnavailable``."""
    for _, payloads in read_chunks(path, MOST):
        if spans := decode_kept(payloads).spans:
            yield case_of_spans(spans)


def from_monitor(ask: Callable[[str], Any]) -> Iterator[Case]:
    """The cases of a running monitor's traces; only service and name of traces whose spans are gone.

    ``ask`` returns the JSON at a path of the monitor's API, None for what is not there.
    """
    listed = ask(f"/v1/traces?limit={MOST}")
    for trace in listed["traces"] if isinstance(listed, Mapping) else ():
        if trace.get("kind") == "session" or trace["reason"] in _NO_RUNS:
            continue
        held = (ask(f"/v1/traces/{trace['trace_id']}") or {}).get("case")
        known = {key: trace[key] for key in ("service", "name", "environment") if trace.get(key)}
        try:
            if held is not None:
                yield case_of(held)
                continue
        except FieldError:  # of another version; its name is known nevertheless
            pass
        yield Case(case_id=trace["trace_id"], model_output=None, complete=False, **known)


async def from_langfuse(access: Access) -> list[Case]:
    """The cases of the latest traces of a Langfuse project, of a day at most. Raises ``LangfuseError``."""
    langfuse = Langfuse(access)
    try:
        server = await probe(langfuse)
        now_ns = time.time_ns()
        window = Window(from_ns=now_ns - DAY_NS, to_ns=now_ns)
        reader = Reader(langfuse=langfuse, server=server, window=window, around_ns=AROUND_NS)
        everything = Sampler(SamplingSection(rate=1.0))
        listing = await list_traces(langfuse, server, window, everything, MatchSection())
        return [case_of_spans(spans) async for spans in reader.readable(listing.drawn[-_FROM_LANGFUSE:])]
    finally:
        await langfuse.close()
