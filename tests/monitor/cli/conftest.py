from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from click.testing import CliRunner, Result

from sidejudge.monitor.cli import main


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Calls ``sidejudge`` in this process, with none of our variables set."""
    for name in ("SIDEJUDGE_CONFIG", "SIDEJUDGE_URL", "SIDEJUDGE_SHARED"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: object, **extra: object) -> Result:
        return CliRunner().invoke(main, [str(each) for each in arguments], **extra)

    return run


@pytest.fixture
def monitor_at() -> Iterator[Callable[[dict[str, object]], str]]:
    """Starts a server that answers as told by path (a pair: with a status), 404 otherwise; returns its address."""
    servers: list[ThreadingHTTPServer] = []

    def start(answers: dict[str, object]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                stated = answers.get(self.path)
                status, stated = stated if isinstance(stated, tuple) else (200 if stated is not None else 404, stated)
                body = stated if isinstance(stated, bytes) else json.dumps(stated).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
