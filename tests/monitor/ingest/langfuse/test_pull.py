"""Reading traces from Langfuse: each once, whole, drawn before it is read, whatever the server is like and does."""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sidejudge.integrations.backoff import Backoff
from sidejudge.integrations.langfuse.client import Access, Langfuse, RequestBudget
from sidejudge.integrations.otlp.wire.kept import decode_kept
from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.langfuse import LangfuseSource
from sidejudge.monitor.ingest.assembler import Assembler
from sidejudge.monitor.ingest.intake import Intake
from sidejudge.monitor.ingest.langfuse import pull as pull_module
from sidejudge.monitor.ingest.langfuse.pull import Pull, traces_in
from sidejudge.monitor.ingest.outcomes import EndReason, TraceOutcomes
from sidejudge.monitor.ingest.sampler import Sampler
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.observations import Observations, at_ns, observations_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode, only

SECOND = 10**9
START_NS = 1_795_000_000 * SECOND
MINUTES = 60 * SECOND


class KilledError(BaseException):
    """The process ends here."""


def trace_id(number: int) -> str:
    return f"{number:032x}"


def rows(number: int, *, start_ns: int = START_NS, spans: int = 3, **more: Any) -> list[dict[str, Any]]:
    """A root and steps below it, each a millisecond later."""
    made = []
    for index in range(spans):
        begun = start_ns + index * 10**6
        made.append(
            {
                "id": f"{number:08x}{index + 1:08x}", "traceId": trace_id(number), "name": f"step {index}",
                "startTime": at_ns(begun), "endTime": at_ns(begun + 10**6), "createdAt": at_ns(begun),
                "updatedAt": at_ns(begun), "parentObservationId": f"{number:08x}{1:08x}" if index else "",
                "input": "what", "output": "that", "environment": "production", **more,
            }
        )  # fmt: skip
    return made


SOURCE = LangfuseSource.model_validate({
    "base_url": "http://localhost", "public_key": "pk", "secret_key": "sk", "poll": "15s", "settle": "10s",
    "look_back": "30m",
})  # fmt: skip


@dataclass
class Bench:
    """A store, a fake and what reads it; the clock is the test's."""

    fake: FakeLangfuse
    folder: Path
    langfuse: Langfuse
    sampling: dict[str, Any] = field(default_factory=lambda: {"rate": 1.0})
    now_ns: int = START_NS + 60 * SECOND
    busy: bool = False

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """As a process that has just been started."""
        self.store = Store(self.folder / "state.sqlite")
        self.outcomes, self.assembler = TraceOutcomes(), Assembler()
        self.sampler = Sampler(Config.model_validate({"sampling": self.sampling}).sampling)
        self.intake = Intake(
            sampler=self.sampler, store=self.store, assembler=self.assembler, outcomes=self.outcomes,
            clock_ns=lambda: self.now_ns,
        )  # fmt: skip
        self.intake.restore()
        self.pull = Pull(
            langfuse=self.langfuse, source=SOURCE, store=self.store, intake=self.intake,
            outcomes=self.outcomes, sampler=self.sampler, busy=lambda: self.busy, clock_ns=lambda: self.now_ns,
            patience=Backoff(random.Random(1).random), rootless_ns=5 * MINUTES, retention_ns=24 * 60 * MINUTES,
        )  # fmt: skip

    def killed(self) -> None:
        """Everything in memory is lost."""
        self.store.close()
        self.begin()

    def put(self, *made: dict[str, Any]) -> None:
        observations_of(self.fake).put(*made)

    async def poll(self, times: int = 1, every_s: float = 15) -> None:
        for _ in range(times):
            await self.pull.poll()
            self.now_ns += int(every_s * SECOND)

    def taken(self) -> dict[str, int]:
        """Traces in the store, with the number of their spans."""
        found: dict[str, int] = {}
        for chunk in self.store.recover():
            spans = self.assembler._open.get(chunk.trace_id) or self.assembler._closed.get(chunk.trace_id)
            found[chunk.trace_id.hex()] = len(spans.ids) if spans is not None else 0
        return found

    def bodies(self) -> list[str]:
        """Traces whose contents were asked for."""
        requested = self.fake.requested("GET", "/v2/observations")
        return [request.params["traceId"] for request in requested if "traceId" in request.params]

    def ended(self) -> dict[EndReason, int]:
        return dict(self.outcomes.balance().ended)


@pytest.fixture
def fake() -> Iterator[FakeLangfuse]:
    with FakeLangfuse(Mode.NEW, parts=[Observations.part]) as server:
        yield server


@pytest.fixture
async def benches(tmp_path: Path) -> AsyncIterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(fake: FakeLangfuse, **more: Any) -> Bench:
        access = Access(base_url=fake.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY)
        made.append(Bench(fake, tmp_path, Langfuse(access, budget=RequestBudget(1e9), timeout_s=2.0), **more))
        return made[-1]

    yield make
    for bench in made:
        bench.store.close()
        await bench.langfuse.close()


@pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)
async def test_traces_are_taken_whole_and_once_from_every_version(benches, mode):
    with FakeLangfuse(mode, parts=[Observations.part]) as fake:
        bench = benches(fake)
        bench.put(*(row for number in range(1, 6) for row in rows(number)))
        assert bench.pull.trace_url(trace_id(1)) is None, "the project is not known yet"
        await bench.poll(4)
        assert (bench.pull.trace_url(trace_id(1)) or "").endswith(f"/traces/{trace_id(1)}")
        assert bench.taken() == {trace_id(number): 3 for number in range(1, 6)}
        assert (bench.outcomes.balance().seen, bench.intake.counts.duplicate) == (5, 0)
        assert bench.pull.snapshot().reads == ("legacy" if mode is Mode.V3 else "v2")
        assert (bench.pull.snapshot().state, bench.pull.snapshot().taken) == ("ok", 5)


