"""What a Langfuse drops of what real clients sent: the one table of where the way through it makes a difference.

Verdicts: `tests/end_to_end/test_langfuse_parity.py`. Cases: `test_langfuse_rows.py` beside this. Both fail for an entry
that is not needed any more. Grounded in `OtelIngestionProcessor.ts` of langfuse/langfuse and in recordings of 4.16.
"""

from __future__ import annotations

NO_LOGS = "its contents travel as log records, for which Langfuse has no endpoint (404)"
EVENTS = (
    "its contents stand in several span events `gen_ai.client.inference.operation.details`, of which servers before "
    "July 2026 read none (langfuse/langfuse#14930) and later ones are taken to read the first"
)
NO_TYPE = "the type of the exception stands in a span event, and Langfuse keeps the status' message alone"
ONCE = "messages are kept once, as the raw request and response; what these do not hold, or hold besides, differs"
RENAMED = "Langfuse calls the span by its message (`logfire.msg`), and its name stands nowhere else"
STRUCK = "instructions on a span without messages are struck from its attributes, and put nowhere"

_OF_MESSAGES = ("s1_plain", "s3_callcentre", "s5_stream", "s6_session")
VERDICTS: dict[tuple[str, str], str] = {
    **{("otel-openai-v2-legacy", scenario): NO_LOGS for scenario in _OF_MESSAGES},
    **{("semantic-kernel", scenario): NO_LOGS for scenario in _OF_MESSAGES},
    **{("strands-latest", scenario): EVENTS for scenario in _OF_MESSAGES},
}  # fmt: skip
"""Client and scenario whose verdicts differ. Where tools have spans of their own, there is enough for the same one."""

_CONTENTS = ("input", "model_output", "transcript", "system_prompt", "tools_used", "content_captured", "capture_switch")
FIELDS: dict[tuple[str, str], str] = {
    **{("otel-openai-v2-legacy", field): NO_LOGS for field in _CONTENTS},
    **{("semantic-kernel", field): NO_LOGS for field in ("input", "transcript", "system_prompt", "tools_used")},
    **{("strands-latest", field): EVENTS for field in ("model_output", "tools_used", "system_prompt")},
    ("strands-latest", "error"): NO_TYPE,
    **{(client, field): NO_TYPE for field in ("error", "tools_used") for client in (
        "langfuse-v3", "langfuse-v5", "langfuse-v5-split", "langsmith-otel", "openllmetry", "openllmetry-legacy",
        "strands", "vercel-ai-v5", "vercel-ai-v7",
    )},
    **{(client, "tools_used"): ONCE for client in ("openinference-llama-index", "openinference-openai-agents")},
    ("openllmetry-langchain", "system_prompt"): STRUCK,
}  # fmt: skip
"""Client and field of the case that differs in some scenario."""
FIELDS_KEPT: dict[tuple[str, str], str] = {
    **{("google-adk-2", field): NO_LOGS for field in (*_CONTENTS, "user_id")},
    **{("openinference-crewai", field): NO_TYPE for field in ("error", "tools_used")},
    **{(client, "name"): RENAMED for client in ("pydantic-ai-format-1", "pydantic-ai-format-5")},
}
"""The same for clients that were recorded in one scenario (`tests/data/otlp`)."""

UNEXAMINED = frozenset({
    ("google-adk-1", "transfer"), ("logfire-openai-agents", "stream"), ("logfire-pydantic-ai", "delegate"),
    ("logfire-pydantic-ai", "structured"), ("openinference-agent-framework", "plain"),
    ("openinference-bedrock", "plain"), ("openinference-gemini", "plain"), ("openinference-langchain", "swarm"),
    ("openinference-pydantic-ai", "delegate"), ("openinference-strands", "plain"), ("openllmetry-cohere", "plain"),
    ("openllmetry-langgraph", "swarm"), ("otel-bedrock", "plain"), ("pydantic-ai", "delegate"),
    ("pydantic-ai", "responses"), ("pydantic-ai", "retry"), ("pydantic-ai", "stream"), ("pydantic-ai", "structured"),
})  # fmt: skip
"""Later recordings there, client and scenario, of which it was seen that fields differ, and not yet why."""
