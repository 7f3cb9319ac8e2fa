"""The exporters and SDKs that people use, pointed here: nothing of theirs is imitated."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogs
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogs
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import SpanKind, set_span_in_context

from tests.fakes.upstream import upstream
from tests.running import Running, free_port

ANSWER = {
    "routes": [{"rubrics": ["answer", "workflow"], "scenario": "any"}],
    "scenarios": {"any": {"max_seconds": 10**9}},
}
AUTH = {"auth": {"bearer": ["let-me-in"]}}
HEADERS = {"authorization": "Bearer let-me-in"}


@pytest.fixture
def receiving(serving: Callable[..., Running]):
    def start(**otlp: object) -> tuple[Running, str, str]:
        http, grpc = free_port(), free_port()
        address = {"http": f"127.0.0.1:{http}", "grpc": f"127.0.0.1:{grpc}", **otlp}
        monitor = serving(**ANSWER, sources={"otlp": address}, assembly={"grace": "1s", "idle": "3s"})
        return monitor, f"http://127.0.0.1:{http}", f"127.0.0.1:{grpc}"

    return start


def one_conversation(spans, logs) -> str:
    """An LLM call whose contents go as log events, as GenAI conventions had it to 1.36; its trace id."""
    resource = Resource.create({"service.name": "shop"})
    tracing, logging_ = TracerProvider(resource=resource), LoggerProvider(resource=resource)
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    logging_.add_log_record_processor(SimpleLogRecordProcessor(logs))
    tracer, logger = tracing.get_tracer("opentelemetry.instrumentation.openai_v2"), logging_.get_logger("openai")
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "gpt-4o-mini"}
    with tracer.start_as_current_span("chat gpt-4o-mini", kind=SpanKind.CLIENT, attributes=attributes) as span:
        context = set_span_in_context(span)
        for event, body in (
            ("gen_ai.user.message", {"content": "When does the shop open?"}),
            ("gen_ai.choice", {"index": 0, "message": {"content": "At nine.", "role": "assistant"}}),
        ):  # fmt: skip
            logger.emit(LogRecord(timestamp=1, body=body, event_name=event, context=context,
                                  severity_number=SeverityNumber.INFO))  # fmt: skip
        trace_id = span.get_span_context().trace_id
    for provider in (tracing, logging_):
        provider.shutdown()
    return f"{trace_id:032x}"


def judged(monitor: Running, trace_id: str) -> dict:
    """The case that was made of a trace, once it is judged."""
    monitor.until(lambda: bool(monitor.verdicts(trace_id=trace_id)), "the trace was not judged")
    return monitor.get(f"/v1/traces/{trace_id}")["case"]


@pytest.mark.parametrize("compression", list(Compression))
def test_opentelemetry_over_http(receiving, compression):
    monitor, http, _ = receiving(**AUTH)
    trace_id = one_conversation(
        HttpSpans(endpoint=f"{http}/v1/traces", compression=compression, headers=HEADERS),
        HttpLogs(endpoint=f"{http}/v1/logs", compression=compression, headers=HEADERS),
    )
    case = judged(monitor, trace_id)
    assert (case["input"], case["model_output"]) == ("When does the shop open?", "At nine.")


@pytest.mark.parametrize("gzip", [False, True])
def test_opentelemetry_over_grpc(receiving, gzip):
    import grpc  # noqa: PLC0415  # only this test needs it

    monitor, _, address = receiving(**AUTH)
    compression = grpc.Compression.Gzip if gzip else grpc.Compression.NoCompression
    common = {"endpoint": address, "insecure": True, "compression": compression, "headers": HEADERS}
    case = judged(monitor, one_conversation(GrpcSpans(**common), GrpcLogs(**common)))
    assert (case["input"], case["model_output"]) == ("When does the shop open?", "At nine.")
    assert monitor.stop() == 0


def test_what_javascript_sends_as_json(receiving, shared: Path):
    monitor, http, _ = receiving()
    bodies = sorted((shared / "corpus" / "otlp" / "vercel-ai-v5").rglob("*.orig.json"))
    for path in bodies:
        answer = monitor.http.post(
            f"{http}/v1/traces", content=path.read_bytes(), headers={"content-type": "application/json"}
        )
        assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b"{}", "application/json")
    assert len(bodies) >= 6
    monitor.until(lambda: monitor.outcomes()["ended"]["scored"] >= 6, "not all were judged")


LANGFUSE = """
import sys
from langfuse import Langfuse
client = Langfuse(public_key="pk-lf-1", secret_key="sk-lf-2", base_url=sys.argv[1], timeout=10)
with client.start_as_current_observation(name="qa", as_type="agent", input="When does the shop open?") as agent:
    with client.start_as_current_observation(name="llm", as_type="generation", model="gpt-4o-mini") as call:
        call.update(output="At nine.")
    agent.update(output="At nine.")
    print(client.get_current_trace_id())
client.flush()
print(client.auth_check())
client.create_score(name="thumb", value=1.0, trace_id="0" * 31 + "1")
client.flush()
print(client.get_prompt("greeting", fetch_timeout_seconds=5).compile(name="Ada"))
client.shutdown()
"""
PROJECTS = b'{"data":[{"id":"p","name":"shop","organization":{"id":"o","name":"o"},"metadata":{}}]}'
PROMPT = (
    b'{"type":"text","name":"greeting","version":1,"prompt":"Hello {{name}}","config":{},"labels":["production"],'
    b'"tags":[],"commitMessage":null,"resolutionGraph":null}'
)


@asynccontextmanager
async def langfuse():
    """Langfuse's part of the conversation, as its SDK expects it."""

    async def speak(writer):
        line = up.requested[-1].line
        body = PROJECTS if "/projects" in line else PROMPT if "/prompts" in line else b'{"id":"1"}'
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        )

    async with upstream(speak) as up:
        yield up


async def test_an_application_with_langfuses_sdk_changes_its_base_url_and_nothing_else(serving, tmp_path):
    async with langfuse() as up:
        port = free_port()
        monitor = await asyncio.to_thread(
            lambda: serving(**ANSWER, sources={"otlp": {"http": f"127.0.0.1:{port}"}}, forward={"url": up.url})
        )
        script = tmp_path / "application.py"
        script.write_text(LANGFUSE)
        reported = await asyncio.to_thread(
            subprocess.run, [sys.executable, str(script), f"http://127.0.0.1:{port}"], cwd=tmp_path,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert reported.returncode == 0, reported.stderr
        trace_id, authenticated, prompt = reported.stdout.split("\n")[:3]
        assert (authenticated, prompt) == ("True", "Hello Ada"), reported.stderr
        case = await asyncio.to_thread(judged, monitor, trace_id)
        assert (case["input"], case["model_output"]) == ("When does the shop open?", "At nine.")
        lines = [requested.line.split("?")[0].split(" ")[:2] for requested in up.requested]
        assert ["POST", "/api/public/otel/v1/traces"] in lines
        assert {"/api/public/projects", "/api/public/scores"} <= {path for _, path in lines}, reported.stderr
        basic = "Basic " + base64.b64encode(b"pk-lf-1:sk-lf-2").decode()
        assert {requested.header("authorization") for requested in up.requested} == {basic}
        export = next(requested for requested in up.requested if requested.line.startswith("POST /api/public/otel"))
        assert export.header("x-langfuse-ingestion-version") == "4"
        forwarding = (await asyncio.to_thread(monitor.get, "/v1/status"))["forwarding"]
        assert (forwarding["failed"], forwarding["unjudged"]) == ({}, {})
