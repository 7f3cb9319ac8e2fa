"""The command: what a live monitor wrote is found again under the same ids, through a kill in the middle."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import yaml

from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.monitor.demo.traffic import SampleTraffic
from tests.fakes.judge import judges
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.fakes.openai import Provider, embeds, page, unauthorised
from tests.forked import Forked, sidejudge
from tests.needs import LITELLM
from tests.otlp_requests import HIGH, S, request, span, trace
from tests.running import ROOT

TRACES = 20
ROUTES = [{"match": {"metadata.task": "qa"}, "rubrics": ["qa"]}, {"rubrics": ["answer", "entity"]}]


def command(monitor, *more: str, state: str = "backfill.sqlite") -> list[str]:
    folder = monitor.folder
    stated = ["backfill", str(monitor.config), "--from", "2020-01-01", "--to", "2100-01-01", *more]
    return [*stated, "--state", str(folder / state)]


def until(condition: Callable[[], bool], process: Forked) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.returncode
        assert time.monotonic() < end
        time.sleep(0.02)


def reported(fake: FakeLangfuse) -> dict[str, tuple[object, ...]]:
    """Each score by its id: of what, its value and its time; who wrote it last does not matter."""
    rows = fake.scores.stored()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row["traceId"], row["name"], row["value"], row["timestamp"]) for row in rows}


def without_value(row: tuple[object, ...]) -> tuple[object, ...]:
    return (*row[:2], row[3])


def test_history_gets_the_scores_that_a_live_monitor_gave_under_the_same_ids_though_it_is_killed(serving):
    with FakeLangfuse(Mode.NEW, parts=[Observations.part]) as fake:
        keys = {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
        monitor = serving(sinks={"langfuse": {**keys, "requests_per_minute": 100_000, "scores": "all"}}, routes=ROUTES)
        traffic = SampleTraffic(2)
        for _ in range(TRACES):
            body = traffic.next(time.time_ns() // 10**6 * 10**6, wrong=0.3).body
            monitor.post(body)
            observations_of(fake).put(*rows_of(decode_spans(body)))
        monitor.settled(TRACES)
        monitor.until(lambda: monitor.get("/v1/status")["exports"][0]["waiting"] == 0, "scores wait")
        assert monitor.stop() == 0
        live = reported(fake)
        assert len({row[0] for row in live.values()}) == TRACES

        # What stands there is told again by a run that knows nothing of the monitor, and left as it is.
        written = fake.scores.written
        same = sidejudge(*command(monitor, "--yes", state="other.sqlite"), cwd=ROOT)
        assert same.returncode == 0, same.stderr
        assert "next revision: 0" in same.stdout
        assert fake.scores.written == written
        assert reported(fake) == live
        fake.scores.clear()

        dry = sidejudge(*command(monitor, "--dry-run"), cwd=ROOT)
        assert (dry.returncode, fake.scores.stored()) == (0, []), dry.stderr
        assert f"drawn: {TRACES}" in dry.stdout
        assert "cost: about $0.00" in dry.stdout

        cut = Forked(*command(monitor, "--yes"), cwd=ROOT)
        until(lambda: len({row["traceId"] for row in fake.scores.stored()}) >= 3, cut)
        cut.kill()
        cut.wait()
        done = sidejudge(*command(monitor, "--yes"), cwd=ROOT, timeout=200)
        assert done.returncode == 0, done.stderr
        again = reported(fake)
        assert dict(zip(again, map(without_value, again.values()), strict=False)) == {
            of: without_value(row) for of, row in live.items()
        }
        for of, (_, name, value, _) in again.items():
            # Langfuse keeps times to the millisecond, and latencies are told from them.
            assert value == pytest.approx(live[of][2], abs=2 if "latency" in name else 0)
        assert "judged by an earlier call" in done.stdout
        assert SECRET_KEY not in dry.stdout + done.stdout + done.stderr


def answered(number: int) -> bytes:
    now = time.time_ns() // 10**6 * 10**6
    stated = {
        "langfuse.observation.input": f"Refund {number}?", "langfuse.observation.output": f"Kunde {number}.",
        "langfuse.trace.metadata.expected_outcome": f"ग्राहक {number}.",
    }  # fmt: skip
    looked_up = {"langfuse.observation.type": "tool", "langfuse.observation.output": "paid"}
    made = {"trace_id": trace(number, HIGH), "start_ns": now, "end_ns": now + 10**9}
    root = S(span_id=span(1), attributes=stated, **made)
    return request([root, S(span_id=span(2), parent_id=span(1), attributes=looked_up, **made)])


@LITELLM.mark
@pytest.mark.parametrize("away", [page(503), unauthorised()], ids=["overloaded", "key refused"])
@pytest.mark.parametrize("asked", ["embedding", "judge"])
def test_an_outage_that_lasts_ends_it_and_replaces_no_score(tmp_path, asked, away):
    works = judges() if asked == "judge" else embeds(lambda text: (1.0, len(text) / 100))
    with FakeLangfuse(Mode.NEW, parts=[Observations.part]) as fake, Provider(works) as provider:
        for number in range(8):
            observations_of(fake).put(*rows_of(decode_spans(answered(number))))
        keys = {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
        section = {"model": "openai/gpt-4.1-mini", "api_key": "sk", "api_base": provider.url, "max_wait": "2s"}
        configuration = {
            "sampling": {"rate": 1.0}, "store": {"path": str(tmp_path / "state.sqlite")},
            "sinks": {"langfuse": {**keys, "requests_per_minute": 100_000, "scores": "all"}},
            "routes": [{"rubrics": ["answer" if asked == "judge" else "benchmarks"]}],
            "evaluators": {asked: {**section, "remote": True} if asked == "embedding" else section},
        }  # fmt: skip
        (tmp_path / "c.yaml").write_text(yaml.safe_dump(configuration))

        def backfill(state: str):
            to = ("--from", "2020-01-01", "--to", "2100-01-01", "--yes", "--state", str(tmp_path / state))
            return sidejudge("backfill", str(tmp_path / "c.yaml"), *to, cwd=ROOT, timeout=200)

        assert backfill("first").returncode == 0
        before, written = reported(fake), fake.scores.written
        assert before
        provider.standing = away
        done = backfill("second")
        assert done.returncode == 1
        assert f"error: evaluators.{asked}: " in done.stderr
        assert "unreachable; traces that need" in done.stderr
        assert "the run goes on where it was" in done.stderr
        provider.standing = works
        assert backfill("second").returncode == 0
        assert (reported(fake), fake.scores.written) == (before, written)
