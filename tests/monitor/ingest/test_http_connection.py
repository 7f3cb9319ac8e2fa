"""Connections of the HTTP server: what a client on a real socket may do, for how long, and at whose cost."""

# neither client nor server has an event for what is waited for

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from contextlib import asynccontextmanager

import pytest

from sidejudge.integrations.otlp.server.admission import ConnectionLimits
from sidejudge.monitor.config.sources import TlsSection
from sidejudge.monitor.ingest.server import HttpServer, bind
from tests.certificates import make
from tests.needs import OPENSSL
from tests.waiting import until

GET = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
BRIEF = ConnectionLimits(idle_s=0.4, head_s=0.4, body_s=0.4)


class App:
    """Reads the body of a request and answers ``ok``; ``go`` holds answers back."""

    def __init__(self) -> None:
        self.begun = self.left = 0
        self.callers: list[str] = []
        self.versions: list[str] = []
        self.go = asyncio.Event()
        self.go.set()
        self.body = b"ok"
        self.pieces: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def __call__(self, scope, receive, send):
        self.begun += 1
        self.callers.append(scope["client"][0])
        self.versions.append(scope["http_version"])
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.left += 1
                return
            more = message["more_body"]
            self.pieces.append(message["body"])
        await self.go.wait()
        length = str(len(self.body)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": self.body})


@asynccontextmanager
async def serving(limits: ConnectionLimits | None = None, tls: TlsSection | None = None):
    app, listener = App(), bind("127.0.0.1:0", "api.listen")
    server = HttpServer(app, listener, tls, limits)
    await server.start()
    app.transports = server._server.server_state.connections
    app.port, app.connections = listener.getsockname()[1], server.connections
    try:
        yield app
    finally:
        app.go.set()
        for writer in app.writers:
            writer.transport.abort()
        await server.stop()
        listener.close()


async def connect(app, address="127.0.0.1"):
    reader, writer = await asyncio.open_connection("127.0.0.1", app.port, local_addr=(address, 0))
    app.writers.append(writer)
    return reader, writer


async def rest(reader, seconds=5.0) -> bytes:
    """All that comes until the server hangs up."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        async with asyncio.timeout(seconds):
            while part := await reader.read(1 << 16):
                parts.append(part)
    return b"".join(parts)


async def trickle(writer, data: bytes, every_s: float = 0.05) -> None:
    with contextlib.suppress(ConnectionError):
        while not writer.is_closing():
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(every_s)


@pytest.mark.parametrize("pieces", [[7], [1, 2, 4], [70_000, 1, 1, 300_000], [1] * 2_000])
async def test_a_body_is_what_was_sent_in_however_many_pieces(pieces):
    sent = bytes(range(256)) * (sum(pieces) // 256 + 1)
    async with serving() as app:
        _, writer = await connect(app)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        at = 0
        for size in pieces:
            writer.write(b"%x\r\n%b\r\n" % (size, sent[at : (at := at + size)]))
        writer.write(b"0\r\n\r\n")
        await until(lambda: sum(map(len, app.pieces)) == at)
        assert b"".join(app.pieces) == sent[:at]
        assert {type(piece) for piece in app.pieces} == {bytes}


async def test_requests_on_one_connection_that_nobody_waits_for_are_not_piled_up():
    async with serving() as app:
        app.go.clear()
        reader, writer = await connect(app)
        with contextlib.suppress(ConnectionError):
            for _ in range(30):
                writer.write(GET * 2000)
                async with asyncio.timeout(1):
                    await writer.drain()
        other = await connect(app)
        begun = time.monotonic()
        app.go.set()
        other[1].write(GET)
        assert await other[0].readexactly(len(OK)) == OK
        assert time.monotonic() - begun < 1
        answered = await rest(reader)
        assert answered.count(b"200 OK") <= 65
        assert app.begun <= 66
        assert app.connections.refused == {0: 1}


async def test_a_few_pipelined_requests_are_answered_in_order():
    async with serving() as app:
        reader, writer = await connect(app)
        writer.write(GET * 20)
        assert await reader.readexactly(20 * len(OK)) == OK * 20
        writer.write(POST + b"0123456789" + GET)
        assert await reader.readexactly(2 * len(OK)) == OK * 2


@pytest.mark.parametrize("again", [b"", b"X-More: 1\r\n"])
async def test_a_head_that_does_not_end_is_refused_in_time(again):
    async with serving(BRIEF) as app:
        reader, writer = await connect(app)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")
        sending = asyncio.create_task(trickle(writer, again))
        assert (await rest(reader)).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        sending.cancel()
        assert (app.begun, app.connections.refused) == (0, {408: 1})


@pytest.mark.parametrize("again", [b"", b"1"])
async def test_a_body_that_does_not_end_is_refused_in_time_and_the_application_hears_of_it(again):
    async with serving(BRIEF) as app:
        reader, writer = await connect(app)
        writer.write(POST.replace(b"10", b"1000"))
        sending = asyncio.create_task(trickle(writer, again))
        assert (await rest(reader)).startswith(b"HTTP/1.1 408 ")
        sending.cancel()
        assert (app.begun, app.left, len(app.connections)) == (1, 1, 0)


async def test_a_request_that_is_answered_slowly_is_no_fault_of_the_sender():
    async with serving(BRIEF) as app:
        app.go.clear()
        reader, writer = await connect(app)
        writer.write(POST + b"0123456789")
        await asyncio.sleep(2.2)
        app.go.set()
        assert await reader.readexactly(len(OK)) == OK


@pytest.mark.parametrize("first", [b"", GET])
@pytest.mark.parametrize("again", [b"", b"\r\n"])
async def test_a_connection_without_requests_is_closed_in_time(first, again):
    async with serving(BRIEF) as app:
        reader, writer = await connect(app)
        writer.write(first)
        sending = asyncio.create_task(trickle(writer, again))
        assert await rest(reader) == (OK if first else b"")
        sending.cancel()
        await until(lambda: not len(app.connections))


async def test_of_too_many_connections_the_one_that_is_idle_longest_is_closed():
    async with serving(ConnectionLimits(connections=3)) as app:
        app.go.clear()
        busy, idle, used = [await connect(app) for _ in range(3)]
        busy[1].write(GET)
        await until(lambda: app.begun == 1)
        newest = await connect(app)
        assert await rest(idle[0]) == b""
        app.go.set()
        for reader, writer in (busy, used, newest):
            if reader is not busy[0]:
                writer.write(GET)
            assert await reader.readexactly(len(OK)) == OK


async def unread(app, *, encrypted: bool) -> socket.socket:
    """A client that never reads; what is sent to it fills the system's memory for it, and reaches into ours."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    before = len(app.connections)
    client.connect(("127.0.0.1", app.port))
    if encrypted:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        client = await asyncio.to_thread(context.wrap_socket, client)
    await until(lambda: len(app.connections) > before)
    *_, connection = app.connections._open
    while not connection.transport.get_write_buffer_size():
        client.send(GET)
        await asyncio.sleep(0.001)
    return client


@pytest.mark.parametrize("encrypted", [False, pytest.param(True, marks=OPENSSL.mark)], ids=["plain", "encrypted"])
@pytest.mark.parametrize("then", [b"", POST], ids=["idle", "half of a body"])
async def test_clients_that_never_read_keep_nobody_out_and_hold_no_connection_for_ever(tmp_path, then, encrypted):
    tls = None
    if encrypted:
        made = make(tmp_path)
        tls = TlsSection(certificate=made.server, key=made.server_key)
    async with serving(ConnectionLimits(connections=2, idle_s=0.4, head_s=2.0, body_s=2.0), tls) as app:
        app.body = b"x" * 8_000
        clients = [await unread(app, encrypted=encrypted) for _ in range(2)]
        for client in clients:
            client.send(then)
        await until(lambda: all(each.transport.is_closing() for each in app.connections._open))
        if not encrypted:
            reader, writer = await connect(app)
            writer.write(GET)
            assert await reader.readexactly(15) == b"HTTP/1.1 200 OK"
            writer.close()
        await until(lambda: not app.transports, 10)
        for client in clients:
            client.close()
        assert len(app.connections) == 0
        assert app.connections.refused[0] <= 2, "each is counted once"


async def test_connections_that_come_together_are_bounded_as_those_that_come_one_by_one_are():
    async with serving(ConnectionLimits(connections=10)) as app:
        clients: list[socket.socket] = []
        for come in (10, 40, 40):
            # The event loop waits meanwhile, so that it accepts all of them in one turn.
            clients += [socket.create_connection(("127.0.0.1", app.port)) for _ in range(come)]
            await until(lambda: len(app.connections) >= 10)
            await asyncio.sleep(0.1)
            assert len(app.connections) == 10
        for client in clients:
            client.setblocking(False)
        assert sum(map(_is_closed, clients)) == 80
        for client in clients:
            client.close()


def _is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


async def test_an_address_with_many_connections_takes_none_from_others():
    async with serving(ConnectionLimits(connections=10)) as app:
        mine = await connect(app, "127.0.0.2")
        stalled = [await connect(app) for _ in range(30)]
        for _, writer in stalled:
            writer.write(POST)
        await asyncio.sleep(0.1)
        late = await connect(app, "127.0.0.3")
        for reader, writer in (mine, late):
            writer.write(GET)
            assert await reader.readexactly(len(OK)) == OK
        assert len(app.connections) == 10


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        (b"GET / HTTP/1.1\r\nX-Long: ", b"x" * 10_000),
        (b"GET /", b"x" * 10_000),
        (b"GET / HTTP/1.1\r\n", b"X-Many: 1\r\n" * 1000),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Trailer: 1\r\n" * 1000),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Long: ", b"x" * 10_000),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;ext=", b"x" * 10_000),
    ],
)
async def test_what_a_request_holds_beside_its_body_is_bounded(begin, again):
    async with serving() as app:
        reader, writer = await connect(app)
        writer.write(begin)
        sending = asyncio.create_task(trickle(writer, again, 0.0))
        answer = await rest(reader)
        sending.cancel()
        assert answer == b"" or answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
        assert app.connections.refused.total() == 1


