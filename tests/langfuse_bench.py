"""An outbox in a real store, a fake Langfuse on a real socket, and a delivery between them; the clock is the test's."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sidejudge.integrations.backoff import Backoff
from sidejudge.integrations.langfuse.client import Access, Langfuse, RequestBudget
from sidejudge.integrations.langfuse.declared_scores import Declared
from sidejudge.integrations.langfuse.probe import LangfuseServer
from sidejudge.integrations.langfuse.scores import score_id
from sidejudge.integrations.store.outbox import ScoreRow
from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.monitor.deliver.langfuse.delivery import ScoreDelivery
from sidejudge.monitor.feedback.parts import FeedbackParts
from sidejudge.scoring.checks.redaction import Redaction
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse

START_NS = 1_795_000_000 * 10**9
DECLARED = [
    Declared(name="qa_score", data_type="NUMERIC", description="qa", low=0.0, high=1.0),
    Declared(name="qa_pass", data_type="BOOLEAN", description="passes"),
    Declared(name="qa_state", data_type="CATEGORICAL", description="state", categories=("valid", "invalid")),
]


def trace(number: int) -> str:
    return f"{number:032x}"


def score(number: int, value: float | str = 0.5, name: str = "qa_score", **more: Any) -> dict[str, Any]:
    """The body of a score as the outbox holds it."""
    kind = "CATEGORICAL" if isinstance(value, str) else "BOOLEAN" if name.endswith("_pass") else "NUMERIC"
    return {
        "id": score_id(trace(number), name), "traceId": trace(number), "name": name, "value": value,
        "dataType": kind, "comment": None, "environment": "production", "metadata": {"revision": 1}, **more,
    }  # fmt: skip


@dataclass
class Bench:
    """What a test holds in its hands."""

    fake: FakeLangfuse
    store: Store
    langfuse: Langfuse
    now_ns: int = START_NS
    handed: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    pauses: list[float] = field(default_factory=list)
    met: list[LangfuseServer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.delivery = self.new_delivery()

    def new_delivery(self) -> ScoreDelivery:
        return ScoreDelivery(
            outbox=self.store.outbox, langfuse=self.langfuse, declared=DECLARED, counters=self, remember=self.remember,
            clock_ns=lambda: self.now_ns, backoff=Backoff(random.Random(1).random),
        )  # fmt: skip

    def feedback_parts(self, scores_out: Any = None, **rubrics: Any) -> FeedbackParts:
        """What exchanges with people share; ``scores_out`` has the server that answers."""
        return FeedbackParts(
            scores_out=scores_out or SimpleNamespace(langfuse=self.langfuse, server=None), store=self.store,
            rubrics=rubrics, counters=self, redaction=Redaction(("key", "email")), clock_ns=lambda: self.now_ns,
        )  # fmt: skip

    def exported(self, _destination: str, count: int = 1, *, at_s: float | None = None) -> None:
        self.handed += count

    def export_failed(self, _destination: str, reason: str, count: int = 1) -> None:
        self.failed[str(reason)] += count

    async def remember(self, server: LangfuseServer) -> None:
        self.met.append(server)

    async def end(self, number: int, *scores: dict[str, Any], revision: int = 1) -> None:
        """End a trace with these scores."""
        await self.store.finish(
            FinishedTrace(
                trace_id=trace(number),
                service="svc",
                reason="scored",
                completion="idle",
                revision=revision,
                details={},
                closed_ns=self.now_ns,
                scores=[ScoreRow(id=s["id"], at_ns=START_NS + number, body=json.dumps(s)) for s in scores],
            )
        )

    async def step(self, times: int = 1) -> None:
        """Steps, the clock going on by what each wants to rest."""
        for _ in range(times):
            pause_s = await self.delivery.step()
            self.pauses.append(pause_s)
            self.now_ns += int(max(pause_s, 0.001) * 1e9)

    async def settle(self, steps: int = 400) -> None:
        """Steps until nothing waits and all that was sent was looked for."""
        for _ in range(steps):
            counts = self.store.outbox.counts()
            if not counts.waiting and not counts.unseen:
                return
            await self.step()
            if not self.store.outbox.due(self.now_ns, 1):
                self.now_ns += 20 * 10**9
        raise AssertionError(f"it did not settle: {self.store.outbox.counts()}, {self.delivery.snapshot()}")

    def values(self) -> dict[str, Any]:
        """What Langfuse has, by id."""
        rows = self.fake.scores.stored()
        assert len({row["id"] for row in rows}) == len(rows), "a score is stored twice"
        return {row["id"]: row["value"] for row in rows}

    def posts(self) -> list[Any]:
        """The bodies of each request to ``scores``, probes left out."""
        return [request.body for request in self.fake.requested("POST", "/scores") if request.body != []]

    def batches(self) -> list[list[Any]]:
        """The events of each request to ``ingestion``, probes left out."""
        sent = [request.body["batch"] for request in self.fake.requested("POST", "/ingestion")]
        return [batch for batch in sent if batch]


@pytest.fixture
def fake() -> Iterator[FakeLangfuse]:
    """A server without ``ingestion``; tests of batches switch it on."""
    with FakeLangfuse() as server:
        server.scores.takes_events = False
        yield server


@pytest.fixture
async def bench(fake: FakeLangfuse, tmp_path: Path) -> AsyncIterator[Bench]:
    access = Access(base_url=fake.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY)
    store = Store(tmp_path / "state.sqlite")
    held: list[Bench] = []

    async def sleep(seconds: float) -> None:
        held[0].now_ns += int(seconds * 1e9)

    budget = RequestBudget(1e9, now_s=lambda: held[0].now_ns / 1e9, sleep=sleep)
    async with Langfuse(access, budget=budget, timeout_s=1.0) as langfuse:
        held.append(Bench(fake, store, langfuse))
        fake.clock_s = lambda: held[0].now_ns / 1e9
        yield held[0]
    store.close()
