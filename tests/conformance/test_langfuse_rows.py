"""What real clients sent is the same case whether it comes as OTLP or is read back from a Langfuse, field by field."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path

import pytest

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.langfuse.normalise import raw_spans
from sidejudge.integrations.otlp.wire.recording import read_files
from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.trace import Trace
from tests.conformance.langfuse_losses import FIELDS, FIELDS_KEPT
from tests.conformance.test_dialects import CLIENTS, KEPT, SCENARIOS
from tests.fakes.langfuse.otel_contents import Details
from tests.fakes.langfuse.otel_in import rows_of


@pytest.mark.parametrize("client", CLIENTS)
def test_a_case_read_back_from_langfuse_is_the_case_that_was_sent(shared, client):
    folders = [shared / "corpus" / "otlp" / client / scenario for scenario in SCENARIOS]
    assert differing(folders) == {field for name, field in FIELDS if name == client}


@pytest.mark.parametrize("client", sorted(path.name for path in KEPT.iterdir() if path.name not in CLIENTS))
def test_so_is_that_of_the_further_recordings(client):
    assert differing((KEPT / client).iterdir()) == {field for name, field in FIELDS_KEPT if name == client}


def test_a_server_that_reads_all_events_of_contents_would_lose_the_type_of_an_exception_alone(shared):
    folders = [shared / "corpus" / "otlp" / "strands-latest" / scenario for scenario in SCENARIOS]
    assert differing(folders, details="all") == {"error", "tools_used"}


def differing(folders: Iterable[Path], *, details: Details = "first") -> set[str]:
    """The fields of cases that differ."""
    found: set[str] = set()
    for folder in folders:
        files = sorted(folder.glob("[0-9]*.pb"))
        sent = cases(read_files(files).spans, list)
        reported = cases(
            read_files([path for path in files if ".logs" not in path.name]).spans,
            lambda spans: raw_spans(rows_of(spans, details=details)),
        )
        assert reported.keys() == sent.keys()
        for trace_id, case in sent.items():
            found |= {f.name for f in fields(case) if f.compare and not alike(f.name, case, reported[trace_id])}
    return found


def alike(field: str, sent: Case, reported: Case) -> bool:
    """Whether a field is the same; times, which Langfuse keeps in whole milliseconds, to some of them."""
    one, other = getattr(sent, field), getattr(reported, field)
    return bool(one == other or (field.startswith("latency") and one == pytest.approx(other, abs=20, rel=0)))


def cases(spans: Iterable[RawSpan], way: Callable[[list[RawSpan]], list[RawSpan]]) -> dict[str, Case]:
    of_trace: dict[str, list[RawSpan]] = defaultdict(list)
    for span in spans:
        of_trace[span.trace_id].append(span)
    return {
        each: extract(Trace.of(each, [normalise(span) for span in way(of_trace[each])], "batch")) for each in of_trace
    }
