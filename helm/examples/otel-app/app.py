# ruff: noqa: INP001  # a script, in no package
"""An application with the OpenTelemetry SDK and the GenAI conventions. The sidecar is its OTLP endpoint.

pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http
OTEL_SERVICE_NAME=assistant OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 python app.py "Where is my parcel?"
"""

import json
import sys

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("assistant")


def message(role: str, text: str) -> str:
    """A message as the GenAI conventions write it."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def answer(question: str) -> str:
    """Look it up, and answer; the model is left to your imagination."""
    with tracer.start_as_current_span("invoke_agent research") as agent:
        agent.set_attribute("gen_ai.operation.name", "invoke_agent")
        agent.set_attribute("gen_ai.agent.name", "research")
        agent.set_attribute("gen_ai.input.messages", message("user", question))
        with tracer.start_as_current_span("execute_tool parcel_lookup") as tool:
            tool.set_attribute("gen_ai.operation.name", "execute_tool")
            tool.set_attribute("gen_ai.tool.name", "parcel_lookup")
            tool.set_attribute("gen_ai.tool.call.result", "on its way, due on Tuesday")
        reply = "Your parcel is on its way. It will be with you on Tuesday."
        agent.set_attribute("gen_ai.output.messages", message("assistant", reply))
    return reply


if __name__ == "__main__":
    print(answer(" ".join(sys.argv[1:]) or "Where is my parcel?"))  # noqa: T201  # an example prints
    provider.shutdown()
