"""A receiver of notices: a real HTTP server that keeps what it is sent and misbehaves as it is told to."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Act:
    """What the server does: answer with a status, hang until the test is over, or break the connection."""

    status: int = 200
    body: bytes = b"ok"
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Got:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


OK = Act()


class FakeReceiver:
    """``act`` says what is done at request number 0, 1, …; ``got`` what was sent, ``taken`` what was answered 2xx."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        self.act: Callable[[int], Act] = lambda _number: OK
        self.got: list[Got] = []
        self.taken: list[Got] = []
        self.over = threading.Event()
        self._server = server

    def encrypt(self, context: ssl.SSLContext) -> None:
        """Take requests over TLS from now on."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = self.url.replace("http:", "https:")


@contextmanager
def receiving(port: int = 0) -> Iterator[FakeReceiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got = Got(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            number = len(fake.got)
            fake.got.append(got)
            act = fake.act(number)
            if act.reset:
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
                return
            if act.hang:
                fake.over.wait(30)
                self.close_connection = True
                return
            if act.status < 300:
                fake.taken.append(got)
            self.send_response(act.status)
            for name, value in {"content-length": str(len(act.body)), **act.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(act.body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A connection that a test broke on purpose is no error of its own."""

    server = Server(("127.0.0.1", port), Handler)
    fake = FakeReceiver(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
