"""Sessions: traces of one conversation, judged as one when it is over; across restarts, and when one joins late."""

from __future__ import annotations

import json

import pytest

from sidejudge.integrations.otlp.wire.tracestate import threshold
from sidejudge.monitor.api.view import VerdictQuery
from sidejudge.monitor.config import ConfigError
from sidejudge.monitor.deliver.commit import _turn_head
from sidejudge.monitor.evaluate.result import SessionIdentity
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.runtime.app import Monitor
from sidejudge.monitor.sessions.windows import draw
from tests.otlp_requests import S, request, span, trace

MINUTE = 60_000_000_000
CONFIG = {
    "sampling": {"rate": 1.0},
    "assembly": {"grace": "1s", "late": "10m"},
    "routes": [{"rubrics": ["answer"]}],
    "sessions": {"routes": [{"rubrics": ["dimensions"]}]},
}


def turn(number: int, session="chat", *, second=0, stated=True, **more) -> S:
    """One span of a trace, begun ``second`` seconds after the others."""
    stated = {
        "langfuse.observation.input": f"question {number}", "langfuse.observation.output": f"answer {number}",
    } if stated else {}  # fmt: skip
    at = second * 10**9
    fields = {"trace_id": trace(number), "span_id": span(1), "start_ns": at, "end_ns": at + 10**9, **more}
    return S(attributes=({"session.id": session} if session else {}) | stated, **fields)


class Bench:
    def __init__(self, config):
        self.config, self.now = config, 1_790_000_000_000_000_000
        self.begin()

    def begin(self):
        self.monitor = Monitor(self.config, clock_ns=lambda: self.now)
        self.monitor.intake.restore()
        if self.monitor.sessions is not None:
            self.monitor.sessions.restore(map(_turn_head, self.monitor.store.recover_turns()))

    def restart(self):
        self.monitor.store.close()
        self.begin()

    async def take(self, *spans: S):
        await self.monitor.intake.consume(request(spans))
        await self.after(1)

    async def after(self, minutes):
        self.now += minutes * MINUTE
        self.monitor.pipeline.waiting.extend(self.monitor.judging.due())
        await self.monitor.pipeline.drain()

    def sessions(self):
        """Verdicts on sessions, oldest first."""
        return [v for v in self.monitor.store.verdicts_since(0) if v["trace_id"] is None]

    def story(self, verdict):
        return self.monitor.store.details(verdict["case_id"])


@pytest.fixture
def bench(configured):
    made = []

    def make(**sections):
        made.append(Bench(configured(**{**CONFIG, **sections})))
        return made[-1]

    yield make
    for one in made:
        one.monitor.store.close()


async def test_a_session_is_judged_once_when_it_is_over_with_all_its_turns_in_order_of_time(bench):
    b = bench()
    for number, second in ((2, 20), (1, 10), (3, 30)):
        await b.take(turn(number, second=second))
    assert b.sessions() == []
    await b.after(15)
    (verdict,) = b.sessions()
    assert (verdict["session_id"], verdict["rubric"], verdict["revision"]) == ("chat", "dimensions", 1)
    assert verdict["service"] == "shop"
    story = b.story(verdict)
    assert (story["kind"], story["turns"], story["name"]) == ("session", 3, "step")
    assert story["traces"] == [trace(n).hex() for n in (1, 2, 3)]
    await b.after(30)
    assert len(b.sessions()) == 1


async def test_its_verdict_has_an_id_of_its_own_and_stands_beside_those_of_its_traces(bench):
    b = bench()
    await b.take(turn(1), turn(2, second=5))
    await b.after(15)
    everything = b.monitor.store.verdicts_since(0)
    assert sorted((v["rubric"], v["trace_id"] is None) for v in everything) == [
        ("answer", False), ("answer", False), ("dimensions", True),
    ]  # fmt: skip
    (of_session,) = b.sessions()
    assert of_session["case_id"] not in {trace(1).hex(), trace(2).hex()}
    page = await b.monitor.view.verdicts(VerdictQuery(limit=1))
    rest = await b.monitor.view.verdicts(VerdictQuery(limit=5, after=page.next))
    assert len(page.verdicts) + len(rest.verdicts) == 3
    assert b.monitor.store.details(trace(1))["session"] == of_session["case_id"]
    balance = b.monitor.outcomes.balance()
    assert (balance.seen, dict(balance.ended)) == (2, {EndReason.UNAVAILABLE: 2}), "the books are of traces"