async def test_nothing_is_read_before_it_has_settled_and_its_root_has_ended(benches, fake):
    bench = benches(fake, now_ns=START_NS + SECOND)
    whole = rows(1)
    bench.put(*whole[1:])
    await bench.poll(3)
    assert bench.bodies() == [], "its root is still running"
    bench.put({**whole[0], "createdAt": at_ns(bench.now_ns), "updatedAt": at_ns(bench.now_ns)})
    await bench.poll(1, every_s=5)
    assert bench.bodies() == [], "its root has only just come"
    await bench.poll(1, every_s=6)
    await bench.poll(2)
    assert bench.taken() == {trace_id(1): 3}


@pytest.mark.parametrize("behind_s", [0, 60])
async def test_what_a_server_has_just_written_settles_though_its_clock_is_behind(benches, fake, behind_s):
    bench = benches(fake, now_ns=START_NS + 20 * SECOND)

    def dated(request: faults.Request) -> Any:
        date = format_datetime(datetime.now(UTC) - timedelta(seconds=behind_s), usegmt=True)
        act = fake._act(request)
        return faults._with(act, headers={**act.headers, "date": date})

    def write(*made: dict[str, Any]) -> None:
        written = at_ns(bench.now_ns - behind_s * SECOND)
        bench.put(*({**row, "createdAt": written, "updatedAt": written} for row in made))

    fake.standing_fault = dated
    root, *others = rows(1)
    write(root)
    await bench.poll(1, every_s=5)
    write(*others)
    await bench.poll(6, every_s=5)
    assert bench.taken() == {trace_id(1): 3}
    assert bench.bodies() == [trace_id(1)], "its root was not taken alone"


@pytest.mark.parametrize("off_s", [-7_200, -600, 7_200])
@pytest.mark.parametrize(("ours_is_right", "within_s"), [(False, 20), (True, 600)])
async def test_what_begins_now_is_read_whichever_clock_is_far_off(benches, fake, off_s, ours_is_right, within_s):
    """That of the server which answers may be a proxy's, or one of several."""

    def dated(request: faults.Request) -> Any:
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=off_s), usegmt=True)
        act = fake._act(request)
        return faults._with(act, headers={**act.headers, "date": date})

    fake.standing_fault = dated
    bench = benches(fake, now_ns=START_NS if ours_is_right else START_NS - off_s * SECOND)
    await bench.poll(1, every_s=5)
    bench.put(*rows(1))
    await bench.poll(4, every_s=within_s / 4)
    assert bench.taken() == {trace_id(1): 3}


async def test_a_trace_whose_root_never_comes_is_read_in_the_end(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1)[1:])
    await bench.poll(8)
    assert bench.taken() == {}
    await bench.poll(20)
    assert bench.taken() == {trace_id(1): 2}


async def test_a_run_that_began_long_before_what_is_listed_is_taken_with_its_root(benches, fake):
    bench = benches(fake)
    first, *others = rows(1)
    bench.put(*others, {**first, "startTime": at_ns(START_NS - 300 * MINUTES)})
    await bench.poll(28)
    assert bench.taken() == {trace_id(1): 3}
    await bench.poll(2)
    assert bench.pull.pending.start_ns is None, "what is taken holds back no listing"


async def test_a_trace_that_a_listing_saw_in_part_is_read_twice_before_it_is_taken(benches, fake):
    bench = benches(fake)
    first, *others = rows(1)
    started = START_NS - 20 * MINUTES
    bench.put(*others, {**first, "startTime": at_ns(started)})
    await bench.pull._introduce()
    bench.pull._full_ns = bench.now_ns  # a near listing, which the start of the root lies before
    await bench.poll(1)
    bench.pull.pending.listed[trace_id(1)].rooted = True
    await bench.poll(1)
    assert bench.taken() == {}, "one reading found a row that the listing had not"
    await bench.poll(2)
    assert bench.taken() == {trace_id(1): 3}
    assert bench.bodies() == [trace_id(1)] * 2


async def test_a_trace_of_which_a_row_is_never_read_is_taken_as_it_is_after_five_readings_more(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1))

    def lacks(request: faults.Request) -> faults.Act | None:
        return faults.answer({"data": rows(1)[:2], "meta": {}}) if "traceId" in request.params else None

    fake.standing_fault = only("GET", "/v2/observations", lacks)
    times: list[int] = []
    while not bench.taken() and len(times) < 9:
        before_ns, read = bench.now_ns, len(bench.bodies())
        await bench.poll(1, every_s=3)
        times += [before_ns] * (len(bench.bodies()) - read)
    assert (bench.taken(), len(times)) == ({trace_id(1): 2}, 6)
    assert {later - earlier for earlier, later in itertools.pairwise(times)} == {12 * SECOND}, "settle is 10 s"
    shown = bench.pull.snapshot()
    assert (shown.taken, shown.rows - bench.pull._rows) == (1, 12)


async def test_a_trace_that_cannot_be_read_and_is_alone_is_asked_for_less_and_less_often(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1))
    fake.standing_fault = only(
        "GET", "/v2/observations", lambda r: faults.broken_json()(r) if "traceId" in r.params else None
    )
    await bench.poll(60, every_s=1)
    assert 2 <= len(bench.bodies()) <= 30
    assert (bench.pull.snapshot().state, dict(bench.pull.snapshot().errors)) == (
        "retrying", {"not_langfuse": len(bench.bodies())},
    )  # fmt: skip


