"""Agents behind real HTTP for tests: well-behaved and otherwise, by the path that is asked."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FakeAgent:
    """Answers a POST by its path; ``asked`` holds every body that came. Its own threads, its own socket."""

    def __init__(self) -> None:
        self.requested: list[dict[str, Any]] = []
        self.busy = 0
        self.most_at_a_time = 0
        self.refusals = 0
        self.released = threading.Event()
        self._lock = threading.Lock()
        agent = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with agent._lock:
                    agent.requested.append(body)
                    agent.busy += 1
                    agent.most_at_a_time = max(agent.most_at_a_time, agent.busy)
                try:
                    getattr(agent, self.path[1:].partition("/")[0])(self, body)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the caller has gone
                finally:
                    with agent._lock:
                        agent.busy -= 1

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def reply(handler: BaseHTTPRequestHandler, body: bytes, code: int = 200, **headers: str) -> None:
        handler.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    def text(self, handler: Any, body: Any) -> None:
        self.reply(handler, f"You said {body['input']}".encode(), Content_Type="text/plain")

    def reported(self, handler: Any, body: Any) -> None:
        """What the input says, as JSON."""
        self.reply(handler, json.dumps(body["input"]).encode(), Content_Type="application/json; charset=utf-8")

    def untyped(self, handler: Any, body: Any) -> None:
        self.reply(handler, json.dumps(body["input"]).encode())

    def slow(self, handler: Any, body: Any) -> None:
        self.released.wait(20)
        self.reply(handler, b"late")

    def drip(self, handler: Any, body: Any) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not self.released.wait(0.02):
            handler.wfile.write(b".")

    def broken(self, handler: Any, body: Any) -> None:
        self.reply(handler, b"Traceback \x1b[31m\n  boom", 500)

    def overloaded(self, handler: Any, body: Any) -> None:
        """503 with Retry-After as often as ``refusals`` says, then an answer."""
        with self._lock:
            self.refusals -= 1
            refuse = self.refusals >= 0
        if refuse:
            self.reply(handler, b"busy", 503, Retry_After="0")
        else:
            self.reply(handler, b"at last")

    def closed(self, handler: Any, body: Any) -> None:
        self.reply(handler, b"", 503)

    def much_later(self, handler: Any, body: Any) -> None:
        self.reply(handler, b"", 503, Retry_After="3600")

    def moved(self, handler: Any, body: Any) -> None:
        self.reply(handler, b"", 307, Location="/text")

    def garbage(self, handler: Any, body: Any) -> None:
        self.reply(handler, b"{not json", Content_Type="application/json")

    def bytes(self, handler: Any, body: Any) -> None:
        self.reply(handler, b"\xff\xfe\x00")

    def marked(self, handler: Any, body: Any) -> None:
        self.reply(handler, b"\xef\xbb\xbf" + body["input"].encode())

    def squeezed(self, handler: Any, body: Any) -> None:
        self.reply(handler, b"\x1f\x8b", Content_Encoding="gzip")

    def endless(self, handler: Any, body: Any) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not self.released.is_set():
            handler.wfile.write(b"x" * 65536)

    def cut(self, handler: Any, body: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"half of")
        handler.close_connection = True

    def reset(self, handler: Any, body: Any) -> None:
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()
        handler.wfile = handler.rfile = open("/dev/null", "r+b")  # noqa: SIM115, PTH123  # for what the handler does after
        time.sleep(0)
