"""OTLP over gRPC, spoken to by the library's own client: answers, retries, limits, credentials, encryption."""

from __future__ import annotations

import asyncio
import gzip
import time

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from sidejudge.integrations.otlp.wire.receipt import Overloaded
from sidejudge.monitor.ingest.server import AddressError, bind
from tests.certificates import make
from tests.fakes.upstream import OK, upstream
from tests.integrations.otlp.wire.test_request_logs import logs
from tests.otlp_requests import HIGH, S, request, span, trace
from tests.waiting import until

ANY = {"routes": [{"rubrics": ["workflow"], "scenario": "any"}], "scenarios": {"any": {"max_seconds": 10**9}}}
TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"


def one(number=1, **more) -> bytes:
    return request([S(trace_id=trace(number, HIGH), span_id=span(1), **more)])


@pytest.fixture
async def listening(started):
    """A monitor that listens for gRPC, and a way to call it."""
    channels = []

    async def start(credentials=None, **otlp):
        found = {}
        app = await started(
            **ANY, sources={"otlp": {"http": "127.0.0.1:0", "grpc": "127.0.0.1:0", **otlp}}, catch=found
        )
        options = [("grpc.max_send_message_length", -1), ("grpc.enable_retries", 0)]
        channel = (
            grpc.aio.secure_channel(found["grpc"], credentials, options) if credentials
            else grpc.aio.insecure_channel(found["grpc"], options)
        )  # fmt: skip
        channels.append(channel)

        async def call(body, method=TRACES, **more):
            return await channel.unary_unary(method)(body, timeout=20, **more)

        call.address = found["grpc"]
        return app, call

    yield start
    for channel in channels:
        await channel.close()


