"""Server: addresses are had or refused beforehand, and a server ends when it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import socket
import ssl
from pathlib import Path

import httpx
import pytest

from sidejudge.integrations.otlp.server.admission import ConnectionLimits
from sidejudge.monitor.config.sources import TlsSection
from sidejudge.monitor.ingest.server import AddressError, HttpServer, address, bind
from tests.certificates import make
from tests.waiting import until


async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.fixture
def listener():
    made = bind("127.0.0.1:0", "api.listen")
    yield made
    made.close()


def test_an_address_that_is_taken_is_refused_naming_the_key_and_the_cause(listener):
    taken = f"127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(AddressError, match=rf"^sources\.otlp\.http: cannot listen on {taken}: Address already in use$"):
        bind(taken, "sources.otlp.http")


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(AddressError, match=r"api\.listen: cannot listen on 192\.0\.2\.1:0: "):
        bind("192.0.2.1:0", "api.listen")


def test_a_name_that_means_no_address_is_refused():
    with pytest.raises(AddressError, match=r"api\.listen: cannot listen on ö\.\.ü:0: encoding of hostname failed"):
        bind("ö..ü:0", "api.listen")
    with pytest.raises(AddressError, match=r"api\.listen: cannot listen on no\.such\.host\.invalid:0: "):
        bind("no.such.host.invalid:0", "api.listen")


@pytest.mark.parametrize(
    ("listen", "shown"),
    [("127.0.0.1:0", "127.0.0.1"), ("0.0.0.0:0", "127.0.0.1"), ("[::1]:0", "[::1]"), ("[::]:0", "[::1]")],
)
def test_an_address_is_told_as_a_person_on_this_machine_would_type_it(listen, shown):
    if ":" in shown and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        made = bind(listen, "api.listen")
    except AddressError as error:
        pytest.skip(f"this machine has no such address: {error}")
    with made:
        assert address(made) == f"http://{shown}:{made.getsockname()[1]}"


async def test_a_server_answers_once_it_has_started_and_refuses_once_it_has_stopped(listener):
    server, url = HttpServer(hello, listener), address(listener)
    await server.start()
    async with httpx.AsyncClient() as http:
        answer = await http.get(url)
        assert (answer.text, "server" in answer.headers, "date" in answer.headers) == ("hello", False, False)
        await server.stop()
        with pytest.raises(httpx.ConnectError):
            await http.get(url)
    await server.stop()


async def test_who_never_ends_a_greeting_over_tls_is_given_up_and_keeps_nobody_out(listener, tmp_path):
    made = make(tmp_path)
    tls = TlsSection(certificate=Path(made.server), key=Path(made.server_key))
    server = HttpServer(hello, listener, tls, ConnectionLimits(head_s=0.5))
    await server.start()
    url = address(listener, "https")
    _, _, port = url.rpartition(":")
    silent = [await asyncio.open_connection("127.0.0.1", int(port)) for _ in range(50)]
    for _, writer in silent[::2]:
        writer.write(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a greeting
    async with httpx.AsyncClient(verify=ssl.create_default_context(cafile=made.ca)) as http:
        assert (await http.get(url)).text == "hello"
        for reader, _ in silent:
            with contextlib.suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(), 30) == b""
        assert (await http.get(url)).text == "hello"
    for _, writer in silent:
        writer.close()
    await server.stop()


async def test_greetings_over_tls_that_wait_are_few_and_an_address_with_many_takes_none_from_others(listener, tmp_path):
    made = make(tmp_path)
    tls = TlsSection(certificate=Path(made.server), key=Path(made.server_key))
    server = HttpServer(hello, listener, tls, ConnectionLimits(head_s=30.0, connections=10))
    await server.start()
    url, (_, port) = address(listener, "https"), listener.getsockname()
    async with httpx.AsyncClient(verify=ssl.create_default_context(cafile=made.ca)) as http:
        assert (await http.get(url)).text == "hello"
        other = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.3", 0))
        silent = [await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0)) for _ in range(30)]
        await until(lambda: server.connections.refused == {0: 26})
        assert (await http.get(url)).text == "hello"
    closed = [not await asyncio.wait_for(reader.read(), 5) for reader, _ in silent[:26]]
    assert all(closed)
    assert not [each for each in (other, *silent[26:]) if each[0].at_eof()]
    for _, writer in (other, *silent):
        writer.transport.abort()
    await server.stop()


async def test_a_certificate_that_is_renewed_is_shown_and_one_that_cannot_be_used_is_not(listener, tmp_path, caplog):
    caplog.set_level("INFO", "sidejudge")
    (tmp_path / "others").mkdir()
    made, others = make(tmp_path), make(tmp_path / "others")
    tls = TlsSection(certificate=Path(made.server), key=Path(made.server_key))
    server = HttpServer(hello, listener, tls)
    await server.start()
    try:

        async def shown() -> bytes:
            _, port = listener.getsockname()
            return await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))

        first = await shown()
        shutil.copy(others.server, made.server)  # its key is another
        await until(lambda: "cannot be used" in caplog.text)
        assert await shown() == first
        shutil.copy(others.server_key, made.server_key)
        await until(lambda: "is in force" in caplog.text)
        assert await shown() != first
    finally:
        await server.stop()


async def test_a_request_that_is_being_answered_gets_its_answer_though_the_server_ends(listener):
    arrived, go = asyncio.Event(), asyncio.Event()

    async def slow(scope, receive, send):
        arrived.set()
        await go.wait()
        await hello(scope, receive, send)

    server = HttpServer(slow, listener)
    await server.start()
    async with httpx.AsyncClient() as http:
        requested = asyncio.create_task(http.get(address(listener)))
        await arrived.wait()
        ending = asyncio.create_task(server.stop())
        await asyncio.sleep(0)
        go.set()
        assert (await requested).text == "hello"
        await ending


async def test_a_request_that_never_ends_does_not_keep_the_server(listener):
    arrived = asyncio.Event()

    async def stuck(scope, receive, send):
        arrived.set()
        await asyncio.Event().wait()

    server = HttpServer(stuck, listener)
    await server.start()
    async with httpx.AsyncClient() as http:
        requested = asyncio.create_task(http.get(address(listener)))
        await arrived.wait()
        await server.stop()
        (answer,) = await asyncio.gather(requested, return_exceptions=True)
        assert isinstance(answer, httpx.TransportError) or answer.status_code == 500


async def test_signals_are_left_to_the_monitor(listener):
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    server = HttpServer(hello, listener)
    await server.start()
    assert {number: signal.getsignal(number) for number in before} == before
    await server.stop()


async def test_a_server_that_was_never_started_can_be_stopped(listener):
    await HttpServer(hello, listener).stop()
