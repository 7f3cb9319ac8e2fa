"""A whole monitor in this process, on ports that the system chooses, with its state in the test's folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from sidejudge.monitor.api.contents_token import HEADER
from sidejudge.monitor.config import Config, load
from sidejudge.monitor.runtime.app import Monitor
from tests.waiting import answered, until

CALM: dict[str, Any] = {
    "sampling": {"rate": 1.0},
    "assembly": {"grace": "0s", "idle": "300ms"},
    "sources": {"otlp": {"http": "127.0.0.1:0"}},
    "api": {"listen": "127.0.0.1:0"},
    "log": {"level": "error"},
}


@dataclass(slots=True)
class InProcess:
    """A started monitor and a client that talks to it."""

    monitor: Monitor
    otlp: str
    api: str
    http: httpx.AsyncClient
    page: str = ""
    """The link that begins a session, which holds the token."""

    async def post(self, body: bytes) -> httpx.Response:
        headers = {"content-type": "application/x-protobuf"}
        return await self.http.post(self.otlp + "/v1/traces", content=body, headers=headers)

    async def get(self, path: str, **query: Any) -> Any:
        return (
            (await self.http.get(self.api + path, params=query, headers={HEADER: self.page.rpartition("=")[2]}))
            .raise_for_status()
            .json()
        )

    async def settled(self, traces: int) -> dict[str, Any]:
        """The outcomes once this many traces were seen and none is open, and a new status says so.

        A status is kept for ten times as long as it took to make: on a busy machine an answer may be of before.
        """
        await until(lambda: self.monitor.outcomes.balance().seen >= traces and self.monitor.outcomes.open == 0)

        async def shown() -> dict[str, Any]:
            return (await self.get("/v1/status"))["outcomes"]

        return await answered(shown, lambda outcomes: outcomes["seen"] >= traces and not outcomes["open"])


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., Config]:
    """A configuration for tests, sections of it replaced by what is given."""

    def make(**sections: Any) -> Config:
        path = tmp_path / "sidejudge.yaml"
        path.write_text(yaml.safe_dump({**CALM, "store": {"path": str(tmp_path / "state.sqlite")}, **sections}))
        return load(path, {})

    return make


@pytest.fixture
async def started(configured: Callable[..., Config]) -> AsyncIterator[Callable[..., Awaitable[InProcess]]]:
    """Starts monitors in this process; ends what a test leaves running."""
    running: list[Monitor] = []

    async with httpx.AsyncClient(timeout=10) as http:

        async def start(
            clock_ns: Callable[[], int] | None = None, catch: dict[str, str] | None = None, **sections: Any
        ) -> InProcess:
            more = {} if clock_ns is None else {"clock_ns": clock_ns}
            monitor = Monitor(configured(**sections), **more)
            running.append(monitor)
            addresses = await monitor.start()
            if catch is not None:
                catch.update(addresses)
            return InProcess(monitor, addresses["otlp"], addresses["api"], http, addresses.get("page", ""))

        yield start
    for monitor in running:
        await monitor.stop()