async def test_a_trace_that_joins_late_makes_a_revision_and_one_after_that_a_new_session(bench):
    b = bench()
    await b.take(turn(1))
    await b.after(16)
    await b.take(turn(2, second=5))
    await b.after(16)
    (verdict,) = b.sessions()
    assert (b.story(verdict)["turns"], b.story(verdict)["revision"]) == (2, 2)
    await b.after(31)
    await b.take(turn(3, second=9))
    await b.after(16)
    first, second = b.sessions()
    assert first["case_id"] != second["case_id"]
    assert (b.story(first)["turns"], b.story(second)["turns"]) == (2, 1)


TALK = {"judges": "sessions", "metrics": [{"id": "answers", "check": {"contains": "answer"}}]}
LANGFUSE = {"base_url": "http://127.0.0.1:9", "public_key": "pk", "secret_key": "sk"}


async def test_a_new_session_under_an_id_goes_on_with_the_scores_of_the_one_before(bench):
    of_talk = {"rubrics": {"talk": TALK}, "sessions": {"routes": [{"rubrics": ["talk"]}]}}
    b = bench(**of_talk, routes=[{"rubrics": []}], sinks={"langfuse": LANGFUSE})

    def waiting():
        """Names of the scores that wait, each with its revision and whether it is withdrawn."""
        rows = b.monitor.store.outbox.due(b.now, 10)
        stated = [(json.loads(row.body), row.withdrawn) for row in rows]
        return sorted((body["name"], body["metadata"]["revision"], withdrawn) for body, withdrawn in stated)

    def every(revision, *, withdrawn):
        return [(f"talk_{name}", revision, withdrawn) for name in ("answers", "pass", "score")]

    await b.take(turn(1, stated=False))
    await b.after(16)
    await b.take(turn(2, second=5))
    await b.after(16)
    assert waiting() == every(2, withdrawn=False)
    await b.after(31)
    await b.take(turn(3, second=9))
    await b.after(16)
    first, second = b.sessions()
    assert (first["revision"], second["revision"]) == (2, 1)
    assert waiting() == every(3, withdrawn=False), "else they pass for older ones"
    await b.after(31)
    await b.take(turn(4, second=12, stated=False))
    await b.after(16)
    assert b.sessions()[-1]["passed"] is None
    assert waiting() == every(3, withdrawn=True), "what the last session lacks is no score of an earlier one"


async def test_late_spans_of_a_turn_change_the_turn_in_its_own_session(bench):
    b = bench()
    await b.take(turn(1))
    await b.after(5)
    await b.take(turn(1, span_id=span(2), parent_id=span(1), stated=False))
    await b.after(16)
    (verdict,) = b.sessions()
    assert b.story(verdict)["turns"] == 1


@pytest.mark.parametrize("minutes", [0, 20])
async def test_a_restart_loses_no_turn_and_judges_none_twice(bench, minutes):
    b = bench()
    await b.take(turn(1))
    b.restart()
    await b.take(turn(2, second=5))
    await b.after(minutes)
    b.restart()
    await b.after(16 - min(minutes, 15))
    (verdict,) = b.sessions()
    assert (b.story(verdict)["turns"], b.story(verdict)["revision"]) == (2, 1)
    b.restart()
    await b.take(turn(3, second=9))
    await b.after(16)
    (verdict,) = b.sessions()
    assert (b.story(verdict)["turns"], b.story(verdict)["revision"]) == (3, 2)


