"""The whole monitor in this process, spoken to over its sockets."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
import time
from collections import Counter
from contextlib import closing

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from sidejudge.integrations.jsonl import SinkError
from sidejudge.integrations.store.sqlite import StoreError, StoreUnavailable
from sidejudge.monitor.deliver.parquet import PARQUET
from sidejudge.monitor.demo.traffic import SampleTraffic
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.ingest.server import AddressError, bind
from sidejudge.monitor.offline.forget import Selection
from sidejudge.monitor.runtime.app import Monitor
from sidejudge.monitor.runtime.process import _started
from tests.needs import PROMTOOL, PYARROW
from tests.otlp_requests import LOW, S, request, span, trace
from tests.waiting import until

DEMO = {
    "routes": [
        {"name": "agents", "match": {"service": "research-assistant"}, "rubrics": ["workflow"], "scenario": "policy"},
        {"name": "call quality", "match": {"metadata.task": "qa"}, "rubrics": ["qa"]},
        {"name": "call entities", "match": {"metadata.task": "entity"}, "rubrics": ["entity"]},
    ],
    "scenarios": {"policy": {"agents_should_include": ["research"], "tools_should_include": ["pdf_retrieval"]}},
}
ANY = {"routes": [{"rubrics": ["workflow"], "scenario": "any"}], "scenarios": {"any": {"max_seconds": 10**9}}}


def root(number, tail=LOW, **more) -> S:
    return S(trace_id=trace(number, tail), span_id=span(1), **more)


async def played(app, traces: int, wrong: float = 0.4, seed: int = 7) -> Counter:
    """Post sample traffic; how many were spoilt, by service."""
    traffic, sent = SampleTraffic(seed), Counter()
    for _ in range(traces):
        one = traffic.next(time.time_ns(), wrong)
        answer = await app.post(one.body)
        assert (answer.status_code, answer.content) == (200, b"")
        sent[one.service, one.spoilt] += 1
    return sent


async def samples(app) -> dict[tuple, float]:
    """Every sample of ``/metrics`` by name and labels, read by Prometheus's own OpenMetrics parser."""
    answer = await app.http.get(app.api + "/metrics", headers={"accept": "application/openmetrics-text"})
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def total(found: dict[tuple, float], name: str, **labels: str) -> float:
    wanted = set(labels.items())
    return sum(value for (known, *rest), value in found.items() if known == name and wanted <= set(rest))


async def test_sample_traffic_is_judged_as_it_was_made(started):
    app = await started(**DEMO)
    sent = await played(app, 60)
    outcomes = await app.settled(60)
    assert (outcomes["seen"], outcomes["open"], outcomes["ended"]["scored"]) == (60, 0, 60)
    verdicts = (await app.get("/v1/verdicts", limit=1000))["verdicts"]
    assert Counter((v["service"], not v["passed"]) for v in verdicts) == sent
    assert len({v["trace_id"] for v in verdicts}) == 60
    statuses = (await app.get("/v1/status"))["standings"]
    assert {(s["service"], s["n"], s["failures"]) for s in statuses} == {
        (service, sent[service, False] + sent[service, True], sent[service, True]) for service, _ in sent
    }
    counted, calls = await samples(app), {"service": "call-quality", "version": "1.2.3"}
    assert total(counted, "sidejudge_version_verdict_weight_total", **calls) == (
        sent["call-quality", False] + sent["call-quality", True]
    )
    assert total(counted, "sidejudge_version_verdict_failed_weight_total", **calls) == sent["call-quality", True]


