"""Upstream, encrypted: nobody is spoken to who cannot show who he is, and nothing is left open behind a refusal."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from sidejudge.integrations.otlp.proxy.upstream import Upstream, UpstreamError
from tests.certificates import another, make
from tests.fakes.upstream import OK


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    made = make(tmp_path_factory.mktemp("certificates"))
    another(made, "elsewhere", "DNS:elsewhere.example,IP:127.0.0.2")
    another(made, "expired", "IP:127.0.0.1", days=-1)
    another(made, "six", "IP:::1")
    return made


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    def run(coroutine):
        with asyncio.Runner(loop_factory=request.param) as runner:
            reported = runner.run(coroutine)
        gc.collect()  # what was not closed says so now
        return reported

    return run


class Server:
    def __init__(self):
        self.url, self.names, self.protocols, self.requests, self.held = "", [], [], 0, []

    async def serve(self, reader, writer):
        self.held.append(writer)
        self.protocols.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                self.requests += 1
                writer.write(OK)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def serving(made, name, host="127.0.0.1", alpn=()):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(getattr(made, name), getattr(made, f"{name}_key"))
    if alpn:
        context.set_alpn_protocols(list(alpn))
    reported = Server()
    context.sni_callback = lambda _, requested, __: reported.names.append(requested)
    server = await asyncio.start_server(reported.serve, host, 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    reported.url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    try:
        yield reported
    finally:
        server.close()
        for each in reported.held:
            each.transport.abort()
        await server.wait_closed()
        await asyncio.sleep(0.05)  # a refused handshake ends in the server's own time


async def get(client):
    answer = await client.send("GET", b"/", (), b"")
    try:
        async for _ in answer.parts():
            pass
        return answer.status
    finally:
        answer.close()


async def requested(url, times=1, **more):
    client = Upstream(url, timeout_s=5, **more)
    try:
        return [await get(client) for _ in range(times)]
    finally:
        client.close()
        await asyncio.sleep(0)


@pytest.mark.parametrize(("alpn", "spoken"), [((), None), (("h2", "http/1.1"), "http/1.1"), (("h2",), None)])
def test_who_shows_the_right_certificate_is_spoken_to_over_one_connection(run, made, alpn, spoken):
    async def story():
        async with serving(made, "server", alpn=alpn) as server:
            assert await requested(server.url, times=3, ca=made.ca) == [200] * 3
            assert (server.requests, server.protocols) == (3, [spoken])
            assert server.names == [None], "an address is no name"

    run(story())


def test_a_name_is_told_to_the_server(run, made):
    async def story():
        async with serving(made, "server") as server:
            assert await requested(server.url.replace("127.0.0.1", "localhost"), ca=made.ca) == [200]
            assert server.names == ["localhost"]

    run(story())


def test_an_address_of_version_six_is_verified_too(run, made):
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")

    async def story():
        async with serving(made, "six", host="::1") as server:
            assert await requested(server.url, ca=made.ca) == [200]
        async with serving(made, "server", host="::1") as server:
            with pytest.raises(UpstreamError, match="IP address mismatch"):
                await requested(server.url, ca=made.ca)

    run(story())


@pytest.mark.parametrize(("name", "ca", "cause"), [
    ("elsewhere", True, "IP address mismatch"),
    ("expired", True, "certificate has expired"),
    ("server", False, "unable to get local issuer certificate"),
])  # fmt: skip
def test_who_cannot_is_told_nothing(run, made, name, ca, cause):
    async def story():
        async with serving(made, name) as server:
            with pytest.raises(UpstreamError, match=cause) as reported:
                await requested(server.url, ca=made.ca if ca else None)
            assert (reported.value.status, reported.value.reason, server.requests) == (502, "connect", 0)

    run(story())


def test_an_authority_that_is_renewed_is_believed_without_a_restart(run, made, tmp_path):
    ca = tmp_path / "ca.pem"
    other = tmp_path / "other"
    other.mkdir()
    before, after = Path(make(other).ca).read_bytes(), Path(made.ca).read_bytes()

    def renewed(content: bytes, second: int) -> None:
        ca.write_bytes(content)
        os.utime(ca, ns=(second * 10**9, second * 10**9))

    async def story():
        renewed(before, 1)
        async with serving(made, "server") as server:
            client = Upstream(server.url, timeout_s=5, ca=str(ca))
            with pytest.raises(UpstreamError, match="certificate verify failed"):
                await get(client)
            renewed(after, 2)
            assert await get(client) == 200
            client._hang_up()
            renewed(b"half", 3)
            assert await get(client) == 200, "the one before stays in force"
            client.close()
            await asyncio.sleep(0)

    run(story())


def test_a_wrong_name_is_refused_by_that_name(run, made):
    async def story():
        async with serving(made, "elsewhere") as server:
            with pytest.raises(UpstreamError, match=r"not valid for 'localhost'"):
                await requested(server.url.replace("127.0.0.1", "localhost"), ca=made.ca)

    run(story())


@pytest.mark.parametrize("stated", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", None])
def test_who_speaks_no_tls_or_never_ends_its_greeting_is_given_up(run, made, stated):
    async def story():
        async def speak(reader, writer):
            await reader.read(1)
            if stated is None:
                await reader.read()
            else:
                writer.write(stated)
            writer.close()

        server = await asyncio.start_server(speak, "127.0.0.1", 0)
        async with server:
            client = Upstream(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout_s=0.5)
            with pytest.raises(UpstreamError) as reported:
                await get(client)
            assert "()" not in str(reported.value)
            assert (reported.value.status, reported.value.reason) == (
                (504, "timeout") if stated is None else (502, "connect")
            )
            client.close()
            await asyncio.sleep(0.05)

    run(story())


def test_half_an_answer_over_tls_is_none(run, made):
    class Half(Server):
        async def serve(self, reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
            await writer.drain()
            writer.close()

    async def story():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.server, made.server_key)
        server = await asyncio.start_server(Half().serve, "127.0.0.1", 0, ssl=context)
        async with server:
            with pytest.raises(UpstreamError, match="connection to it broke"):
                await requested(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", ca=made.ca)

    run(story())
