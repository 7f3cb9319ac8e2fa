"""What ``sidejudge backfill`` says before it judges anything, and what it refuses."""

from __future__ import annotations

import re
from functools import partial

import pytest
import yaml

from sidejudge.integrations.backoff import Backoff
from sidejudge.integrations.langfuse.client import Access, Langfuse, RequestBudget
from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.integrations.langfuse.probe import probe
from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.monitor.demo.traffic import SampleTraffic
from sidejudge.monitor.offline.backfill import listing
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode, answer, only

START_NS = 1_795_000_000 * 10**9
TIMES = ("--from", "2026-11-01", "--to", "2026-12-01T00:00Z")


@pytest.fixture
def fake():
    with FakeLangfuse(Mode.NEW, parts=[Observations.part]) as server:
        traffic = SampleTraffic(1)
        for number in range(30):
            body = traffic.next(START_NS + number * 10**9, wrong=0.3).body
            observations_of(server).put(*rows_of(decode_spans(body)))
        yield server


@pytest.fixture
def config(tmp_path, fake):
    def write(**sections):
        keys = {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
        stated = {
            "sampling": {"rate": 1.0}, "store": {"path": str(tmp_path / "state.sqlite")},
            "sinks": {"langfuse": {**keys, "requests_per_minute": 60_000}}, **sections,
        }  # fmt: skip
        path = tmp_path / "sidejudge.yaml"
        path.write_text(yaml.safe_dump(stated))
        return path

    return write


def judge(**more):
    return {"evaluators": {"judge": {"model": "openai/nobody-knows-it", "context_tokens": 32_000, **more}}}


def number(text: str, name: str) -> float:
    return float(re.search(rf"{name}: (?:about )?\$?([\d.,]+)", text)[1].replace(",", ""))


def test_it_tells_what_it_would_take_and_does_nothing(call, config, fake):
    price = {"input_usd_per_million": 1000, "output_usd_per_million": 5000}
    done = call("backfill", config(routes=[{"rubrics": ["agent"]}], **judge(price=price)), *TIMES, "--dry-run")
    assert done.exit_code == 0, done.stderr
    assert number(done.stdout, "drawn") == 30
    assert number(done.stdout, "first round") > 30
    assert number(done.stdout, "cost") > 0
    assert fake.scores.stored() == []
    twice = {name: 2 * dollars for name, dollars in price.items()}
    again = call("backfill", config(routes=[{"rubrics": ["agent"]}], **judge(price=twice)), *TIMES, "--dry-run")
    assert number(again.stdout, "cost") == pytest.approx(2 * number(done.stdout, "cost"), rel=0.05)


def test_without_a_known_price_the_cost_is_not_known(call, config):
    done = call("backfill", config(routes=[{"rubrics": ["agent"]}], **judge()), *TIMES, "--dry-run")
    assert "cost: not known" in done.stdout
    assert number(done.stdout, "first round") > 30


def test_a_share_and_a_filter_leave_others_out_and_say_so(call, config):
    done = call("backfill", config(), *TIMES, "--dry-run", "--rate", "0.5")
    drawn = number(done.stdout, "drawn")
    assert 0 < drawn < 30
    assert number(done.stdout, "left out, sampled out") == 30 - drawn
    done = call("backfill", config(), *TIMES, "--dry-run", "--filter", "name=nothing is called this")
    assert "drawn: 0" in done.stdout


def test_sessions_are_told_and_with_a_filter_that_they_are_not_judged(call, config, fake):
    for number in range(3):
        at = f"2026-11-18T0{number}:00:00.000Z"
        row = {"id": f"{number:016x}", "traceId": f"{number + 1:032x}", "startTime": at, "endTime": at, "name": "chat",
               "isRootObservation": True, "sessionId": f"s{number // 2}", "input": "why", "output": "so"}  # fmt: skip
        observations_of(fake).put(row)
    price = {"input_usd_per_million": 1000, "output_usd_per_million": 5000}
    requested = {"sessions": {"routes": [{"rubrics": ["dimensions"]}]}, "routes": [{"rubrics": ["answer"]}]}
    without = call("backfill", config(routes=requested["routes"], **judge(price=price)), *TIMES, "--dry-run")
    done = call("backfill", config(**requested, **judge(price=price)), *TIMES, "--dry-run")
    assert done.exit_code == 0, done.stderr
    assert "sessions: about 4" in done.stdout  # two of the traffic have one as well
    assert number_of(done, "first round") > number_of(without, "first round")
    assert number_of(done, "cost") > number_of(without, "cost")
    filtered = call("backfill", config(**requested, **judge(price=price)), *TIMES, "--dry-run", "--filter", "name=chat")
    assert "sessions: not judged" in filtered.stdout


def number_of(done, name: str) -> float:
    return number(done.stdout, name)


def test_nothing_is_judged_unless_it_is_said(call, config, fake):
    done = call("backfill", config(), *TIMES)
    assert done.exit_code == 2
    assert "--yes" in done.stderr
    assert fake.scores.stored() == []


@pytest.mark.parametrize(
    ("arguments", "stated"),
    [
        (("--from", "yesterday"), "--from: 'yesterday' is no time"),
        (("--from", "2026-11-02", "--to", "2026-11-01"), "--to: is not after --from"),
        ((*TIMES, "--filter", "name"), "--filter: 'name' is not KEY=GLOB"),
        ((*TIMES, "--filter", "nmae=x"), "--filter: nmae"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(call, config, arguments, stated):
    done = call("backfill", config(), *arguments)
    assert done.exit_code == 2
    assert stated in done.stderr
    assert "remedy:" in done.stderr


def test_without_a_langfuse_there_is_no_history(call, config):
    done = call("backfill", config(sinks={}), *TIMES)
    assert (done.exit_code, "sinks.langfuse: is missing" in done.stderr) == (2, True)


def test_a_langfuse_that_refuses_is_told_in_its_words_and_without_the_keys(call, config, fake):
    fake.standing_fault = faults.error(401, "Invalid credentials. Confirm that you've configured the correct host.")
    done = call("backfill", config(), *TIMES, "--dry-run")
    assert done.exit_code == 1
    assert "Invalid credentials" in done.stderr
    assert SECRET_KEY not in done.stderr + done.stdout


@pytest.mark.parametrize("command", ["backfill", "learn"])
@pytest.mark.parametrize("path", ["/projects", "/v2/observations", "/v3/scores", "/traces"])
def test_a_langfuse_that_is_busy_at_first_is_asked_again_and_the_wait_is_stated(
    call, config, fake, monkeypatch, command, path
):
    monkeypatch.setattr(listing, "Backoff", partial(Backoff, first_s=0.01))
    busy = [faults.error(429, "slow down"), faults.error(503, "try again later")]
    fake.standing_fault = lambda request: busy.pop()(request) if request.path == path and busy else None
    stated = ("backfill", config()) if command == "backfill" else ("learn", "langfuse", "--config", config())
    done = call(*stated, *TIMES, *(["--dry-run"] if command == "backfill" else ()))
    assert done.exit_code == 0, done.stderr
    assert "Langfuse: server error (HTTP 503): try again later; it is asked again in" in done.stderr
    assert "Langfuse: rate limited (HTTP 429): slow down; it is asked again in" in done.stderr


@pytest.mark.parametrize(
    ("fault", "least", "most"),
    [
        (faults.error(503), 450, 900), (faults.rate_limited(301), 602, 604), (faults.rate_limited(1000), 0, 0),
        (faults.error(401), 0, 0), (faults.login_page(), 0, 0),
    ],
    ids=["busy", "for some minutes", "for longer", "refused", "another server"],
)  # fmt: skip
async def test_a_langfuse_that_stays_busy_is_given_up_and_what_does_not_pass_is_not_waited_for(
    fake, fault, least, most
):
    fake.standing_fault = fault
    now, waits, lines = 0.0, [], []

    async def sleep(seconds):
        nonlocal now
        now += seconds
        waits.append(seconds)

    access = Access(base_url=fake.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY, requests_per_minute=10**6)
    async with Langfuse(access, budget=RequestBudget(10**6, now_s=lambda: now)) as langfuse:
        with pytest.raises(LangfuseError):
            await listing.met(partial(probe, langfuse), lines.append, sleep=sleep)
    assert least <= sum(waits) <= most
    assert len(lines) == len(waits)


@pytest.mark.parametrize("command", ["backfill", "learn"])
def test_traces_that_langfuse_does_not_give_are_named_and_counted_and_let_the_others_by(call, config, fake, command):
    traces = sorted({row["traceId"] for row in observations_of(fake).rows()})
    broken = {traces[0]: faults.error(403, "the contents are refused"), traces[1]: lambda _: faults.page(404)}
    fake.standing_fault = lambda request: (
        broken[request.params["traceId"]](request) if request.params.get("traceId") in broken else None
    )
    if command == "backfill":
        done = call("backfill", config(routes=[{"rubrics": ["run_health"]}]), *TIMES, "--yes")
        assert done.exit_code == 1
        assert "not judged, not read: forbidden: 1\nnot judged, not read: not found: 1" in done.stdout
        assert len({row["traceId"] for row in fake.scores.stored()}) == 28
        assert all(trace_id in done.stdout for trace_id in broken)
    else:
        done = call("learn", "langfuse", "--config", config(), *TIMES)
        assert f"trace {traces[0]} is left out: not read: forbidden" in done.stderr
        assert f"trace {traces[1]} is left out: not read: not_found" in done.stderr
        assert "2 of 30 traces are left out" in done.stderr


def test_references_that_cannot_be_read_are_not_judged_without(call, config, tmp_path):
    missing = [{"file": str(tmp_path / "golden.jsonl"), "key": "trace_id"}]
    done = call("backfill", config(references=missing), *TIMES, "--dry-run")
    assert done.exit_code == 1
    assert "references:" in done.stderr
    assert "golden.jsonl" in done.stderr


def test_references_that_langfuse_is_too_busy_to_give_at_first_are_read_again(call, config, fake, monkeypatch):
    monkeypatch.setattr(listing, "Backoff", partial(Backoff, first_s=0.01))
    busy = [faults.error(429, "slow down"), faults.error(503, "try again later")]
    fake.standing_fault = lambda request: (
        (busy.pop() if busy else lambda _: answer({"data": [], "meta": {"totalPages": 1}}))(request)
        if request.path == "/dataset-items" else None
    )  # fmt: skip
    done = call("backfill", config(references=[{"langfuse_dataset": "golden"}]), *TIMES, "--dry-run")
    assert (done.exit_code, busy) == (0, []), done.stderr
    assert "slow down; it is asked again in" in done.stderr
    fake.standing_fault = only("GET", "/dataset-items", faults.error(403, "not yours"))
    done = call("backfill", config(references=[{"langfuse_dataset": "golden"}]), *TIMES, "--dry-run")
    assert (done.exit_code, "references: dataset golden: dataset golden: forbidden" in done.stderr) == (1, True)


def test_in_batches_it_costs_half_and_other_providers_are_refused(call, config):
    price = {"input_usd_per_million": 1000, "output_usd_per_million": 5000}
    given = config(routes=[{"rubrics": ["agent"]}], **judge(price=price))
    whole = call("backfill", given, *TIMES, "--dry-run")
    half = call("backfill", given, *TIMES, "--dry-run", "--batch")
    assert number(half.stdout, "cost") == pytest.approx(number(whole.stdout, "cost") / 2, rel=0.01)
    other = call("backfill", config(**judge(panel=["anthropic/claude-3-5-haiku-20241022"])), *TIMES, "--batch")
    assert "--batch: anthropic/claude-3-5-haiku-20241022 is asked one by one only" in other.stderr
    none = call("backfill", config(), *TIMES, "--batch")
    assert "no judge is configured" in none.stderr