async def test_sessions_are_drawn_by_their_id_and_traces_by_theirs(bench):
    b = bench(sampling={"rate": 0.5}, sessions={"routes": [{"rubrics": ["dimensions"]}], "sampling_rate": 0.25})
    for number in range(1, 41):
        await b.take(turn(number, f"chat-{number}"))
    await b.after(16)
    found = {v["session_id"]: v["sampling_probability"] for v in b.sessions()}
    drawn = {
        f"chat-{n}"
        for n in range(1, 41)
        if draw(SessionIdentity("shop", None, f"chat-{n}"), 0.25).randomness >= threshold(0.25)
    }
    assert set(found) == drawn
    assert set(found.values()) == {0.25}
    of_traces = {v["sampling_probability"] for v in b.monitor.store.verdicts_since(0) if v["trace_id"]}
    assert of_traces == {0.5}


async def test_a_session_whose_traces_were_drawn_upstream_is_not_whole(bench):
    b = bench(
        sessions={"routes": [{"rubrics": ["agent"]}]}, routes=[{"rubrics": ["answer"]}],
        sampling={"rate": 1.0, "trust_upstream": {"floor": 0.1}},
    )  # fmt: skip
    await b.take(turn(1, trace_state="ot=th:8"))
    await b.after(16)
    (verdict,) = b.sessions()
    assert verdict["state"] == "incomplete"
    assert "incomplete" in verdict["scores"][0]["reason"]


async def test_a_session_that_is_too_long_is_judged_as_cut_short_and_takes_no_more(bench):
    b = bench(sessions={"routes": [{"rubrics": ["dimensions"]}], "max_turns": 2})
    for number in range(1, 5):
        await b.take(turn(number, second=number))
    await b.after(16)
    (verdict,) = b.sessions()
    assert (b.story(verdict)["turns"], b.story(verdict)["completion"]) == (2, "pressure")


async def test_a_session_that_is_too_long_goes_on_over_restarts_and_the_next_begins_after_a_pause(bench):
    b = bench(sessions={"routes": [{"rubrics": ["dimensions"]}], "max_turns": 2})
    for number in range(1, 8):
        await b.take(turn(number, second=number))
        await b.after(9)
        await b.monitor.retention.purge()
        b.restart()
    await b.after(14)
    assert len(b.sessions()) == 1
    await b.after(2)
    await b.monitor.retention.purge()
    b.restart()
    await b.take(turn(9))
    await b.after(16)
    assert [b.story(each)["turns"] for each in b.sessions()] == [2, 1]


async def test_traces_without_a_session_and_those_of_evaluators_are_no_turns(bench):
    b = bench()
    await b.take(turn(1, session=None), turn(2, service="sidejudge"))
    await b.after(16)
    assert b.sessions() == []


async def test_turns_are_let_go_once_their_session_may_not_grow(bench):
    b = bench()
    await b.take(turn(1))
    await b.after(16)
    await b.monitor.retention.purge()
    assert len(b.monitor.store.recover_turns()) == 1
    await b.after(16)
    await b.monitor.retention.purge()
    assert b.monitor.store.recover_turns() == []
    assert len(b.sessions()) == 1


async def test_turns_are_kept_as_long_as_a_later_one_waits_for_its_verdict(bench):
    b = bench()
    await b.take(turn(1))
    await b.after(16)
    b.monitor.sessions.expect(SessionIdentity("shop", None, "chat"), trace(2))
    await b.after(16)
    await b.monitor.retention.purge()
    await b.take(turn(2))
    await b.after(16)
    (verdict,) = b.sessions()
    assert b.story(verdict)["turns"] == 2
    await b.after(16)
    await b.monitor.retention.purge()
    assert b.monitor.store.recover_turns() == []


def test_a_rubric_judges_sessions_or_traces_and_never_both(configured):
    with pytest.raises(ConfigError, match="answer judges traces already"):
        configured(**{**CONFIG, "sessions": {"routes": [{"rubrics": ["answer"]}]}})