async def test_metrics_and_outcomes_tell_the_same(started):
    app = await started(**DEMO, sampling={"rate": 0.5})
    await played(app, 40)
    await app.post(request([root(n) for n in range(5)]))
    await app.post(b"\xff not protobuf")
    outcomes = await app.settled(46)
    found = await samples(app)
    assert total(found, "sidejudge_traces_seen_total") == outcomes["seen"] == 46
    assert total(found, "sidejudge_traces_open") == outcomes["open"] == 0
    assert sum(outcomes["ended"].values()) == outcomes["seen"]
    for reason, count in outcomes["ended"].items():
        assert total(found, "sidejudge_traces_total", reason=reason) == count, reason
    assert outcomes["ended"]["undecodable"] == 1
    assert outcomes["ended"]["sampled_out"] >= 5
    verdicts = (await app.get("/v1/verdicts", limit=1000))["verdicts"]
    assert total(found, "sidejudge_verdicts_total") == len(verdicts) == outcomes["ended"]["scored"]
    failed = sum(v["passed"] is False for v in verdicts)
    assert total(found, "sidejudge_verdicts_failed_total") == failed
    assert total(found, "sidejudge_verdict_weight_total") == 2 * len(verdicts)
    assert total(found, "sidejudge_evaluation_lag_seconds_count") == len(verdicts)


async def test_metrics_of_some_names_are_these_series_and_no_others(started):
    app = await started()
    whole = (await app.http.get(app.api + "/metrics")).text.splitlines()
    wanted = ["sidejudge_traces_seen_total", "sidejudge_traces_open"]
    lines = {}
    for coding in ("identity", "gzip"):
        headers = {"accept-encoding": coding}
        found = await app.http.get(app.api + "/metrics", params={"name[]": wanted}, headers=headers)
        assert found.headers.get("content-encoding", "identity") == coding
        lines[coding] = [line for line in found.text.splitlines() if not line.startswith("#")]
    assert lines["identity"] == [line for line in whole if line.split(" ")[0].split("{")[0] in wanted]
    assert [lines["gzip"], len(lines["gzip"])] == [lines["identity"], 2]


async def test_the_lag_is_by_the_monitor_s_clock_whatever_a_sender_s_says(started):
    app = await started(**ANY)
    ran, year_ns = {"gen_ai.operation.name": "invoke_agent", "output.value": "Done."}, 365 * 86_400 * 10**9
    for number, end_ns in enumerate((2_000, time.time_ns() - year_ns, time.time_ns() + year_ns)):
        sent = S(trace_id=trace(number), span_id=span(1), start_ns=end_ns - 1_000, end_ns=end_ns, attributes=ran)
        await app.post(request([sent]))
    await app.settled(3)
    found = await samples(app)
    assert total(found, "sidejudge_evaluation_lag_seconds_count") == 3
    assert 0 < total(found, "sidejudge_evaluation_lag_seconds_sum") < 60


