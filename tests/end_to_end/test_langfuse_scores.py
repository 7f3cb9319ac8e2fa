"""A running monitor writes its verdicts back to Langfuse, through kills and outages, and links to the traces there."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode, only
from tests.forked import sidejudge
from tests.otlp_requests import S, request, span, trace
from tests.running import ROOT

RECORDED = Path(__file__).parents[1] / "data" / "otlp" / "langfuse-v5" / "s2_agents" / "001.pb"


def sink(fake: FakeLangfuse, **more: object) -> dict[str, object]:
    keys = {"public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
    return {"langfuse": {"base_url": fake.base_url, **keys, "timeout": "2s", "scores": "all", **more}}


@pytest.fixture(params=[Mode.V3, Mode.DUAL, Mode.EVENTS_ONLY, Mode.NEW], ids=lambda mode: mode.value)
def any_fake(request):
    with FakeLangfuse(request.param) as server:
        yield server


@pytest.fixture
def fake():
    with FakeLangfuse(Mode.NEW) as server:
        yield server


ROUTES = [{"rubrics": ["answer", "entity"]}]


def expected(monitor) -> dict[tuple[str, str], float | str]:
    """What the verdicts say, by trace and score name."""
    found: dict[tuple[str, str], float | str] = {}
    for verdict in monitor.verdicts():
        of = (verdict["trace_id"], verdict["rubric"])
        found[of[0], f"{of[1]}_state"] = "not counted" if verdict["state"] == "incomplete" else "counted"
        if verdict["composite"] is not None:
            found[of[0], f"{of[1]}_score"] = verdict["composite"]
        if verdict["passed"] is not None:
            found[of[0], f"{of[1]}_pass"] = verdict["passed"]
        for score in verdict["scores"]:
            if score["value"] is not None:
                found[of[0], f"{of[1]}_{score['metric']}"] = score["value"]
    return found


def stored(fake: FakeLangfuse) -> dict[tuple[str, str], float | str]:
    rows = fake.scores.stored()
    assert len({row["id"] for row in rows}) == len(rows)
    return {(row["traceId"], row["name"]): row["value"] for row in rows}


def test_every_version_gets_the_scores_of_every_verdict_and_pages_link_to_the_traces(serving, any_fake):
    monitor = serving(sinks=sink(any_fake), routes=ROUTES)
    monitor.post(RECORDED.read_bytes())
    monitor.settled(1)
    wanted = expected(monitor)
    monitor.until(lambda: len(any_fake.scores.stored()) >= len(wanted), "the scores did not arrive")
    assert stored(any_fake) == wanted
    (trace_id,) = {trace for trace, _ in wanted}
    url = f"{any_fake.base_url}/project/proj-test/traces/{trace_id}"
    assert {verdict["trace_url"] for verdict in monitor.verdicts()} == {url}
    assert monitor.get(f"/v1/traces/{trace_id}")["trace_url"] == url
    (export,) = monitor.get("/v1/status")["exports"]
    assert (export["state"], export["dead"], export["project"]) == ("ok", 0, "Test Project")
    assert "Exports and notices" in monitor.http.get(monitor.api + "/").text
    reported = monitor.http.get(monitor.api + "/metrics").text
    assert 'sidejudge_exports_failed_total{destination="langfuse",reason="rate_limited"} 0.0' in reported
    assert 'sidejudge_queue_items{queue="langfuse"}' in reported
    explained = cli("explain", trace_id, "--store", str(monitor.folder / "state.sqlite"))
    assert url in explained.stdout
    assert SECRET_KEY not in monitor.log() + reported + explained.stdout


def test_what_waits_is_counted_while_nobody_tries_to_send_it(serving, fake):
    """With keys that are refused it is tried every five minutes."""
    refused = sink(fake, secret_key="sk-lf-another")
    monitor = serving(sinks=refused, routes=ROUTES)
    monitor.until(lambda: monitor.get("/v1/status")["exports"][0]["state"] == "stopped", "the keys were not refused")
    monitor.post(RECORDED.read_bytes())
    monitor.settled(1)
    waiting = len(expected(monitor))
    assert waiting
    monitor.until(lambda: monitor.get("/v1/status")["exports"][0]["waiting"] == waiting, "none waits", seconds=30)
    assert (
        f'sidejudge_queue_items{{queue="langfuse"}} {float(waiting)}' in monitor.http.get(monitor.api + "/metrics").text
    )


def test_a_monitor_that_is_killed_between_sending_and_hearing_doubles_nothing(serving, fake):
    fake.mode = Mode.DUAL
    fake.standing_fault = only("POST", "/ingestion", lambda r: _held(fake, r) if r.body["batch"] else None)
    monitor = serving(sinks=sink(fake), routes=ROUTES)
    monitor.post(RECORDED.read_bytes())
    monitor.settled(1)
    monitor.until(lambda: any(events(fake)), "no score was sent")
    monitor.stop(signal.SIGKILL)
    assert fake.scores.stored()
    fake.standing_fault = None
    monitor.start()
    wanted = expected(monitor)
    monitor.until(lambda: stored(fake) == wanted, "the scores did not arrive")
    monitor.until(lambda: monitor.get("/v1/status")["exports"][0]["waiting"] == 0, "some still wait")
    sent = [event["body"]["id"] for event in events(fake)]
    assert len(sent) > len(set(sent)), "nothing was sent twice, so this test shows nothing"
    assert stored(fake) == wanted


def events(fake):
    return [event for request in fake.requested("POST", "/ingestion") for event in request.body["batch"]]


def _held(fake, request):
    """Does what it is asked, and never says so."""
    done = fake._act(request)
    return faults.Act(status=done.status, hang=True)


def test_what_was_given_up_is_listed_and_sent_again_by_command(serving, fake):
    refuses = faults.error(400, "Invalid request data", error=[])
    fake.standing_fault = lambda r: refuses(r) if r.path in ("/scores", "/ingestion") else None
    monitor = serving(sinks=sink(fake), routes=ROUTES)
    monitor.post(RECORDED.read_bytes())
    monitor.settled(1)
    wanted = expected(monitor)
    monitor.until(lambda: monitor.get("/v1/status")["exports"][0]["dead"] == len(wanted), "they were not given up")
    store = ["--store", str(monitor.folder / "state.sqlite")]
    listed = cli("export", "dead", "--format", "json", *store)
    lines = [json.loads(line) for line in listed.stdout.splitlines()]
    assert (listed.returncode, len(lines)) == (1, len(wanted))
    assert {(line["trace_id"], line["name"]) for line in lines} == set(wanted)
    assert all("refused (HTTP 400)" in line["reason"] for line in lines)
    fake.standing_fault = None
    assert cli("export", "replay", *store).returncode == 2
    twice = cli("export", "replay", lines[0]["id"], lines[0]["id"], *store)
    assert (twice.returncode, "1 score waits" in twice.stdout) == (0, True), "a score that is named twice is one"
    assert f"{len(wanted) - 1} scores wait" in cli("export", "replay", "--all", *store).stdout
    monitor.until(lambda: stored(fake) == wanted, "the scores did not arrive")
    assert cli("export", "dead", *store).returncode == 0


def test_wrong_keys_stop_scores_and_nothing_else_and_are_told_without_being_shown(serving, fake):
    monitor = serving(sinks=sink(fake, secret_key="sk-lf-of-somebody-else"), routes=ROUTES)
    monitor.post(RECORDED.read_bytes())
    monitor.settled(1)
    monitor.until(lambda: monitor.get("/v1/status")["exports"][0]["state"] == "stopped", "it did not stop")
    assert "check public_key and secret_key" in monitor.get("/v1/status")["exports"][0]["reason"]
    assert monitor.answers("/livez")
    reported = monitor.http.get(monitor.api + "/metrics").text
    assert 'sidejudge_connection_state{connection="langfuse",state="stopped"} 1.0' in reported
    assert 'sidejudge_connection_state{connection="langfuse",state="ok"} 0.0' in reported
    doctor = cli("doctor", "--config", str(monitor.config))
    assert "check sinks.langfuse.public_key" in " ".join(doctor.stdout.split())
    checked = cli("check", str(monitor.config))
    assert "of-somebody-else" not in monitor.log() + doctor.stdout + checked.stdout
    with closing(sqlite3.connect(monitor.folder / "state.sqlite")) as store, store:
        assert store.execute("SELECT count(*) FROM outbox WHERE state = 'waiting'").fetchone()[0] > 0


def test_a_conversation_that_goes_on_after_it_was_forgotten_replaces_the_scores_of_what_was_forgotten(serving, fake):
    monitor = serving(
        sinks=sink(fake), routes=[{"rubrics": []}], assembly={"grace": "100ms", "idle": "300ms"},
        rubrics={"talk": {"judges": "sessions", "metrics": [{"id": "cites", "check": {"contains": "source"}}]}},
        sessions={"idle": "1s", "routes": [{"rubrics": ["talk"]}]},
    )  # fmt: skip

    def say(number: int, text: str) -> None:
        attributes = {"session.id": "s-1", "gen_ai.operation.name": "chat", "langfuse.observation.output": text}
        now = time.time_ns()
        said = S(trace_id=trace(number), span_id=span(1), start_ns=now, end_ns=now, attributes=attributes)
        monitor.post(request([said])).raise_for_status()

    def shown() -> list[tuple[object, object]]:
        return [(r["value"], r["metadata"]["revision"]) for r in fake.scores.stored() if r["name"] == "talk_pass"]

    say(1, "no idea yet")
    monitor.until(lambda: shown() == [(False, 1)], "it was not judged")
    say(2, "the source again")
    monitor.until(lambda: shown() == [(True, 2)], "it was not judged anew")
    forgotten = cli("forget", "--session", "s-1", "--langfuse", "--yes", "--config", str(monitor.config))
    assert forgotten.returncode == 0, forgotten.stderr
    say(3, "no idea")
    monitor.until(lambda: [value for value, _ in shown()] == [False], "what was forgotten stands", seconds=30)


def cli(*args: str) -> subprocess.CompletedProcess[str]:
    return sidejudge(*args, cwd=ROOT)