async def test_rows_that_come_late_with_an_old_start_are_taken_too(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1)[:2])
    await bench.poll(3)
    assert bench.taken() == {trace_id(1): 2}
    bench.assembler.due(bench.now_ns + 60 * SECOND)
    bench.put(rows(1)[2])
    await bench.poll(20)
    assert bench.taken() == {trace_id(1): 3}
    assert bench.outcomes.balance().seen == 1


async def test_a_step_that_comes_late_is_of_the_graph_that_was_read_before(benches, fake):
    bench = benches(fake)
    path = "langgraph_checkpoint_ns"
    whole = [
        {**row, "name": name, "metadata": {"lc_agent_name": "boss", path: namespace}, "parentObservationId": above}
        for row, name, namespace, above in zip(
            rows(1), ("run", "reader", "model"), ("", "tools:a", "tools:a|model:b"),
            ("", rows(1)[0]["id"], rows(1)[1]["id"]), strict=True,
        )
    ]  # fmt: skip
    bench.put(*whole[:2])
    await bench.poll(3)
    bench.put(whole[2])
    await bench.poll(20)
    spans = {span.name: span for chunk in bench.store.chunks(trace_id(1)) for span in decode_kept([chunk]).spans}
    assert spans["model"].attributes["langfuse.observation.metadata.lc_agent_name"] == "reader"
    assert bench.taken() == {trace_id(1): 3}


async def test_rows_that_come_twice_are_one_row(benches, fake):
    observations_of(fake).twice = True
    bench = benches(fake)
    bench.put(*rows(1))
    await bench.poll(3)
    assert bench.taken() == {trace_id(1): 3}
    assert b"older" not in b"".join(bench.store.chunks(trace_id(1)))


async def test_a_window_of_more_rows_than_a_page_is_read_page_by_page(benches, fake):
    bench = benches(fake)
    bench.put(*(row for number in range(1, 301) for row in rows(number, spans=4)))
    await bench.poll(3)
    assert len(bench.taken()) == 300


async def test_metadata_beyond_200_characters_arrives_whole(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1, metadata={"expected_outcome": "x" * 1000}))
    await bench.poll(3)
    assert b"x" * 1000 in b"".join(bench.store.chunks(trace_id(1)))


async def test_traces_that_are_not_drawn_are_counted_once_and_never_read(benches, fake):
    bench = benches(fake, sampling={"rate": 0.5})
    ids = [f"{random.Random(n).getrandbits(128):032x}" for n in range(200)]
    for number, each in enumerate(ids):
        bench.put(*({**row, "traceId": each} for row in rows(number + 1)))
    await bench.poll(20)
    drawn = {each for each in ids if bench.sampler.admits(bytes.fromhex(each))}
    assert 0 < len(drawn) < len(ids)
    assert set(bench.bodies()) == drawn == set(bench.taken())
    assert bench.ended() == {EndReason.SAMPLED_OUT: len(ids) - len(drawn)}
    assert bench.outcomes.balance().seen == len(ids)


def of_service(service: str, name: str = "checkout") -> dict[str, Any]:
    return {"traceName": name, "metadata": {"resourceAttributes.service.name": service}}


async def test_traces_that_are_not_drawn_stand_under_the_service_that_others_of_their_name_told(benches, fake):
    bench = benches(fake, sampling={"rate": 0.5})
    drawn = [number for number in range(1 << 55, (1 << 55) + 40, 2) if bench.sampler.admits(number.to_bytes(16))]
    left = [number for number in range(1, 40) if not bench.sampler.admits(number.to_bytes(16))]
    bench.put(*rows(drawn[0], **of_service("shop")), *rows(drawn[1], **of_service("bot", "chat")))
    bench.put(*rows(drawn[2], **of_service("other bot", "chat")))
    await bench.poll(3)
    since = {"start_ns": bench.now_ns - 30 * SECOND}
    bench.put(*rows(left[0], **since, **of_service("shop")), *rows(left[1], **since, **of_service("bot", "chat")))
    bench.put(*rows(left[2], **since, **of_service("shop"), environment="dev"))
    bench.put(*rows(left[3], **since, traceName="never seen"))
    await bench.poll(2)
    reported = {
        service: count for (service, reason), count in bench.outcomes._ended.items() if reason is EndReason.SAMPLED_OUT
    }
    assert reported == {"shop": 1, "unknown_service": 3}


async def test_a_trace_of_our_own_judge_stands_under_its_own_service(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1, metadata={"scope.name": "sidejudge.judge", "resourceAttributes.service.name": "sidejudge"}))
    await bench.poll(3)
    assert dict(bench.outcomes._ended) == {("sidejudge", EndReason.EXCLUDED): 1}


async def test_a_rule_on_tags_has_only_what_it_may_match_read(benches, fake):
    rules = [
        {"name": "vip", "match": {"tags": ["vip"]}, "rate": 1.0},
        {"name": "bad", "match": {"level": "error"}, "rate": 1.0},
    ]
    bench = benches(fake, sampling={"rate": 1e-9, "rules": rules})
    bench.put(*rows(1), *rows(2, tags=["vip"]), *rows(3, level="ERROR"), *rows(4, tags=["other"]))
    await bench.poll(4)
    assert sorted(set(bench.bodies())) == [trace_id(2), trace_id(3)] == sorted(bench.taken())
    assert bench.ended() == {EndReason.SAMPLED_OUT: 2}


@pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)
async def test_a_rule_on_errors_has_failed_traces_read_from_every_version(benches, mode):
    with FakeLangfuse(mode, parts=[Observations.part]) as fake:
        rule = {"name": "bad", "match": {"level": "error"}, "rate": 1.0}
        bench = benches(fake, sampling={"rate": 1e-9, "rules": [rule]})
        bench.put(*rows(1), *rows(3, level="ERROR"))
        await bench.poll(6)
        assert trace_id(3) in bench.taken()
        assert (trace_id(1) in bench.taken()) is (bench.pull.snapshot().reads == "legacy")  # its listing has no levels


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_comes_after_a_clock_was_set_back_is_read(benches, fake, restarted):
    bench = benches(fake)
    await bench.poll(2)
    right_ns = bench.now_ns
    bench.now_ns += 720 * MINUTES
    await bench.poll(2)
    fake.standing_fault = only("GET", "/v2/observations", faults.error(503))
    await bench.poll()
    fake.standing_fault, bench.now_ns = None, right_ns
    if restarted:
        bench.killed()
    bench.put(*rows(1, start_ns=right_ns))
    await bench.poll(3)
    assert list(bench.taken()) == [trace_id(1)]


async def test_what_was_seen_before_a_clock_was_set_back_is_read(benches, fake):
    bench = benches(fake)
    bench.now_ns += 720 * MINUTES
    bench.put(*rows(1, start_ns=bench.now_ns))
    await bench.poll()
    bench.now_ns -= 720 * MINUTES
    await bench.poll(2)
    assert list(bench.taken()) == [trace_id(1)]


async def test_a_rule_that_a_listing_cannot_answer_has_everything_read(benches, fake):
    rules = [{"name": "down", "match": {"feedback": "negative"}, "rate": 1.0}]
    bench = benches(fake, sampling={"rate": 1e-9, "rules": rules})
    bench.put(*rows(1), *rows(2, metadata={"feedback": "thumbs_down"}))
    await bench.poll(4)
    assert sorted(bench.taken()) == [trace_id(1), trace_id(2)]


@pytest.mark.parametrize("mark", [{"environment": "langfuse-llm-as-a-judge"}, {"environment": "sdk-experiment"},
                                  {"tags": ["sidejudge"]}], ids=str)  # fmt: skip
async def test_evaluators_own_traces_are_excluded_unread(benches, fake, mark):
    bench = benches(fake)
    bench.put(*rows(1, **mark), *rows(2))
    await bench.poll(4)
    assert bench.bodies() == [trace_id(2)]
    assert bench.ended() == {EndReason.EXCLUDED: 1}


async def test_traces_of_our_own_judge_are_excluded_by_scope_and_service(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1, metadata={"scope.name": "sidejudge.judge"}), *rows(2))
    await bench.poll(4)
    assert list(bench.taken()) == [trace_id(2)]
    assert bench.ended() == {EndReason.EXCLUDED: 1}


async def test_a_trace_with_an_id_of_an_older_sdk_ends_as_undecodable_once(benches, fake):
    bench = benches(fake)
    bench.put(*({**row, "traceId": "0a3c1c2e-7a36-4d0e-9a55-3d3a4a0c1f5e"} for row in rows(1)))
    await bench.poll(20)
    assert bench.ended() == {EndReason.UNDECODABLE: 1}
    assert bench.outcomes.balance().seen == 1


async def test_a_trace_that_is_deleted_between_listing_and_reading_ends_as_deleted_once(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1, start_ns=bench.now_ns))
    await bench.poll()
    observations_of(fake).held.clear()
    await bench.poll(30)
    assert bench.ended() == {EndReason.DELETED: 1}
    assert bench.outcomes.balance().seen == 1


async def test_after_a_kill_reading_goes_on_where_it_was_and_takes_nothing_twice(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1))
    await bench.poll(3)
    bench.put(*rows(2, start_ns=bench.now_ns))
    bench.killed()
    bench.put(*rows(3, start_ns=bench.now_ns))
    bench.now_ns += 3600 * SECOND
    await bench.poll(4)
    assert bench.taken() == {trace_id(number): 3 for number in (1, 2, 3)}
    assert bench.bodies().count(trace_id(1)) == 1


async def test_killed_between_the_spans_and_the_note_of_them_it_doubles_nothing(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1))
    real = bench.store.pulled.put

    async def dies(taken: Any) -> None:
        if taken:
            raise KilledError
        await real(taken)

    bench.store.pulled.put = dies
    with pytest.raises(KilledError):
        await bench.poll(3)
    assert bench.taken() == {trace_id(1): 3}
    bench.killed()
    await bench.poll(3)
    assert bench.taken() == {trace_id(1): 3}
    assert bench.intake.counts.duplicate == 3
    assert len(bench.store.chunks(trace_id(1))) == 1


async def test_while_too_much_waits_nothing_is_listed(benches, fake):
    bench = benches(fake, busy=True)
    bench.put(*rows(1))
    await bench.poll(3)
    assert bench.pull.snapshot().state == "waiting"
    assert not [r for r in fake.requested("GET", "/v2/observations") if r.params.get("limit") != "1"]
    bench.busy = False
    await bench.poll(3)
    assert bench.taken() == {trace_id(1): 3}


async def test_a_server_that_calls_a_query_too_expensive_is_asked_for_less(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1))

    def dear(request: faults.Request) -> faults.Act | None:
        return faults.resources()(request) if int(request.params.get("limit", "1")) > 10 else None

    fake.standing_fault = only("GET", "/v2/observations", dear)
    await bench.poll(3)
    assert bench.taken() == {trace_id(1): 3}


