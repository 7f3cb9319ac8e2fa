"""What a failure of the sidecar does to the application: every line of the page is a test, here or where it names."""

from __future__ import annotations

import ast
import re

import pytest

from tests.helm.checks import pod_specs
from tests.helm.generate import HELM, ROOT
from tests.otlp_requests import HIGH, S, request, span, trace
from tests.running import Running, free_port

BODY = request([S(trace_id=trace(1, HIGH), span_id=span(1))])
BUFFER = "tests/monitor/ingest/test_forward_buffer.py"
HERE = "tests/helm/test_failures.py"
FORWARDS = "tests/faults/test_forwarding_survives.py::test_requests_go_on_though_judging_cannot_start"
KILLED = "tests/faults/test_killed_in_traffic.py"
QUEUE = "tests/monitor/evaluate/test_judge_queue.py"
SIDECAR = "tests/monitor/ingest/test_sidecar.py"
TESTED = {
    "a mistake in `config`": (f"{HERE}::test_a_sidecar_stays_up_and_shows_what_is_wrong", FORWARDS),
    "a ConfigMap, a Secret or a key of them is missing": (
        f"{HERE}::test_what_is_missing_does_not_keep_the_pod_from_starting",
        f"{HERE}::test_a_sidecar_stays_up_and_shows_what_is_wrong",
    ),
    "the store is damaged, or its folder cannot be written": (
        FORWARDS, f"{HERE}::test_a_sidecar_stays_up_and_shows_what_is_wrong",
    ),
    "it is killed (out of memory, a node's pressure)": (
        f"{KILLED}::test_killed_in_the_middle_of_traffic_every_acknowledged_trace_gets_its_verdict_and_its_line_once",
    ),
    "it is killed again and again by one trace": (
        "tests/monitor/evaluate/test_interrupted.py::test_a_restart_ends_the_trace_that_ended_the_process_and_no_other_is_given_up",
    ),
    "it cannot keep up, or a fault of its own": (
        f"{SIDECAR}::test_a_fault_of_our_own_or_a_full_store_changes_nothing_for_the_application",
    ),
    "its volume, or the node's disk, is full": (
        f"{SIDECAR}::test_a_fault_of_our_own_or_a_full_store_changes_nothing_for_the_application",
        "tests/integrations/store/test_sqlite.py::test_a_full_disk_is_named_and_passes",
        "tests/helm/test_values.py::test_what_cannot_be_meant_is_refused_with_its_name",
    ),
    "`config.forward.url` is out of reach": (
        f"{SIDECAR}::test_an_upstream_that_is_not_there_is_502_and_judging_goes_on",
        f"{SIDECAR}::test_an_upstream_that_never_answers_is_504_and_does_not_keep_judging_waiting",
    ),
    "the same, with `config.forward.buffer` (a gateway has 1 GiB)": (
        f"{BUFFER}::test_what_comes_while_upstream_is_down_is_answered_judged_and_sent_in_order_when_it_is_back",
    ),
    "the judge is out of reach, or hangs": (
        f"{QUEUE}::test_an_outage_parks_what_needs_the_judge_and_it_resumes_in_order_of_age",
        f"{QUEUE}::test_a_provider_that_does_not_greet_is_no_failure_of_the_trace",
    ),
    "Langfuse is out of reach": (
        "tests/faults/test_langfuse_outage.py::test_after_an_outage_as_long_as_the_disk_allows_all_scores_arrive_by_age_and_within_the_limit",
    ),
    "a ConfigMap is changed to one with a mistake": (
        "tests/monitor/runtime/test_reload.py::test_a_changed_configmap_is_in_force_without_a_signal_and_a_broken_one_is_not",
    ),
    "the node's clock jumps": (
        "tests/monitor/ingest/test_clock.py::test_a_clock_that_jumps_costs_no_request_and_no_verdict",
    ),
    "the fleet's database (`config.fleet`) is away or slow": (
        "tests/monitor/fleet/test_fleet.py::test_without_the_database_a_monitor_starts_goes_on_and_says_so_once",
        "tests/monitor/fleet/test_fleet.py::test_a_slow_database_holds_up_nothing_but_the_round",
    ),
    "the Pod ends": (
        "tests/monitor/runtime/test_drain.py::test_open_traces_are_judged_and_delivered_before_the_end",
        "tests/faults/test_rolling_restarts.py::test_rolling_restarts_lose_nothing_that_was_acknowledged",
    ),
    "its image cannot be pulled": (f"{HERE}::test_the_application_starts_after_its_sidecar_and_waits_for_no_probe",),
}  # fmt: skip