@PROMTOOL.mark
async def test_promtool_has_nothing_to_object_to_in_a_running_monitor(started, tmp_path):
    app = await started(**DEMO, sinks={"jsonl": {"path": str(tmp_path / "v.jsonl")}})
    await played(app, 20)
    await app.settled(20)
    text = (await app.http.get(app.api + "/metrics")).content
    reported = await asyncio.to_thread(
        subprocess.run, [PROMTOOL.path(), "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert (reported.returncode, reported.stdout + reported.stderr) == (0, b"")


async def test_the_address_for_traces_answers_probes_and_questions_too(started):
    app = await started()
    for path in ("/livez", "/readyz", "/startupz", "/metrics", "/v1/status", "/"):
        assert (await app.http.get(app.otlp + path)).status_code == 200, path
    assert (await app.http.get(app.otlp + "/v1/traces")).status_code == 405
    misdirected = await app.http.post(app.api + "/v1/traces")
    assert misdirected.status_code == 404
    assert "sources.otlp.http" in misdirected.json()["remedy"]


async def test_an_api_that_is_bound_more_closely_is_not_answered_on_the_address_for_traces(started):
    app = await started(sources={"otlp": {"http": "0.0.0.0:0"}})
    answers = {path: (await app.http.get(app.otlp + path)).status_code for path in ("/livez", "/v1/verdicts", "/")}
    assert answers == {"/livez": 200, "/v1/verdicts": 404, "/": 404}
    assert (await app.http.get(app.api + "/v1/verdicts")).status_code == 200


@pytest.mark.parametrize("ended", ["judging", "delivery"])
async def test_a_process_of_which_a_part_has_ended_is_not_live(started, tmp_path, ended):
    app = await started(**ANY, sinks={"jsonl": {"path": str(tmp_path / "verdicts.jsonl")}})
    assert (await app.http.get(app.api + "/livez")).text == "ok\n"
    (sink,) = app.monitor.sinks._sinks
    part = app.monitor.judging if ended == "judging" else sink.deliveries[0]
    part._task.cancel()
    await asyncio.wait([part._task])
    probe = await app.http.get(app.api + "/livez")
    assert (probe.status_code, probe.text.partition(":")[0]) == (503, "not live")


async def test_refused_requests_are_counted_by_status_and_the_first_of_each_is_logged(started, caplog):
    app = await started(log={"level": "warning"})
    for _ in range(3):
        await app.http.post(app.otlp + "/v1/traces", data={"a": "form"})
    await app.post(b"garbage")
    await app.http.post(app.otlp + "/v1/metrics", content=b"", headers={"content-type": "application/x-protobuf"})
    found = await samples(app)
    assert total(found, "sidejudge_requests_refused_total", code="415") == 3
    assert total(found, "sidejudge_requests_refused_total", code="400") == 1
    assert total(found, "sidejudge_requests_refused_total", code="503") == 0
    assert total(found, "sidejudge_requests_dropped_total") == 1
    assert [record.status for record in caplog.records if record.name == "sidejudge.receiver"] == [415, 400]


async def test_two_monitors_do_not_share_a_store(started, configured):
    await started()
    with pytest.raises(StoreError, match="another monitor uses it"):
        Monitor(configured())


async def test_a_restart_finds_its_windows_and_what_was_open(started):
    first = await started(**DEMO)
    await played(first, 20)
    await first.settled(20)
    await first.post(request([S(trace_id=trace(1), span_id=span(2), parent_id=span(1), service="shop")]))
    before = await first.get("/v1/status")
    assert first.monitor.outcomes.open == 1
    await first.monitor.stop()

    second = await started(**DEMO, assembly={"grace": "0s", "idle": "10m"})
    after = await second.get("/v1/status")

    def numbers(status):
        return [{key: s[key] for key in ("service", "rubric", "n", "failures", "composite_mean")}
                for s in status["standings"]]  # fmt: skip

    assert numbers(after) == numbers(before)
    assert (after["outcomes"]["seen"], after["outcomes"]["open"]) == (1, 1)
    found = await samples(second)
    assert total(found, "sidejudge_verdicts_total") == 0, "what the first counted is not counted again"
    await second.post(request([root(1, tail=trace(1)[7:], service="shop")]))
    outcomes = await second.settled(1)
    assert outcomes["ended"]["not_a_run"] == 1
    assert (await second.get(f"/v1/traces/{trace(1).hex()}"))["spans"] == 2


async def test_late_spans_after_a_restart_are_a_revision(started):
    first = await started(**ANY)
    await first.post(request([root(1)]))
    await first.settled(1)
    await first.monitor.stop()
    second = await started(**ANY)
    await second.post(request([S(trace_id=trace(1, LOW), span_id=span(2), parent_id=span(1))]))
    await until(lambda: second.monitor.outcomes.balance().revisions == 1)
    outcomes = await second.settled(0)
    assert (outcomes["seen"], sum(outcomes["ended"].values())) == (0, 0), "the first monitor has counted it"
    story = await second.get(f"/v1/traces/{trace(1, LOW).hex()}")
    assert (story["revision"], story["spans"]) == (2, 2)


@PYARROW.mark
async def test_an_idle_monitor_erases_within_a_minute_what_a_command_asks_for(started, tmp_path):
    app = await started(sinks={"parquet": {"path": str(tmp_path / "history"), "every": "10ms"}})
    asked = Selection(users=frozenset({"ann"})).request((), PARQUET)
    await app.monitor.store.notifications.put([asked], time.time_ns())
    for each in app.monitor._repeated:
        if each.every_s <= 60:
            await each.work()
    await until(lambda: app.monitor.undelivered() == 0)


async def test_the_same_monitor_can_be_stopped_twice_and_takes_nothing_any_more(started):
    app = await started()
    await app.monitor.stop()
    await app.monitor.stop()
    assert not app.monitor.view.ready()


@pytest.mark.parametrize(
    ("key", "section"),
    [
        ("sources.otlp.http", lambda taken: {"sources": {"otlp": {"http": taken}}}),
        ("api.listen", lambda taken: {"api": {"listen": taken}}),
    ],
)
async def test_an_address_that_is_taken_is_told_and_leaves_nothing_behind(configured, key, section):
    with bind("127.0.0.1:0", "x") as taken:
        there = f"127.0.0.1:{taken.getsockname()[1]}"
        monitor = Monitor(configured(**section(there)))
        with pytest.raises(AddressError, match=f"^{key}: cannot listen on {there}"):
            await monitor.start()
        await monitor.stop()
    assert not monitor.view.started()


async def test_every_verdict_is_a_line_in_the_file_and_a_revision_is_another(started, tmp_path):
    path = tmp_path / "verdicts.jsonl"
    app = await started(**ANY, sinks={"jsonl": {"path": str(path)}})
    await app.post(request([root(1), root(2)]))
    await app.settled(2)
    await app.post(request([S(trace_id=trace(1, LOW), span_id=span(2), parent_id=span(7))]))
    await until(lambda: app.monitor.outcomes.balance().revisions == 1)
    await until(lambda: len(path.read_text().splitlines()) == 3)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert Counter((line["trace_id"], line["revision"]) for line in lines) == {
        (trace(1, LOW).hex(), 1): 1, (trace(2, LOW).hex(), 1): 1, (trace(1, LOW).hex(), 2): 1,
    }  # fmt: skip
    async with asyncio.timeout(30):  # a line is counted once it is known to be on the disk
        while total(await samples(app), "sidejudge_exports_total", destination="jsonl") != 3:  # noqa: ASYNC110  # what is waited for knows nothing of the test
            await asyncio.sleep(0.05)
    found = await samples(app)
    assert total(found, "sidejudge_exports_failed_total") == 0
    assert total(found, "sidejudge_verdicts_total") == 2
    assert total(found, "sidejudge_verdicts_revised_total") == 1


async def test_what_late_spans_cost_is_in_the_file_too_where_they_change_nothing_else(started, tmp_path):
    def call(number):
        spent = {"gen_ai.operation.name": "chat", "gen_ai.usage.cost": "0.5"}
        return S(trace_id=trace(1, LOW), span_id=span(number), parent_id=span(1), attributes=spent)

    path = tmp_path / "verdicts.jsonl"
    app = await started(**ANY, sinks={"jsonl": {"path": str(path)}})
    await app.post(request([root(1), call(2)]))
    await app.settled(1)
    await app.post(request([call(3)]))
    await until(lambda: len(path.read_text().splitlines()) == 2)
    (shown,) = (await app.get("/v1/verdicts"))["verdicts"]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["revision"], line["cost_usd"]) for line in lines] == [(1, 0.5), (2, 1.0)]
    assert (shown["revision"], shown["cost_usd"]) == (2, 1.0)


