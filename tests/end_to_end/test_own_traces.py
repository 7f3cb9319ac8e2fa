"""What a running monitor tells of its own judging, over OTLP, to a server that decodes it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.test_judge import KEY, MODEL, PRICE, judged_by, requested
from tests.fakes.collector import events, spans
from tests.fakes.judge import judges
from tests.fakes.openai import Provider, error, hangs, states
from tests.fakes.receiver import Act, receiving
from tests.needs import LITELLM
from tests.otlp_requests import span, trace

pytestmark = LITELLM.mark


@pytest.fixture
def provider():
    with Provider(judges()) as running:
        yield running


@pytest.fixture
def collector():
    with receiving() as server:
        yield server


def reporting(url: str, **more: Any) -> dict[str, Any]:
    return {"sinks": {"otel_events": {"endpoint": url, "timeout": "2s", **more}}}


def standing(monitor) -> dict[str, Any]:
    (found,) = [each for each in monitor.get("/v1/status")["exports"] if each["destination"] == "otel_events"]
    return found


def metric(monitor, name: str) -> float:
    lines = monitor.http.get(monitor.api + "/metrics").text.splitlines()
    (value,) = [line.rpartition(" ")[2] for line in lines if line.startswith(f"{name} ")]
    return float(value)


def test_each_request_to_the_judge_is_a_client_span_below_one_root_for_each_trace(serving, provider, collector):
    monitor = serving(**judged_by(provider, ("answer", "quality"), price=PRICE), **reporting(collector.url))
    for number in range(3):
        monitor.post(requested(number))
    monitor.settled(3)
    monitor.until(lambda: len(spans(collector.taken)) == 9, "spans lack")
    sent = spans(collector.taken)
    roots = {s.trace_id: s for s in sent if s.name == "evaluate"}
    calls = [s for s in sent if s.name != "evaluate"]
    judged = {trace(number).hex() for number in range(3)}
    assert len(roots) == 3, "one own trace for all verdicts on a trace"
    assert {s.attributes["sidejudge.judged.trace_id"] for s in roots.values()} == judged
    assert not judged & roots.keys()
    assert {s.attributes["sidejudge.outcome"] for s in roots.values()} == {"scored"}
    for call in calls:
        root = roots[call.trace_id]
        assert call.message.parent_span_id == root.message.span_id
        assert root.message.start_time_unix_nano <= call.message.start_time_unix_nano
        assert call.message.end_time_unix_nano <= root.message.end_time_unix_nano
        (link,) = call.message.links
        assert link.trace_id.hex() == call.attributes["sidejudge.judged.trace_id"]
        assert link.span_id == span(1), "the root of what was judged"
        assert (call.name, call.message.kind) == ("chat gpt-4.1-mini-2025-04-14", 3)
        reported = {key: value for key, value in call.attributes.items() if key.startswith("gen_ai.")}
        assert min(reported.pop("gen_ai.usage.input_tokens"), reported.pop("gen_ai.usage.output_tokens")) > 0
        assert reported == {
            "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-4.1-mini-2025-04-14", "gen_ai.response.model": "gpt-4.1-mini-2025-04-14",
            "gen_ai.response.id": "chatcmpl-1", "gen_ai.response.finish_reasons": ["stop"],
        }  # fmt: skip
    spent = sum(call.attributes["sidejudge.cost_usd"] for call in calls)
    assert spent == pytest.approx(sum(v["judge"]["cost_usd"] for v in monitor.verdicts()))


def test_each_score_is_an_event_at_the_root_of_what_was_judged(serving, provider, collector):
    monitor = serving(**judged_by(provider, ("answer", "quality"), price=PRICE), **reporting(collector.url))
    monitor.post(requested(1))
    monitor.settled(1)
    verdicts = monitor.verdicts()
    expected = {
        f"{v['rubric']}_{s['metric']}": (s["value"], s["rating"], s["reason"])
        for v in verdicts
        for s in v["scores"]
        if s["value"] is not None
    }
    for v in verdicts:
        if v["composite"] is not None:
            expected[f"{v['rubric']}_score"] = (v["composite"], "pass" if v["passed"] else "fail", v["reason"])
    monitor.until(lambda: len(events(collector.taken)) >= len(expected), "events lack")
    reported = events(collector.taken)
    found = {
        e.attributes["gen_ai.evaluation.name"]: (
            e.attributes.get("gen_ai.evaluation.score.value"), e.attributes.get("gen_ai.evaluation.score.label"),
            e.attributes.get("gen_ai.evaluation.explanation", ""),
        )
        for e in reported
    }  # fmt: skip
    assert found == expected
    assert len(reported) == len(found), "each once"
    assert {e.name for e in reported} == {"gen_ai.evaluation.result"}
    assert {(e.trace_id, e.span_id) for e in reported} == {(trace(1).hex(), span(1).hex())}
    by_model = [e for e in reported if e.attributes.get("sidejudge.method") == "judge"]
    assert {e.attributes["sidejudge.judge.model"] for e in by_model} == {MODEL}
    monitor.until(lambda: len(spans(collector.taken)) == 3, "spans lack")
    own = {s.trace_id for s in spans(collector.taken)}
    assert {e.attributes["sidejudge.evaluation.trace_id"] for e in reported} == own


def test_what_is_told_is_marked_as_configured_and_holds_neither_contents_nor_secrets(serving, provider, collector):
    monitor = serving(
        **judged_by(provider, price=PRICE),
        **reporting(
            f"{collector.url}/otlp", headers={"X-Tenant": "blue"}, authorization="Bearer s3cret", environment="own"
        ),
    )  # fmt: skip
    monitor.post(requested(1))
    monitor.settled(1)
    monitor.until(lambda: len(spans(collector.taken)) == 2 and events(collector.taken) != [], "not everything came")
    sent = [*spans(collector.taken), *events(collector.taken)]
    assert {(s.resource["service.name"], s.scope) for s in sent} == {("sidejudge", "sidejudge.judge")}
    assert {s.resource["deployment.environment.name"] for s in sent} == {"own"}
    assert {got.path for got in collector.got} == {"/otlp/v1/traces", "/otlp/v1/logs"}
    given = {(got.headers["x-tenant"], got.headers["authorization"]) for got in collector.got}
    assert given == {("blue", "Bearer s3cret")}
    assert "comes tomorrow" not in repr([s.message for s in spans(collector.taken)])
    assert KEY not in repr(sent) + monitor.log()
    assert "s3cret" not in monitor.log() + monitor.http.get(monitor.api + "/v1/status").text
    monitor.until(lambda: standing(monitor)["waiting"] == 0, "something waits")
    stands = standing(monitor)
    assert (stands["state"], stands["dead"]) == ("ok", 0)
    assert metric(monitor, 'sidejudge_exports_total{destination="otel_events"}') == len(sent)
    assert metric(monitor, 'sidejudge_exports_failed_total{destination="otel_events",reason="refused"}') == 0


def test_requests_that_fail_are_told_with_the_reason(serving, provider, collector):
    provider.will(states("not JSON at all"), states("nor this"), error(400, "no such thing"))
    monitor = serving(**judged_by(provider, price=PRICE, cache_entries=0), **reporting(collector.url))
    monitor.post(requested(1))
    monitor.settled(1)
    monitor.post(requested(2))
    monitor.settled(2)
    monitor.until(lambda: len([s for s in spans(collector.taken) if s.name == "evaluate"]) == 2, "spans lack")
    calls = [s for s in spans(collector.taken) if s.name != "evaluate"]
    assert [c.attributes.get("error.type") for c in calls[:2]] == ["parse_error", "parse_error"]
    assert {c.message.status.code for c in calls if "error.type" in c.attributes} == {2}
    assert calls[2].attributes["error.type"] not in {"", "parse_error"}
    assert "gen_ai.response.model" not in calls[2].attributes
    assert "sidejudge.cost_usd" not in calls[2].attributes
    monitor.until(
        lambda: {e.trace_id for e in events(collector.taken)} == {trace(1).hex(), trace(2).hex()}, "events lack"
    )
    failed = [e for e in events(collector.taken) if "error.type" in e.attributes]
    assert all("gen_ai.evaluation.score.value" not in e.attributes for e in failed), "no score is invented"
    assert {e.attributes["error.type"] for e in failed if e.trace_id == trace(1).hex()} == {"parse_error"}


def test_pointed_at_itself_a_monitor_judges_nothing_of_what_it_tells(serving, provider):
    monitor = serving()
    monitor.stop()
    monitor.configure(**judged_by(provider, price=PRICE, cache_entries=0), **reporting(monitor.otlp))
    monitor.start()
    for number in range(3):
        monitor.post(requested(number))
    monitor.until(lambda: metric(monitor, 'sidejudge_spans_ignored_total{reason="own"}') == 6, "own spans lack")
    monitor.until(lambda: metric(monitor, 'sidejudge_log_records_ignored_total{reason="own"}') > 0, "own events lack")
    monitor.until(lambda: (stands := standing(monitor))["state"] == "ok" and stands["waiting"] == 0, "not taken")
    outcomes = monitor.outcomes()
    assert (outcomes["ended"]["scored"], outcomes["ended"]["excluded"], outcomes["open"]) == (3, 3, 0)
    assert outcomes["revisions"] == 0, "an event about a trace does not reopen it"
    assert len(provider.seen) == 3
    assert metric(monitor, 'sidejudge_traces_total{reason="excluded",service="__all__"}') == 3


def test_killed_while_it_judges_it_judges_anew_and_tells_of_that(serving, provider, collector):
    provider.standing = hangs()
    monitor = serving(**judged_by(provider, timeout="60s"), **reporting(collector.url))
    monitor.post(requested(1))
    monitor.until(lambda: len(provider.seen) == 1, "the judge was not asked")
    monitor.stop(signal.SIGKILL)
    provider.standing = judges()
    monitor.start()
    monitor.settled(1)
    assert monitor.stop() == 0, "a stop sends what waits"
    root, call = sorted(spans(collector.taken), key=lambda s: s.name != "evaluate")
    assert root.attributes["sidejudge.outcome"] == "scored"
    assert call.trace_id == root.trace_id
    assert {e.attributes["sidejudge.evaluation.trace_id"] for e in events(collector.taken)} == {root.trace_id}


PLAIN = {
    "routes": [{"rubrics": ["workflow"], "scenario": "any"}],
    "scenarios": {"any": {"tools_should_exclude": ["shell"]}},
}
"""Judged without a judge: there are events and no own traces."""


def test_a_dead_endpoint_hurts_nobody_and_what_waits_goes_out_once_it_is_back(serving, collector):
    collector.act = lambda _: Act(status=503)
    monitor = serving(**PLAIN, **reporting(collector.url))
    for number in range(5):
        monitor.post(requested(number))
    assert monitor.settled(5)["ended"]["scored"] == 5
    monitor.until(lambda: standing(monitor)["state"] == "retrying", "it does not say so")
    stands = standing(monitor)
    assert "503" in stands["reason"]
    assert stands["waiting"] > 0
    assert monitor.http.get(monitor.api + "/readyz").status_code == 200
    assert "503" in monitor.http.get(monitor.api + "/").text
    assert metric(monitor, 'sidejudge_queue_items{queue="otel_events"}') == stands["waiting"]
    collector.act = lambda _: Act()
    monitor.until(lambda: (s := standing(monitor))["state"] == "ok" and s["waiting"] == 0, "it does not say so")
    judged = {trace(number).hex() for number in range(5)}
    assert {e.trace_id for e in events(collector.taken)} == judged
    assert len(events(collector.taken)) == stands["waiting"], "each once"
    assert spans(collector.got) == []


def test_nobody_there_and_a_stop_still_ends_and_says_what_was_lost(serving):
    with receiving() as gone:
        url = gone.url
    monitor = serving(**PLAIN, **reporting(url))
    monitor.post(requested(1))
    assert monitor.settled(1)["ended"]["scored"] == 1
    monitor.until(lambda: standing(monitor)["state"] == "retrying", "it does not say so")
    waiting = standing(monitor)["waiting"]
    assert monitor.stop() == 0
    (lost,) = [line for line in monitor.logged() if line["event"] == "own telemetry was not delivered before the end"]
    assert lost["items"] == waiting > 0


def test_an_endpoint_that_hangs_holds_up_neither_judging_nor_a_stop(serving, collector):
    collector.act = lambda _: Act(hang=True)
    monitor = serving(**PLAIN, **reporting(collector.url, timeout="60s"))
    monitor.post(requested(1))
    monitor.until(lambda: len(collector.got) == 1, "nothing was sent")
    monitor.post(requested(2))
    assert monitor.settled(2)["ended"]["scored"] == 2
    assert monitor.stop() == 0, "it waits for a moment, not for the endpoint"


def test_an_endpoint_that_will_not_take_it_is_told_of_with_the_remedy(serving, collector):
    collector.act = lambda _: Act(status=404, body=b"no logs here")
    monitor = serving(**PLAIN, **reporting(collector.url))
    monitor.post(requested(1))
    monitor.until(lambda: standing(monitor)["state"] == "stopped", "it does not say so")
    stands = standing(monitor)
    assert stands["reason"].startswith("/v1/logs: it answered 404 Not Found: no logs here; check sinks.otel_events")
    assert (stands["dead"], stands["waiting"]) == (
        metric(monitor, 'sidejudge_exports_failed_total{destination="otel_events",reason="refused"}'), 0,
    )  # fmt: skip
    assert stands["dead"] > 0
    assert len(collector.got) == 1, "what is refused is not sent again"


def test_where_the_sdk_is_switched_off_the_monitor_says_that_it_tells_nothing(tmp_path):
    reported = _imported(tmp_path, {"OTEL_SDK_DISABLED": "true"}, SINK)
    assert "sinks.otel_events is configured and sends nothing" in reported.stderr


def test_a_monitor_without_the_sink_imports_nothing_of_the_sdk(tmp_path):
    without, beside = map(json.loads, _imported(tmp_path, {}, {}, SINK).stdout.splitlines())
    assert without == []
    assert "opentelemetry.sdk" in beside


SINK = {"sinks": {"otel_events": {"endpoint": "http://127.0.0.1:9"}}}


def _imported(folder: Path, environ: dict[str, str], *stated: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Monitors are put together in a new process, one after the other; after each it writes what is imported."""
    configs = [
        json.dumps({"store": {"path": str(folder / f"{number}.sqlite")}, **each}) for number, each in enumerate(stated)
    ]
    script = f"""
import json, sys
from sidejudge.monitor.runtime.app import Monitor
from sidejudge.monitor.config import Config
for config in {configs!r}:
    Monitor(Config.model_validate_json(config))
    sdk = "opentelemetry.sdk", "opentelemetry.exporter"
    print(json.dumps([name for name in sys.modules if name.startswith(sdk)]))
"""
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={**os.environ, **environ}
    )