async def test_a_cursor_that_comes_again_is_an_error_and_not_a_circle(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1))

    def circle(request: faults.Request) -> faults.Act | None:
        page = {"data": rows(1), "meta": {"cursor": "again"}}
        return faults.answer(page) if "fromStartTime" in request.params else None

    fake.standing_fault = only("GET", "/v2/observations", circle)
    await bench.poll(2)
    assert "would never end" in bench.pull.snapshot().reason


async def test_wrong_keys_stop_it_and_are_told(benches, fake):
    bench = benches(fake)
    bench.langfuse._http.auth = ("pk-lf-test", "sk-wrong")
    await bench.poll()
    assert bench.pull.snapshot().state == "stopped"
    assert "sources.langfuse" in bench.pull.snapshot().reason
    assert dict(bench.pull.snapshot().errors) == {"keys_refused": 1}


UNREADABLE = {
    "refuses": faults.error(500), "is cut": faults.broken_json(), "breaks off": faults.resets(50),
    "is too deep": faults.broken_json(b"[" * 100_000 + b"]" * 100_000),
    "is no page": faults.broken_json(b'{"data": 1}'),
}  # fmt: skip
"""What a server may do whenever it is asked for one particular trace."""


@pytest.mark.parametrize("fault", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_one_trace_that_cannot_be_read_keeps_no_other_back_and_is_given_up(benches, fake, fault):
    bench = benches(fake)
    bench.put(*rows(1), *rows(2, start_ns=START_NS + SECOND))

    def fails(request: faults.Request) -> faults.Act | None:
        return fault(request) if request.params.get("traceId") == trace_id(1) else None

    fake.standing_fault = only("GET", "/v2/observations", fails)
    for number in range(3, 15):
        await bench.poll(5)
        bench.put(*rows(number, start_ns=bench.now_ns - 60 * SECOND))
    await bench.poll(5)
    assert set(bench.taken()) == {trace_id(number) for number in range(2, 15)}
    assert bench.ended() == {EndReason.SHED: 1}
    assert bench.pull.snapshot().pending == 0


@pytest.mark.parametrize("fault", [faults.login_page(), *map(faults.proxy_page, (403, 404, 413))])
async def test_one_trace_that_a_firewall_keeps_back_keeps_no_other_back_and_is_given_up(benches, fake, fault):
    bench = benches(fake)
    bench.put(*(row for number in range(1, 13) for row in rows(number, start_ns=START_NS + number)))
    fake.standing_fault = only(
        "GET", "/v2/observations", lambda r: fault(r) if r.params.get("traceId") == trace_id(1) else None
    )
    await bench.poll(2)
    assert set(bench.taken()) == {trace_id(number) for number in range(2, 13)}
    await bench.poll(3, every_s=65)
    assert bench.pull.snapshot().state == "retrying"
    for number in range(13, 20):
        bench.put(*rows(number, start_ns=bench.now_ns))
        await bench.poll(2)
        assert trace_id(number) in bench.taken(), "it is read as soon as it has settled"
        await bench.poll(2, every_s=65)
    assert bench.pull.snapshot().state == "ok"
    assert set(bench.taken()) == {trace_id(number) for number in range(2, 20)}
    assert bench.ended() == {EndReason.SHED: 1}


@pytest.mark.parametrize("fault", [faults.login_page(), *map(faults.proxy_page, (403, 404, 413))])
async def test_what_keeps_every_trace_back_has_none_given_up(benches, fake, fault):
    bench = benches(fake)
    bench.put(*(row for number in range(1, 9) for row in rows(number)))
    fake.standing_fault = only("GET", "/v2/observations", lambda r: fault(r) if "traceId" in r.params else None)
    await bench.poll(20, every_s=65)
    assert (bench.taken(), bench.ended()) == ({}, {})
    assert bench.pull.snapshot().state in ("retrying", "stopped")
    fake.standing_fault = None
    await bench.poll(10, every_s=65)
    assert len(bench.taken()) == 8


@pytest.mark.parametrize("fault", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_while_no_trace_can_be_read_none_is_given_up(benches, fake, fault):
    bench = benches(fake)
    bench.put(*(row for number in range(1, 9) for row in rows(number)))
    fake.standing_fault = only("GET", "/v2/observations", lambda r: fault(r) if "traceId" in r.params else None)
    await bench.poll(200)
    assert (bench.taken(), bench.ended()) == ({}, {})
    assert bench.pull.snapshot().state == "retrying"
    fake.standing_fault = None
    await bench.poll(20)
    assert len(bench.taken()) == 8


async def test_random_faults_and_kills_lose_and_double_nothing(benches, fake):
    rng = random.Random(7)
    bench = benches(fake)
    observations_of(fake).clock = lambda: bench.now_ns / SECOND
    kinds = [faults.error(500), faults.proxy_page(), faults.login_page(), faults.resets(), faults.resources(),
             faults.rate_limited(1, 100_000), faults.database_away(), faults.resets(after=50)]  # fmt: skip
    fake.standing_fault = lambda r: rng.choice(kinds)(r) if rng.random() < 0.25 else None
    number = 0
    for _ in range(60):
        for _ in range(rng.randrange(3)):
            number += 1
            whole = rows(number, start_ns=bench.now_ns - rng.randrange(20) * SECOND)
            late = rng.randrange(3)
            bench.put(*whole[: 3 - late])
            observations_of(fake).put(*whole[3 - late :], after_s=rng.choice([0, 20]))
        await bench.poll()
        if rng.random() < 0.1:
            bench.killed()
    fake.standing_fault = None
    await bench.poll(60)
    assert bench.taken() == {trace_id(each): 3 for each in range(1, number + 1)}
    assert bench.pull.snapshot().pending == 0
    assert number > 30


async def test_what_was_read_long_ago_is_forgotten(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1))
    await bench.poll(3)
    assert bench.store.pulled.known([trace_id(1)])
    bench.now_ns += 25 * 3600 * SECOND
    await bench.poll(2)
    assert not bench.store.pulled.known([trace_id(1)])


async def test_a_server_that_ignores_the_wish_for_one_trace_costs_no_other_its_rows(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1), *rows(2))

    def ignores(request: faults.Request) -> faults.Act | None:
        if "traceId" not in request.params:
            return None
        return faults.answer({"data": [*rows(1), *rows(2)], "meta": {}})

    fake.standing_fault = only("GET", "/v2/observations", ignores)
    await bench.poll(3)
    assert bench.taken() == {trace_id(1): 3, trace_id(2): 3}
    assert bench.intake.counts.spans == 6


