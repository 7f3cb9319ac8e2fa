# ruff: noqa: INP001  # a script, in no package
"""An application with the Langfuse SDK: its traces go to Langfuse as ever, and a copy of each span to the sidecar.

pip install langfuse opentelemetry-exporter-otlp-proto-http
LANGFUSE_BASE_URL=… LANGFUSE_PUBLIC_KEY=… LANGFUSE_SECRET_KEY=… \
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4318/v1/traces python app.py "What does clause 4 say?"

The Langfuse SDK is an OpenTelemetry SDK: one more span processor on its tracer provider is all that the copy needs.
"""

import sys

from langfuse import Langfuse
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
langfuse = Langfuse(tracer_provider=provider)


def answer(question: str) -> str:
    """Look it up, and say it; the model is left to your imagination."""
    with langfuse.start_as_current_observation(as_type="agent", name="research", input=question) as agent:
        with langfuse.start_as_current_observation(as_type="tool", name="pdf_retrieval", input=question) as tool:
            tool.update(output="Clause 4: refunds within 30 days.")
        reply = "Refunds are possible within 30 days (clause 4)."
        agent.update(output=reply)
    return reply


if __name__ == "__main__":
    print(answer(" ".join(sys.argv[1:]) or "What does clause 4 say?"))  # noqa: T201  # an example prints
    provider.shutdown()
