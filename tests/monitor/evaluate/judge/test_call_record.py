"""Call record: what was sent and answered stays where it is configured, bounded, redacted, and can be erased."""

from __future__ import annotations

import dataclasses
import json
import random

from click.testing import CliRunner

from sidejudge.integrations.store.erasure import erase
from sidejudge.monitor.api.explain import judge_explanation
from sidejudge.monitor.cli.explain import explain
from sidejudge.monitor.evaluate.judge.answer_cache import CachedAnswer
from sidejudge.monitor.evaluate.judge.call_record import record_of
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.checks.redaction import Redaction
from sidejudge.scoring.judging.request import requests
from sidejudge.scoring.questions.kinds import CitesTranscript, FindErrors, SameIntent
from tests.fakes import openai as fake
from tests.simulation.long_runs import cases

TRACE = "ab" * 16
CASE = Case(case_id="c", trace_id=TRACE, transcript="Mail me at eve@example.com.", model_output="Done.")
INTENT, CITES = SameIntent("refund", "a refund"), CitesTranscript("He mails eve@example.com")


def keeping(store):
    return {"calls": store.judge_calls, "keep_calls_bytes": 10**6}


async def test_a_call_is_kept_with_prompt_raw_answer_parse_and_cost(made, provider, store):
    provider.will(fake.states('{"answers": "none"}'))
    judge = made(**keeping(store), redact=("email",))
    replies = await judge.answer(CASE, [INTENT, CITES])
    (call,) = store.judge_calls.of(bytes.fromhex(TRACE))
    assert call["call"] == replies[INTENT].judgement.call
    assert call["cost_usd"] == replies[INTENT].judgement.cost_usd
    first, second = call["exchanges"]
    assert (first["text"], first["faults"]) == ('{"answers": "none"}', ["answers is not a list"])
    assert "answers is not a list" in second["complaint"]
    assert json.loads(second["text"])["answers"]
    assert call["messages"][1]["content"].count("[email]") == 2
    assert "eve@example.com" not in json.dumps(call)
    assert [each["metric"] for each in call["questions"]] == ["call_intent_match", "has_evidence"]
    shown = "\n".join(judge_explanation([call]))
    for part in (call["call"], "asked again", "refused by the parser", "[email]", "has_evidence: True"):
        assert part in shown
    assert list(judge_explanation([call], "answer_quality")) == []
    assert list(judge_explanation([call], "has_evidence"))


def test_values_and_votes_are_redacted_as_answers_are():
    ((request,), _) = requests(CASE, [CITES], context_tokens=32_000)
    kept = CachedAnswer(
        value=["eve@example.com"], reason="", prompt_version="p", votes=(("a", '"eve@example.com"'), ("b", "1"))
    )
    (asked,) = record_of(request, [], {CITES: kept}, Redaction(("email",)))["questions"]
    assert (asked["value"], asked["votes"]) == (["[email]"], {"a": '"[email]"', "b": "1"})


async def test_nothing_is_kept_unless_it_is_configured_nor_of_a_case_without_a_trace(made, store):
    await made(calls=store.judge_calls).answer(CASE, [INTENT])
    await made(**keeping(store)).answer(dataclasses.replace(CASE, trace_id=None), [CITES])
    assert store.judge_calls.of(bytes.fromhex(TRACE)) == []


async def test_a_call_without_an_answer_is_kept_with_its_cause(made, provider, store):
    provider.standing = fake.error(400, "no such thing")
    await made(**keeping(store)).answer(CASE, [INTENT])
    (call,) = store.judge_calls.of(bytes.fromhex(TRACE))
    assert "bad request" in call["exchanges"][0]["failure"]
    assert call["questions"][0]["fault"] == "the call brought no answer"


async def test_the_oldest_go_beyond_the_bytes_and_the_time(store):
    calls = store.judge_calls
    for number in range(10):
        body = {"call": str(number), "text": str(number) * 50}
        await calls.put(str(number), bytes(16), body, at_ns=number, before_ns=0, most_bytes=10**6)
    await calls.purge(4, 10**6)
    assert [each["call"] for each in calls.of(bytes(16))] == ["4", "5", "6", "7", "8", "9"]
    await calls.put("10", bytes(16), {"call": "10", "text": "x" * 50}, at_ns=10, before_ns=0, most_bytes=100)
    kept = [each["call"] for each in calls.of(bytes(16))]
    assert kept[-1] == "10"
    assert 1 <= len(kept) < 6
    await calls.purge(0, 0)
    assert calls.of(bytes(16)) == []


async def test_all_calls_are_looked_through_now_and_then_alone_and_never_hold_more_than_they_may(store):
    statements, most = [], 20_000
    store._write_connection.set_trace_callback(statements.append)

    def size():
        return store._write_connection.execute("SELECT sum(size) FROM judge_calls").fetchone()[0]

    for number in range(400):
        body = {"text": random.Random(number).randbytes(100).hex()}
        await store.judge_calls.put(str(number), bytes(16), body, at_ns=number, before_ns=0, most_bytes=most)
        assert size() <= most
    assert size() > most * 14 / 16
    assert sum("OVER (ORDER BY" in each for each in statements) < 40


async def test_explain_shows_it_from_the_file_and_forget_erases_it(made, store):
    await made(**keeping(store)).answer(CASE, [INTENT])
    shown = CliRunner().invoke(explain, [TRACE, "--judge", "--store", str(store.path)], standalone_mode=False)
    assert "call_intent_match" in shown.output
    assert shown.return_value == 0
    assert erase(store.path, [bytes.fromhex(TRACE)], scores=False, now_ns=1).rows["judge calls"] == 1
    gone = CliRunner().invoke(explain, [TRACE, "--judge", "--store", str(store.path)], standalone_mode=False)
    assert gone.output.startswith(f"no call to a judge is kept of trace {TRACE}")
    assert gone.return_value == 1


def test_of_a_long_run_it_is_shown_which_steps_the_judge_saw_in_full():
    case = next(iter(cases(3, 4, 60)))[1]
    question = FindErrors("task", "outline", "=== step 2\nx", (2, 3, 7), 9)
    ((request,), _) = requests(case, [question], context_tokens=32_000)
    body = record_of(request, (), {}, None)
    (asked,) = body["questions"]
    assert (asked["steps_shown"], asked["steps_not_shown"]) == ("2-3, 7", "1, 4-6, 8-9")
    lines = list(judge_explanation([{"call": "c", "at": "now", **body}]))
    assert any("steps in full: 2-3, 7; in outline: 1, 4-6, 8-9" in line for line in lines)
