"""A monitor whose clock the test holds, a Langfuse that has its traces, and references that come when they come."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import msgspec
import pytest

from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.integrations.otlp.wire.encode import encode_spans
from sidejudge.integrations.raw import EVALUATION, RawEvent, RawSpan
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.demo.traffic import SampleTraffic
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.monitor.evaluate.references.lookup import SETTLES_NS
from sidejudge.monitor.offline.backfill.run import case_of
from sidejudge.monitor.runtime.app import Monitor
from sidejudge.scoring.verdict.verdict import Verdict
from tests.fakes.langfuse.datasets import datasets_of, item, part
from tests.fakes.langfuse.observations import Observations, at_ns, observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.waiting import until

SECOND_NS = 10**9
MINUTE_NS = 60 * SECOND_NS
HOUR_NS = 60 * MINUTE_NS


def trace(number: int = 1) -> str:
    """An id that half of all rates draw."""
    return f"{number:018x}{1 << 55:014x}"


@dataclass
class Scene:
    """The clock moves when the test says so; what goes on by itself in a monitor is asked for round by round."""

    fake: FakeLangfuse
    configured: Callable[..., Config]
    sections: dict[str, Any]
    now_ns: int = field(default_factory=time.time_ns)
    right: dict[int, Any] = field(default_factory=dict)
    """What each application ought to have said."""
    sent: dict[int, list[RawSpan]] = field(default_factory=dict)
    """The spans of each trace."""
    monitor: Monitor = field(init=False)
    otlp: str = ""
    api: str = ""

    @staticmethod
    def id_of(number: int) -> str:
        return trace(number)

    async def begin(self, **sections: Any) -> None:
        """Start a monitor on the state that there is."""
        self.monitor = Monitor(self.configured(**{**self.sections, **sections}), clock_ns=lambda: self.now_ns)
        addresses = await self.monitor.start()
        self.otlp, self.api = addresses["otlp"], addresses["api"]

    async def restart(self, **sections: Any) -> None:
        await self.monitor.stop()
        await self.begin(**sections)

    def spans(self, number: int = 1, *, wrong: bool = True) -> list[RawSpan]:
        """A trace of a minute ago, of an application that makes up an entity, or does not."""
        traffic = SampleTraffic(number)
        while True:
            spans = decode_spans(traffic.next((self.now_ns - MINUTE_NS) // 10**6 * 10**6, wrong=float(wrong)).body)
            case = case_of(self.monitor.config, spans)
            if case.task == "entity":
                stated = case.metadata["expected_outcome"]
                self.right[number] = json.loads(stated) if isinstance(stated, str) else stated
                return [msgspec.structs.replace(span, trace_id=trace(number)) for span in spans]

    async def judge(self, number: int = 1, *, in_langfuse: bool = True, wrong: bool = True) -> None:
        """A trace arrives here and in Langfuse, and is judged."""
        self.sent[number] = self.spans(number, wrong=wrong)
        if in_langfuse:
            self.arrive_in_langfuse(number)
        await self.post(self.sent[number])
        await self.until(lambda: bool(self.verdicts(number)))

    async def judge_with_event(self, name: str, value: float, by: str) -> None:
        """The same of a trace whose first span has an evaluation by somebody; Langfuse keeps no such events."""
        spans = self.spans()
        self.sent[1] = spans
        self.arrive_in_langfuse()
        given = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": value, "evaluator.name": by}
        event = RawEvent(name=EVALUATION, time_ns=spans[0].end_ns, attributes=given)
        await self.post([msgspec.structs.replace(spans[0], events=(event,)), *spans[1:]])
        await self.until(lambda: bool(self.verdicts()))

    def arrive_in_langfuse(self, number: int = 1, *, most: int | None = None) -> list[dict[str, Any]]:
        """All rows of a trace, of which Langfuse has so many from now on."""
        self.sent.setdefault(number, self.spans(number))
        rows = rows_of(self.sent[number])
        observations_of(self.fake).put(*rows[:most])
        return rows

    async def until(self, condition: Callable[[], bool]) -> None:
        """Time passes until it holds."""

        def holds() -> bool:
            self.now_ns += SECOND_NS
            return condition()

        await until(holds)

    async def post(self, spans: list[RawSpan]) -> None:
        async with httpx.AsyncClient() as http:
            headers = {"content-type": "application/x-protobuf"}
            answer = await http.post(self.otlp + "/v1/traces", content=encode_spans(spans), headers=headers)
            answer.raise_for_status()

    async def pass_by(self, hours: float) -> None:
        """Time passes; what is kept long enough goes."""
        self.now_ns += int(hours * HOUR_NS)
        await until(lambda: not any(self.monitor.assembler.knows(bytes.fromhex(trace(each))) for each in self.sent))
        await self.monitor.retention.purge()

    def expect(self, expected: Any, number: int = 1) -> None:
        """What ought to have been said, from now on; None: nothing is known any more."""
        held = [each for each in datasets_of(self.fake)["golden"] if each["sourceTraceId"] != trace(number)]
        made = [] if expected is None else [item(expected, sourceTraceId=trace(number))]
        datasets_of(self.fake)["golden"] = [*held, *made]

    def known_at_once(self, number: int = 1) -> Verdict:
        """What the verdict would have been, had the reference been there from the beginning."""
        case = replace(case_of(self.monitor.config, self.sent[number]), expected_outcome=self.right[number])
        (verdict,) = Evaluator(configured(self.monitor.config)).verdicts(case, ["entity"], created_at="")
        return verdict

    def correct(self, output: str, number: int = 1) -> None:
        """Somebody writes down, now, what the output ought to have been."""
        at = at_ns(self.now_ns)
        self.fake.scores.add(
            id=f"correction-{number}", traceId=trace(number), name="output", dataType="CORRECTION", value=output,
            source="ANNOTATION", authorUserId="somebody", timestamp=at,
        )  # fmt: skip

    async def look(self, rounds: int = 3) -> None:
        """References are read anew, and what is owed because of them is paid, as far as it goes now."""
        assert self.monitor.references is not None
        await self.monitor.references.refresh()
        self.now_ns += SETTLES_NS
        await self.go_on(rounds)

    async def go_on(self, rounds: int = 3) -> None:
        assert self.monitor.revisions is not None
        for _ in range(rounds):
            await self.monitor.revisions.round()
            self.now_ns += 10 * SECOND_NS

    def verdicts(self, number: int = 1) -> list[dict[str, Any]]:
        return self.monitor.store.verdicts(trace_id=trace(number))

    def verdict(self, number: int = 1) -> dict[str, Any]:
        (verdict,) = self.verdicts(number)
        return verdict

    async def story(self, number: int = 1) -> dict[str, Any]:
        return await self.get(f"/v1/traces/{trace(number)}")

    async def get(self, path: str) -> Any:
        async with httpx.AsyncClient() as http:
            return (await http.get(self.api + path)).raise_for_status().json()

    async def sample(self, name: str) -> dict[str, float]:
        """The samples of a metric, by their labels as they are written."""
        async with httpx.AsyncClient() as http:
            text = (await http.get(self.api + "/metrics")).text
        lines = [line for line in text.splitlines() if line.startswith((name + "{", name + " "))]
        return {line.removeprefix(name).rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}

    def scores(self, number: int = 1) -> dict[str, dict[str, Any]]:
        """What stands in Langfuse of a trace, by name: each once."""
        rows = [row for row in self.fake.scores.stored() if row["traceId"] == trace(number)]
        assert len({row["id"] for row in rows}) == len(rows), "a score is stored twice"
        return {row["name"]: row for row in rows}

    async def delivered(self, number: int = 1) -> None:
        """All scores of a trace are as they should be."""
        await self.until(lambda: not self.monitor.store.outbox.counts().waiting and bool(self.scores(number)))

    def reads(self) -> list[str]:
        """Traces that Langfuse was asked for, one by one."""
        requested = [each.params for each in self.fake.requested("GET", "/v2/observations")]
        return [params["traceId"] for params in requested if "traceId" in params]

    async def page(self, path: str) -> str:
        async with httpx.AsyncClient() as http:
            return (await http.get(self.api + path)).raise_for_status().text


@pytest.fixture
def mode(request: pytest.FixtureRequest) -> Mode:
    return getattr(request, "param", Mode.NEW)


@pytest.fixture
def fake(mode: Mode) -> Iterator[FakeLangfuse]:
    with FakeLangfuse(mode, parts=[Observations.part, part]) as server:
        datasets_of(server)["golden"] = []
        yield server


@pytest.fixture
async def opened(
    fake: FakeLangfuse, configured: Callable[..., Config]
) -> AsyncIterator[Callable[..., Awaitable[Scene]]]:
    """Opens a scene; sections of its configuration are replaced by what is given."""
    made: list[Scene] = []

    async def open_one(**sections: Any) -> Scene:
        keys = {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
        keys["requests_per_minute"] = 60_000  # what is left of a minute is waited for in real time
        given = {
            "sinks": {"langfuse": {**keys, "scores": "all"}}, "routes": [{"rubrics": ["entity"]}],
            "references": [{"langfuse_dataset": "golden"}], **sections,
        }  # fmt: skip
        made.append(Scene(fake, configured, given))
        await made[-1].begin()
        return made[-1]

    yield open_one
    for scene in made:
        await scene.monitor.stop()
