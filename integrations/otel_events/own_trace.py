"""Own trace: the judge calls of one trace as our own trace, after OpenTelemetry's GenAI conventions.

A root span for the judging, linked to the judged trace, and below it a client span for each request to a model. No
content of prompts or answers is recorded. Semantic conventions for GenAI of November 2026, all in development:
https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md. They have no
attribute for costs; ours is ``sidejudge.cost_usd``, and Langfuse's own is set for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, set_span_in_context

from sidejudge.integrations.provider.attempt import Completion
from sidejudge.integrations.provider.errors import ProviderUsage
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.trace.loop_guard import OWN_TAG

from .evaluation import EvaluationSubject
from .providers import Telemetry

OPERATION: Final = "chat"
ROOT: Final = "evaluate"
_PROVIDERS: Final[Mapping[str, str]] = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""Providers whose name in the conventions is not the one in front of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to a model. ``model`` is provider/model as configured; times are ns since the epoch.

    ``failure`` is why it failed, None when it was answered; ``completion`` is the model's answer. ``prompt`` is the
    name and version of its prompt in prompt management; None where it was made of none or of several.
    """

    model: str
    start_ns: int
    end_ns: int
    usage: ProviderUsage
    failure: str | None = None
    completion: Completion | None = None
    prompt: tuple[str, int] | None = None


class OwnTrace:
    """One judging, from its first request to a model on. ``trace_id`` is in hex, the same for all of one subject."""

    def __init__(self, telemetry: Telemetry, judged: EvaluationSubject, start_ns: int) -> None:
        self._tracer, self._judged = telemetry.tracer, judged
        telemetry.ids.next_trace_id = int(judged.own_trace_id, 16)
        self._root: Span = self._tracer.start_span(
            ROOT,
            context=Context(),
            kind=SpanKind.INTERNAL,
            attributes=self._marks,
            links=self._links,
            start_time=start_ns,
        )
        self._context = set_span_in_context(self._root, Context())

    @property
    def trace_id(self) -> str:
        return format(self._root.get_span_context().trace_id, "032x")

    def add(self, call: Call) -> None:
        """A request to a model, over by now."""
        provider, _, model = call.model.partition("/")
        span = self._tracer.start_span(
            f"{OPERATION} {label(model)}",
            context=self._context,
            kind=SpanKind.CLIENT,
            attributes={
                "gen_ai.operation.name": OPERATION,
                "gen_ai.provider.name": _PROVIDERS.get(provider, label(provider)),
                "gen_ai.request.model": label(model, 200),
                **self._marks,
                **_used(call.usage),
                **_stated(call.completion),
                **_prompt(call.prompt),
            },
            links=self._links,
            start_time=call.start_ns,
        )
        if call.failure is not None:
            span.set_attribute("error.type", label(call.failure))
            span.set_status(Status(StatusCode.ERROR))
        span.end(call.end_ns)

    def end(self, end_ns: int, outcome: Mapping[str, str]) -> None:
        """The judging is over; ``outcome`` is its result, as attributes."""
        self._root.set_attributes(dict(outcome))
        self._root.end(end_ns)

    @property
    def _marks(self) -> dict[str, str | list[str]]:
        # Langfuse keeps these two as metadata of the trace, by which it is found from the trace that was judged.
        found = {f"langfuse.trace.metadata.{key}": value for key, value in self._judged.subject.items()}
        return {**self._judged.attributes, **found, "langfuse.trace.tags": [OWN_TAG]}

    @property
    def _links(self) -> list[Link]:
        context = self._judged.context
        return [Link(context, {"sidejudge.link": "judged"})] if context.is_valid else []


def _prompt(prompt: tuple[str, int] | None) -> dict[str, str | int]:
    """By these Langfuse links a generation to a version of a prompt."""
    if prompt is None:
        return {}
    return {"langfuse.observation.prompt.name": prompt[0], "langfuse.observation.prompt.version": prompt[1]}


def _used(usage: ProviderUsage) -> dict[str, int | float | str]:
    """Tokens and dollars. Of a request without an answer neither is known: it may have been paid for all the same."""
    if not usage.input_tokens and not usage.output_tokens:
        return {}
    attributes: dict[str, int | float | str] = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    if usage.cost_usd is not None:
        attributes["sidejudge.cost_usd"] = usage.cost_usd
        attributes["langfuse.observation.cost_details"] = json.dumps({"total": usage.cost_usd})
    return attributes


def _stated(completion: Completion | None) -> dict[str, str | list[str]]:
    if completion is None:
        return {}
    attributes: dict[str, str | list[str]] = {"gen_ai.response.model": label(completion.model, 200)}
    if completion.finish_reason is not None:
        attributes["gen_ai.response.finish_reasons"] = [label(completion.finish_reason)]
    if completion.response_id is not None:
        attributes["gen_ai.response.id"] = label(completion.response_id, 200)
    return attributes