async def test_between_two_rounds_of_judging_there_is_rest(configured):
    rested = []
    monitor = Monitor(configured(), at_rest=lambda: rested.append(monitor.outcomes.open))
    await monitor.start()
    await until(lambda: len(rested) >= 2)
    await monitor.stop()


async def test_the_daily_report_goes_by_the_bands_of_the_rubrics_of_a_reload(configured, started):
    def sections(acceptable):
        metric = {"id": "helpfulness", "good": 0.9, "acceptable": acceptable, "weight": 1.0}
        rubrics = {"own": {"metrics": [{**metric, "reported": "helpfulness"}]}}
        return {"alerts": {"report": {"at": "08:00"}}, "rubrics": rubrics, "routes": [{"rubrics": ["own"]}]}

    monitor = (await started(**sections(0.8))).monitor
    assert monitor.notifications.daily.watched["own"].acceptable == {"helpfulness": (0.8, True)}
    config = configured(**sections(0.6))
    monitor.take_config(config, {"own": config.declared["own"]})
    assert monitor.notifications.daily.watched["own"].acceptable == {"helpfulness": (0.6, True)}


async def test_a_file_that_cannot_be_appended_to_is_told_at_the_start(configured, tmp_path):
    monitor = Monitor(configured(sinks={"jsonl": {"path": str(tmp_path / "absent" / "v.jsonl")}}))
    with pytest.raises(SinkError, match="cannot append"):
        await monitor.start()
    await monitor.stop()