async def refusal(call, *args, **more):
    """Code, message, and the delay of the RetryInfo (None without one), read with the published classes."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(*args, **more)
    error = caught.value
    details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
    if details is None:
        return error.code(), error.details(), None
    reported = status_pb2.Status.FromString(details)
    assert (reported.code, reported.message) == (error.code().value[0], error.details())
    retry = error_details_pb2.RetryInfo()
    wait = None
    for detail in reported.details:
        assert detail.Unpack(retry)
        wait = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
    return error.code(), error.details(), wait


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip, grpc.Compression.Deflate])
async def test_spans_are_taken_and_judged(listening, compression):
    app, call = await listening()
    assert await call(one(attributes={"pad": "x" * 5000}), compression=compression) == b""
    assert (await app.settled(1))["ended"]["scored"] == 1
    assert (await app.get("/v1/status"))["receiving"]["protocols"] == ["http", "grpc"]


async def test_an_empty_request_is_taken(listening):
    _, call = await listening()
    assert [await call(b"", method) for method in (TRACES, LOGS, METRICS)] == [b"", b"", b""]


async def test_partial_success_is_told(listening):
    _, call = await listening()
    bad = request([S(trace_id=b"short", span_id=span(1)), S(trace_id=trace(1), span_id=span(2))])
    reported = ExportTraceServiceResponse.FromString(await call(bad)).partial_success
    assert (reported.rejected_spans, "valid id" in reported.error_message) == (1, True)
    broken = logs((trace(1), span(2), "gen_ai.choice", "hi", {})).replace(b"\x52\x08" + span(2), b"\x57\x08" + span(2))
    partial = ExportLogsServiceResponse.FromString(await call(broken, LOGS)).partial_success
    assert partial.rejected_log_records == 1


async def test_events_in_log_records_join_their_spans(listening):
    app, call = await listening()
    await call(logs((trace(1), span(1), "gen_ai.user.message", "hello", {})), LOGS)
    await call(one())
    await app.settled(1)
    assert app.monitor.intake.counts.logs == 1
    assert len(app.monitor.store.chunks(trace(1))) == 2


async def test_metrics_are_answered_and_dropped(listening):
    app, call = await listening()
    assert await call(b"whatever", METRICS) == b""
    assert app.monitor.receiver.dropped.total() == 1


async def test_what_cannot_be_read_is_final(listening):
    app, call = await listening()
    code, message, wait = await refusal(call, b"\xff")
    assert (code, wait) == (grpc.StatusCode.INVALID_ARGUMENT, None)
    assert "not an ExportTraceServiceRequest" in message
    assert app.monitor.receiver.refused == {400: 1}


async def test_what_may_pass_says_when_to_come_again(listening):
    app, call = await listening()

    async def full(body, encoding):
        raise Overloaded(1.5, "the store is full")

    app.monitor.listeners._grpc._consumers["traces"] = full
    code, message, wait = await refusal(call, one())
    assert (code, wait) == (grpc.StatusCode.UNAVAILABLE, 1.5)
    assert "the store is full" in message
    app.monitor.receiver.accepting = False
    assert (await refusal(call, one()))[::2] == (grpc.StatusCode.UNAVAILABLE, 1)


async def test_a_fault_of_our_own_may_pass(listening, caplog):
    app, call = await listening()

    async def broken(body, encoding):
        raise RuntimeError("secret")

    app.monitor.listeners._grpc._consumers["traces"] = broken
    code, message, wait = await refusal(call, one())
    assert (code, wait, "secret" in message) == (grpc.StatusCode.UNAVAILABLE, 5, False)


@pytest.mark.parametrize(
    "compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip, grpc.Compression.Deflate]
)
async def test_what_is_too_large_is_final_before_and_after_it_is_inflated(listening, compression):
    app, call = await listening(max_request_bytes="1MiB")
    code, message, wait = await refusal(call, bytes(30 << 20), compression=compression)
    assert (code, wait) == (grpc.StatusCode.RESOURCE_EXHAUSTED, None)
    assert "larger than" in message
    assert app.monitor.receiver.memory.held == 0


async def test_a_damaged_message_is_final(listening):
    _, call = await listening()
    for body in (b"\x1f\x8b damaged", b"\x1f\x8b", b"\x78\x9c damaged"):
        assert (await refusal(call, body))[0] is grpc.StatusCode.INVALID_ARGUMENT


async def test_senders_must_say_who_they_are_where_that_is_configured(listening):
    app, call = await listening(auth={"basic": {"pk-lf": "sk-lf"}})
    for metadata in ((), (("authorization", "Basic cGs6c2s="),)):
        code, message, wait = await refusal(call, one(), metadata=metadata)
        assert (code, wait, "sources.otlp.auth" in message) == (grpc.StatusCode.UNAUTHENTICATED, None, True)
    assert await call(one(), metadata=(("authorization", "Basic cGstbGY6c2stbGY="),)) == b""
    assert app.monitor.receiver.refused == {401: 2}


async def test_a_sender_beyond_its_pace_is_told_to_wait(listening):
    _, call = await listening(requests_per_second=0.01)
    assert await call(one()) == b""
    code, _, wait = await refusal(call, one())
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert 0 < wait <= 100


@pytest.mark.parametrize("known", [True, False])
async def test_encrypted_and_only_for_clients_with_a_certificate(listening, tmp_path, known):
    made = make(tmp_path)
    tls = {"certificate": made.server, "key": made.server_key, "client_ca": made.ca}
    files = [(tmp_path / f"{name}.pem").read_bytes() for name in ("ca", "client_key", "client")]
    app, call = await listening(grpc.ssl_channel_credentials(*files if known else files[:1]), tls=tls)
    assert app.otlp.startswith("https://")
    if known:
        assert await call(one()) == b""
    else:
        assert (await refusal(call, one()))[0] is grpc.StatusCode.UNAVAILABLE


async def test_an_address_that_is_taken_is_refused_naming_the_key(started, capfd):
    taken = bind("127.0.0.1:0", "x")
    port = taken.getsockname()[1]
    with pytest.raises(AddressError, match=rf"sources\.otlp\.grpc: cannot listen on 127\.0\.0\.1:{port}: Addr"):
        await started(sources={"otlp": {"http": "127.0.0.1:0", "grpc": f"127.0.0.1:{port}"}})
    taken.close()
    assert capfd.readouterr().err == ""  # the library has not complained in words of its own


@pytest.fixture
async def sidecar(started):
    """A monitor through which gRPC goes on to a server that speaks HTTP."""
    channels = []

    async def start(url, **forward):
        found = {}
        app = await started(
            **ANY, sources={"otlp": {"http": "127.0.0.1:0", "grpc": "127.0.0.1:0"}}, forward={"url": url, **forward},
            catch=found,
        )  # fmt: skip
        channels.append(channel := grpc.aio.insecure_channel(found["grpc"], [("grpc.enable_retries", 0)]))

        async def call(body, method=TRACES, **more):
            return await channel.unary_unary(method)(body, timeout=20, **more)

        return app, call

    yield start
    for channel in channels:
        await channel.close()


def answered(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "content-type: application/x-protobuf", *headers, f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip])
async def test_what_comes_in_over_grpc_goes_on_over_http_and_is_judged(sidecar, compression):
    response = ExportTraceServiceResponse()
    response.partial_success.error_message = "a warning of theirs"
    async with upstream(answered("200 OK", response.SerializeToString())) as up:
        app, call = await sidecar(up.url, otlp_path="/api/public/otel")
        metadata = (("authorization", "Basic cGs6c2s="), ("x-langfuse-ingestion-version", "4"))
        reported = await call(one(attributes={"pad": "x" * 2000}), compression=compression, metadata=metadata)
        assert ExportTraceServiceResponse.FromString(reported) == response
        (requested,) = up.requested
        assert requested.line == "POST /api/public/otel/v1/traces HTTP/1.1"
        assert (requested.header("authorization"), requested.header("x-langfuse-ingestion-version")) == (
            "Basic cGs6c2s=",
            "4",
        )
        assert requested.header("content-encoding") == ("gzip" if compression else None)
        body = gzip.decompress(requested.body) if compression else requested.body
        assert body == one(attributes={"pad": "x" * 2000})
        assert (await app.settled(1))["ended"]["scored"] == 1
        assert app.monitor.listeners.forward.requests == {"traces": 1}


@pytest.mark.parametrize(
    ("answer", "code", "wait"),
    [
        (answered("400 Bad", b"\x08\x03\x12\x05wrong"), grpc.StatusCode.INVALID_ARGUMENT, None),
        (answered("401 No", b""), grpc.StatusCode.UNAUTHENTICATED, None),
        (answered("429 Slow", b"", "retry-after: 7"), grpc.StatusCode.RESOURCE_EXHAUSTED, 7),
        (answered("429 Slow", b"", "retry-after: Fri, 31 Dec 1999"), grpc.StatusCode.RESOURCE_EXHAUSTED, 1),
        (answered("503 Busy", b"\xff"), grpc.StatusCode.UNAVAILABLE, 1),
        (answered("500 Oops", b""), grpc.StatusCode.UNKNOWN, None),
        (answered("200 OK", b"")[:-2], grpc.StatusCode.UNAVAILABLE, 1),
    ],
)
async def test_what_upstream_refuses_is_told_in_grpcs_words_and_not_judged(sidecar, answer, code, wait):
    async with upstream(answer) as up:
        up.close_after_answer = True
        app, call = await sidecar(up.url)
        stated, message, delay = await refusal(call, one())
        assert (stated, delay) == (code, wait)
        assert message == "wrong" or up.url in message
        forward = app.monitor.listeners.forward
        if not answer.startswith(b"HTTP/1.1 200"):  # one that broke off is no refusal
            failed = code is not grpc.StatusCode.INVALID_ARGUMENT and code is not grpc.StatusCode.UNAUTHENTICATED
            await until(lambda: forward.unjudged == {"upstream_failed" if failed else "upstream_refused": 1})
            up.answer = OK
            await call(one())
        assert (await app.settled(1))["ended"]["scored"] == 1


@pytest.mark.parametrize("character", ["x", "\N{GREEK SMALL LETTER OMEGA}"])
async def test_a_long_reason_of_upstream_is_cut_and_not_lost_with_the_status(sidecar, character):
    stated = status_pb2.Status(code=14, message=character * 20_000)
    async with upstream(answered("503 Busy", stated.SerializeToString(), "retry-after: 7")) as up:
        _, call = await sidecar(up.url)
        code, message, delay = await refusal(call, one())
    assert (code, delay) == (grpc.StatusCode.UNAVAILABLE, 7)
    assert message == character * 300 + "…"


@pytest.mark.parametrize(
    ("body", "ends"),
    [
        (b'{"message": "Invalid credentials."}', "HTTP 401: Invalid credentials."),
        (b'{"error": "Invalid content type"}', "HTTP 401: Invalid content type"),
        (b'{"message": {"deep": 1}, "error": 3}', "HTTP 401"),
        (b"[1]", "HTTP 401"),
        (b"<html>", "HTTP 401"),
        (b'{"message": "' + b"x" * 10_000 + b'"}', "…"),
    ],
)
async def test_what_a_langfuse_says_in_json_is_told_as_well(sidecar, body, ends):
    json = answered("401 No", body).replace(b"application/x-protobuf", b"application/json; charset=utf-8")
    async with upstream(json) as up:
        _, call = await sidecar(up.url)
        _, message, _ = await refusal(call, one())
    assert message.startswith(f"{up.url}: HTTP 401")
    assert message.endswith(ends)
    assert len(message) < 400


async def test_an_answer_without_end_is_not_held(sidecar):
    async def endless(writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(bytes(1 << 20))
            await writer.drain()

    async with upstream(endless) as up:
        _, call = await sidecar(up.url)
        code, message, _ = await refusal(call, one())
        assert (code, "larger than" in message) == (grpc.StatusCode.UNAVAILABLE, True)


async def test_an_upstream_that_is_not_there_is_unavailable(sidecar):
    app, call = await sidecar("http://127.0.0.1:1")
    code, message, wait = await refusal(call, one())
    assert (code, wait, "cannot be reached" in message) == (grpc.StatusCode.UNAVAILABLE, 1, True)
    assert (await app.settled(1))["ended"]["scored"] == 1


async def test_a_connection_that_never_speaks_grpc_is_closed_in_time(listening):
    _, call = await listening(head_timeout="1s")
    assert await call(one()) == b""
    host, port = call.address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    async with asyncio.timeout(10):
        while await reader.read(1000):  # the server's settings, and then the end
            pass
    writer.close()
    await writer.wait_closed()
    assert await call(one(2)) == b""


async def test_bounds_beyond_the_librarys_numbers_are_its_largest(listening):
    _, call = await listening(max_request_bytes="3GiB", idle_timeout="60d", head_timeout="60d")
    assert await call(one()) == b""


async def test_what_a_client_no_longer_waits_for_is_judged(listening, monkeypatch):
    app, call = await listening()
    await call(one())
    writer = app.monitor.store._writer
    commit = writer._commit

    def slowly(jobs):
        time.sleep(1)
        commit(jobs)

    with monkeypatch.context() as slow:
        slow.setattr(writer, "_commit", slowly)
        channel = grpc.aio.insecure_channel(call.address, [("grpc.use_local_subchannel_pool", 1)])
        with pytest.raises(grpc.aio.AioRpcError, match="DEADLINE_EXCEEDED"):
            await channel.unary_unary(TRACES)(one(2), timeout=0.5)
        await channel.close()
        await until(app.monitor.store.open_traces)
    assert (await app.settled(2))["ended"]["scored"] == 2
    assert app.monitor.intake.counts.spans == 2


async def test_messages_that_never_come_do_not_hold_up_those_that_do(listening):
    app, call = await listening()

    async def nothing():
        await asyncio.Event().wait()
        yield b""

    channels = [grpc.aio.insecure_channel(call.address, [("grpc.use_local_subchannel_pool", 1)]) for _ in range(3)]
    stalled = [channel.stream_unary(TRACES)(nothing(), timeout=20) for channel in channels for _ in range(2)]
    await asyncio.sleep(0.2)
    await call(one())
    assert (await app.settled(1))["ended"]["scored"] == 1
    for pending in stalled:
        pending.cancel()
    for channel in channels:
        await channel.close()


async def test_connections_are_bounded_and_the_first_goes_on(listening):
    _, call = await listening(max_connections=10)
    await call(one())
    host, _, port = call.address.rpartition(":")
    more = [await asyncio.open_connection(host, int(port)) for _ in range(20)]
    await until(lambda: sum(reader.at_eof() for reader, _ in more) >= 11)
    assert await call(one(2)) == b""
    for _, writer in more:
        writer.transport.abort()
