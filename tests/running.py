"""A monitor in a process of its own, as an operator starts it, and a way to talk to it over the wire."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import yaml

from sidejudge.monitor.api.contents_token import HEADER, SESSION_PATH, read_token
from tests.forked import Forked, environment

ROOT = Path(__file__).parents[1]


_turn = itertools.count()
_BLOCKS, _BLOCK = 60, 200
_claims: list[socket.socket] = []
"""Names that are this process's as long as it lives."""


@cache
def _first_port(pid: int) -> int:
    """The first port of a block that no other process has, of this run or of another one on the machine.

    By the number of the process alone two would have one block now and then; then a monitor that starts again finds
    another one at its port.
    """
    for block in range(_BLOCKS):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0sidejudge-test-ports-{block}")
        except OSError:
            claim.close()
        else:
            _claims.append(claim)
            return 20_000 + block * _BLOCK
    return 20_000 + pid % _BLOCKS * _BLOCK


def free_port() -> int:
    """A port that nobody listens on and no connection gets by chance: the system's own choice begins at 32768.

    Each process has some for itself, so that one which is used later is still free.
    """
    begin = _first_port(os.getpid())
    while True:
        port = begin + next(_turn) % _BLOCK
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Running:
    """``sidejudge serve`` on free ports with its state in a folder; ``start`` again resumes that state.

    ``anew``: not a fork, which counts what all forks share (140 MB) as memory of its own.
    """

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        python: str = sys.executable,
        arguments: tuple[str, ...] = (),
        anew: bool = False,
    ) -> None:
        self.folder, self.environ, self._python = folder, environ or {}, python
        self._arguments = arguments
        # The linker and Python read their environment at the very start.
        self._anew = anew or bool(self.environ) or python != sys.executable
        self.otlp = f"http://127.0.0.1:{(otlp := free_port())}"
        self.api = f"http://127.0.0.1:{(api := free_port())}"
        self.config = folder / "sidejudge.yaml"
        self._stated: dict[str, Any] = {
            "sampling": {"rate": 1.0},
            "assembly": {"grace": "200ms", "idle": "2s"},
            "sources": {"otlp": {"http": f"127.0.0.1:{otlp}"}},
            "api": {"listen": f"127.0.0.1:{api}"},
            "store": {"path": str(folder / "state.sqlite")},
        }
        self.configure(**(config or {}))
        self.http = httpx.Client(timeout=10)
        self.process: subprocess.Popen[bytes] | Forked | None = None

    def configure(self, **config: Any) -> None:
        """Write the configuration, sections of it replaced by these; it holds from the next start on."""
        self._stated |= config
        self.config.write_text(yaml.safe_dump(self._stated))

    def start(self) -> Running:
        arguments, log = ("serve", "--config", str(self.config), *self._arguments), self.folder / "log"
        if self._anew:
            with log.open("ab") as file:
                self.process = subprocess.Popen(
                    [self._python, "-P", "-m", "sidejudge", *arguments],
                    cwd=self.folder, stdout=file, stderr=file, env=environment() | dict(self.environ),
                )  # fmt: skip
        else:
            self.process = Forked(*arguments, cwd=self.folder, stdout=log, stderr=log)
        self.until(lambda: self.answers("/readyz"), "the monitor did not become ready")
        self.http.headers[HEADER] = self.token
        return self

    @property
    def token(self) -> str:
        """The token that shows contents; empty where ``api.contents`` needs none."""
        return read_token(self.folder / f"{self._stated['store']['path']}.token") or ""

    @property
    def link(self) -> str:
        """What ``serve`` prints for a browser."""
        return f"{self.api}{SESSION_PATH}?token={self.token}"

    def answers(self, path: str) -> bool:
        try:
            return self.http.get(self.api + path).status_code == 200
        except httpx.HTTPError:
            return False

    def post(self, body: bytes, path: str = "/v1/traces", **headers: str) -> httpx.Response:
        given = {"content-type": "application/x-protobuf", **{k.replace("_", "-"): v for k, v in headers.items()}}
        return self.http.post(self.otlp + path, content=body, headers=given)

    def get(self, path: str, **query: str) -> Any:
        return self.http.get(self.api + path, params=query).raise_for_status().json()

    def outcomes(self) -> dict[str, Any]:
        return self.get("/v1/status")["outcomes"]

    def verdicts(self, **query: str) -> list[dict[str, Any]]:
        found, cursor = [], None
        while True:
            page = self.get("/v1/verdicts", limit="1000", **query, **({"cursor": cursor} if cursor else {}))
            found += page["verdicts"]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def settled(self, traces: int) -> dict[str, Any]:
        """The outcomes once it has seen this many traces and none is open."""
        self.until(lambda: (b := self.outcomes())["seen"] >= traces and b["open"] == 0, f"{traces} traces did not end")
        return self.outcomes()

    def until(self, condition: Callable[[], bool], otherwise: str, seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while not condition():
            if self.process is not None and self.process.poll() is not None:
                raise AssertionError(f"the monitor ended with {self.process.returncode}:\n{self.log()}")
            assert time.monotonic() < end, f"{otherwise}:\n{self.log()}"
            time.sleep(0.05)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End the process; its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout=20)

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")[-4000:]

    @property
    def log_file(self) -> Path:
        return self.folder / "log"

    def logged(self) -> list[dict[str, Any]]:
        """The JSON lines of the log."""
        lines = (self.folder / "log").read_text(errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def close(self) -> None:
        self.http.close()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
