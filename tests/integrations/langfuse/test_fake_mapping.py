"""The fake's mapping of spans is held to what the server's own tests say of it (langfuse/langfuse, summer of 2026)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sidejudge.integrations.raw import RawSpan
from tests.fakes.langfuse.otel_in import rows_of


def row(scope: str = "x", major: int = 4, **attributes: Any) -> dict[str, Any]:
    span = RawSpan(
        trace_id="1" * 32, span_id="2" * 16, parent_id=None, name="step", start_ns=10**18, end_ns=10**18,
        attributes={key.replace("__", "."): value for key, value in attributes.items()}, scope_name=scope,
        scope_version="3.8.1", resource={"service.name": "test-svc"},
    )  # fmt: skip
    return rows_of([span], major=major)[0]


def test_metadata_is_what_was_said_and_beside_it_what_was_left_of_the_attributes():
    made = row(
        "other-instrumentation",
        langfuse__observation__type="generation", langfuse__observation__level="ERROR", user__id="user-test",
        langfuse__observation__input="a", langfuse__observation__metadata='{"request.id": "req-test"}',
        langfuse__observation__metadata__key="key-test", custom__attribute="keep-custom",
        langfuse__trace__tags='["tag-a", "tag-b"]', langfuse__observation__custom="keep-unknown",
    )  # fmt: skip
    assert made["metadata"] == {
        "request.id": "req-test", "key": "key-test", "attributes.langfuse.observation.type": "generation",
        "attributes.langfuse.observation.level": "ERROR", "attributes.user.id": "user-test",
        "attributes.langfuse.trace.tags": ["tag-a", "tag-b"], "attributes.custom.attribute": "keep-custom",
        "attributes.langfuse.observation.custom": "keep-unknown", "resourceAttributes.service.name": "test-svc",
        "scope.name": "other-instrumentation", "scope.version": "3.8.1",
    }  # fmt: skip
    assert (made["type"], made["level"], made["tags"]) == ("GENERATION", "ERROR", ["tag-a", "tag-b"])


@pytest.mark.parametrize(
    ("attributes", "usage"),
    [
        ({"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 600, "gen_ai.usage.reasoning_tokens": 500,
          "gen_ai.usage.total_tokens": 700},
         {"input": 100, "output": 100, "output_reasoning_tokens": 500, "total": 700}),
        ({"llm.token_count.prompt": 80, "llm.token_count.completion": 150, "llm.token_count.reasoning_tokens": 120,
          "llm.token_count.total": 230}, {"input": 80, "output": 30, "output_reasoning_tokens": 120, "total": 230}),
        ({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2, "gen_ai.usage.cache_read.input_tokens": 4},
         {"input": 6, "output": 2, "input_cached_tokens": 4, "total": 12}),
    ],
)  # fmt: skip
def test_tokens_that_were_cached_or_thought_are_counted_apart(attributes, usage):
    assert row(**attributes)["usageDetails"] == usage


@pytest.mark.parametrize(
    ("instructions", "first"),
    [
        ([{"type": "text", "content": "Be concise."}, {"type": "text", "content": "Be accurate."}],
         {"role": "system", "content": "Be concise.\nBe accurate."}),
        ([{"role": "system", "parts": [{"type": "text", "content": "Be helpful."}]}],
         {"role": "system", "parts": [{"type": "text", "content": "Be helpful."}]}),
        ("Be helpful.", {"role": "system", "content": "Be helpful."}),
        ([], {"role": "user", "content": "Hello"}),
    ],
)  # fmt: skip
def test_instructions_come_before_the_messages(instructions, first):
    requested = json.dumps([{"role": "user", "content": "Hello"}])
    made = row(gen_ai__input__messages=requested, gen_ai__system_instructions=json.dumps(instructions))
    assert json.loads(made["input"])[0] == first


def test_of_contents_in_two_conventions_the_first_stays_and_the_second_is_lost():
    made = row(**{"openinference.span.kind": "LLM", "input.value": "raw", "llm.input_messages.0.message.role": "user"})
    assert made["input"] == "raw"
    assert not any("llm.input_messages" in key for key in made["metadata"])


def test_from_version_4_on_tools_stand_in_the_input():
    tool = {"name": "search"}
    held = {"gen_ai.input.messages": '[{"role": "user"}]', "gen_ai.tool.definitions": json.dumps([tool])}
    assert json.loads(row(**held)["input"]) == {"messages": [{"role": "user"}], "tools": [tool]}
    assert row(major=3, **held)["input"] == held["gen_ai.input.messages"]


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"openinference.span.kind": "LLM", "gen_ai.operation.name": "execute_tool"}, "GENERATION"),
        ({"gen_ai.operation.name": "unheard of", "gen_ai.tool.name": "t"}, "TOOL"),
        ({"ai.operationId": "ai.generateText.doGenerate", "ai.model.id": "m"}, "GENERATION"),
        ({"ai.operationId": "ai.generateText"}, "SPAN"),
        ({"operation.name": "ai.toolCall search"}, "TOOL"),
        ({"genkit:metadata:subtype": "embedder"}, "EMBEDDING"),
        ({"llm.model_name": "m"}, "GENERATION"),
        ({"own": 1}, "SPAN"),
    ],
)
def test_the_type_is_told_by_the_first_sign(attributes, kind):
    assert row(**attributes)["type"] == kind
