"""``compare`` against a running monitor: versions, prompts, metrics, before and after, as a gate."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from sidejudge.monitor.alerting.comparisons import UNANSWERED
from sidejudge.monitor.cli.compare import _exit_code
from sidejudge.scoring.lexical.shown_text import clean, label_of
from tests.otlp_requests import S, request, span, trace
from tests.running import Running

RUBRIC = {
    "title": "Answers", "pass_mark": 0.8, "metrics": [{"id": "cites", "check": {"icontains": "source"}, "weight": 1}],
}  # fmt: skip


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    """Release 1.9 passes nine of ten, 1.10 with another prompt every second; five turns a session."""
    running = Running(
        tmp_path_factory.mktemp("compare"),
        {
            "routes": [{"rubrics": ["answers"]}],
            "rubrics": {"answers": RUBRIC},
            "assembly": {"grace": "100ms", "idle": "300ms"},
        },
    ).start()
    at = ""
    for version, (release, prompt, period) in enumerate((("1.9", 3, 10), ("1.10", 4, 2))):
        spans = [
            S(
                trace_id=trace(version * 1000 + number + 1), span_id=span(number + 1),
                attributes={
                    "gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
                    "session.id": f"{release}/{number % 50}",
                    "langfuse.observation.prompt.name": "help", "langfuse.observation.prompt.version": prompt,
                    "langfuse.observation.output": "no idea" if number % period == 0 else "The source is …",
                    "langfuse.observation.type": "generation",
                },
            )
            for number in range(250)
        ]  # fmt: skip
        running.post(request(spans, {"service.version": release})).raise_for_status()
        running.settled(250 * (version + 1))
        at = at or datetime.now(UTC).isoformat()
        time.sleep(0.01)
    yield running, at
    running.close()


@pytest.mark.parametrize(
    ("options", "code", "verdict"),
    [
        (["--by", "release"], 1, "worse"),
        (["--by", "release", "--a", "1.10", "--b", "1.9", "--cluster", "none"], 0, "better"),
        (["--by", "prompt", "--metric", "cites"], 1, "worse"),
        (["--by", "release", "--a", "1.9", "--b", "1.9"], 4, None),
        (["--by", "rubric_version"], 4, None),
        (["--rubric", "answers", "--since", "AT"], 1, "worse"),
        (["--since", "AT", "--margin", "0.8"], 0, "worse"),
        (["--since", "1h"], 4, None),
        (["--since", "999999999d"], 4, None),
    ],
)
def test_it_ends_as_a_gate_does(call, compared, options, code, verdict):
    running, at = compared
    given = [at if each == "AT" else each for each in options]
    done = call("compare", "--url", running.api, "--format", "json", *given)
    assert done.exit_code == code, done.output
    (found,) = json.loads(done.stdout)["comparisons"]
    assert found["verdict"] == verdict
    if verdict is None:
        assert found["unavailable"]
    elif "none" not in options:
        assert (found["before"]["n"], found["before"]["clusters"]) == (250, 50)
        assert found["difference"] == pytest.approx(-0.4)


def test_people_read_the_versions_the_counts_and_the_promise(call, compared):
    done = call("compare", "--url", compared[0].api, "--by", "prompt")
    assert "250 in 50 sessions" in done.stdout
    assert "prompt help:3 and help:4" in done.stdout
    assert "95% together, at any look" in done.stdout
    done = call("compare", "--url", compared[0].api, "--by", "release", "--metric", "latency_p50")
    assert ", : " not in done.stdout, "of no rubric"
    done = call("compare", "--url", compared[0].api, "--confidence", "0.999")
    assert "99.9% together, at any look" in done.stdout
    surest = call("compare", "--url", compared[0].api, "--by", "prompt", "--confidence", "0.999999999")
    assert surest.exit_code in {0, 1}


def test_versions_with_long_names_that_differ_at_the_end_are_two_versions(call, serving):
    image = "us-central1-docker.pkg.dev/my-project-123456/containers/support-agent:1.4."
    monitor = serving(routes=[{"rubrics": ["answers"]}], rubrics={"answers": RUBRIC})
    for build in (2, 3):
        attributes = {"gen_ai.operation.name": "chat", "prompt_version": build, "langfuse.observation.output": "source"}
        spans = [
            S(trace_id=trace(build * 10 + n), span_id=span(n + 1), attributes=attributes, end_ns=3_000)
            for n in range(6)
        ]
        monitor.post(request(spans, {"service.version": f"{image}{build}"})).raise_for_status()
        monitor.settled(6 * (build - 1))
    named = ["--by", "release", "--a", f"{image}2", "--b", f"{image}3"]
    done = call("compare", "--url", monitor.api, "--format", "json", *named)
    (found,) = json.loads(done.stdout)["comparisons"]
    assert found["unavailable"] is None
    assert (found["before"]["n"], found["after"]["n"]) == (6, 6)
    exposed = monitor.http.get(monitor.api + "/metrics").text
    versions = set(re.findall(r'_version_verdict_weight_total{.*version="([^"]*)"', exposed))
    assert versions == {found["before"]["label"], found["after"]["label"]}
    assert set(re.findall(r'_application_traces_total{.*version="([^"]*)"', exposed)) == versions


def test_every_filter_finds_a_name_as_it_was_sent_as_an_alert_shows_it_and_as_a_series_does(call, serving):
    long = "eu-west-1/registry.example.com/team-payments/checkout-assistant/" + "x" * 40
    names = {long + "2": {"service.version": long + "v2"}, 'a "b"\n{c} ü': {"service.version": "1\n2"}}
    monitor = serving(routes=[{"rubrics": ["answers"]}], rubrics={"answers": RUBRIC})
    for number, (service, resource) in enumerate({**names, long + "3": {"service.version": long + "v3"}}.items()):
        attributes = {"gen_ai.operation.name": "chat", "langfuse.observation.output": "source"}
        of = S(trace_id=trace(number + 1), span_id=span(1), attributes=attributes, service=service)
        monitor.post(request([of], {**resource, "deployment.environment": f"{service} env"})).raise_for_status()
    monitor.settled(3)
    page = monitor.api + "/verdicts.csv"
    for number, (service, resource) in enumerate(names.items()):
        version, one = resource["service.version"], [trace(number + 1).hex()]
        for shown in (str, label_of, clean, lambda name: clean(label_of(name))):
            where = {"service": shown(service), "environment": shown(f"{service} env")}
            assert [each["trace_id"] for each in monitor.get("/v1/verdicts", **where)["verdicts"]] == one
            assert [each["trace_id"] for each in monitor.get("/v1/traces", service=where["service"])["traces"]] == one
            table = monitor.http.get(page, params={**where, "release": shown(version)}).text
            assert [line.split(",")[1] for line in table.splitlines()[1:]] == one
            (found,) = monitor.get("/v1/compare", by="release", a=shown(version), **where)["comparisons"]
            assert found["unavailable"] == f"all verdicts are of one version: {label_of(version)}"
            shown_page = monitor.http.get(monitor.api + "/services", params={**where, "rubric": "answers"}).text
            assert one[0] in shown_page
            listed = call("explain", "--store", str(monitor.folder / "state.sqlite"), "--service", where["service"])
            assert one[0] in listed.output


@pytest.mark.parametrize(
    ("query", "why"),
    [({"before": "soon"}, "before"), ({"by": "moon"}, "by"), ({"rubric": "nope"}, "rubric"), ({"sinse": "1"}, "since"),
     ({"metric": "sites"}, ", cites, "), ({"metric": "sites_p50"}, "metric: there is no such metric"),
     ({"confidence": "0.9999999999"}, "confidence: is too near"), ({"confidence": "1e-12"}, "confidence: is too near")],
)  # fmt: skip
def test_the_api_refuses_what_it_cannot_read_and_names_it(compared, query, why):
    answer = compared[0].http.get(compared[0].api + "/v1/compare", params=query)
    assert answer.status_code == 422
    assert why in answer.text


def test_the_command_names_a_mistake_as_the_api_does(call, compared):
    done = call("compare", "--url", compared[0].api, "--rubric", "nope")
    assert done.exit_code == 2, done.output
    assert "rubric: there is no such rubric" in done.stderr
    assert "choose from " in done.stderr
    known = call("compare", "--url", compared[0].api, "--metric", "cites", "--service", "nobody")
    assert known.exit_code == 4, known.output


@pytest.mark.parametrize(("verdict", "margin", "code"), [
    ("no_difference_shown", None, 4), ("worse", None, 1), ("better", 0.1, 4), ("worse", 0.1, 1),
])  # fmt: skip
def test_a_gate_does_not_pass_on_what_needed_no_answer_alone(verdict, margin, code):
    lower, upper = {"worse": (-0.3, -0.2), "better": (0.2, 0.3)}.get(verdict, (-0.05, 0.05))
    known = {"verdict": verdict, "lower": lower, "upper": upper, "unavailable": None}
    open_ = {"verdict": None, "lower": None, "upper": None, "unavailable": f"most of the side after: {UNANSWERED}"}
    few = {**open_, "unavailable": "each side needs 5 verdicts"}
    assert _exit_code({"comparisons": [known, open_], "higher_is_better": True}, margin) == code
    assert _exit_code({"comparisons": [known, few], "higher_is_better": True}, margin) == code % 4