async def test_a_limit_is_kept_to_and_reading_goes_on_after_it(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1))
    fake.fails(*[faults.rate_limited(2, 100_000)])
    await bench.poll(1, every_s=1)
    assert (bench.pull.snapshot().state, dict(bench.pull.snapshot().errors)) == ("retrying", {"rate_limited": 1})
    bench.langfuse.budget._rests_until = 0.0
    await bench.poll(3)
    assert bench.taken() == {trace_id(1): 3}


async def test_reads_that_are_switched_off_meanwhile_are_probed_anew(benches):
    with FakeLangfuse(Mode.V3, parts=[Observations.part]) as fake:
        bench = benches(fake)
        bench.put(*rows(1))
        await bench.poll(3)
        assert bench.pull.snapshot().reads == "legacy"
        fake.mode = Mode.NEW
        bench.put(*rows(2))
        await bench.poll(40)
        assert bench.pull.snapshot().reads == "v2"
        assert bench.taken() == {trace_id(1): 3, trace_id(2): 3}


async def test_a_trace_of_more_rows_than_are_held_is_given_up_unread(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1, spans=10_050, input=None, output=None), *rows(2))
    await bench.poll(4)
    assert bench.taken() == {trace_id(2): 3}
    assert bench.ended() == {EndReason.SHED: 1}
    assert bench.bodies() == [trace_id(2)]


async def test_how_long_whole_traces_wait_is_told(benches, fake):
    bench = benches(fake)
    assert bench.pull.snapshot().lag_s is None
    bench.put(*rows(1))
    await bench.poll(2)
    assert bench.pull.snapshot().lag_s == 15
    fake.standing_fault = faults.error(500)
    await bench.poll(4)
    assert (bench.pull.snapshot().lag_s or 0) >= 60


DEEP: Any = "x"
for _ in range(900):
    DEEP = {"a": DEEP}
HOSTILE: list[dict[str, Any]] = [
    {"traceId": "\ud800" * 50}, {"id": "\ud800"}, {"id": {"a": 1}}, {"metadata": {"a.b": DEEP}}, {"metadata": DEEP},
    {"input": DEEP}, {"tags": ["\ud800", 3, None, {}]}, {"startTime": "0001-01-01T00:00:00Z"}, {"endTime": 17},
    {"metadata": {".".join("abc" * 400): 1, "a": float("nan")}}, {"name": None, "level": [], "environment": {}},
    {"parentObservationId": ["x"]}, {"usageDetails": {"input": 10**400}}, {"metadata": "text"}, {"type": 5},
    {"name": "\x00\ud800", "userId": 10**400, "traceName": {"a": 1}},
]  # fmt: skip


@pytest.mark.parametrize("part", range(len(HOSTILE)))
async def test_rows_of_any_shape_cost_nobody_else_a_verdict(benches, fake, part):
    bench = benches(fake)
    hostile = {**rows(1)[0], **HOSTILE[part]}
    answered = faults.answer({"data": [hostile, *rows(2)], "meta": {}})

    def reported(request: faults.Request) -> faults.Act | None:
        if request.params.get("limit") == "1":
            return None
        if request.params.get("traceId") == trace_id(1):
            return faults.answer({"data": [hostile], "meta": {}})
        return answered

    fake.standing_fault = only("GET", "/v2/observations", reported)
    await bench.poll(40)
    assert bench.taken()[trace_id(2)] == 3
    assert bench.pull.snapshot().state == "ok"
    assert "error" not in dict(bench.pull.snapshot().errors)
    assert bench.outcomes.balance().seen in (1, 2)


KNOWN = {"fields", "limit", "cursor", "fromStartTime", "toStartTime", "traceId"}


async def test_observations_are_asked_for_with_names_that_the_server_knows_and_always_within_a_range(benches, fake):
    # It ignores a name that it does not know, which widens what it answers; without a range it searches everything.
    bench = benches(fake)
    bench.put(*rows(1), *rows(2))
    await bench.poll(4)
    requested = [each for each in fake.requested("GET", "/v2/observations") if each.params.get("limit") != "1"]
    assert any("traceId" in request.params for request in requested)
    for request in requested:
        assert request.params.keys() <= KNOWN
        assert {"fromStartTime", "toStartTime"} <= request.params.keys()


async def test_the_newest_come_first_in_a_listing_and_the_oldest_are_read_first(benches, fake):
    bench = benches(fake)
    for number in range(1, 6):
        bench.put(*rows(number, start_ns=START_NS + number * SECOND))
    await bench.poll(3)
    assert [int(each, 16) for each in bench.bodies()][:4] == sorted(int(each, 16) for each in bench.bodies()[:4])
    assert int(bench.bodies()[0], 16) == 1


