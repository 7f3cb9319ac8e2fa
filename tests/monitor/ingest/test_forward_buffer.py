"""What upstream does not take for now is kept, answered 200, and sent in order; no outage or kill loses it."""

from __future__ import annotations

import asyncio
import gzip
import json
import signal
import socket
import time
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count

import pytest

from sidejudge.monitor.ingest import forward_buffer as module
from tests.fakes.upstream import OK, Upstream, upstream
from tests.otlp_requests import HIGH, S, request, span, trace
from tests.running import Running, free_port
from tests.waiting import until

PROTOBUF = {"content-type": "application/x-protobuf"}


def one(number: int, filler: str = "") -> bytes:
    return request([S(trace_id=trace(number, HIGH), span_id=span(1), attributes={"filler": filler})])


def answered(status: str, *headers: str, body: str = "") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, f"content-length: {len(body)}", "", body]).encode()


@asynccontextmanager
async def at(port: int):
    """An upstream that comes up at a port where nothing was."""
    made = Upstream()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader, writer):
        task = asyncio.current_task()
        tasks.add(task)
        with suppress(asyncio.CancelledError):  # the test is over
            await made._serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    try:
        yield made
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Short waits: what is tested is the order of things, not how long they take."""
    monkeypatch.setattr(module, "_LONGEST_S", 0.2)
    monkeypatch.setattr(module, "_ASIDE_S", (0.02, 0.1))


@pytest.fixture
async def gateway(started):
    async def start(url, buffer="1MiB", **forward):
        return await started(
            forward={"url": url, "buffer": buffer, **forward},
            routes=[{"rubrics": ["workflow"], "scenario": "any"}],
            scenarios={"any": {"max_seconds": 10**9}},
        )

    return start


def came(up, before, least) -> bool:
    return len({*before, *(each.body for each in up.requested)}) >= least


def held(app):
    return app.monitor.listeners.buffer


async def post(app, body, path="/v1/traces", **headers):
    return await app.http.post(app.otlp + path, content=body, headers={**PROTOBUF, **headers})


async def test_what_comes_while_upstream_is_down_is_answered_judged_and_sent_in_order_when_it_is_back(gateway):
    port = free_port()
    app = await gateway(f"http://127.0.0.1:{port}")
    bodies = [gzip.compress(one(n)) for n in range(1, 21)]
    for body in bodies:
        answer = await post(app, body, **{"content-encoding": "gzip", "authorization": "Basic cGs6c2s=", "x-own": "1"})
        assert (answer.status_code, answer.content) == (200, b"")
    assert (await app.settled(20))["ended"]["scored"] == 20
    assert held(app).waiting == 20
    status = (await app.get("/v1/status"))["forwarding"]["buffer"]
    assert (status["waiting"], status["kept"], status["works"]) == (20, {"traces": 20}, True)
    assert status["oldest_since"] is not None
    async with at(port) as up:
        await until(lambda: held(app).waiting == 0)
        assert [each.body for each in up.requested] == bodies
        for each in up.requested:
            assert each.line == "POST /v1/traces HTTP/1.1"
            assert [each.header(name) for name in ("content-encoding", "authorization", "x-own")] == [
                "gzip", "Basic cGs6c2s=", "1",
            ]  # fmt: skip
        assert (await post(app, one(30))).status_code == 200
        await until(lambda: len(up.requested) == 21)
    metrics = (await app.http.get(app.api + "/metrics")).text
    assert 'sidejudge_forwarded_requests_kept_total{signal="traces"} 20.0' in metrics
    assert 'sidejudge_forwarded_requests_kept_ended_total{outcome="sent"} 20.0' in metrics
    assert 'sidejudge_queue_items{queue="forward"} 0.0' in metrics


@pytest.mark.parametrize("status", ["500 Oops", "502 Bad", "503 Busy", "504 Late", "408 Slow", "429 Many"])
async def test_a_refusal_that_may_pass_is_not_passed_on(gateway, status):
    async with upstream(answered(status)) as up:
        app = await gateway(up.url)
        assert (await post(app, one(1))).status_code == 200
        up.answer = OK
        await until(lambda: held(app).waiting == 0)
        assert {each.body for each in up.requested} == {one(1)}
        assert held(app).ended == {"sent": 1}


@pytest.mark.parametrize("status", ["200 Sign in", "302 Login", "303 Login", "307 Login"])
async def test_a_login_or_a_proxy_in_upstreams_place_is_no_acceptance(gateway, status):
    more = "content-type: text/html" if status.startswith("2") else "location: http://127.0.0.1:9/"
    async with upstream(answered(status, more, body="<html>Sign in</html>")) as up:
        app = await gateway(up.url)
        answer = await post(app, one(1))
        assert (answer.status_code, answer.content) == (200, b"")
        await until(lambda: len(up.requested) >= 2)
        up.answer = OK
        await until(lambda: held(app).waiting == 0)
        assert held(app).ended == {"sent": 1}


@pytest.mark.parametrize("body", ["", "ok"])
async def test_what_frameworks_call_html_without_a_page_is_an_acceptance(gateway, body):
    async with upstream(answered("503 Busy")) as up:
        app = await gateway(up.url)
        await post(app, one(1))
        up.answer = answered("200 OK", "content-type: text/html; charset=utf-8", body=body)
        await until(lambda: held(app).waiting == 0)
        assert (await post(app, one(2))).text == body
        assert (held(app).ended, held(app).kept) == ({"sent": 1}, {"traces": 1})


@pytest.mark.parametrize("status", ["400 Bad", "401 Who", "403 No", "404 Nowhere", "413 Large"])
async def test_a_refusal_for_good_is_passed_on(gateway, status):
    async with upstream(answered(status)) as up:
        app = await gateway(up.url)
        assert (await post(app, one(1))).status_code == int(status[:3])
        assert (held(app).waiting, held(app).kept) == (0, {})


async def test_what_is_refused_for_good_once_upstream_is_back_is_counted_and_keeps_nobody_back(gateway):
    async def picky(writer):
        refuses = up.requested[-1].body == one(2)
        writer.write(answered("400 Bad") if refuses else OK)

    port = free_port()
    app = await gateway(f"http://127.0.0.1:{port}")
    for n in (1, 2, 3):
        await post(app, one(n))
    async with at(port) as up:
        up.answer = picky
        await until(lambda: held(app).waiting == 0)
        assert held(app).ended == {"sent": 2, "refused": 1}
        assert [each.body for each in up.requested] == [one(1), one(2), one(3)]


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        ("404 Nowhere", ()),
        ("302 Login", ("location: http://127.0.0.1:9/",)),
        ("200 Sign in", ("content-type: text/html",)),
    ],
)
async def test_what_was_answered_waits_while_something_else_answers_in_upstreams_place(gateway, status, headers):
    port = free_port()
    app = await gateway(f"http://127.0.0.1:{port}")
    for n in (1, 2, 3):
        assert (await post(app, one(n))).status_code == 200
    async with at(port) as up:
        up.answer = answered(status, *headers, body="<html>Sign in</html>")
        await until(lambda: len(up.requested) >= 8)
        assert (held(app).waiting, held(app).ended) == (3, {})
        up.answer, before = OK, len(up.requested)
        await until(lambda: held(app).waiting == 0)
        assert {each.body for each in up.requested[before - 1 :]} == {one(1), one(2), one(3)}
        assert held(app).ended == {"sent": 3}


@pytest.mark.parametrize("status", ["307 Moved", "200 Page"])
async def test_what_always_answers_in_upstreams_place_gets_no_request_for_ever(gateway, status, caplog, monkeypatch):
    monkeypatch.setattr(module, "_MOST_PAGES", 6)
    async with upstream(answered(status, "content-type: text/html", body="<html>Sign in</html>")) as up:
        app = await gateway(up.url)
        for n in (1, 2, 3):
            await post(app, one(n))
        await until(lambda: held(app).ended["given_up"] == 1)
        assert [each.body for each in up.requested].count(one(1)) == 1 + 6
        assert caplog.text.count("set forward.url to the final address") == 1
        assert "not of an OTLP endpoint, for a day" in str([vars(each) for each in caplog.records])
        up.answer = OK
        await until(lambda: held(app).waiting == 0)
        assert held(app).ended == {"given_up": 1, "sent": 2}
        up.answer = answered("307 Moved")
        await post(app, one(4))
        await until(lambda: caplog.text.count("set forward.url to the final address") == 2)


async def test_what_answers_in_upstreams_place_is_asked_ever_less_often(gateway, monkeypatch):
    monkeypatch.setattr(module, "_ASIDE_S", (0.1, 60.0))
    async with upstream(answered("307 Moved")) as up:
        app = await gateway(up.url)
        await post(app, one(1))
        await until(lambda: len(up.requested) == 7)
        await asyncio.sleep(0.3)
        assert len(up.requested) == 7


@pytest.mark.parametrize("order", ["tltltl", "lltttt", "llllt"])
async def test_a_signal_that_upstream_has_no_route_for_keeps_no_other_back_and_is_given_up(gateway, order):
    async def without_logs(writer):
        writer.write(answered("404 Nowhere") if "/v1/logs" in up.requested[-1].line else OK)

    traces, many = count(10), order.count("t")
    port = free_port()
    app = await gateway(f"http://127.0.0.1:{port}")
    for n, signal_ in enumerate(order):
        await (post(app, one(n)) if signal_ == "t" else post(app, b"", "/v1/logs"))
    async with at(port) as up:
        up.answer = without_logs
        await until(lambda: held(app).ended["sent"] == many)
        while held(app).waiting:
            assert (await post(app, one(next(traces)))).status_code == 200
            await asyncio.sleep(0.05)
        assert held(app).ended == {"sent": many, "given_up": len(order) - many}
        assert (await post(app, b"", "/v1/logs")).status_code == 404, "as without an outage"


async def test_a_page_that_is_passed_on_as_the_buffer_is_full_is_no_acceptance(gateway):
    page = answered("200 Sign in", "content-type: text/html", body="<html>Sign in</html>")
    async with upstream(page) as up:
        app = await gateway(up.url, buffer="64KiB")
        assert (await post(app, b"", "/v1/logs")).text == ""
        for n in range(30):
            assert (await post(app, one(n, "x" * 50_000))).text == ("" if n == 0 else "<html>Sign in</html>")
            await asyncio.sleep(0.05)
        assert (held(app).waiting, held(app).ended) == (2, {})


@pytest.mark.parametrize("status", ["401 Who", "403 No"])
async def test_what_was_answered_waits_while_upstream_refuses_the_operators_own_credentials(gateway, status, caplog):
    port = free_port()
    app = await gateway(f"http://127.0.0.1:{port}", authorization="Basic b2xk")
    for n in (1, 2, 3):
        assert (await post(app, one(n))).status_code == 200
    async with at(port) as up:
        up.answer = answered(status)
        await until(lambda: len(up.requested) >= 5)
        assert (held(app).waiting, held(app).ended) == (3, {})
        assert caplog.text.count("correct forward.authorization") == 1
        up.answer, before = OK, len(up.requested)  # as after a restart with others
        await until(lambda: held(app).waiting == 0)
        assert {each.body for each in up.requested[before - 1 :]} == {one(1), one(2), one(3)}


async def test_what_is_refused_under_an_applications_own_credentials_is_refused_for_good(gateway):
    port = free_port()
    app = await gateway(f"http://127.0.0.1:{port}")
    for n in (1, 2):
        await post(app, one(n), authorization="Basic b25l")
    async with at(port) as up:
        up.answer = answered("401 Who")
        await until(lambda: held(app).waiting == 0)
        assert held(app).ended == {"refused": 2}


@pytest.mark.parametrize("fault", ["status", "firewall", "reset", "hang up half-way"])
async def test_a_body_that_upstream_never_takes_keeps_nobody_back_and_is_given_up(gateway, fault):
    others = count(10)
    fails = 0

    async def part_time(writer):
        nonlocal fails
        if up.requested[-1].body != one(2):
            writer.write(OK)
            return
        fails += 1
        if held(app).ended["sent"] == 3:  # another is taken before each of its failures
            assert (await post(app, one(next(others)))).status_code == 200
        if fault == "status":
            writer.write(answered("500 Oops"))
        elif fault == "firewall":
            writer.write(answered("403 Blocked"))
        elif fault == "reset":
            writer.transport.abort()
        else:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-le")
            writer.close()

    port = free_port()
    app = await gateway(f"http://127.0.0.1:{port}", authorization="Basic b3Vycw==")
    for n in (1, 2, 3, 4):
        await post(app, one(n))
    async with at(port) as up:
        up.answer = part_time
        await until(lambda: held(app).ended["sent"] == 3)
        taken = [each.body for each in up.requested if each.body != one(2)]
        assert taken == [one(1), one(3), one(4)]
        await until(lambda: held(app).waiting == 0)
        assert held(app).ended["given_up"] == 1
        if fault != "reset":  # after which the client repeats by itself
            assert fails == 2 + 8, "two before others were tried, and eight while they were taken"
        tried = [each.body for each in up.requested].count(one(2))
        assert tried >= module.MOST_ATTEMPTS


async def test_a_request_that_was_set_aside_goes_though_the_clock_is_set_back(gateway, monkeypatch):
    async with upstream(answered("500 Oops")) as up:
        app = await gateway(up.url)
        await post(app, one(1))
        ((number, lane),) = held(app)._lanes.items()
        request = held(app)._store.first(number, 1 << 62)
        await held(app)._set_aside(held(app)._store, lane, request, module._Outcome(""))
        behind = time.time_ns() - 3600 * 10**9
        monkeypatch.setattr(time, "time_ns", lambda: behind)
        up.answer = OK
        await until(lambda: held(app).waiting == 0)


async def test_an_outage_however_long_gives_nothing_up(gateway):
    async with upstream(answered("500 Oops")) as up:
        app = await gateway(up.url)
        for n in (1, 2, 3):
            await post(app, one(n))
        await until(lambda: len(up.requested) > 3 * module.MOST_ATTEMPTS, 60)
        assert (held(app).waiting, held(app).ended) == (3, {})
        up.answer, before = OK, len(up.requested)
        await until(lambda: held(app).waiting == 0)
        assert [each.body for each in up.requested[before:]][-3:] == [one(1), one(2), one(3)]


async def test_a_project_that_is_limited_keeps_no_other_back(gateway):
    async def limited(writer):
        one_s = up.requested[-1].header("authorization") == "Basic b25l"
        writer.write(answered("429 Many", "retry-after: 3600") if one_s else OK)

    async with upstream() as up:
        up.answer = limited
        app = await gateway(up.url)
        assert (await post(app, one(1), authorization="Basic b25l")).status_code == 200
        assert (await post(app, one(2), authorization="Basic b25l")).status_code == 200
        assert (await post(app, one(3), authorization="Basic dHdv")).status_code == 200
        assert [each.body for each in up.requested] == [one(1), one(3)]
        assert held(app).waiting == 2


async def test_a_late_response_is_waited_for_and_its_request_sent_once(gateway, monkeypatch):
    monkeypatch.setattr("sidejudge.integrations.otlp.proxy.forward._PATIENCE_S", 0.1)
    go = asyncio.Event()

    async def late(writer):
        await go.wait()
        writer.write(OK)

    async with upstream(late) as up:
        app = await gateway(up.url)
        assert (await post(app, one(1))).status_code == 200
        assert held(app).waiting == 1
        go.set()
        await until(lambda: held(app).waiting == 0)
        assert (len(up.requested), held(app).ended) == (1, {"sent": 1})


async def test_a_full_buffer_gives_the_application_upstreams_own_failure_and_keeps_what_it_has(gateway):
    port = free_port()
    app = await gateway(f"http://127.0.0.1:{port}", buffer="64KiB")
    bodies = [one(n, "x" * 15_000) for n in range(1, 9)]
    statuses = [(await post(app, body)).status_code for body in bodies]
    kept = statuses.index(502)
    assert kept in (3, 4)
    assert statuses == [200] * kept + [502] * (8 - kept)
    assert held(app).unkept == {"full": 8 - kept}
    async with at(port) as up:
        await until(lambda: held(app).waiting == 0)
        assert [each.body for each in up.requested] == bodies[:kept]


async def test_json_metrics_and_large_bodies_in_chunks_are_kept_too(gateway):
    port = free_port()
    app = await gateway(f"http://127.0.0.1:{port}", buffer="16MiB")
    large = one(1, "x" * 3_000_000)

    async def parts():
        for start in range(0, len(large), 100_000):
            yield large[start : start + 100_000]

    assert (await post(app, parts())).status_code == 200
    answer = await post(app, b'{"resourceSpans": []}', **{"content-type": "application/json"})
    assert (answer.status_code, answer.json(), answer.headers["content-type"]) == (200, {}, "application/json")
    assert (await post(app, b"", "/v1/metrics")).status_code == 200
    assert (await post(app, one(2), "/api/public/otel/v1/traces?v=4")).status_code == 200
    assert held(app).kept == {"traces": 3, "metrics": 1}
    async with at(port) as up:
        await until(lambda: held(app).waiting == 0)
        came = [(each.line.split()[1], each.body) for each in up.requested]
        assert [each for each in came if each[0] != "/v1/metrics"] == [
            ("/v1/traces", large), ("/v1/traces", b'{"resourceSpans": []}'), ("/api/public/otel/v1/traces?v=4", one(2)),
        ]  # fmt: skip
        assert ("/v1/metrics", b"") in came


async def test_other_paths_and_bodies_are_not_kept(gateway):
    app = await gateway(f"http://127.0.0.1:{free_port()}")
    assert (await app.http.get(app.otlp + "/api/public/v2/prompts/a")).status_code == 502
    assert (await app.http.post(app.otlp + "/api/public/scores", json={})).status_code == 502
    assert (await post(app, b"x", **{"content-type": "text/plain"})).status_code == 502
    assert held(app).kept == {}


async def test_the_operators_credentials_are_on_no_disk_and_those_of_a_web_page_stay_out(gateway, tmp_path):
    port = free_port()
    app = await gateway(f"http://127.0.0.1:{port}", authorization="Basic b3BlcmF0b3I6c2VjcmV0")
    await post(app, one(1), authorization="Basic YXBwOm93bg==")
    await post(app, one(2), origin="https://evil.example")
    written = b"".join(path.read_bytes() for path in tmp_path.glob("state.sqlite.forward*"))
    assert written
    assert b"b3BlcmF0b3I6c2VjcmV0" not in written
    assert b"YXBwOm93bg==" not in written
    assert (tmp_path / "state.sqlite.forward").stat().st_mode & 0o077 == 0
    async with at(port) as up:
        await until(lambda: held(app).waiting == 0)
        credentials = {each.body: each.header("authorization") for each in up.requested}
        assert credentials == {one(1): "Basic b3BlcmF0b3I6c2VjcmV0", one(2): None}


async def test_a_file_that_cannot_be_used_costs_the_buffer_and_nothing_else(gateway, tmp_path, caplog):
    (tmp_path / "state.sqlite.forward").mkdir()
    port = free_port()
    app = await gateway(f"http://127.0.0.1:{port}")
    assert "is not kept" in caplog.text
    assert (await post(app, one(1))).status_code == 502
    assert held(app).unkept == {"disk": 1}
    assert (await app.get("/v1/status"))["forwarding"]["buffer"]["works"] is False
    async with at(port) as up:
        assert (await post(app, one(2))).status_code == 200
        assert len(up.requested) == 1


async def test_a_disk_that_is_nearly_full_takes_no_more_and_lets_go_of_what_it_has(gateway, monkeypatch):
    port = free_port()
    app = await gateway(f"http://127.0.0.1:{port}")
    assert (await post(app, one(1))).status_code == 200
    monkeypatch.setattr("sidejudge.integrations.store.kept_requests._RESERVE", 1 << 60)
    assert (await post(app, one(2))).status_code == 502
    assert held(app).unkept == {"disk": 1}
    async with at(port) as up:
        await until(lambda: held(app).waiting == 0)
        assert [each.body for each in up.requested] == [one(1)]


async def test_a_damaged_file_is_put_aside(gateway, tmp_path):
    (tmp_path / "state.sqlite.forward").write_bytes(b"no database " * 1000)
    port = free_port()
    app = await gateway(f"http://127.0.0.1:{port}")
    assert (await post(app, one(1))).status_code == 200
    assert (tmp_path / "state.sqlite.forward.damaged").exists()
    async with at(port):
        await until(lambda: held(app).waiting == 0)


@pytest.mark.parametrize("judging", ["works", "cannot start"])
async def test_what_was_answered_survives_kills(tmp_path, judging):
    port = free_port()
    running = Running(tmp_path, {"forward": {"url": f"http://127.0.0.1:{port}", "buffer": "1MiB"}})
    if judging == "cannot start":
        (tmp_path / "state.sqlite").write_bytes(b"no database " * 1000)
    try:
        bodies = []
        for life in range(3):
            await asyncio.to_thread(running.start)
            for n in range(5):
                bodies.append(one(10 * life + n + 1))
                answer = await asyncio.to_thread(running.post, bodies[-1])
                assert answer.status_code == 200
            running.stop(signal.SIGKILL)
        async with at(port) as up:
            await asyncio.to_thread(running.start)
            await until(lambda: len(up.requested) >= len(bodies), 60)
            assert [each.body for each in up.requested] == bodies
            assert await asyncio.to_thread(running.stop) == 0
    finally:
        running.close()


async def test_a_killed_monitor_sends_again_what_it_may_not_have_deleted_and_loses_nothing(tmp_path):
    """Killed at any moment while it sends: each request arrives, in order, at most the one under way twice."""
    port = free_port()
    running = Running(tmp_path, {"forward": {"url": f"http://127.0.0.1:{port}", "buffer": "4MiB"}})
    try:
        await asyncio.to_thread(running.start)
        bodies = [one(n) for n in range(1, 61)]
        for body in bodies:
            assert (await asyncio.to_thread(running.post, body)).status_code == 200
        arrived: list[bytes] = []
        for least in (5, 20, 40, 60):
            async with at(port) as up:
                if running.process is None:
                    await asyncio.to_thread(running.start)
                await until(partial(came, up, arrived, least), 60)
                running.stop(signal.SIGKILL)
                running.process = None
                arrived += [each.body for each in up.requested]
        firsts = list(dict.fromkeys(arrived))
        assert firsts == bodies
        assert len(arrived) - len(firsts) <= 4
    finally:
        running.close()


async def test_grpc_is_answered_too(started):
    grpc = pytest.importorskip("grpc")
    port = free_port()
    catch: dict[str, str] = {}
    app = await started(
        catch=catch, forward={"url": f"http://127.0.0.1:{port}", "buffer": "1MiB"},
        sources={"otlp": {"http": "127.0.0.1:0", "grpc": "127.0.0.1:0"}},
    )  # fmt: skip
    async with grpc.aio.insecure_channel(catch["grpc"]) as channel:
        call = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        assert await call(one(1)) == b""
    async with at(port) as up:
        await until(lambda: held(app).waiting == 0)
        assert [each.body for each in up.requested] == [one(1)]


def test_ports_are_free_of_listeners():
    """What the tests above take for an upstream that is down."""
    with pytest.raises(OSError, match=r"."), socket.create_connection(("127.0.0.1", free_port()), timeout=5):
        pass


def test_kept_heads_are_json():
    head = module.KeptRequest(
        signal="traces", target=b"/v1/traces", headers=[(b"a", b"\xff")], trusted=True, body=b"", lane=0
    ).head
    assert json.loads(head)["headers"] == [["a", "\xff"]]