async def test_a_client_that_reads_no_response_loses_its_connection():
    async with serving(BRIEF) as app:
        app.body = bytes(20 << 20)
        _, writer = await connect(app)
        writer.write(GET)
        await until(lambda: app.begun == 1)
        await until(lambda: not len(app.connections))
        assert app.connections.refused == {0: 1}


async def test_requests_that_are_not_http_are_logged_once_and_counted(caplog):
    async with serving() as app:
        for _ in range(20):
            reader, writer = await connect(app)
            writer.write(b"\x16\x03\x01 what is this\r\n\r\n")
            assert (await rest(reader)).startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert app.connections.refused == {400: 20}
    assert len([line for line in caplog.records if line.levelname == "WARNING"]) == 1


async def test_an_offer_of_another_protocol_is_ignored_and_its_connection_lives_on(caplog):
    async with serving() as app:
        reader, writer = await connect(app)
        offer = POST.replace(b"\r\n\r\n", b"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n")
        for _ in range(3):
            writer.write(offer + b"0123456789")
            assert await reader.readexactly(len(OK)) == OK
        writer.write(GET)
        assert await reader.readexactly(len(OK)) == OK
    assert not caplog.records


@pytest.mark.parametrize(
    ("version", "connection"), [("1.1", "Upgrade, close"), ("1.1", "close\r\nConnection: upgrade"), ("1.0", "Upgrade")]
)
async def test_an_offer_of_another_protocol_changes_nothing_else_of_a_request(version, connection):
    async with serving() as app:
        reader, writer = await connect(app)
        writer.write(f"GET / HTTP/{version}\r\nHost: x\r\nConnection: {connection}\r\nUpgrade: h2c\r\n\r\n".encode())
        assert (await rest(reader, 2)).endswith(b"\r\n\r\nok"), "the connection ends with the response"
        assert app.versions == [version]


async def test_a_caller_is_who_its_connection_comes_from_whatever_a_header_claims(monkeypatch):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    async with serving() as app:
        reader, writer = await connect(app, "127.0.0.9")
        writer.write(GET.replace(b"\r\n\r\n", b"\r\nX-Forwarded-For: 127.0.0.1\r\nForwarded: for=127.0.0.1\r\n\r\n"))
        assert await reader.readexactly(len(OK)) == OK
        assert app.callers == ["127.0.0.9"]