async def test_lines_for_a_file_that_goes_away_later_wait_until_it_is_back(started, tmp_path):
    folder = tmp_path / "verdicts"
    folder.mkdir()
    app = await started(**ANY, sinks={"jsonl": {"path": str(folder / "v.jsonl")}})
    shutil.rmtree(folder)
    await app.post(request([root(1)]))
    assert (await app.settled(1))["ended"]["scored"] == 1
    found = await samples(app)
    assert total(found, "sidejudge_queue_items", queue="jsonl") == 1
    assert total(found, "sidejudge_exports_last_success_timestamp_seconds") == 0
    folder.mkdir()
    await until(lambda: (folder / "v.jsonl").exists() and (folder / "v.jsonl").read_bytes().count(b"\n") == 1)


async def test_chunks_go_after_the_late_window_and_verdicts_after_retention(started):
    now = [1_790_000_000_000_000_000]
    app = await started(
        lambda: now[0], **ANY, assembly={"grace": "1s", "late": "10m"}, alerts={"window": "10m"}
    )  # fmt: skip
    await app.post(request([root(1)]))
    now[0] += 2 * 10**9
    await app.settled(1)
    store, minute = app.monitor.store, 60 * 10**9

    def held():
        return len(store.chunks(trace(1, LOW))), len(store.verdicts()), store.details(trace(1, LOW)) is not None

    for later, expected in (
        (0, (1, 1, True)),
        (9 * minute, (1, 1, True)),
        (2 * minute, (0, 1, True)),
        (23 * 60 * minute, (0, 1, True)),
        (60 * minute, (0, 0, False)),
    ):
        now[0] += later
        await app.monitor.retention.purge()
        assert held() == expected, later
    assert (await app.get("/v1/status"))["standings"][0]["n"] == 0, "its window is past too"


async def test_what_waits_to_be_judged_is_never_purged(started):
    now = [1_790_000_000_000_000_000]
    app = await started(lambda: now[0], **ANY, assembly={"idle": "100h", "deadline": "200h", "late": "1m"})
    await app.post(request([S(trace_id=trace(1), span_id=span(2), parent_id=span(1))]))
    now[0] += 48 * 3600 * 10**9
    await app.monitor.retention.purge()
    assert (len(app.monitor.store.chunks(trace(1))), app.monitor.outcomes.open) == (1, 1)


async def test_a_store_that_refuses_for_a_while_costs_no_verdict(started):
    app = await started(**ANY)
    connection = app.monitor.store._write_connection
    refuse = "BEFORE INSERT ON traces BEGIN SELECT RAISE(ABORT, 'not now'); END"
    connection.execute(f"CREATE TRIGGER refuses {refuse}")
    await app.post(request([root(n) for n in range(5)]))
    await until(lambda: len(app.monitor.pipeline.waiting) == 5)
    assert ((await app.get("/v1/status"))["outcomes"]["open"], app.monitor.view.live()) == (5, True)
    connection.execute("DROP TRIGGER refuses")
    assert (await app.settled(5))["ended"]["scored"] == 5
    assert total(await samples(app), "sidejudge_verdicts_total") == 5


@pytest.mark.parametrize("where", ["pipeline", "assembler"])
async def test_when_judging_ends_by_a_bug_it_is_logged_the_probe_says_so_and_the_store_is_closed(
    started, caplog, where
):
    app = await started(**ANY)

    def bug(*_):
        raise RuntimeError("a bug of ours")

    if where == "pipeline":
        app.monitor.pipeline.listeners.append(bug)
    else:
        app.monitor.assembler.due = bug
    await app.post(request([root(1)]))
    await until(lambda: not app.monitor.view.live())
    assert (await app.http.get(app.api + "/livez")).status_code == 503
    assert "judging has ended" in caplog.text
    assert "a bug of ours" in caplog.text
    await app.monitor.stop()
    with pytest.raises(StoreUnavailable, match="closed"):
        app.monitor.store.chunks(bytes(16))


