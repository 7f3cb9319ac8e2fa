"""A recorded delivery as the monitor reads it: one case for each trace, with the source of each field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from sidejudge.integrations.cases.fields import REPORTED
from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.case.grounds import headless
from sidejudge.scoring.metrics.run_ending import has_no_answer
from sidejudge.scoring.trace.span import Span, ToolCall
from sidejudge.scoring.trace.trace import Trace

UNREAD = "contents may be there that this version does not understand"
SHOWN = 5
"""Places of such contents that are shown."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """A trace of a recording and the case that was made of it."""

    trace: Trace
    case: Case

    @property
    def dialects(self) -> list[str]:
        """The dialects its spans speak, those with most spans first."""
        names = [span.dialect for span in self.trace.spans]
        return sorted(set(names), key=lambda name: (-names.count(name), name))

    @property
    def misread(self) -> list[Span]:
        """Spans on which a dialect failed, so that only their basic fields were read."""
        return [span for span in self.trace.spans if "dialect" in span.provenance]

    @property
    def unread(self) -> tuple[str, ...]:
        """Places that may hold the missing contents, each with its shape; none where nothing is missing."""
        case = self.case
        if case.content_captured and case.input is not None and case.model_output is not None:
            return ()
        return tuple(f"{unread.source} ({unread.shape})" for unread in case.unread)

    def to_json(self, *, provenance: bool = False) -> dict[str, object]:
        """The case in the case format, with what only an inspection has.

        An answer that is known to be empty is "", and a root that never came has no id: the trace, which shows it, is
        not in the case.
        """
        case = self.case
        calls = case.tools_used
        transcript = case.transcript
        found: dict[str, object] = {
            "case_id": case.case_id, "trace_id": case.trace_id, "name": case.name, "task": case.task,
            "input": case.input,
            "transcript": transcript if transcript is None or isinstance(transcript, str) else [
                {"speaker": turn.speaker, "text": turn.text, "at": turn.at} for turn in transcript
            ],
            "model_output": "" if has_no_answer(case) else case.model_output, "expected_outcome": case.expected_outcome,
            "config": dict(case.config), "scenario": case.scenario,
            "agents_called": None if case.agents_called is None else list(case.agents_called),
            "tools_used": None if calls is None else [_tool(call) for call in calls if not call.handoff],
            "handoffs": _handoffs(calls or ()),
            "context": None if case.context is None else list(case.context), "system_prompt": case.system_prompt,
            "latency_e2e_ms": case.latency_e2e_ms, "latency_model_ms": case.latency_model_ms,
            "timed_out": case.timed_out, "input_tokens": case.input_tokens, "output_tokens": case.output_tokens,
            "cost_usd": case.cost_usd, "model": case.model, "tags": list(case.tags), "metadata": dict(case.metadata),
            "evaluation_criteria_override": case.evaluation_criteria_override, "session_id": case.session_id,
            "user_id": case.user_id, "service": case.service, "environment": case.environment,
            "sampling_probability": case.sampling_probability, "error": case.error, "complete": case.complete,
            "completion": case.completion, "root_span_id": None if headless(case) else case.root_span_id,
            "spans": len(self.trace.spans), "dialects": self.dialects, "content_captured": case.content_captured,
            "capture_switch": case.capture_switch,
        }  # fmt: skip
        if case.reported:
            found["reported"] = [
                {name: stated for name in REPORTED if (stated := getattr(score, name)) is not None}
                for score in sorted(case.reported, key=attrgetter("at_ns"))
            ]
        if self.unread:
            found["remarks"] = [f"{UNREAD}: {', '.join(self.unread[:SHOWN])}"]
        if provenance:
            found["provenance"] = [_provenance(span) for span in self.trace.spans]
        return found


def _provenance(span: Span) -> dict[str, object]:
    """A span's kind, and the attribute that each field was read from."""
    return {
        "span_id": span.span_id, "span": span.name, "kind": span.kind.value, "dialect": span.dialect,
        "read": dict(span.provenance),
    }  # fmt: skip


def _handoffs(calls: Sequence[ToolCall]) -> list[dict[str, object]]:
    """The hand-offs, each with the number of tool calls before it, so that all calls can be put in order again."""
    return [
        {**_tool(call), "after": sum(not before.handoff for before in calls[:at])}
        for at, call in enumerate(calls)
        if call.handoff
    ]


def _tool(call: ToolCall) -> dict[str, object]:
    """A call with its arguments and, as far as it is known, its result or its error."""
    shown: dict[str, object] = {"name": call.name, "arguments": call.arguments}
    if call.error is not None:
        shown["error"] = call.error
    if call.result is not None or call.error is None:
        shown["result"] = call.result
    if call.call_id is not None:
        shown["call_id"] = call.call_id
    return shown


def inspect_spans(spans: Iterable[RawSpan]) -> Iterator[Inspected]:
    """One inspection a trace, in order of the traces' first spans. A recording is whole by declaration."""
    by_trace: dict[str, list[Span]] = {}
    for raw in spans:
        by_trace.setdefault(raw.trace_id, []).append(normalise(raw))
    for trace_id, normalised in by_trace.items():
        trace = Trace.of(trace_id, normalised, "batch")
        yield Inspected(trace, extract(trace))
