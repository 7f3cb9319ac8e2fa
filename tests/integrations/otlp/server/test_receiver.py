"""OTLP over HTTP: every answer the protocol asks for, by a client that speaks ASGI."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from sidejudge.integrations.otlp.server.body import BodyMemory
from sidejudge.integrations.otlp.server.receiver import OtlpReceiver
from sidejudge.integrations.otlp.server.response import Refusal
from sidejudge.integrations.otlp.wire.receipt import Overloaded, Receipt, Undecodable

PROTOBUF = "application/x-protobuf"


class Taken:
    """Consumes bodies and answers as it was told."""

    def __init__(self, answer: Receipt | Exception | None = None) -> None:
        self.answer = answer or Receipt()
        self.bodies: list[bytes] = []
        self.encodings: list[str] = []

    async def __call__(self, body: bytes, encoding: str, passage: object = None) -> Receipt:
        self.bodies.append(body)
        self.encodings.append(encoding)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def ask(
    receiver, body=b"x", *, method="POST", path="/v1/traces", kind=PROTOBUF, step=1 << 20, gone=False, **more
):
    headers = {"content-type": kind, **{k.replace("_", "-"): v for k, v in more.items()}}
    pieces = [body[at : at + step] for at in range(0, len(body), step)] or [b""]
    messages = [{"type": "http.request", "body": p, "more_body": n < len(pieces) - 1} for n, p in enumerate(pieces)]
    if gone:
        messages[-1] = {"type": "http.disconnect"}
    read = iter(messages)
    sent = []

    async def receive():
        return next(read)

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path,
             "headers": [(k.encode(), v.encode()) for k, v in headers.items() if v is not None]}  # fmt: skip
    await receiver(scope, receive, send)
    if not sent:
        return None
    assert [m["type"] for m in sent] == ["http.response.start", "http.response.body"]
    answered = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    assert int(answered["content-length"]) == len(sent[1]["body"])
    return sent[0]["status"], answered, sent[1]["body"]


def status_of(body: bytes) -> tuple[int, str]:
    file = descriptor_pb2.FileDescriptorProto(name="s.proto", package="s", syntax="proto3")
    message = file.message_type.add(name="Status")
    message.field.add(name="code", number=1, type=5, label=1)
    message.field.add(name="message", number=2, type=9, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    read = message_factory.GetMessageClass(pool.FindMessageTypeByName("s.Status")).FromString(body)
    return read.code, read.message


async def test_success_is_an_empty_message_in_the_same_content_type():
    taken = Taken()
    status, headers, body = await ask(OtlpReceiver(taken), b"spans", kind=f"{PROTOBUF}; charset=utf-8")
    assert (status, headers["content-type"], body, taken.bodies) == (200, PROTOBUF, b"", [b"spans"])


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/traces/", "/api/public/otel/v1/traces"])
async def test_traces_are_taken_on_both_paths(path):
    taken = Taken()
    assert (await ask(OtlpReceiver(taken), path=path))[0] == 200
    assert taken.bodies == [b"x"]


async def test_a_body_in_pieces_is_put_together():
    taken = Taken()
    await ask(OtlpReceiver(taken), b"0123456789", step=3)
    assert taken.bodies == [b"0123456789"]


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [("gzip", gzip.compress(b"spans", mtime=0)), ("deflate", zlib.compress(b"spans")), ("identity", b"spans"),
     ("GZIP ", gzip.compress(b"spans", mtime=0))],
)  # fmt: skip
async def test_encodings_are_undone(encoding, packed):
    taken = Taken()
    assert (await ask(OtlpReceiver(taken), packed, step=4, content_encoding=encoding))[0] == 200
    assert taken.bodies == [b"spans"]


async def test_partial_success_says_how_many_spans_and_why():
    _, _, body = await ask(OtlpReceiver(Taken(Receipt(rejected=3, message="bad ids"))))
    partial = ExportTraceServiceResponse.FromString(body).partial_success
    assert (partial.rejected_spans, partial.error_message) == (3, "bad ids")


async def test_an_empty_body_is_success_without_a_look():
    taken = Taken()
    assert (await ask(OtlpReceiver(taken), b""))[::2] == (200, b"")
    assert taken.bodies == []


@pytest.mark.parametrize(
    ("expected", "code", "requested"),
    [
        (415, 12, {"content_encoding": "br"}),
        (413, 8, {"body": b"x" * 101}),
        (413, 8, {"body": b"x" * 101, "step": 10}),
        (413, 8, {"body": b"", "content_length": "101"}),
        (413, 8, {"body": b"", "content_length": "9" * 5000}),
        (413, 8, {"body": gzip.compress(bytes(101), mtime=0), "content_encoding": "gzip"}),
        (413, 8, {"body": gzip.compress(bytes(50 << 20), mtime=0), "content_encoding": "gzip", "step": 999}),
        (400, 3, {"body": b"not gzip", "content_encoding": "gzip"}),
        (400, 3, {"body": gzip.compress(b"x" * 50, mtime=0)[:-4], "content_encoding": "gzip"}),
    ],
)
async def test_what_the_request_itself_is_at_fault_for_is_refused_with_a_status(expected, code, requested):
    taken = Taken()
    receiver = OtlpReceiver(taken, max_bytes=100)
    status, headers, body = await ask(receiver, **requested)
    assert (status, headers["content-type"], status_of(body)[0]) == (expected, PROTOBUF, code)
    assert status_of(body)[1]
    assert "retry-after" not in headers
    assert taken.bodies == []
    assert receiver.refused == {expected: 1}
    assert receiver.memory.held == 0


async def test_the_largest_body_is_taken():
    taken = Taken()
    assert (await ask(OtlpReceiver(taken, max_bytes=100), b"x" * 100, content_length="100"))[0] == 200


async def test_undecodable_data_is_400_and_overload_503_with_a_time():
    status, _, body = await ask(OtlpReceiver(Taken(Undecodable("not a request"))))
    assert (status, status_of(body)) == (400, (3, "not a request"))
    status, headers, body = await ask(OtlpReceiver(Taken(Overloaded(1.2))))
    assert (status, headers["retry-after"], status_of(body)[0]) == (503, "2", 14)


@pytest.mark.parametrize("failure", [RuntimeError("secret"), MemoryError("secret")])
async def test_an_internal_failure_is_503_reveals_nothing_and_is_logged_once(caplog, failure):
    receiver = OtlpReceiver(Taken(failure))
    for _ in range(3):
        status, headers, body = await ask(receiver)
        assert (status, headers["retry-after"]) == (503, "5")
        assert b"secret" not in body
    assert caplog.text.count("a request failed inside") == 1
    assert receiver.failures == {type(failure).__name__: 3}


async def test_json_is_taken_and_answered_in_json():
    taken = Taken(Receipt(rejected=2, message="bad ids"))
    status, headers, body = await ask(OtlpReceiver(taken), b"{}", kind="application/json; charset=utf-8")
    assert (status, headers["content-type"], taken.encodings) == (200, "application/json", ["json"])
    assert json.loads(body) == {"partialSuccess": {"rejectedSpans": "2", "errorMessage": "bad ids"}}
    assert (await ask(OtlpReceiver(Taken()), b"{}", kind="application/json"))[2] == b"{}"


async def test_a_refusal_of_json_is_a_status_in_json():
    status, headers, body = await ask(OtlpReceiver(Taken(Undecodable("no spans"))), b"{}", kind="application/json")
    assert (status, headers["content-type"]) == (400, "application/json")
    assert json.loads(body) == {"code": 3, "message": "no spans"}


@pytest.mark.parametrize("path", ["/v1/logs", "/api/public/otel/v1/logs/"])
async def test_logs_are_taken_where_somebody_wants_them(path):
    traces, logs = Taken(), Taken(Receipt(rejected=1, message="damaged"))
    receiver = OtlpReceiver(traces, logs=logs)
    assert (await ask(receiver, b"records", path=path))[0] == 200
    body = (await ask(receiver, b"{}", path=path, kind="application/json"))[2]
    assert (traces.bodies, logs.bodies, logs.encodings) == ([], [b"records", b"{}"], ["protobuf", "json"])
    assert json.loads(body)["partialSuccess"]["rejectedLogRecords"] == "1"


@pytest.mark.parametrize("kind", ["text/plain", "", None, "application/grpc"])
async def test_another_content_type_is_refused_in_plain_text(kind):
    status, headers, body = await ask(OtlpReceiver(Taken()), kind=kind)
    assert (status, headers["content-type"]) == (415, "text/plain; charset=utf-8")
    assert PROTOBUF.encode() in body


@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS", "HEAD"])
@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs"])
async def test_another_method_is_refused_and_told_which(method, path):
    status, headers, _ = await ask(OtlpReceiver(Taken()), method=method, path=path)
    assert (status, headers["allow"]) == (405, "POST")


async def test_another_path_is_not_found():
    assert (await ask(OtlpReceiver(Taken()), path="/api/public/health", kind="application/json"))[0] == 404


@pytest.mark.parametrize(("kind", "answer"), [(PROTOBUF, b""), ("application/json", b"{}")])
@pytest.mark.parametrize("path", ["/v1/logs", "/v1/metrics", "/api/public/otel/v1/metrics"])
async def test_what_nobody_wants_is_answered_dropped_and_counted(path, kind, answer):
    taken = Taken()
    receiver = OtlpReceiver(taken)
    assert (await ask(receiver, path=path, kind=kind))[::2] == (200, answer)
    assert taken.bodies == []
    assert receiver.dropped == {path: 1}


async def test_a_client_that_goes_away_costs_nothing():
    taken = Taken()
    receiver = OtlpReceiver(taken)
    assert await ask(receiver, b"x" * 100, step=10, gone=True) is None
    assert await ask(receiver, gzip.compress(b"x" * 100), step=10, gone=True, content_encoding="gzip") is None
    assert await ask(receiver, b"x" * 20, step=10, gone=True, path="/v1/logs") is None
    assert (taken.bodies, receiver.memory.held, receiver.refused) == ([], 0, {})


async def test_while_shutting_down_everything_is_sent_elsewhere():
    taken = Taken()
    receiver = OtlpReceiver(taken)
    receiver.accepting = False
    status, headers, _ = await ask(receiver)
    assert (status, headers["retry-after"], taken.bodies) == (503, "1", [])


async def test_all_bodies_together_are_bounded():
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def slow(body, encoding, passage=None):
        reached.set()
        await go_on.wait()
        return Receipt()

    receiver = OtlpReceiver(slow, max_bytes=100)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(ask(receiver, b"x" * 100))
        await reached.wait()
        assert (await ask(receiver, b"x" * 50))[0] == 503
        go_on.set()
    assert first.result()[0] == 200
    assert (await ask(receiver, b"x"))[0] == 200


def test_a_sender_that_holds_much_leaves_room_for_others_and_for_small_bodies():
    memory = BodyMemory(64 << 20)
    shares = []

    def taken(sender: bytes, size: int) -> bool:
        share = memory.share(sender)
        try:
            share.grow(size)
        except Refusal:
            share.release()
            return False
        shares.append(share)
        return True

    assert taken(b"a", 64 << 20)
    assert not taken(b"a", 2 << 20)
    assert all(taken(b"a", 1 << 20) for _ in range(20))
    assert taken(b"b", 20 << 20)
    for sender in range(100):
        taken(b"%d" % sender, 1 << 20)
    assert taken(b"new", 100_000)
    assert memory.held <= memory.limit
    for share in shares:
        share.release()
    assert (memory.held, memory.by_sender) == (0, {})


async def test_other_protocols_are_left_alone():
    await OtlpReceiver(Taken())({"type": "lifespan"}, None, None)