def rows() -> list[str]:
    text = (HELM / "README.md").read_text(encoding="utf-8")
    section = text.partition("## What a failure does to the application")[2].partition("\n## ")[0]
    return [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")][1:]


def test_every_line_of_the_page_is_a_test():
    assert rows() == list(TESTED)
    for names in TESTED.values():
        for path, _, name in (each.partition("::") for each in names):
            defined = {node.name for node in ast.walk(ast.parse((ROOT / path).read_text()))
                       if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}  # fmt: skip
            assert name in defined, f"{path} has no {name}"


def no_such_file(running):
    running.config.unlink()


def a_typo(running):
    running.configure(samplng={"rate": 0.5})


def damaged_store(running):
    (running.folder / "state.sqlite").write_bytes(b"no database " * 1000)


def _addresses():
    names = ("SIDEJUDGE_API__LISTEN", "SIDEJUDGE_SOURCES__OTLP__HTTP")
    return {name: f"127.0.0.1:{free_port()}" for name in names}


@pytest.mark.parametrize("spoil", [a_typo, no_such_file, damaged_store])
def test_a_sidecar_stays_up_and_shows_what_is_wrong(tmp_path, spoil):
    """Without ``forward``, too; with the arguments and the variables that the chart gives it."""
    running = Running(tmp_path, arguments=("--stay",), environ=_addresses() if spoil is no_such_file else None)
    if spoil is no_such_file:
        running.api, running.otlp = (f"http://{address}" for address in running.environ.values())
    spoil(running)
    try:
        running.start()
        for probe in ("/livez", "/readyz", "/startupz"):
            assert running.answers(probe)
        answer = running.post(BODY)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "60"), "the exporter keeps it, or drops it"
        assert "Judging could not start" in running.http.get(running.api + "/").text
        valid = 1 if spoil is damaged_store else 0
        assert f"sidejudge_config_valid {valid}.0" in running.http.get(running.api + "/metrics").text
        assert running.stop() == 0
    finally:
        running.close()


def sidecar(engine, **settings):
    chart = HELM / "examples" / "otel-app"
    (pod,) = pod_specs(engine.render(chart, {"sidejudge-sidecar": settings}).one("Deployment"))
    return pod, pod["initContainers"][0]


def test_what_is_missing_does_not_keep_the_pod_from_starting(engine):
    secrets = {"langfuse": {"existingSecret": "keys", "keys": {"LANGFUSE_SECRET_KEY": "secret-key"}}}
    pod, container = sidecar(engine, config=None, existingConfigMap={"name": "mine"}, secrets=secrets)
    (key,) = [each for each in container["env"] if each["name"] == "LANGFUSE_SECRET_KEY"]
    assert key["valueFrom"]["secretKeyRef"]["optional"] is True
    (volume,) = [each for each in pod["volumes"] if each["name"] == "sidejudge-config"]
    assert volume["configMap"] == {"name": "mine", "optional": True}


def test_the_application_starts_after_its_sidecar_and_waits_for_no_probe(engine):
    _, container = sidecar(engine)
    assert container["restartPolicy"] == "Always", "a native sidecar: it is started first and ends last"
    assert not container.keys() & {"startupProbe", "readinessProbe", "lifecycle"}
    assert "--stay" in container["args"]
    assert re.fullmatch(r"\d+s", next(each["value"] for each in container["env"] if each["name"] == "SIDEJUDGE_DRAIN")
                        .partition('"timeout":"')[2].partition('"')[0])  # fmt: skip
