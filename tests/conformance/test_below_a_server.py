"""A run below the span of the server that was asked for it is the same run.

Applications mostly run below a web framework that emits spans of its own. Of a trace of one run such a span above it,
with what the framework does beside, changes no contents, no call and no finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.otlp.wire.recording import read_files
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.span import Span, SpanKind
from sidejudge.scoring.trace.trace import Trace
from tests.conformance.test_dialects import CLIENTS, KEPT, LATER
from tests.spans import span
from tests.spans import trace as trace_of

MS = 10**6
SERVER = "5e" * 8
SHOWN = (
    "model_output", "input", "agents_called", "tools_used", "context", "system_prompt", "session_id", "user_id",
    "error", "input_tokens", "output_tokens", "cost_usd", "model", "tags", "content_captured", "complete",
)  # fmt: skip


def served(spans: Sequence[Span]) -> list[Span]:
    """The same below a server's span, with spans of the framework and of a database."""
    first, last = min(each.start_ns for each in spans), max(each.end_ns for each in spans)
    tops = {each.span_id for each in Trace.of("", spans, "root_ended").tops}

    def plain(number: int, name: str, start_ns: int, end_ns: int, parent: str | None = SERVER) -> Span:
        return Span(
            trace_id=spans[0].trace_id, span_id=SERVER if parent is None else f"{number:016x}", parent_id=parent,
            name=name, kind=SpanKind.OTHER, dialect="generic", start_ns=start_ns, end_ns=end_ns,
        )  # fmt: skip

    return [
        plain(0, "POST /chat", first - 5 * MS, last + 5 * MS, None),
        plain(1, "POST /chat http receive", first - 4 * MS, first - 3 * MS),
        plain(2, "SELECT users", first - 3 * MS, first - 2 * MS),
        *(replace(each, parent_id=SERVER) if each.span_id in tops else each for each in spans),
        plain(3, "POST /chat http send", last + MS, last + 2 * MS),
    ]


def findings(case: Case) -> dict[str, Any]:
    """The results of run health. Of model calls alone the server above them makes the run, and they are its steps."""
    scores = score(case, RUBRICS["run_health"], created_at="2026-01-01T00:00:00Z").scores
    steps = case.trace is not None and any(span.kind in (SpanKind.AGENT, SpanKind.CHAIN) for span in case.trace.spans)
    return {
        each.metric: (each.result.status, getattr(each.result, "value", None))
        for each in scores
        if steps or each.metric not in ("completed", "step_success")
    }


def unlike(folder: Path) -> Iterator[str]:
    """What differs where one run is the whole trace."""
    by_trace: dict[str, list[Span]] = {}
    for each in read_files(sorted(folder.glob("[0-9]*.pb"))).spans:
        by_trace.setdefault(each.trace_id, []).append(normalise(each))
    for spans in by_trace.values():
        bare = Trace.of(spans[0].trace_id, spans, "root_ended")
        if not bare.complete or len(bare.tops) > 1:
            continue
        before, after = extract(bare), extract(Trace.of(spans[0].trace_id, served(spans), "root_ended"))
        yield from (name for name in SHOWN if getattr(before, name) != getattr(after, name))
        was, found = findings(before), findings(after)
        yield from (f"{name}: {was[name]}, {found.get(name)}" for name in was if was[name] != found.get(name))


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in KEPT.glob("*/*/001.pb")), ids=lambda p: "-".join(p.parts[-2:])
)
def test_what_is_kept_reads_the_same_below_a_server(folder: Path) -> None:
    assert list(unlike(folder)) == []


@pytest.mark.parametrize("client", [*CLIENTS, *LATER])
def test_what_real_clients_sent_reads_the_same_below_a_server(shared: Path, client: str) -> None:
    for folder in sorted((shared / "corpus" / "otlp" / client).iterdir()):
        assert list(unlike(folder)) == [], folder.name


def below_a_server(*steps: Span) -> Case:
    return extract(trace_of(span("server", dialect="generic", end_ns=99), *steps, completion="root_ended"))


def test_the_agent_of_a_client_that_names_none_speaks_for_the_run():
    case = below_a_server(span("run", "server", SpanKind.AGENT, input="Where is it?", output="In Riga."))
    assert (case.input, case.model_output) == ("Where is it?", "In Riga.")


def test_an_agent_without_a_name_and_contents_only_wraps_the_one_that_speaks():
    case = below_a_server(
        span("wrapper", "server", SpanKind.AGENT),
        span("run", "wrapper", SpanKind.AGENT, agent="harbour", input="Where is it?", output="In Riga."),
        span("model", "run", SpanKind.LLM, input="Where is it?", output="Let me see."),
        span("beside", "server", SpanKind.LLM, input="Name this chat", output="Riga", start_ns=5),
    )
    assert (case.input, case.model_output) == ("Where is it?", "In Riga.")


def test_a_chain_that_failed_below_a_server_that_did_not_is_a_run_that_failed():
    case = below_a_server(
        span("run", "server", SpanKind.CHAIN, input="Where is it?", error="ValueError: no"),
        span("model", "run", SpanKind.LLM, input="Where is it?", output="Let me see."),
    )
    assert findings(case)["completed"] == ("scored", 0.0)
    assert case.model_output is None, "what a model wrote before is a step"


def test_of_several_steps_below_a_server_none_stands_for_the_run():
    steps = [
        span(name, "server", SpanKind.CHAIN, input=f"{name}?", start_ns=at) for at, name in enumerate(("one", "two"))
    ]
    case = below_a_server(*steps)
    assert case.trace is not None
    assert case.trace.run_root is case.trace.root
    beside = below_a_server(steps[0], span("model", "server", SpanKind.LLM, start_ns=5))
    assert beside.trace is not None
    assert beside.trace.run_root is beside.trace.root
