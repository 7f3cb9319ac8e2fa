"""What a person says of an attribute goes before what a dialect reads, and before what shapes show."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidejudge.integrations.dialects import map_attributes, normalise
from sidejudge.integrations.raw import AttributeValue, RawEvent, RawSpan
from sidejudge.scoring.trace.span import Span, SpanKind, ToolCall, Usage

CHAT = '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is A-1?"}]'


@pytest.fixture(autouse=True)
def _nothing_mapped_after() -> Iterator[None]:
    yield
    map_attributes({})


def _span(attributes: dict[str, AttributeValue], *events: RawEvent, name: str = "step") -> Span:
    return normalise(RawSpan(
        trace_id="1" * 32, span_id="2" * 16, parent_id=None, name=name, start_ns=1, end_ns=2, attributes=attributes,
        events=events, scope_name="acme",
    ))  # fmt: skip


def test_a_step_is_read_by_names_that_say_nothing() -> None:
    attributes: dict[str, AttributeValue] = {"acme.a": "Where is A-1?", "acme.b": "On its way.", "acme.c": "planner"}
    assert _span(attributes).output is None
    map_attributes({"acme.a": "input", "acme.b": "output", "acme.c": "agent"})
    span = _span(attributes)
    assert (span.input, span.output, span.agent) == ("Where is A-1?", "On its way.", "planner")
    assert span.provenance["output"] == "acme.b (sources.attributes)"


def test_a_model_call_is_read_with_its_messages_its_model_and_its_tokens() -> None:
    map_attributes({
        "acme.t": "kind", "acme.q": "input", "event acme.done: body": "output", "acme.m": "model",
        "acme.n1": "input_tokens", "acme.n2": "output_tokens", "acme.s": "session_id",
    })  # fmt: skip
    done = RawEvent(name="acme.done", time_ns=1, attributes={"body": "On its way."})
    counts: dict[str, AttributeValue] = {"acme.n1": 12, "acme.n2": "3"}
    span = _span({"acme.t": "LLM", "acme.q": CHAT, "acme.m": "m-1", "acme.s": "s-1", **counts}, done)
    assert (span.kind, span.input, span.output) == (SpanKind.LLM, "Where is A-1?", "On its way.")
    assert (span.model, span.usage, span.session_id) == ("m-1", Usage(input=12, output=3), "s-1")
    assert [message.role for message in (*span.input_messages, *span.output_messages)] == [
        "system",
        "user",
        "assistant",
    ]


def test_a_tool_is_read_with_its_arguments_and_its_result_or_its_error() -> None:
    map_attributes({"acme.f": "tool", "acme.x": "arguments", "acme.y": "result", "acme.z": "error"})
    attributes: dict[str, AttributeValue] = {"acme.f": "lookup", "acme.x": '{"id": 1}', "acme.y": "gone"}
    span = _span(attributes)
    assert (span.kind, span.tool) == (SpanKind.TOOL, ToolCall(name="lookup", arguments={"id": 1}, result="gone"))
    failed = _span({**attributes, "acme.z": "no such order"})
    assert failed.tool == ToolCall(name="lookup", arguments={"id": 1}, error="no such order")
    assert failed.error == "no such order"


def test_a_step_is_read_with_its_documents_its_tags_and_its_error() -> None:
    map_attributes({"acme.d": "documents", "acme.l": "tags", "acme.z": "error"})
    span = _span({"acme.d": '[{"text": "D1"}, "D2"]', "acme.l": "eu, beta", "acme.z": "no index"})
    assert (span.documents, span.tags, span.error) == (("D1", "D2"), ("eu", "beta"), "no index")


def test_what_is_mapped_goes_before_what_a_dialect_reads_and_the_first_name_that_is_there_counts() -> None:
    attributes: dict[str, AttributeValue] = {
        "langfuse.observation.type": "span", "langfuse.observation.output": "a summary", "acme.answer": "On its way.",
    }  # fmt: skip
    assert _span(attributes).output == "a summary"
    map_attributes({"acme.gone": "output", "acme.answer": "output"})
    span = _span(attributes)
    assert (span.dialect, span.output) == ("langfuse", "On its way.")


@pytest.mark.parametrize("nobody", ["unknown", " none ", "", '"null"', "[Scrubbed due to 'session']"])
def test_a_session_or_user_that_the_application_does_not_know_is_mapped_from_another_name_or_none(nobody: str) -> None:
    map_attributes({"acme.s": "session_id", "acme.s2": "session_id", "acme.u": "user_id"})
    span = _span({"acme.s": nobody, "acme.s2": "c-1", "acme.u": nobody})
    assert (span.session_id, span.user_id) == ("c-1", None)
    assert span.provenance["session_id"] == "acme.s2 (sources.attributes)"
    assert _span({"acme.s": nobody, "session.id": "c-2"}).session_id == "c-2"


def test_a_span_without_any_of_the_names_is_as_it_was() -> None:
    attributes: dict[str, AttributeValue] = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": CHAT}
    before = _span(attributes)
    map_attributes({"acme.a": "input", "event acme: b": "output"})
    assert _span(attributes) == before


def test_what_a_span_did_is_read_by_shape_beside_what_is_mapped() -> None:
    map_attributes({"acme.a": "input", "acme.b": "output"})
    span = _span({"acme.a": "Where is A-1?", "acme.b": "On its way.", "acme.kind": "llm", "acme.model": "m"})
    assert (span.kind, span.output, span.requested_model) == (SpanKind.LLM, "On its way.", "m")