async def test_a_rubric_that_late_spans_take_away_leaves_its_window(started):
    app = await started(routes=[{"match": {"name": "checkout"}, "rubrics": ["answer"]}, {"rubrics": ["workflow"]}])
    await app.post(request([S(trace_id=trace(1), span_id=span(2), parent_id=span(1))]))
    await app.settled(1)
    known = app.monitor.windows.keys()
    assert ([key.rubric for key in known], len(app.monitor.windows)) == (["workflow"], 1)
    await app.post(request([S(trace_id=trace(1), span_id=span(1), name="checkout")]))
    await until(lambda: app.monitor.outcomes.balance().revisions == 1)
    verdicts = (await app.get("/v1/verdicts"))["verdicts"]
    assert [verdict["rubric"] for verdict in verdicts] == ["answer"]
    assert len(app.monitor.windows) == 1, "one came, one went"


async def test_a_store_that_cannot_be_purged_is_told_and_nothing_else_happens(started, caplog):
    app = await started()
    app.monitor.store.close()
    await app.monitor.retention.purge()
    assert "could not purge the store" in caplog.text


async def test_a_read_that_fails_delays_judging_and_does_not_end_it(started, caplog):
    app = await started(**ANY)
    app.monitor.store._reading.set_progress_handler(lambda: 1, 1)
    assert (await app.post(request([root(1)]))).status_code == 200
    await until(lambda: not app.monitor.view.ready())
    assert (await app.http.get(app.api + "/readyz")).status_code == 503
    assert (await app.http.get(app.api + "/livez")).status_code == 200
    app.monitor.store._reading.set_progress_handler(None, 1)
    assert (await app.settled(1))["ended"]["scored"] == 1
    await until(app.monitor.view.ready)
    assert [record.message for record in caplog.records].count("judging failed; it is tried again") == 1


async def test_a_read_that_fails_for_somebody_who_looks_keeps_no_application_out_of_traffic(started):
    app = await started(**ANY)
    app.monitor.store.health.failed("recent_traces", StoreUnavailable("disk I/O error"))
    assert app.monitor.store.trouble == "disk I/O error"
    assert (await app.http.get(app.api + "/readyz")).status_code == 200


async def test_a_store_that_is_removed_acknowledges_nothing_more_and_is_not_ready(started):
    app = await started(**ANY)
    assert (await app.post(request([root(1)]))).status_code == 200
    await app.settled(1)
    app.monitor.store.path.unlink()
    assert (await app.post(request([root(2)]))).status_code == 503
    assert (await app.http.get(app.api + "/readyz")).status_code == 503
    assert (await app.http.get(app.api + "/livez")).status_code == 200


async def test_judging_begins_when_a_trace_falls_due_and_not_when_somebody_looks(started, monkeypatch):
    monkeypatch.setattr("sidejudge.monitor.runtime.judging_loop.REST_S", 3600.0)
    app = await started(**ANY, assembly={"grace": "300ms", "idle": "1s"})
    await asyncio.sleep(0.1)  # judging has come to rest, with nothing to wait for
    await app.post(request([root(1)]))
    await until(lambda: app.monitor.outcomes.open == 0, seconds=10)
    await app.post(request([S(trace_id=trace(2), span_id=span(2), parent_id=span(1))]))
    await asyncio.sleep(0.1)  # it rests until that one is idle; the next falls due earlier
    await app.post(request([root(3)]))
    await until(lambda: app.monitor.outcomes.balance().ended == {EndReason.SCORED: 2}, seconds=0.8)
    await until(lambda: app.monitor.outcomes.open == 0, seconds=10)


