"""Sidecar mode with real servers on both sides: what goes on is what came, and no fault of one is another's."""

from __future__ import annotations

import asyncio
import gzip
import socket

import httpx
import pytest

from sidejudge.integrations.otlp.wire.receipt import Overloaded
from tests.fakes.langfuse.observations import Observations
from tests.fakes.langfuse.otel_requests import part
from tests.fakes.langfuse.server import FakeLangfuse
from tests.fakes.upstream import OK, upstream
from tests.integrations.langfuse.test_fake import MODES
from tests.integrations.langfuse.test_fake_otel import difference, exchanges, sent
from tests.otlp_requests import HIGH, S, request, span, trace
from tests.waiting import until

ANY = {"routes": [{"rubrics": ["workflow"], "scenario": "any"}], "scenarios": {"any": {"max_seconds": 10**9}}}
PROTOBUF = {"content-type": "application/x-protobuf"}


def one(number=1) -> bytes:
    return request([S(trace_id=trace(number, HIGH), span_id=span(1))])


def answered(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, f"content-length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.fixture
async def sidecar(started):
    async def start(url, **sections):
        forward = {"url": url, **sections.pop("forward", {})}
        return await started(forward=forward, **{**ANY, **sections})

    return start


def unjudged(app):
    return dict(app.monitor.listeners.forward.unjudged)


async def test_the_request_goes_on_untouched_and_is_judged(sidecar):
    async with upstream() as up:
        app = await sidecar(up.url)
        body = gzip.compress(one())
        headers = {**PROTOBUF, "content-encoding": "gzip", "authorization": "Basic cGs6c2s=",
                   "x-langfuse-ingestion-version": "4", "connection": "x-hop, keep-alive", "x-hop": "1"}  # fmt: skip
        answer = await app.http.post(app.otlp + "/api/public/otel/v1/traces?a=%2F", content=body, headers=headers)
        assert (answer.status_code, answer.content) == (200, b"")
        (requested,) = up.requested
        assert (requested.line, requested.body) == ("POST /api/public/otel/v1/traces?a=%2F HTTP/1.1", body)
        for name, value in headers.items():
            assert requested.header(name) == (None if name in ("connection", "x-hop") else value)
        assert requested.header("host") == up.url.removeprefix("http://")
        assert (await app.settled(1))["ended"]["scored"] == 1
        assert unjudged(app) == {}


@pytest.mark.parametrize("mode", MODES)
async def test_what_applications_were_recorded_to_send_to_langfuse_is_answered_as_langfuse_answered_it(
    shared, sidecar, mode
):
    made = exchanges(shared, mode)
    with FakeLangfuse(MODES[mode], parts=[Observations.part, part]) as fake:
        app = await sidecar(fake.base_url)
        wrong = [difference(each, await asyncio.to_thread(sent, each, app.otlp)) for each in made]
    assert not any(wrong), "\n".join(filter(None, wrong))
    assert len(made) >= 15


ODD = bytes(range(256)) * 3


@pytest.mark.parametrize("status", ["200 OK", "202 Accepted", "400 Bad Request", "401 No", "404 Not Found",
                                    "429 Slow", "500 Oops", "503 Busy"])  # fmt: skip
async def test_every_answer_of_upstream_comes_back_byte_for_byte(sidecar, status):
    reported = ("Content-Type: application/odd", "Retry-After: 7", "X-Two: a", "X-Two: b", "Content-Encoding: odd",
            "Connection: X-Gone", "X-Gone: 1", "Keep-Alive: timeout=5")  # fmt: skip
    async with upstream(answered(status, ODD, *reported)) as up:
        app = await sidecar(up.url)
        async with app.http.stream("POST", app.otlp + "/v1/traces", content=one(), headers=PROTOBUF) as answer:
            body = b"".join([part async for part in answer.aiter_raw()])
        assert (answer.status_code, body) == (int(status[:3]), ODD)
        assert (answer.headers["retry-after"], answer.headers["content-type"]) == ("7", "application/odd")
        assert answer.headers.get_list("x-two") == ["a", "b"]
        assert not {"x-gone", "keep-alive"} & set(answer.headers)
        await until(lambda: app.monitor.outcomes.balance().seen == 1 or unjudged(app))
        again = "upstream_failed" if status[:3] in ("429", "500", "503") else "upstream_refused"
        assert unjudged(app) == ({} if status < "4" else {again: 1})


async def test_an_answer_in_chunks_comes_back_while_it_comes(sidecar):
    go = asyncio.Event()

    async def slowly(writer):
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        await writer.drain()
        await go.wait()
        writer.write(b"6\r\nsecond\r\n0\r\n\r\n")
        await writer.drain()

    async with upstream(slowly) as up:
        app = await sidecar(up.url)
        async with app.http.stream("GET", app.otlp + "/api/public/v2/prompts/a%2Fb?version=1") as answer:
            parts = answer.aiter_raw()
            assert await anext(parts) == b"first"
            go.set()
            assert b"".join([part async for part in parts]) == b"second"
        assert up.requested[0].line == "GET /api/public/v2/prompts/a%2Fb?version=1 HTTP/1.1"


async def test_an_answer_without_a_length_ends_with_its_connection(sidecar):
    async def until_closed(writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        writer.close()

    async with upstream(until_closed) as up:
        app = await sidecar(up.url)
        assert (await app.http.get(app.otlp + "/api/public/health")).text == "all of it"


@pytest.mark.parametrize("method", ["HEAD", "DELETE", "PATCH", "PUT"])
async def test_other_methods_go_on_too(sidecar, method):
    async with upstream(b"HTTP/1.1 204 No Content\r\n\r\n") as up:
        app = await sidecar(up.url)
        answer = await app.http.request(method, app.otlp + "/api/public/scores/1")
        assert (answer.status_code, answer.content, up.requested[0].line) == (
            204, b"", f"{method} /api/public/scores/1 HTTP/1.1",
        )  # fmt: skip


async def test_trace_goes_nowhere_for_its_answer_would_show_the_operators_credentials(sidecar):
    async with upstream(b"HTTP/1.1 204 No Content\r\n\r\n") as up:
        app = await sidecar(up.url, forward={"authorization": "Basic b3BlcmF0b3I6c2VjcmV0"})
        answer = await app.http.request("TRACE", app.otlp + "/api/public/health")
        assert (answer.status_code, up.requested) == (405, [])


async def test_half_an_answer_does_not_look_whole(sidecar, caplog):
    async def half(writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.transport.abort()

    async with upstream(half) as up:
        app = await sidecar(up.url)
        with pytest.raises(httpx.RemoteProtocolError):
            await app.http.post(app.otlp + "/v1/traces", content=one(), headers=PROTOBUF)
        assert app.monitor.listeners.forward.failed == {"reset": 1}
        assert (await app.settled(1))["ended"]["scored"] == 1
        assert not [each for each in caplog.records if each.levelname == "ERROR"], (
            "upstream's fault is no error of ours"
        )


async def test_an_upstream_that_is_not_there_is_502_and_judging_goes_on(sidecar, caplog):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: whoever connects is refused
        app = await sidecar(f"http://127.0.0.1:{taken.getsockname()[1]}")
        answer = await app.post(one())
        assert (answer.status_code, answer.headers["content-type"]) == (502, "application/x-protobuf")
        assert answer.headers["retry-after"] == "1"
        assert b"cannot be reached" in answer.content
        other = await app.http.get(app.otlp + "/api/public/projects")
        assert (other.status_code, other.json()["error"]) == (502, "upstream")
        assert (await app.settled(1))["ended"]["scored"] == 1
        reported = (await app.get("/v1/status"))["forwarding"]
        assert (reported["failed"], reported["requests"]) == ({"connect": 2}, {"traces": 1, "other": 1})
        assert "cannot be reached" in reported["last_failure"]
        (logged,) = [each for each in caplog.records if each.getMessage() == "upstream gave no response"]
        assert "forward.url" in logged.remedy


async def test_an_upstream_that_never_answers_is_504_and_does_not_keep_judging_waiting(sidecar):
    async def never(writer):
        await asyncio.Event().wait()

    async with upstream(never) as up:
        app = await sidecar(up.url, forward={"timeout": "3s"})
        requested = asyncio.create_task(app.post(one()))
        await until(lambda: app.monitor.outcomes.balance().seen == 1)
        assert not requested.done()
        answer = await requested
        assert (answer.status_code, app.monitor.listeners.forward.failed) == (504, {"timeout": 1})
        assert b"did not answer in time" in answer.content


async def test_what_is_no_http_is_502(sidecar):
    async with upstream(b"\x16\x03\x01 what?\r\n\r\n") as up:
        app = await sidecar(up.url)
        answer = await app.post(one())
        assert (answer.status_code, len(up.requested)) == (502, 1), "it has been heard"


async def test_a_connection_that_upstream_closed_between_two_requests_costs_none(sidecar):
    async with upstream() as up:
        up.close_after_answer = True
        app = await sidecar(up.url)
        for number in range(20):
            assert (await app.post(one(number + 1))).status_code == 200
        assert len(up.requested) == 20
        assert app.monitor.listeners.forward.failed == {}


async def test_a_request_that_upstream_may_have_heard_is_not_sent_again(sidecar):
    async def reset(writer):
        writer.transport.abort()

    async with upstream() as up:
        app = await sidecar(up.url)
        assert (await app.post(one())).status_code == 200
        up.answer = reset
        assert (await app.http.post(app.otlp + "/api/public/scores", json={"value": 1})).status_code == 502
        assert len(up.requested) == 2, "on a connection that waited for it"
        assert (await app.post(one())).status_code == 502
        assert len(up.requested) == 3, "on a new one"
        up.answer = OK
        assert (await app.post(one())).status_code == 200
        up.answer = reset
        assert (await app.post(one())).status_code == 502
        assert len(up.requested) == 6, "an export is, where its connection waited: servers know spans by their ids"


async def test_what_cannot_be_read_here_goes_on_and_is_counted(sidecar):
    async with upstream() as up:
        app = await sidecar(up.url)
        assert (await app.post(b"\xff garbage")).status_code == 200
        for odd in ({"content-type": "text/odd"}, {**PROTOBUF, "content-encoding": "br"}):
            assert (await app.http.post(app.otlp + "/v1/traces", content=b"x", headers=odd)).is_success
        assert [requested.body for requested in up.requested] == [b"\xff garbage", b"x", b"x"]
        await until(lambda: unjudged(app) == {"undecodable": 1, "unsupported": 2})
        assert (await app.get("/v1/status"))["receiving"]["refused"] == {}


async def test_a_fault_of_our_own_or_a_full_store_changes_nothing_for_the_application(sidecar):
    async with upstream() as up:
        app = await sidecar(up.url)

        async def broken(body, encoding):
            raise RuntimeError("a bug")

        async def full(body, encoding):
            raise Overloaded(5.0, "the disk is full")

        for consume in (broken, full):
            app.monitor.receiver._consumers["traces"] = consume
            assert (await app.post(one())).status_code == 200
        await until(lambda: unjudged(app) == {"overloaded": 2})
        assert len(up.requested) == 2


async def test_a_body_larger_than_is_judged_goes_on_whole_and_is_not_held(sidecar):
    async with upstream() as up:
        up.keep_bodies = False
        app = await sidecar(up.url, sources={"otlp": {"http": "127.0.0.1:0", "max_request_bytes": "1MiB"}})
        most = 0

        async def parts():
            nonlocal most
            for _ in range(400):
                yield bytes(1 << 18)
                most = max(most, app.monitor.receiver.memory.held)

        answer = await app.http.post(app.otlp + "/v1/traces", content=parts(), headers=PROTOBUF)
        assert (answer.status_code, up.largest) == (200, 400 << 18)
        assert most <= (1 << 20) + (1 << 18)
        await until(lambda: unjudged(app) == {"too_large": 1})
        assert app.monitor.receiver.memory.held == 0


async def test_an_application_that_goes_away_in_the_middle_leaves_nothing_behind(sidecar):
    async with upstream() as up:
        app = await sidecar(up.url)
        host, port = app.otlp.removeprefix("http://").split(":")
        for size in (100, 5_000_000):
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n")
            writer.write(b"content-length: %d\r\n\r\n" % (size * 2) + bytes(size))
            await writer.drain()
            await until(lambda: app.monitor.receiver.memory.held > 0)
            writer.close()
            await until(lambda: app.monitor.receiver.memory.held == 0)
        assert unjudged(app) == {}
        assert (await app.post(one())).status_code == 200


@pytest.mark.parametrize("stated", [
    b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nfirst",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n",
])  # fmt: skip
async def test_who_does_not_wait_for_an_answer_ends_its_request_upstream_too(sidecar, stated):
    async def hang(writer):
        writer.write(stated)
        await asyncio.Event().wait()

    async with upstream(hang) as up:
        app = await sidecar(up.url)
        forward = app.monitor.listeners.forward
        client = forward.upstream
        host, port = app.otlp.removeprefix("http://").split(":")
        for number, path in enumerate(("/v1/traces", "/api/public/slow"), 1):
            body = one() if path == "/v1/traces" else b""
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n".encode())
            writer.write(b"content-type: application/x-protobuf\r\n\r\n" + body)
            if stated:
                await reader.readline()
            await until(lambda requested=number: len(up.requested) == requested)
            assert client._room._value < 100
            writer.close()
            await until(lambda: client._room._value == 100, 20)  # and not after the 30 s of `forward.timeout`
            assert len(client._idle) == 0
        assert forward.failed == {}, "upstream did nothing wrong"
        assert (await app.settled(1))["ended"]["scored"] == 1
        up.answer = OK
        assert (await app.post(one(2))).status_code == 200


async def test_an_answer_that_may_have_no_body_keeps_its_connection(sidecar):
    async with upstream(b"HTTP/1.1 304 Not Modified\r\ncontent-length: 99\r\netag: x\r\n\r\n") as up:
        app = await sidecar(up.url)
        for _ in range(3):
            answer = await app.http.get(app.otlp + "/api/public/v2/prompts/a")
            assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", "x")
        assert up.connections == 1


async def test_a_status_that_nobody_knows_is_502(sidecar):
    async with upstream(b"HTTP/1.1 999 Denied\r\ncontent-length: 0\r\n\r\n") as up:
        app = await sidecar(up.url)
        answer = await app.http.get(app.otlp + "/api/public/projects")
        assert (answer.status_code, "a status of 999" in answer.json()["message"]) == (502, True)
        assert app.monitor.listeners.forward.failed == {"protocol": 1}


async def test_who_expects_to_be_asked_for_its_body_is(sidecar):
    async with upstream() as up:
        app = await sidecar(up.url)
        reader, writer = await asyncio.open_connection(*app.otlp.removeprefix("http://").split(":"))
        body = one()
        writer.write(b"POST /v1/traces HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n")
        writer.write(b"content-type: application/x-protobuf\r\ncontent-length: %d\r\n\r\n" % len(body))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        assert (up.requested[0].body, up.requested[0].header("expect")) == (body, None)
        writer.close()


@pytest.mark.parametrize("lines", [
    b"content-length: 3\r\ntransfer-encoding: chunked\r\n", b"content-length: 3\r\ncontent-length: 4\r\n",
    b"transfer-encoding: chunked, identity\r\n", b"a: b\r\n c\r\ncontent-length: 3\r\n", b"a : b\r\n",
    b"a: b\ncontent-length: 3\r\n",
])  # fmt: skip
async def test_a_request_that_could_be_read_in_two_ways_does_not_go_on(sidecar, lines):
    async with upstream() as up:
        app = await sidecar(up.url)
        reader, writer = await asyncio.open_connection(*app.otlp.removeprefix("http://").split(":"))
        writer.write(b"POST /v1/traces HTTP/1.1\r\nhost: x\r\n" + lines + b"\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n")
        assert (await reader.readline()).split()[1] == b"400"
        assert up.requested == []
        writer.close()


async def test_health_is_answered_here_and_nothing_else_of_ours_stands_in_the_way(sidecar):
    async with upstream(answered("200 OK", b"theirs")) as up:
        app = await sidecar(up.url)
        for path in ("/livez", "/readyz", "/startupz"):
            assert (await app.http.get(app.otlp + path)).text == "ok\n"
        assert up.requested == []
        assert (await app.http.get(app.otlp + "/api/public/health")).text == "theirs"
        assert (await app.http.get(app.otlp + "/v1/status")).json()["forwarding"]["upstream"] == up.url


@pytest.mark.parametrize("path", ["/api/public/../../admin", "/api/internal", "/admin", "/api/public/%2e%2e/x"])
async def test_paths_that_are_not_passed_through_are_not_found(sidecar, path):
    async with upstream() as up:
        app = await sidecar(up.url)
        reader, writer = await asyncio.open_connection(*app.otlp.removeprefix("http://").split(":"))
        writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        assert (await reader.readline()).split()[1] == b"404"
        assert up.requested == []
        writer.close()


async def test_signals_that_do_not_go_on_are_answered_here(sidecar):
    async with upstream() as up:
        app = await sidecar(up.url, forward={"signals": ["traces"]})
        for path in ("/v1/logs", "/v1/metrics"):
            assert (await app.http.post(app.otlp + path, content=b"", headers=PROTOBUF)).status_code == 200
        assert (up.requested, app.monitor.receiver.dropped) == ([], {"/v1/metrics": 1})


async def test_credentials_and_paths_are_replaced_where_that_is_configured(sidecar):
    async with upstream() as up:
        forward = {"authorization": "Basic dGhlaXJz", "headers": {"X-Team": "shop"}, "otlp_path": "/api/public/otel"}
        app = await sidecar(up.url + "/base", forward=forward)
        headers = {**PROTOBUF, "authorization": "Basic b3Vycw==", "x-team": "mine"}
        await app.http.post(app.otlp + "/v1/traces", content=one(), headers=headers)
        await app.http.post(app.otlp + "/api/public/otel/v1/traces", content=one(), headers=headers)
        for requested in up.requested:
            assert requested.line == "POST /base/api/public/otel/v1/traces HTTP/1.1"
            assert [value for key, value in requested.headers if key.lower() in ("authorization", "x-team")] == [
                "shop", "Basic dGhlaXJz",
            ]  # fmt: skip


async def test_who_may_not_send_here_may_not_send_on(sidecar):
    async with upstream() as up:
        otlp = {"http": "127.0.0.1:0", "auth": {"bearer": ["right"]}}
        app = await sidecar(up.url, sources={"otlp": otlp})
        for path in ("/v1/traces", "/api/public/projects"):
            wrong = await app.http.post(app.otlp + path, headers={**PROTOBUF, "authorization": "Bearer wrong"})
            assert (wrong.status_code, wrong.headers["www-authenticate"][:6]) == (401, "Bearer")
        assert up.requested == []
        right = await app.http.post(app.otlp + "/v1/traces", headers={**PROTOBUF, "authorization": "bearer right"})
        assert right.status_code == 200


async def test_many_at_once_are_each_answered_with_their_own(sidecar):
    async def echo(writer):
        body = up.requested[-1].body
        await asyncio.sleep(0.01)
        writer.write(answered("200 OK", body))

    async with upstream(echo) as up:
        app = await sidecar(up.url)
        bodies = [one(number) for number in range(1, 60)]
        limits = httpx.Limits(max_connections=30)
        async with httpx.AsyncClient(limits=limits, timeout=20) as http:
            answers = await asyncio.gather(
                *(http.post(app.otlp + "/v1/traces", content=body, headers=PROTOBUF) for body in bodies)
            )
        assert [answer.content for answer in answers] == bodies
        assert (await app.settled(59))["ended"]["scored"] == 59


PLAIN = {"content-type": "text/plain"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}
OTEL = "/api/public/otel/v1/traces"


@pytest.mark.parametrize(
    ("method", "path", "headers", "trusted"),
    [
        ("POST", OTEL, PROTOBUF, True),
        ("POST", OTEL, {**PROTOBUF, "host": "localhost:4318"}, True),
        ("POST", OTEL, {**PROTOBUF, "host": "[::1]:4318"}, True),
        ("POST", OTEL, {**PROTOBUF, "host": "sidejudge"}, True),
        ("POST", OTEL, {**PROTOBUF, "host": "sidejudge.observability.svc.cluster.local:4318"}, True),
        ("POST", OTEL, {**PROTOBUF, "host": "otlp.example.org:4318"}, True),
        ("POST", OTEL, {**PROTOBUF, "host": "evil.example:4318"}, False),
        ("POST", OTEL, {**PROTOBUF, "origin": "https://app.example.org"}, True),
        ("POST", OTEL, {**PROTOBUF, "origin": "https://evil.example"}, False),
        ("POST", OTEL, {**PROTOBUF, "origin": "null"}, False),
        ("POST", OTEL, PLAIN, False),
        ("POST", OTEL, {}, False),
        ("GET", "/api/public/traces", {}, True),
        ("GET", "/api/public/traces", {"host": "evil.example"}, False),
        ("GET", "/api/public/traces", {"sec-fetch-site": "cross-site"}, False),
        ("POST", "/api/public/ingestion", JSON, True),
        ("POST", "/api/public/ingestion", FORM, False),
        ("DELETE", "/api/public/traces/1", {}, True),
    ],
)
async def test_what_a_web_page_may_have_sent_goes_on_without_the_operators_credentials(
    sidecar, method, path, headers, trusted
):
    own = {"authorization": "Basic operator", "headers": {"x-key": "operator"}, "hosts": ["*.example.org"]}
    otlp = {"http": "127.0.0.1:0", "cors_origins": ["https://*.example.org"]}
    async with upstream() as up:
        app = await sidecar(up.url, forward=own, sources={"otlp": otlp})
        sent = {"authorization": "Basic application", **headers}
        await app.http.request(method, app.otlp + path, content=one() if method == "POST" else b"", headers=sent)
        (requested,) = up.requested
        found = requested.header("authorization"), requested.header("x-key")
        assert found == (("Basic operator", "operator") if trusted else ("Basic application", None))
        assert app.monitor.listeners.forward.withheld == (not trusted)
        metrics = (await app.http.get(app.api + "/metrics")).text
        assert f"sidejudge_forwarded_requests_unauthorized_total {float(not trusted)}" in metrics


async def test_whoever_is_admitted_by_credentials_is_trusted_whatever_the_host(sidecar):
    otlp = {"http": "127.0.0.1:0", "auth": {"bearer": ["s3cret"]}}
    async with upstream() as up:
        app = await sidecar(up.url, forward={"authorization": "Basic operator"}, sources={"otlp": otlp})
        headers = {**PROTOBUF, "host": "evil.example", "authorization": "Bearer s3cret"}
        assert (await app.http.post(app.otlp + OTEL, content=one(), headers=headers)).status_code == 200
        assert up.requested[0].header("authorization") == "Basic operator"


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("/api/public/traces/a%20b", "/api/public/traces/a%20b"),
        ("/api/public/v2/prompts/folder%2Fname", "/api/public/v2/prompts/folder%2Fname"),
        ("/api/public/traces/%C3%A9", "/api/public/traces/%C3%A9"),
        ("/api/public/otel/v1/%74races", "/api/public/otel/v1/traces"),
        ("/%76%31/traces", "/v1/traces"),
        ("/api/public/%2e%2e/admin", None),
        ("/api/public/..%2fadmin", None),
        ("/api/public/%252e%252e/admin", None),
        ("/api/public/%25252e./admin", None),
        ("/api/public/..%5cadmin", None),
        ("/api/public/..;x=1/admin", None),
        ("/api/public/./admin", None),
        ("/api/public/%zz", None),
        ("/api/public/a%", None),
        ("/api/public/a%00b", None),
        ("/api/public/a%0d%0ab", None),
        ("/api/%70ublic/traces", None),
    ],
)
async def test_a_path_goes_on_as_it_was_meant_or_not_at_all(sidecar, written, seen):
    async with upstream() as up:
        app = await sidecar(up.url)
        host, port = app.otlp.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"POST {written} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/x-protobuf\r\n"
        writer.write(f"{head}content-length: 0\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        assert [requested.line for requested in up.requested] == ([f"POST {seen} HTTP/1.1"] if seen else [])
        assert answer.startswith(b"HTTP/1.1 200" if seen else (b"HTTP/1.1 404", b"HTTP/1.1 405"))


async def test_a_request_that_waits_for_upstream_when_the_monitor_ends_is_one_to_send_again(sidecar):
    async def never(_writer):
        await asyncio.sleep(60)

    async with upstream(never) as up:
        app = await sidecar(up.url)
        sent = asyncio.create_task(app.http.post(app.otlp + "/v1/traces", content=one(), headers=PROTOBUF))
        await until(lambda: up.requested)
        await app.monitor.stop()
        answer = await sent
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


async def test_a_request_whose_body_still_comes_when_the_monitor_ends_is_one_to_send_again(sidecar):
    async with upstream() as up:
        app = await sidecar(up.url)
        reader, writer = await asyncio.open_connection(*app.otlp.removeprefix("http://").split(":"))
        head = "POST /v1/traces HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-protobuf\r\ncontent-length: 9"
        writer.write(f"{head}\r\n\r\nhalf".encode())
        await until(lambda: app.monitor.listeners.forward.requests)
        await app.monitor.stop()
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        writer.close()
    assert answer.startswith(b"http/1.1 503")
    assert b"retry-after: 1" in answer