class Gained:
    """A share of everything, whose last holder stopped two hours ago."""

    from_ns = 0
    shards = frozenset({0})

    def mine(self, _: str) -> bool:
        return True

    def cursor(self, shards: Any, before_ns: int) -> int:
        return before_ns - 120 * MINUTES

    async def claim(self, trace_ids: Any) -> tuple[set[str], set[str]]:
        return set(trace_ids), set()

    async def done(self, _: Any) -> None:
        pass


async def test_what_another_monitor_left_unread_is_read_though_the_first_listing_is_refused(benches, fake):
    bench = benches(fake)
    await bench.poll(3)
    bench.put(*rows(1, start_ns=bench.now_ns - 100 * MINUTES))
    bench.pull._share = bench.pull._taking.share = Gained()
    fake.standing_fault = only("GET", "/v2/observations", faults.error(403))
    await bench.poll(1, every_s=600)
    assert bench.pull.snapshot().state == "stopped"
    fake.standing_fault = None
    await bench.poll(4)
    assert bench.taken() == {trace_id(1): 3}


class Claimed(Gained):
    """A share in which another monitor has claimed every trace, and has not read it yet."""

    def __init__(self) -> None:
        self.claims = 0

    def cursor(self, _: Any, before_ns: int) -> int:
        return before_ns

    async def claim(self, _: Any) -> tuple[set[str], set[str]]:
        self.claims += 1
        return set(), set()


async def test_a_trace_that_another_monitor_has_claimed_is_asked_for_again_once_it_may_have_settled(benches, fake):
    bench = benches(fake)
    share = bench.pull._share = bench.pull._taking.share = Claimed()
    bench.put(*rows(1))
    for seconds, claims in ((0, 1), (1, 1), (8.999, 1), (0.001, 2), (9.999, 2), (0.001, 3)):
        bench.now_ns += round(seconds * 1000) * 10**6
        await bench.poll(every_s=0)
        assert share.claims == claims
    assert (bench.bodies(), bench.ended()) == ([], {})


async def test_after_a_failure_nothing_is_asked_for_as_long_as_the_server_wants(benches, fake):
    bench = benches(fake)
    fake.standing_fault = only("GET", "/v2/observations", faults.error(503, "later", details={"retryAfterSeconds": 90}))
    await bench.poll(every_s=0)
    asked = len(fake.requests)
    for seconds, more in ((0, False), (89, False), (2, True)):
        bench.now_ns += seconds * SECOND
        await bench.poll(every_s=0)
        assert (len(fake.requests) > asked) is more


async def test_while_very_many_traces_are_not_whole_listing_waits_and_says_so(benches, fake, monkeypatch):
    monkeypatch.setattr(pull_module, "MOST_PENDING", 2)
    bench = benches(fake)
    for number in (1, 2, 3):
        bench.put(*rows(number, start_ns=bench.now_ns))
    await bench.poll()
    snapshot = bench.pull.snapshot()
    assert (snapshot.state, snapshot.reason) == ("waiting", "more than 2 traces are not whole yet")
    assert snapshot.read_s is None
    await bench.poll(4)
    assert bench.pull.snapshot().state == "ok"
    assert set(bench.taken()) == {trace_id(1), trace_id(2), trace_id(3)}


class EnoughRead:
    """True once so many more traces were read: judging is slower than reading."""

    def __init__(self, bench: Bench, most: int) -> None:
        self.bench, self.until = bench, len(bench.bodies()) + most

    def __bool__(self) -> bool:
        return len(self.bench.bodies()) >= self.until


@pytest.mark.parametrize("most", [100, 20])
async def test_a_backlog_is_listed_once_however_few_of_its_traces_are_judged_between_two_polls(
    benches, fake, monkeypatch, most
):
    monkeypatch.setattr(pull_module, "MOST_PENDING", most)
    bench = benches(fake)
    await bench.poll()
    bench.put(*(row for number in range(1, 49) for row in rows(number)))
    bench.now_ns += 120 * MINUTES
    for _ in range(15):
        bench.busy = EnoughRead(bench, 4)
        await bench.poll()
        if len(bench.bodies()) < 48:
            assert bench.pull.snapshot().reason == "more traces wait for judging than are read ahead"
    assert (bench.pull.snapshot().state, len(bench.taken()), len(bench.bodies())) == ("ok", 48, 48)
    listed = len(fake.requested("GET", "/v2/observations")) - len(bench.bodies())
    assert listed < 28, "it was listed for each of the polls"


@pytest.mark.parametrize(
    ("waiting", "opened", "state"),
    [(0, 0, "ok"), (500, 50, "ok"), (501, 0, "waiting"), (0, 51, "waiting"), (501, 51, "waiting")],
)
async def test_reading_pauses_while_too_much_waits_or_half_of_the_traces_that_may_be_open_are(
    benches, fake, waiting, opened, state
):
    bench = benches(fake)
    keys = {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
    config = Config.model_validate({"sources": {"langfuse": keys}, "assembly": {"max_open_traces": 100}})
    pull = traces_in(
        config, SimpleNamespace(to=lambda _: bench.langfuse), store=bench.store, intake=bench.intake,
        outcomes=bench.outcomes, sampler=bench.sampler, assembler=SimpleNamespace(open_traces=opened),
        waiting=lambda: waiting, clock_ns=lambda: bench.now_ns,
    )  # fmt: skip
    await pull.poll()
    assert pull.snapshot().state == state


async def test_a_store_that_fails_is_counted_and_reported(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1))

    async def fails(*_: Any) -> None:
        raise StoreError("no room")

    bench.store.pulled.put = fails
    await bench.poll()
    snapshot = bench.pull.snapshot()
    assert (snapshot.state, snapshot.reason, snapshot.errors) == ("retrying", "no room", (("store", 1),))


