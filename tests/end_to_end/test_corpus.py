"""What real clients sent, sent again to a running monitor by each protocol: its API tells what the programs did."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.trace.span import ToolCall
from tests.conformance.test_dialects import CLIENTS, SCENARIOS, UNOBTAINABLE, differing
from tests.running import Running, free_port


def case_of(reported: dict) -> Case:
    """A case as the API tells it."""
    tools = tuple(ToolCall(**tool) for tool in reported["tools_used"] or ())
    fields = ("case_id", "model_output", "input", "expected_outcome", "input_tokens", "output_tokens", "metadata",
              "session_id", "user_id", "environment", "model", "content_captured")  # fmt: skip
    return Case(
        tools_used=tools, agents_called=tuple(reported["agents_called"] or ()), tags=tuple(reported["tags"]),
        **{field: reported[field] for field in fields},
    )  # fmt: skip


def by_http(monitor: Running, path: Path, signal: str, kind: str) -> None:
    answer = monitor.post(path.read_bytes(), f"/v1/{signal}", content_type=f"application/{kind}")
    assert answer.status_code == 200, (path, answer.text)


def by_grpc(channel: grpc.Channel, path: Path, signal: str) -> None:
    package, service = ("logs", "LogsService") if signal == "logs" else ("trace", "TraceService")
    channel.unary_unary(f"/opentelemetry.proto.collector.{package}.v1.{service}/Export")(path.read_bytes())


@pytest.mark.parametrize("protocol", ["protobuf", "json", "grpc"])
def test_what_was_sent_is_what_the_programs_did(serving, shared, protocol):
    http, rpc = free_port(), free_port()
    monitor = serving(
        routes=[{"rubrics": ["workflow"], "scenario": "any"}],
        scenarios={"any": {"max_seconds": 86_400}},
        sources={"otlp": {"http": f"127.0.0.1:{http}", "grpc": f"127.0.0.1:{rpc}"}},
    )
    monitor.otlp = f"http://127.0.0.1:{http}"
    folders = [shared / "corpus" / "otlp" / client / scenario for client in CLIENTS for scenario in SCENARIOS]
    manifests = {folder: json.loads((folder / "manifest.json").read_text()) for folder in folders}
    with grpc.insecure_channel(f"127.0.0.1:{rpc}") as channel:
        for path in (path for folder in folders for path in sorted(folder.glob("*.pb"))):
            signal = "logs" if path.name.endswith(".logs.pb") else "traces"
            if protocol == "grpc":
                by_grpc(channel, path, signal)
            elif protocol == "json":
                by_http(monitor, path.with_suffix(".json"), signal, "json")
            else:
                by_http(monitor, path, signal, "x-protobuf")
    outcomes = monitor.settled(sum(len(manifest["traces"]) for manifest in manifests.values()))
    assert outcomes["seen"] == outcomes["ended"]["scored"], "every trace got its verdict"

    wrong = {}
    for folder, manifest in manifests.items():
        ids = [trace["trace_id"] for trace in manifest["traces"]]
        cases = [case_of(monitor.get(f"/v1/traces/{trace_id}")["case"]) for trace_id in ids]
        excused = {what for client, scenario, what in UNOBTAINABLE if (client, scenario) == folder.parts[-2:]}
        differences = differing(folder, cases)
        found = {what: pair for what, pair in differences.items() if what not in excused}
        if found or not excused <= differences.keys():
            wrong["/".join(folder.parts[-2:])] = found or excused - differences.keys()
    assert wrong == {}


def test_contents_are_shown_to_callers_on_this_machine_and_to_nobody_where_it_is_said_so(serving, shared):
    body = (shared / "corpus" / "otlp" / "langfuse-v5" / "s1_plain" / "001.pb").read_bytes()
    monitor = serving()
    monitor.post(body)
    monitor.settled(1)
    path = "/v1/traces/" + json.loads(
        (shared / "corpus" / "otlp" / "langfuse-v5" / "s1_plain" / "manifest.json").read_text()
    )["traces"][0]["trace_id"]  # fmt: skip
    assert monitor.get(path)["case"]["model_output"]
    monitor.stop()
    monitor.configure(api={"listen": monitor.api.removeprefix("http://"), "contents": "never"})
    monitor.start()
    assert monitor.get(path)["case"] is None