async def test_traces_that_fall_due_shortly_after_one_another_are_judged_together(started):
    app = await started(**ANY, assembly={"grace": "100ms"})
    pipeline, batches = app.monitor.pipeline, []
    commit, app.monitor.judging.pace_s = pipeline.commit, 0.5

    async def counted(results):
        batches.append(len(results))
        return await commit(results)

    pipeline.commit = counted
    await app.post(request([root(1)]))
    await asyncio.sleep(0.2)  # it has been due for 0.1 s
    await app.post(request([root(2)]))
    await app.settled(2)
    assert batches == [2]


async def test_what_is_too_much_is_judged_without_a_pause(started, monkeypatch):
    monkeypatch.setattr("sidejudge.monitor.runtime.judging_loop.REST_S", 3600.0)
    app = await started(**ANY, assembly={"grace": "1h", "idle": "1h", "deadline": "2h", "max_open_traces": 2})
    app.monitor.judging.pace_s = 3600.0
    app.monitor.pipeline.judge_queue.progress.set()  # judging rests at this pace from now on
    await asyncio.sleep(0.1)
    await app.post(request([root(1), root(2), root(3)]))
    await until(lambda: app.monitor.outcomes.open == 2, seconds=0.8)


async def test_how_far_behind_judging_is_and_at_which_share_it_draws_are_metrics(started):
    app = await started(**ANY, assembly={"grace": "0s", "idle": "300ms", "max_waiting_traces": 8})
    await app.monitor.judging.stop()
    for _ in range(3):
        await asyncio.sleep(0)
    await app.post(request([root(n, tail=b"\xff" * 9) for n in range(1, 5)]))
    app.monitor.pipeline.waiting.extend(app.monitor.judging.due())
    app.monitor.pipeline.waiting.extend(app.monitor.judging.due())
    await asyncio.sleep(0.05)
    found = await samples(app)
    assert total(found, "sidejudge_judging_behind_seconds") >= 0.05
    assert total(found, "sidejudge_queue_items", queue="judging") == 4
    assert total(found, "sidejudge_load_share_ratio") == 1 / 16
    assert total(found, "sidejudge_queue_oldest_timestamp_seconds", queue="judging") > 1e9


async def test_a_start_that_reads_every_verdict_answers_probes_and_ends_when_it_is_asked_to(started, configured):
    """What the watch remembered is lost, so that it learns from all that the store holds."""
    app = await started(**ANY)
    await app.post(request([root(1)]))
    await app.settled(1)
    await app.monitor.stop()
    path = app.monitor.config.store.path
    with closing(sqlite3.connect(path)) as store, store:
        names = [name for _, name, *_ in store.execute("PRAGMA table_info(verdicts)")]
        verdict = "json_set(verdict, '$.trace_id', 'of ' || i)"
        made = {"trace_id": "CAST(printf('%016d', i) AS BLOB)", "verdict": verdict}
        store.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000) INSERT INTO verdicts "
            f"({', '.join(names)}) SELECT {', '.join(made.get(name, name) for name in names)} FROM n, verdicts"
        )
        store.execute("DELETE FROM kept")
    with bind("127.0.0.1:0", "x") as free:
        api = free.getsockname()[1]
    config, stop = configured(**ANY, api={"listen": f"127.0.0.1:{api}"}), asyncio.Event()
    begun = asyncio.create_task(_started(config, stop))
    at = f"http://127.0.0.1:{api}"

    async def code(path: str) -> int:
        try:
            return (await app.http.get(at + path)).status_code
        except httpx.TransportError:
            return 0

    while await code("/livez") != 200:
        assert not begun.done()
        await asyncio.sleep(0)
    codes = [await code(path) for path in ("/startupz", "/readyz", "/metrics", "/v1/status", "/")]
    assert (codes, begun.done()) == ([503] * 5, False), "half of what it knows is shown to nobody"
    stop.set()
    assert await begun is None
    with closing(sqlite3.connect(path)) as store:
        kept = store.execute("SELECT name FROM kept").fetchall()
        assert not [name for (name,) in kept if name.startswith("state/")], "the next start reads all again"
    again = await started(**ANY)
    (standing,) = (await again.get("/v1/status"))["standings"]
    assert standing["n"] == 8001
