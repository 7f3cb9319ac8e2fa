"""A monitor with a live judge: litellm over a socket to a provider that misbehaves on demand."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from typing import Any

import pytest
import yaml

from tests.fakes.judge import judges
from tests.fakes.openai import Provider, error, page, raw, states, unauthorised
from tests.forked import sidejudge
from tests.needs import LITELLM
from tests.otlp_requests import HIGH, S, request, span, trace

pytestmark = LITELLM.mark

KEY = "sk-not-to-be-shown-1234567890"


@pytest.fixture
def provider():
    with Provider(judges()) as running:
        yield running


MODEL = "openai/gpt-4.1-mini-2025-04-14"
PRICE = {"input_usd_per_million": 1, "output_usd_per_million": 4}
DEAR = {"input_usd_per_million": 50, "output_usd_per_million": 200}


def requested(number: int, *, trace_number: int | None = None, tail: bytes = HIGH, name: str = "step") -> bytes:
    stated = {
        "langfuse.observation.input": f"When does order {number} come?",
        "langfuse.observation.output": f"Order {number} comes tomorrow.",
        "langfuse.trace.metadata.expected_outcome": f"Order {number} comes tomorrow.",
    }
    trace_id = trace(number if trace_number is None else trace_number, tail)
    # What a tool returned is the source that the answer is judged by.
    looked_up = {"langfuse.observation.type": "tool", "langfuse.observation.output": f"Order {number}: tomorrow."}
    tool = S(trace_id=trace_id, span_id=span(2), parent_id=span(1), name="look_up", attributes=looked_up)
    return request([S(trace_id=trace_id, span_id=span(1), name=name, attributes=stated), tool])


def judged_by(provider: Provider, rubrics=("quality",), **judge: Any) -> dict[str, Any]:
    section = {
        "model": MODEL, "api_base": provider.url, "api_key": KEY, "retries": 0,
        "timeout": "5s", **judge,
    }  # fmt: skip
    return {"routes": [{"rubrics": list(rubrics)}], "evaluators": {"judge": section}}


def samples(monitor) -> dict[str, float]:
    found = {}
    for line in monitor.http.get(monitor.api + "/metrics").text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


def judge_of(monitor) -> dict[str, Any]:
    return monitor.get("/v1/status")["judge"]


def orders(requested) -> list[int]:
    """The orders that requests to the judge are about. Greetings, which find out whether it is back, are about none."""
    found = []
    for seen in requested:
        about = re.search(r"Order (\d+) comes", seen.messages[-1]["content"])
        assert about is not None or "ready" in seen.messages[-1]["content"]
        if about is not None:
            found.append(int(about[1]))
    return found


def test_what_needs_judgement_is_judged_and_everything_that_asks_is_told(serving, provider):
    monitor = serving(**judged_by(provider, ("answer", "quality"), price=PRICE))
    for number in range(5):
        monitor.post(requested(number))
    assert monitor.settled(5)["ended"]["scored"] == 5
    verdicts = monitor.verdicts()
    assert Counter(v["rubric"] for v in verdicts) == {"answer": 5, "quality": 5}
    assert {v["sampling_probability"] for v in verdicts} == {1.0}
    judged = [score for v in verdicts for score in v["scores"] if score["method"] == "judge"]
    assert {"accuracy_score", "faithfulness_score"} < {score["metric"] for score in judged}
    assert {score["judge"]["model"] for score in judged} == {MODEL}
    calls = {v["judge"]["calls"] for v in verdicts}
    assert calls == {1}, "all metrics of a rubric travel in one call"
    assert all(v["judge"]["cost_usd"] > 0 for v in verdicts)

    found = samples(monitor)
    sent = len(provider.seen)
    assert found[f'sidejudge_judge_requests_total{{model="{MODEL}"}}'] == sent == 10  # the grade of 002 travels alone
    assert found[f'sidejudge_judge_tokens_total{{direction="input",model="{MODEL}"}}'] > 0
    spent = found[f'sidejudge_judge_cost_usd_total{{model="{MODEL}"}}']
    assert spent == pytest.approx(sum(v["judge"]["cost_usd"] for v in verdicts))
    assert found['sidejudge_judge_budget_spent_usd{period="hour"}'] == pytest.approx(spent)
    assert found[f'sidejudge_judge_breaker_state{{model="{MODEL}",state="closed"}}'] == 1
    assert found[f'sidejudge_judge_requests_failed_total{{model="{MODEL}",reason="parse_error"}}'] == 0
    assert found["sidejudge_judge_cache_misses_total"] > 0

    reported = judge_of(monitor)
    assert (reported["name"], reported["outage"], reported["waiting"], reported["in_flight"]) == (MODEL, None, 0, 0)
    assert reported["budgets"][0]["spent_usd"] == pytest.approx(spent)
    assert all(s["judge_failed"] == 0 for s in monitor.get("/v1/status")["standings"])

    # The same again, by another trace: it costs nothing.
    monitor.post(requested(3, trace_number=100))
    monitor.settled(6)
    assert len(provider.seen) == sent
    again = monitor.verdicts(trace_id=trace(100).hex())
    assert {v["judge"]["calls"] for v in again} == {0}
    assert KEY not in everything_stated(monitor)


def test_late_spans_that_change_nothing_leave_what_was_paid(serving, provider):
    monitor = serving(**judged_by(provider, price=PRICE))
    monitor.post(requested(1))
    monitor.settled(1)
    (before,) = monitor.verdicts()
    monitor.post(request([S(trace_id=trace(1), span_id=span(3), parent_id=span(1))]))
    monitor.until(lambda: monitor.outcomes()["revisions"] == 1, "the span made no revision")
    (after,) = monitor.verdicts()
    assert before["judge"]["calls"] == 1
    assert (after["judge"], after["scores"], after["revision"]) == (before["judge"], before["scores"], 1)


@pytest.mark.parametrize(
    "instead", [page(200), raw(b""), raw(b'{"id": "x", "choi')], ids=["a login", "nothing", "half"]
)
def test_no_trace_is_lost_while_something_else_answers_in_the_judges_place(serving, provider, instead):
    provider.standing = instead
    monitor = serving(**judged_by(provider))
    for number in range(3):
        monitor.post(requested(number))
    monitor.until(lambda: judge_of(monitor)["waiting"] == 3, "they do not wait", 30)
    monitor.until(lambda: "as of a login" in judge_of(monitor)["models"][0]["reason"], "the cause is not shown", 30)
    provider.standing = judges()
    monitor.settled(3)
    assert {verdict["state"] for verdict in monitor.verdicts()} == {"valid"}


@pytest.mark.parametrize("retries", [0, 1])
def test_an_outage_parks_a_trace_that_nobody_comes_after(serving, provider, retries):
    provider.standing = error(503, "overloaded")
    monitor = serving(**judged_by(provider, retries=retries))
    monitor.post(requested(1))
    monitor.until(lambda: judge_of(monitor)["waiting"] == 1 and judge_of(monitor)["outage"], "it does not wait")
    outcomes = monitor.get("/v1/status")["outcomes"]
    assert (outcomes["open"], sum(outcomes["ended"].values())) == (1, 0)


def test_an_outage_parks_what_needs_the_judge_and_it_resumes_in_order_of_age(serving, provider):
    provider.standing = error(503, "overloaded")
    routes = [{"match": {"name": "plain"}, "rubrics": ["workflow"], "scenario": "any"}, {"rubrics": ["quality"]}]
    monitor = serving(
        **{**judged_by(provider), "routes": routes, "scenarios": {"any": {"tools_should_exclude": ["delete"]}}}
    )
    for number in range(12):
        monitor.post(requested(number))
        time.sleep(0.05)
    monitor.until(lambda: judge_of(monitor)["waiting"] == 12, "not everything waits")
    monitor.post(requested(12, name="plain"))
    monitor.until(lambda: monitor.outcomes()["ended"]["scored"] == 1, "what needs no judge waited")
    reported = judge_of(monitor)
    assert (reported["models"][0]["state"] in {"open", "half_open"}, reported["in_flight"]) == (True, 0)
    assert "overloaded" in reported["models"][0]["reason"]
    assert samples(monitor)['sidejudge_queue_items{queue="judge"}'] == 12
    assert monitor.get(f"/v1/traces/{trace(5).hex()}")["waits_for"] == "judge"
    page = monitor.http.get(monitor.api + "/").text
    assert "out of reach" in page or "being tried" in page

    before = len(provider.seen)
    provider.standing = judges()
    outcomes = monitor.settled(13)
    assert (outcomes["ended"]["scored"], outcomes["ended"]["judge_failed"]) == (13, 0), "nothing was lost"
    order = orders(provider.seen[before:])
    assert order[0] == 0, "the oldest goes first and alone"
    assert sorted(order) == list(range(12))
    assert all(abs(place - number) < 8 for place, number in enumerate(order)), "as far as eight at a time tell it"
    logged = [line["event"] for line in monitor.logged() if line.get("logger") == "sidejudge.judge"]
    assert logged == ["the judge is unreachable; traces that need it wait", "the judge answers again"]


def test_killed_during_an_outage_and_started_again_each_trace_is_judged_once(serving, provider):
    provider.standing = error(503, "overloaded")
    monitor = serving(**judged_by(provider))
    for number in range(8):
        monitor.post(requested(number))
    monitor.until(lambda: judge_of(monitor)["waiting"] == 8, "not everything waits")
    monitor.stop(signal.SIGKILL)
    before = len(provider.seen)
    provider.standing = judges()
    monitor.start()
    outcomes = monitor.settled(8)
    assert outcomes["ended"]["scored"] == outcomes["seen"] == 8
    assert Counter(orders(provider.seen[before:])) == dict.fromkeys(range(8), 1)
    assert Counter(v["trace_id"] for v in monitor.verdicts()) == {trace(n).hex(): 1 for n in range(8)}


def test_a_key_that_is_refused_is_told_everywhere_and_shown_nowhere(serving, provider):
    provider.standing = unauthorised()
    monitor = serving(**judged_by(provider, max_waiting=2), metrics={"detail": "full"})
    for number in range(5):
        monitor.post(requested(number))
    monitor.until(lambda: monitor.outcomes()["ended"]["judge_failed"] == 3, "what is too much still waits")
    reported = judge_of(monitor)
    assert reported["outage"].startswith("authentication failed")
    assert (reported["waiting"], reported["models"][0]["state"]) == (2, "open")
    found = samples(monitor)
    assert found[f'sidejudge_judge_breaker_state{{model="{MODEL}",state="open"}}'] == 1
    assert found[f'sidejudge_judge_requests_failed_total{{model="{MODEL}",reason="authentication failed"}}'] >= 1
    who = 'environment="unknown",rubric="quality",service="shop"'
    assert found[f"sidejudge_verdicts_judge_failed_ratio{{{who}}}"] == 1.0
    assert f"sidejudge_pass_ratio{{{who}}}" not in found, "a failure of the judge is in no pass ratio"
    assert "authentication failed" in monitor.http.get(monitor.api + "/").text
    assert "authentication failed" in monitor.verdicts()[0]["reason"]
    assert KEY not in everything_stated(monitor)


def test_what_a_model_costs_of_which_no_price_is_known_is_not_stated_as_nothing(serving, provider):
    name = "openai/our-deployment"
    monitor = serving(**judged_by(provider, model=name, structured="always", keep_calls_bytes="1MB"))
    monitor.post(requested(1))
    monitor.settled(1)
    assert judge_of(monitor)["unpriced"] == [name]
    assert (
        f"no price is known of {name}: the dollars are without it" in sidejudge("status", "--url", monitor.api).stdout
    )
    monitor.http.get(monitor.link)
    assert f"{name}, whose price is not known" in monitor.http.get(monitor.api + "/").text
    trace_id = trace(1).hex()
    assert f"{name}, 1 call, cost not known" in monitor.http.get(f"{monitor.api}/traces/{trace_id}").text
    shown = sidejudge("explain", trace_id, "--judge", "--store", str(monitor.folder / "state.sqlite"))
    assert ", cost not known\n" in shown.stdout


def test_what_the_budget_does_not_reach_for_balances_in_the_outcomes_and_the_weights_are_true(serving, provider):
    monitor = serving(**judged_by(provider, price=DEAR, budget_usd_per_hour=1.0, cache_entries=0))
    for number in range(60):
        monitor.post(requested(number, tail=spread(number, 60)))
        if number % 10 == 9:
            monitor.settled(number + 1)
    outcomes = monitor.settled(60)
    ended = {reason: count for reason, count in outcomes["ended"].items() if count}
    assert set(ended) == {"scored", "over_budget"}
    assert sum(ended.values()) == outcomes["seen"] == 60
    assert ended["over_budget"] > 0
    assert judge_of(monitor)["budgets"][0]["spent_usd"] <= 1.05
    verdicts = monitor.verdicts()
    for verdict in verdicts:
        assert int(verdict["trace_id"][18:], 16) >= 2**56 * (1 - verdict["sampling_probability"])
    story = next(
        reported
        for number in range(60)
        if (reported := monitor.get(f"/v1/traces/{trace(number, spread(number, 60)).hex()}"))["reason"] == "over_budget"
    )
    assert story["sampling"]["over_budget"] == ["quality"]
    assert story["verdicts"] == []
    assert samples(monitor)['sidejudge_traces_total{reason="over_budget",service="__all__"}'] == ended["over_budget"]


def spread(number: int, of: int) -> bytes:
    """The tail of a trace id whose randomness lies so far up the scale, in an order that is not that of its number."""
    return b"\x01\x00" + (((number * 37) % of) * 2**56 // of).to_bytes(7, "big")


def everything_stated(monitor) -> str:
    answers = [monitor.http.get(monitor.api + path).text for path in ("/", "/v1/status", "/v1/verdicts", "/metrics")]
    return "\n".join((*answers, monitor.log()))


def test_doctor_says_whether_the_judge_answers_and_never_shows_its_key(tmp_path, provider):
    path = tmp_path / "c.yaml"
    stated = judged_by(provider)
    path.write_text(yaml.safe_dump({**stated, "store": {"path": str(tmp_path / "s.sqlite")}}))
    different, same = (judges(lambda _, field, value=value: value if field == "score" else None) for value in (0, 1))
    prose = states("A pleasure to meet you!")
    for behaviours, outcome, found in (
        ([different], "ok", "answers"),
        ([prose, different], "ok", "answers"),
        ([prose, prose], "fail", "answers, but not in the form that is asked for (not JSON)"),
        ([same], "fail", "takes two different years for the same fact"),
        ([unauthorised()], "fail", "authentication failed"),
    ):
        provider.will(*behaviours)
        reported = sidejudge("doctor", "--config", path, cwd=tmp_path)
        (line,) = [line for line in reported.stdout.splitlines() if f"judge {MODEL}" in line]
        assert line.split()[0] == outcome, line
        assert found in line
        assert KEY not in reported.stdout + reported.stderr
