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
BY_OPERATION = "Langfuse calls a span of the AI SDK by its operation, without the name of the function"
SHADOWED = (
    "attributes under `gen_ai.prompt.` are taken for messages of the older form, and those of the newer are struck"
)
UNTOLD = "a protocol's requests become the input and output of a trace, and nothing shows any more what they were"
OWN_EVENTS = "its contents and tokens stand in span events of its own, which Langfuse does not read"
RAISED = "the class of what goes to another graph stands in a span event, and the status' message is what was raised"
STRUCK = "instructions on a span without messages are struck from its attributes, and put nowhere"
NESTED = "a key of metadata with a dot in it becomes a map"
SWAPPED = "calls within one millisecond, which is the unit of Langfuse's times, change places"

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
    ("openinference-llama-index", "tools_used"): ONCE,
    ("openllmetry-langchain", "system_prompt"): STRUCK,
}  # fmt: skip
"""Client and field of the case that differs in some scenario."""
FIELDS_KEPT: dict[tuple[str, str], str] = {
    ("google-adk-2", "user_id"): NO_LOGS,
    **{(client, field): NO_LOGS for field in _CONTENTS for client in (
        "google-adk-2", "otel-bedrock", "otel-genai-anthropic", "otel-genai-openai",
        "otel-genai-openai-agents", "otel-openai-v2",
    )},
    **{("otel-genai-langchain", field): SHADOWED for field in ("model_output", "system_prompt", "tools_used")},
    **{("openllmetry-mcp", field): UNTOLD for field in ("content_captured", "input", "model_output", "transcript")},
    **{(client, "tools_used"): ONCE for client in (
        "openinference-beeai", "openinference-openllmetry",
    )},
    **{(client, field): NO_TYPE for field in ("error", "tools_used") for client in (
        "openinference-crewai", "openinference-langchain", "openinference-vercel", "pydantic-ai",
    )},
    ("openinference-vercel", "name"): BY_OPERATION,
    **{(client, "error"): NO_TYPE for client in ("openllmetry-langgraph", "vercel-ai-7")},
    **{("claude-code", field): NO_LOGS for field in ("model_output", "tools_used")},
    ("burr-langfuse", "metadata"): NESTED,
    ("mlflow-langchain", "error"): RAISED,
    **{(client, "tools_used"): SWAPPED for client in ("openinference-smolagents", "otel-gemini")},
    ("mlflow-openai-agents", "tools_used"): ONCE,
    **{("monocle", field): OWN_EVENTS for field in (
        "input", "model_output", "transcript", "tools_used", "input_tokens", "output_tokens",
    )},
    **{("nemo-guardrails", field): OWN_EVENTS for field in (
        "input", "model_output", "transcript", "tools_used", "content_captured", "capture_switch",
    )},
    **{(client, "name"): RENAMED for client in (
        "logfire-pydantic-ai", "openinference-pydantic-ai", "pydantic-ai", "pydantic-ai-format-1",
        "pydantic-ai-format-5",
    )},
    **{(client, "system_prompt"): ONCE for client in (
        "openinference-bedrock", "openinference-google-adk", "openinference-pydantic-ai", "openinference-vercel",
    )},
    **{
        (client, "system_prompt"): STRUCK
        for client in ("openllmetry-langgraph", "openlit-openai-agents", "openlit-js-openai-agents", "openlit-crewai")
    },
}  # fmt: skip
"""The same for the further recordings (`tests/data/otlp`)."""
