"""Trace index: the fields of a trace's spans, with the spans that describe them.

Most spans describe little, and few spans give most fields, so that these are found once, in a few walks over the spans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .span import Json, Span, SpanKind
from .trace import Trace

_TOOL, _CHAIN, _RETRIEVER = SpanKind.TOOL, SpanKind.CHAIN, SpanKind.RETRIEVER


class TraceIndex:
    """The spans of one trace by kind, and their values for the whole trace.

    From the top down: ``session_id``, ``user_id``, ``service``, ``environment``, ``trace_name`` and ``capture_switch``
    are those of the highest span that has one; ``metadata`` are the non-empty maps, those of the trace before those of
    spans; ``tools`` the spans that describe a tool call, ``chains`` the steps.

    In order of start: ``agents`` are the spans that name one; ``usage`` and ``costs`` those that report any;
    ``retrievers`` those that retrieved; ``asking`` those whose answer calls tools. ``inputs`` and ``outputs`` are those
    recorded for the whole trace, ``tags`` all of them; ``system_prompt`` and ``error`` the first.
    """

    def __init__(self, trace: Trace) -> None:
        self._down(trace.from_top)
        self._in_order(trace.spans)
        self._contents_in_order(trace.spans)

    def _down(self, spans: Sequence[Span]) -> None:
        session_id: str | None = None
        user_id: str | None = None
        service: str | None = None
        environment: str | None = None
        trace_name: str | None = None
        capture_switch: str | None = None
        of_trace: list[Mapping[str, Json]] = []
        of_spans: list[Mapping[str, Json]] = []
        tools: list[Span] = []
        chains: list[Span] = []
        for span in spans:
            session_id = session_id or span.session_id
            user_id = user_id or span.user_id
            service = service or span.service
            environment = environment or span.environment
            trace_name = trace_name or span.trace_name
            capture_switch = capture_switch or span.capture_switch
            if span.trace_metadata:
                of_trace.append(span.trace_metadata)
            if span.metadata:
                of_spans.append(span.metadata)
            if span.kind is _TOOL:
                if span.tool is not None:
                    tools.append(span)
            elif span.kind is _CHAIN:
                chains.append(span)
        self.session_id = session_id or None
        self.user_id = user_id or None
        self.service = service or None
        self.environment = environment or None
        self.trace_name = trace_name or None
        self.capture_switch = capture_switch or None
        self.metadata = of_trace + of_spans
        self.tools = tools
        self.chains = chains

    def _in_order(self, spans: Sequence[Span]) -> None:
        agents: list[Span] = []
        usage: list[Span] = []
        costs: list[Span] = []
        retrievers: list[Span] = []
        tags: list[str] = []
        error: str | None = None
        for span in spans:
            if span.agent:
                agents.append(span)
            if span.usage is not None:
                usage.append(span)
            if span.cost_usd is not None:
                costs.append(span)
            if span.documents or span.kind is _RETRIEVER:
                retrievers.append(span)
            if span.tags:
                tags += span.tags
            if error is None:
                error = span.error
        self.agents = agents
        self.usage = usage
        self.costs = costs
        self.retrievers = retrievers
        self.tags = tags
        self.error = error

    def _contents_in_order(self, spans: Sequence[Span]) -> None:
        asking: list[Span] = []
        inputs: list[Json] = []
        outputs: list[Json] = []
        system_prompt: str | None = None
        for span in spans:
            for message in span.output_messages:
                if message.tool_calls:
                    asking.append(span)
                    break
            if span.trace_input is not None:
                inputs.append(span.trace_input)
            if span.trace_output is not None:
                outputs.append(span.trace_output)
            system_prompt = system_prompt or span.system_prompt
        self.asking = asking
        self.inputs = inputs
        self.outputs = outputs
        self.system_prompt = system_prompt or None
