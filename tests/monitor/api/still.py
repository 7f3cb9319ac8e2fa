"""A monitor whose time a test moves, and what its pages and routes answer."""

from __future__ import annotations

from pathlib import Path

import httpx

from sidejudge.monitor.api.access import AccessRules
from sidejudge.monitor.api.contents_token import HEADER, ContentsToken
from sidejudge.monitor.api.door import door
from sidejudge.monitor.api.routes import create_app
from sidejudge.monitor.runtime.app import Monitor
from tests.otlp_requests import HIGH, S, request, span, trace

SAID = {
    "langfuse.observation.type": "agent",
    "langfuse.observation.input": "When?", "langfuse.observation.output": "Tomorrow.",
}  # fmt: skip
"""An agent, asked and answering: a contract is open where nothing was recognised in a trace."""
ROUTES = {
    "scenarios": {"any": {"tools_should_include": ["lookup"]}},
    "routes": [{"rubrics": ["workflow"], "scenario": "any"}],
}

TOKEN = ContentsToken("t" * 43, Path("/nowhere/state.sqlite.token"))


def api(view, rules=AccessRules(), version="0"):  # noqa: B008  # it never changes
    """The API of a view behind its door, as a monitor serves it."""
    return door(view, lambda: create_app(view, version=version, rules=rules), rules.credentials)


class Still:
    """A monitor that is not started, at a time that the test moves, and clients at any address."""

    def __init__(self, config):
        self.now = 1_790_000_000_000_000_000
        self.monitor = Monitor(config, clock_ns=lambda: self.now)
        self.app = api(self.monitor.view, AccessRules.of(config.api, TOKEN))

    async def take(self, number, tail=HIGH, **more):
        spans = [S(trace_id=trace(number, tail), span_id=span(number + 1), **{"attributes": SAID, **more})]
        await self.monitor.intake.consume(request(spans))

    async def judge(self):
        self.now += 60_000_000_000
        self.monitor.pipeline.waiting.extend(self.monitor.assembler.due(self.now))
        await self.monitor.pipeline.drain()

    async def get(self, path, caller="127.0.0.1", **headers):
        transport = httpx.ASGITransport(self.app, client=(caller, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.get(path, headers={HEADER: TOKEN.value, **given})