async def test_the_server_is_identified_once_an_hour(benches, fake):
    bench = benches(fake)
    for seconds, times in ((0, 1), (15, 1), (3584, 1), (1, 2), (3599, 2), (1, 3)):
        bench.now_ns += seconds * SECOND
        await bench.poll(every_s=0)
        assert len(fake.requested("GET", "/projects")) == times


async def judged(bench: Bench, *numbers: int) -> None:
    """Have these traces read and end with a verdict."""
    bench.put(*(row for number in numbers for row in rows(number)))
    await bench.poll(4)
    assert bench.taken().keys() == {trace_id(number) for number in numbers}
    for number in numbers:
        await finished(bench, number)


async def finished(bench: Bench, number: int) -> None:
    await bench.store.finish(FinishedTrace(
        trace_id=bytes.fromhex(trace_id(number)), service="shop", reason="scored", completion="root_ended",
        revision=1, details={"name": "a"}, closed_ns=bench.now_ns, verdicts=(),
    ))  # fmt: skip


def held(bench: Bench) -> set[int]:
    return {number for number in range(1, 10) if bench.store.details(bytes.fromhex(trace_id(number))) is not None}


def delete_there(bench: Bench, number: int) -> None:
    there = observations_of(bench.fake)
    there.held = [each for each in there.held if each.row["traceId"] != trace_id(number)]


@pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("killed", [False, True])
async def test_a_trace_that_is_deleted_in_langfuse_is_erased_here(benches, fake, mode, killed):
    fake.mode = mode
    bench = benches(fake)
    await judged(bench, 1, 2, 3)
    delete_there(bench, 2)
    if killed:
        bench.killed()
    await bench.poll(60, every_s=150)
    assert held(bench) == {1, 3}
    assert trace_id(2) not in bench.taken()
    await bench.poll(20, every_s=150)
    assert held(bench) == {1, 3}
    assert bench.ended().get(EndReason.SCORED) is None, "nothing of it was read again"


async def test_what_a_replica_does_not_show_for_a_moment_is_not_erased(benches, fake):
    bench = benches(fake)
    await judged(bench, 1, 2)
    there, held_there = observations_of(bench.fake), observations_of(bench.fake).held
    await bench.poll(12, every_s=150)
    for _ in range(60):  # all of it is away for five minutes of every half an hour
        there.held = [] if bench.now_ns // (5 * MINUTES) % 6 == 0 else held_there
        await bench.poll(1, every_s=150)
    assert held(bench) == {1, 2}


@pytest.mark.parametrize("killed", [False, True])
async def test_what_was_read_of_another_project_is_not_missing_in_this_one(benches, fake, killed):
    bench = benches(fake)
    await judged(bench, 1)
    delete_there(bench, 1)
    fake.project = {"id": "another", "name": "Another"}
    if killed:
        bench.killed()
    await bench.poll(60, every_s=150)
    assert held(bench) == {1}
    assert (bench.pull.snapshot().project, bench.pull.snapshot().pending) == ("Another", 0)
    assert bench.pull.trace_url("t") == f"{fake.base_url}/project/another/traces/t"
    bench.put(*rows(3, start_ns=bench.now_ns))
    await bench.poll(4)
    assert bench.taken()[trace_id(3)] == 3


async def test_what_waits_of_another_project_is_not_read_in_this_one(benches, fake):
    bench = benches(fake)
    await judged(bench, 1)
    bench.now_ns += 3530 * SECOND
    bench.put(*rows(2, start_ns=bench.now_ns))
    await bench.poll(1, every_s=15)
    delete_there(bench, 2)
    fake.project = {"id": "another", "name": "Another"}
    await bench.poll(20)
    assert (bench.pull.snapshot().pending, bench.ended()) == (0, {})


async def test_what_came_while_the_first_listing_was_refused_is_read_once_it_is_not(benches, fake):
    bench = benches(fake)
    bench.put(*rows(1))
    fake.standing_fault = only(
        "GET", "/v2/observations", lambda r: faults.error(403)(r) if "fromStartTime" in r.params else None
    )
    await bench.poll(60, every_s=150)
    assert bench.pull.snapshot().state == "stopped"
    fake.standing_fault = None
    await bench.poll(4, every_s=150)
    assert bench.taken() == {trace_id(1): 3}


@pytest.mark.parametrize("kills", [0, 1, 2])
async def test_what_the_reads_before_an_upgrade_showed_is_not_missing_after_it(benches, fake, kills):
    fake.mode = Mode.V3
    bench = benches(fake)
    await judged(bench, 1)
    fake.mode = Mode.NEW
    delete_there(bench, 1)  # its history is where the new read does not look
    for _ in range(kills):
        bench.killed()
        await bench.poll(2)
    await bench.poll(60, every_s=150)
    assert (bench.pull.snapshot().reads, held(bench)) == ("v2", {1})
    bench.put(*rows(2, start_ns=bench.now_ns))
    await bench.poll(4)
    await finished(bench, 2)
    delete_there(bench, 2)
    await bench.poll(60, every_s=150)
    assert held(bench) == {1}, "what this read showed is looked for"


async def test_while_langfuse_fails_nothing_is_erased(benches, fake):
    bench = benches(fake)
    await judged(bench, 1)
    for fault in (faults.store_away(), faults.proxy_page(), faults.error(404, "no")):
        fake.standing_fault = fault
        await bench.poll(40, every_s=150)
        assert held(bench) == {1}
