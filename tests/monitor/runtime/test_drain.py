"""The end of a process whose store ends with it: what was acknowledged is judged, delivered, handed over or counted."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

import pytest

from sidejudge.integrations.backoff import RefusedError
from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.integrations.otlp.wire.handover import HandoverKeys, HandoverMark, drawn_at, spans_of
from sidejudge.integrations.otlp.wire.schema import classes
from sidejudge.integrations.otlp.wire.tracestate import PUBLIC_HASH_KEY, secret_hash_key, threshold
from sidejudge.integrations.post import Poster
from sidejudge.integrations.store.sqlite import StoredChunk
from sidejudge.monitor.config.fleet import DrainSection
from sidejudge.monitor.runtime.handover import Handover, by_trace
from sidejudge.monitor.runtime.process import Drain, drain
from tests.monitor.runtime.test_app import ANY, root, samples, total
from tests.otlp_requests import HIGH, LOW, S, request, span, trace
from tests.waiting import until

SLOW = {"grace": "1h", "idle": "1h", "deadline": "2h"}
"""Limits at which nothing is closed in the time of a test."""


def part(number, tail=LOW) -> S:
    return S(trace_id=trace(number, tail), span_id=span(2), parent_id=span(1))


async def drained(app) -> None:
    await drain(app.monitor, asyncio.Event())
    await app.monitor.stop()


def last_line(caplog) -> dict[str, object]:
    (record,) = [each for each in caplog.records if each.getMessage() == "stopped"]
    assert record is caplog.records[-1], "it is the last line of the log"
    names = ("lost_traces", "lost_deliveries", "handed_over_traces")
    return {"level": record.levelname, **{name: getattr(record, name) for name in names}}


NOTHING_LOST = {"level": "INFO", "lost_traces": 0, "lost_deliveries": 0, "handed_over_traces": 0}


async def test_open_traces_are_judged_and_delivered_before_the_end(started, tmp_path, caplog):
    caplog.set_level("INFO", "sidejudge")
    verdicts = tmp_path / "verdicts.jsonl"
    drain = {"timeout": "10s", "quiet": "100ms"}
    app = await started(**ANY, assembly=SLOW, drain=drain, sinks={"jsonl": {"path": str(verdicts)}})
    await app.post(request([root(1), root(2), part(3)]))
    await drained(app)
    lines = [json.loads(line) for line in verdicts.read_text().splitlines()]
    assert {line["trace_id"]: line["state"] for line in lines} == {
        trace(1, LOW).hex(): "valid", trace(2, LOW).hex(): "valid", trace(3, LOW).hex(): "incomplete",
    }  # fmt: skip
    assert last_line(caplog) == NOTHING_LOST


async def test_a_conversation_that_is_open_is_judged_with_its_last_turns(started, tmp_path):
    verdicts = tmp_path / "verdicts.jsonl"
    sessions = {"sampling_rate": 1.0, "idle": "1h", "routes": [{"rubrics": ["dimensions"]}]}
    app = await started(
        routes=[{"rubrics": ["run_health"]}], assembly=SLOW, drain={"timeout": "10s", "quiet": "100ms"},
        sessions=sessions, sinks={"jsonl": {"path": str(verdicts)}},
    )  # fmt: skip
    turn = {"session.id": "chat", "langfuse.observation.input": "Where?", "langfuse.observation.output": "Here."}
    await app.post(request([root(n, attributes=turn) for n in (1, 2)]))
    await drained(app)
    lines = [json.loads(line) for line in verdicts.read_text().splitlines()]
    assert sorted(line["rubric"] for line in lines) == ["dimensions", "run_health", "run_health"]
    (session,) = [line for line in lines if line["rubric"] == "dimensions"]
    assert (session["trace_id"], session["session_id"]) == (None, "chat")


async def test_what_comes_while_it_drains_is_taken_in(started, caplog):
    caplog.set_level("INFO", "sidejudge")
    app = await started(**ANY, assembly=SLOW, drain={"timeout": "10s", "quiet": "1s"})
    await app.post(request([part(1)]))
    ending = asyncio.create_task(drain(app.monitor, asyncio.Event()))
    await until(lambda: not app.monitor.view.is_ready)
    assert (await app.post(request([root(1)]))).status_code == 200, "the application flushes after it was asked to end"
    await ending
    balance = app.monitor.outcomes.balance()
    assert ({reason.value: count for reason, count in balance.ended.items()}, balance.open) == ({"scored": 1}, 0)
    await app.monitor.stop()
    assert last_line(caplog) == NOTHING_LOST


async def test_without_a_drain_what_is_open_stays_in_the_store(started):
    app = await started(**ANY, assembly=SLOW)
    await app.post(request([root(1)]))
    await drained(app)
    assert app.monitor.outcomes.open == 1


async def test_what_is_not_judged_in_time_is_counted_as_lost(started, caplog):
    caplog.set_level("INFO", "sidejudge")
    app = await started(**ANY, assembly=SLOW, drain={"timeout": "100ms"})
    await app.post(request([root(1), part(2)]))
    await drained(app)
    assert last_line(caplog) == NOTHING_LOST | {"level": "WARNING", "lost_traces": 2}


async def test_what_is_not_judged_in_time_is_handed_over_and_counted_once(started, configured, tmp_path, caplog):
    """Its spans were drawn at 0.5 here, so the monitor that draws all of them records 0.5 as well."""
    key = {"handover_key": "a secret of two monitors"}
    peer = await started(**ANY, sampling={"rate": 1.0, **key}, store={"path": str(tmp_path / "peer.sqlite")})
    caplog.set_level("INFO", "sidejudge")
    app = await started(
        **ANY, assembly=SLOW, sampling={"rate": 0.5, **key}, drain={"timeout": "2s", "quiet": "0s", "to": peer.otlp},
        store={"path": str(tmp_path / "app.sqlite")},
    )  # fmt: skip
    await app.post(request([root(1, HIGH), part(1, HIGH), root(2, HIGH), root(3, LOW)]))
    app.monitor.assembler.drain = lambda *_, **__: []  # nothing is closed in time
    await drained(app)
    assert last_line(caplog) == NOTHING_LOST | {"handed_over_traces": 2}
    assert (await peer.settled(2))["ended"]["scored"] == 2
    found = await samples(peer)
    assert total(found, "sidejudge_spans_received_total") == 0, "they were counted where they were sent first"
    assert total(found, "sidejudge_spans_handed_over_total") == 3
    for number in (1, 2):
        story = await peer.get(f"/v1/traces/{trace(number, HIGH).hex()}")
        assert story["sampling"]["probability"] == 0.5
    assert app.monitor.outcomes.balance().open == 0
    again = await started(**ANY, store={"path": str(tmp_path / "app.sqlite")})
    assert again.monitor.outcomes.open == 0, "a container that starts again on the same volume judges none of them"


async def test_a_damaged_chunk_keeps_no_other_from_being_handed_over(started, tmp_path, caplog):
    key = {"handover_key": "a secret of two monitors"}
    peer = await started(**ANY, sampling=key, store={"path": str(tmp_path / "peer.sqlite")})
    caplog.set_level("INFO", "sidejudge")
    app = await started(
        **ANY, assembly=SLOW, sampling=key, drain={"timeout": "2s", "quiet": "0s", "to": peer.otlp},
        store={"path": str(tmp_path / "app.sqlite")},
    )  # fmt: skip
    await app.post(request([root(1, HIGH), root(2, HIGH), root(3, HIGH)]))
    await app.post(request([part(2, HIGH)]))
    app.monitor.assembler.drain = lambda *_, **__: []  # nothing is closed in time
    damage = "UPDATE chunks SET payload = x'0affff' WHERE seq IN (SELECT max(seq) FROM chunks WHERE trace_id = ?)"
    for number in (1, 2):
        app.monitor.store._write_connection.execute(damage, (trace(number, HIGH),))
    await drained(app)
    assert last_line(caplog) == {"level": "WARNING", "lost_traces": 1, "lost_deliveries": 0, "handed_over_traces": 2}
    assert (await peer.settled(2))["ended"]["scored"] == 2


async def test_a_peer_that_cannot_be_reached_leaves_them_lost(started, caplog):
    caplog.set_level("INFO", "sidejudge")
    app = await started(
        **ANY, assembly=SLOW, drain={"timeout": "400ms", "to": "http://127.0.0.1:1"},
        sampling={"rate": 1.0, "handover_key": "a secret of two monitors"},
    )  # fmt: skip
    await app.post(request([root(1)]))
    app.monitor.assembler.drain = lambda *_, **__: []  # nothing is closed in time
    await drained(app)
    assert last_line(caplog) == NOTHING_LOST | {"level": "WARNING", "lost_traces": 1}


async def test_without_a_key_nothing_is_handed_over(started, tmp_path, caplog):
    peer = await started(**ANY, store={"path": str(tmp_path / "peer.sqlite")})
    caplog.set_level("INFO", "sidejudge")
    app = await started(
        **ANY, assembly=SLOW, drain={"timeout": "400ms", "to": peer.otlp}, store={"path": str(tmp_path / "app.sqlite")}
    )
    await app.post(request([root(1)]))
    app.monitor.assembler.drain = lambda *_, **__: []  # nothing is closed in time
    await drained(app)
    assert last_line(caplog) == NOTHING_LOST | {"level": "WARNING", "lost_traces": 1}
    assert "sampling.handover_key is not set" in caplog.text
    assert peer.monitor.outcomes.balance().seen == 0


@pytest.mark.parametrize("key", ["a secret of two monitors", "another one that nobody knows", None])
async def test_what_a_monitor_handed_over_is_not_forwarded_again_and_what_says_so_itself_is(key, started, tmp_path):
    upstream = await started(**ANY, store={"path": str(tmp_path / "upstream.sqlite")})
    app = await started(
        **ANY, forward={"url": upstream.otlp}, sampling={"rate": 1.0, "handover_key": "a secret of two monitors"},
        store={"path": str(tmp_path / "app.sqlite")},
    )  # fmt: skip
    proof = HandoverKeys(key).header() if key else "1"
    headers = {"content-type": "application/x-protobuf", "sidejudge-handover": proof}
    answer = await app.http.post(app.otlp + "/v1/traces", content=request([root(1)]), headers=headers)
    assert answer.status_code == 200
    await app.settled(1)
    assert upstream.monitor.outcomes.balance().seen == (key != "a secret of two monitors")


@dataclass
class Scripted:
    """A monitor that has so much to do; every look at what is left takes one away."""

    left: int = 0
    owed: int = 0
    coming: int = 0
    did: list[str] = field(default_factory=list)

    def begin_drain(self):
        self.did.append("begin")

    def requests(self):
        self.coming = max(0, self.coming - 1)
        return -self.coming

    def refuse(self):
        if "refuse" not in self.did:
            self.did.append("refuse")

    def unfinished(self):
        self.left = max(0, self.left - 1)
        return self.left

    def undelivered(self):
        self.owed = max(0, self.owed - 1)
        return self.owed

    async def report(self):
        self.did.append("report")

    async def stop_judging(self):
        self.did.append("stop judging")

    async def hand_over(self, _):
        self.did.append("hand over")
        return self.left


@pytest.mark.parametrize(
    ("monitor", "section", "hurry", "did", "handed_over"),
    [
        pytest.param(Scripted(), {}, False, ["begin", "refuse", "report"], 0, id="nothing is left"),
        pytest.param(Scripted(left=3, owed=3), {}, False, ["begin", "refuse", "report"], 0, id="it is done in time"),
        pytest.param(
            Scripted(left=10**6), {}, False, ["begin", "refuse", "stop judging", "report"], 0, id="time is over"
        ),
        pytest.param(
            Scripted(left=10**6), {"to": "http://peer:4318"}, False,
            ["begin", "refuse", "stop judging", "hand over", "report"], 1, id="it goes to a peer",
        ),
        pytest.param(
            Scripted(left=10**6, owed=10**6), {"to": "http://peer:4318"}, True,
            ["begin", "refuse", "stop judging", "report"], 0, id="somebody asks twice",
        ),
        pytest.param(Scripted(coming=10**6), {}, False, ["begin", "refuse", "report"], 0, id="requests never end"),
    ],
)  # fmt: skip
async def test_a_drain_goes_on_until_nothing_is_left_or_its_time_is_over(monitor, section, hurry, did, handed_over):
    asked = asyncio.Event()
    if hurry:
        asked.set()
    begun_s = asyncio.get_running_loop().time()
    stated = {"timeout": "400ms", "quiet": "0s" if not monitor.coming else "100ms", **section}
    result = await Drain(monitor, DrainSection.model_validate(stated), asked).run()
    assert (monitor.did, bool(result)) == (did, bool(handed_over))
    assert asyncio.get_running_loop().time() - begun_s < 0.6


async def test_a_trace_that_is_larger_than_a_request_may_be_keeps_no_trace_from_being_handed_over(monkeypatch):
    sent, taken = [], []

    async def post(_, body, headers):
        if len(body) > 16 * 2**20:
            raise RefusedError("it answered 413")
        sent.append(body)

    async def end(closings):
        taken.extend(closing.trace_id for closing in closings)

    def chunk(number, at, size):
        step = S(trace_id=trace(number, LOW), span_id=span(at), attributes={"text": "x" * size})
        return StoredChunk(
            trace_id=trace(number, LOW), received_ns=1, done=False, service=None, environment=None, threshold=0,
            revision=None, closed_ns=None, payload=request([step]),
        )  # fmt: skip

    monkeypatch.setattr(Poster, "post", post)
    chunks = [*(chunk(1, at, 3 * 2**20) for at in range(1, 9)), chunk(2, 1, 10)]
    handover = Handover("http://127.0.0.1:4318", {}, 1.0, end, HandoverKeys(), hash_key=b"")
    assert await handover.run(by_trace(chunks), 0.0) == 2
    assert taken == [trace(1, LOW), trace(2, LOW)]
    spans = [each.span_id for body in sent for each in (decode_spans(body))]
    assert len(spans) == 9, "each span once"


def test_a_rate_is_a_threshold_that_a_mark_carries():
    limit, keys = threshold(0.25), HandoverKeys()
    resource = marked(request([root(1), part(1)]), limit, keys)
    assert drawn_at(resource, keys, hash_key=b"") == HandoverMark(limit, trace(1, LOW))
    assert drawn_at(resource, keys, hash_key=PUBLIC_HASH_KEY) == HandoverMark(0, trace(1, LOW)), (
        "other randomness bounds nothing"
    )
    assert drawn_at(b"", keys, hash_key=b"") is None
    secret = secret_hash_key("a key of both monitors")
    resource = marked(request([root(1)]), limit, keys, secret)
    found = [drawn_at(resource, keys, hash_key=key) for key in (secret, PUBLIC_HASH_KEY, b"")]
    assert [mark.threshold for mark in found if mark] == [limit, 0, 0], "nor does that of another key"


def marked(body: bytes, limit: int, keys: HandoverKeys, hash_key: bytes = b"") -> bytes:
    """The resource of spans of trace 1 that a monitor with these keys hands over."""
    sent = spans_of(body, trace(1, LOW), limit, keys, hash_key=hash_key)
    (resource,) = {each.resource for each in classes("envelope")["Request"].FromString(sent).resource_spans}
    return resource


def test_a_mark_counts_once_the_key_that_signed_it_is_known_also_behind_marks_of_others():
    ours, theirs = HandoverKeys(), HandoverKeys()
    forged = {"sidejudge.handover": "fffffffffffff0", "sidejudge.handover.proof": f"{trace(1, LOW).hex()}:0:0"}
    resource = marked(request([root(1)], resource=forged), threshold(0.5), theirs)
    assert drawn_at(resource, ours, hash_key=b"") == HandoverMark(0, b"")
    ours.learn(theirs.own)
    assert drawn_at(resource, ours, hash_key=b"") == HandoverMark(threshold(0.5), trace(1, LOW))
    for n in range(1_500):
        ours.learn(f"the key of monitor {n}")
    assert drawn_at(marked(request([root(1)]), 7, ours), ours, hash_key=b"") == HandoverMark(7, trace(1, LOW))


def test_a_mark_that_was_changed_says_nothing():
    keys = HandoverKeys("a secret of two monitors")
    resource = marked(request([root(1)]), threshold(0.5), keys)
    assert drawn_at(resource.replace(b"80000000000000", b"f0000000000000"), keys, hash_key=b"") == HandoverMark(0, b"")
