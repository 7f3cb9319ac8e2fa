"""Everything recorded of real clients, posted to a running monitor: its API tells what the programs truly did."""

from __future__ import annotations

import json

from scoring.case import Case
from scoring.span import ToolCall
from tests.conformance.test_dialects import CLIENTS, SCENARIOS, UNOBTAINABLE, _differences, _files


def case_of(told: dict) -> Case:
    """A case as the API tells it."""
    tools = tuple(ToolCall(**tool) for tool in told["tools_used"] or ())
    fields = ("case_id", "model_output", "input", "expected_outcome", "input_tokens", "output_tokens", "metadata",
              "session_id", "user_id", "environment", "model", "content_captured")  # fmt: skip
    return Case(
        tools_used=tools, agents_called=tuple(told["agents_called"] or ()), tags=tuple(told["tags"]),
        **{field: told[field] for field in fields},
    )  # fmt: skip


def test_what_was_posted_is_what_the_programs_did(serving, shared):
    monitor = serving(routes=[{"rubrics": ["workflow"], "scenario": "any"}], scenarios={"any": {}})
    folders = [shared / "corpus" / "otlp" / client / scenario for client in CLIENTS for scenario in SCENARIOS]
    manifests = {folder: json.loads((folder / "manifest.json").read_text()) for folder in folders}
    for folder in folders:
        for path in _files(folder):
            assert monitor.post(path.read_bytes()).status_code == 200
    ledger = monitor.settled(sum(len(manifest["traces"]) for manifest in manifests.values()))
    assert ledger["seen"] == ledger["ended"]["scored"], "every trace got its verdict"

    wrong = {}
    for folder, manifest in manifests.items():
        ids = [trace["trace_id"] for trace in manifest["traces"]]
        cases = [case_of(monitor.get(f"/v1/traces/{trace_id}")["case"]) for trace_id in ids]
        excused = {what for client, scenario, what in UNOBTAINABLE if (client, scenario) == folder.parts[-2:]}
        differences = {
            what: pair for what, pair in _differences(folder, cases, logs=False).items() if what not in excused
        }
        if differences:
            wrong["/".join(folder.parts[-2:])] = differences
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
