"""The type of the observation that a Langfuse makes of a span: the first rule that fits, as its server tries them.

Grounded in `packages/shared/src/server/otel/ObservationTypeMapper.ts` of langfuse/langfuse (version 4, summer of 2026).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sidejudge.integrations.raw import RawSpan

SAID = {each.lower(): each for each in ("SPAN", "GENERATION", "EVENT", "EMBEDDING", "AGENT", "TOOL", "CHAIN",
                                        "RETRIEVER", "GUARDRAIL", "EVALUATOR")}  # fmt: skip
OPENINFERENCE = {"LLM": "GENERATION", **{each: each for each in ("CHAIN", "RETRIEVER", "EMBEDDING", "AGENT", "TOOL",
                                                                 "GUARDRAIL", "EVALUATOR")}}  # fmt: skip
OPERATIONS = {
    **dict.fromkeys(("chat", "completion", "text_completion", "generate_content", "generate"), "GENERATION"),
    "embeddings": "EMBEDDING", "invoke_agent": "AGENT", "create_agent": "AGENT", "execute_tool": "TOOL",
}  # fmt: skip
GENKIT = {"background-model": "GENERATION", "model": "GENERATION", "embedder": "EMBEDDING", "tool": "TOOL",
          "tool.v2": "TOOL", "retriever": "RETRIEVER", "evaluator": "EVALUATOR"}  # fmt: skip
SIGNS = (("langfuse.observation.type", SAID), ("openinference.span.kind", OPENINFERENCE),
         ("gen_ai.operation.name", OPERATIONS), ("genkit:metadata:subtype", GENKIT))  # fmt: skip
GENERATING = ("ai.generateText.doGenerate", "ai.streamText.doStream", "ai.generateObject.doGenerate",
              "ai.streamObject.doStream")  # fmt: skip
EMBEDDING = ("ai.embedMany.doEmbed", "ai.embed.doEmbed")
MODEL = "langfuse.observation.model.name"
OF_GENERATIONS = (MODEL, *(f"langfuse.observation.{each}" for each in (
    "cost_details", "usage_details", "completion_start_time", "model.parameters", "prompt.name", "prompt.version",
)))  # fmt: skip


def type_of(span: RawSpan) -> str:
    held = span.attributes
    if _of_an_old_sdk(span):
        return "GENERATION"
    for key, mapped in SIGNS:
        value = held.get(key)
        if isinstance(value, str) and value in mapped:
            return mapped[value]
    models = (MODEL, "ai.model.id", "gen_ai.request.model", "gen_ai.response.model")
    if _vercel(held, (*GENERATING, *EMBEDDING)) and any(held.get(key) for key in models):
        return "GENERATION" if _vercel(held, GENERATING) else "EMBEDDING"
    if _vercel(held, ("ai.toolCall",)):
        return "TOOL"
    if held.get("gen_ai.tool.name") or held.get("gen_ai.tool.call.id"):
        return "TOOL"
    if any(
        held.get(key) for key in (MODEL, "gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "model")
    ):
        return "GENERATION"
    return "SPAN"


def _of_an_old_sdk(span: RawSpan) -> bool:
    """Python SDKs to 3.3.0 called generations spans."""
    version = span.scope_version.split(".")
    return (
        span.attributes.get("langfuse.observation.type") == "span"
        and span.scope_name == "langfuse-sdk"
        and span.resource.get("telemetry.sdk.language") == "python"
        and [int(part) for part in version[:2] if part.isdigit()] <= [3, 3]
        and any(key in span.attributes for key in OF_GENERATIONS)
    )


def _vercel(held: Mapping[str, Any], operations: tuple[str, ...]) -> bool:
    """The name may have a function's id after it, the id may not."""
    name, operation = held.get("operation.name"), held.get("ai.operationId")
    return (isinstance(name, str) and name.startswith(operations)) or operation in operations
