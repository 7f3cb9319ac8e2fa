"""What real clients sent must come out as what their programs did."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sidejudge.integrations.dialects
from sidejudge.integrations.dialects import DIALECTS, GENERIC, Dialect, normalise
from sidejudge.integrations.otlp.wire.decode import decode, decode_spans
from sidejudge.integrations.otlp.wire.decode_json import decode_json
from sidejudge.integrations.otlp.wire.recording import read_files
from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.trace import Trace

SCENARIOS = ("s1_plain", "s2_agents", "s3_callcentre", "s4_error", "s5_stream", "s6_session")
CLIENTS = (
    "langfuse-v3", "langfuse-v5", "langfuse-v5-split", "langfuse-langchain",
    "otel-genai-latest", "otel-openai-v2-experimental", "otel-openai-v2-legacy",
    "semantic-kernel", "google-adk-legacy", "haystack", "mlflow", "strands", "strands-latest",
    "vercel-ai-v5", "vercel-ai-v7", "logfire-openai",
    "openllmetry", "openllmetry-legacy", "openllmetry-langchain", "openllmetry-openai-agents",
    "langsmith-otel", "litellm-langfuse-otel", "litellm-otel", "litellm-otel-parented",
    "openinference-openai", "openinference-openai-split", "openinference-anthropic", "openinference-haystack",
    "openinference-llama-index", "openinference-openai-agents",
)  # fmt: skip
LATER = (
    "ag2", "claude-code-otel", "genkit-js", "laminar", "langfuse-langchain-js", "langtrace", "langwatch-sdk", "livekit",
    "llamaindex-otel", "logfire-anthropic", "mastra-arize", "mastra-otel", "openinference-claude-agent",
    "openinference-langchain-js", "openinference-openai-agents-js", "openinference-vercel-v6", "openllmetry-js",
    "pipecat", "traceai",
)  # fmt: skip
"""Clients that were recorded later; most of them are read by shape where they have words of their own."""
NOT_RECORDED = frozenset({("langfuse-langchain-js", "s6_session"), ("openinference-langchain-js", "s6_session")})
RECORDED = [(c, s) for c in (*CLIENTS, *LATER) for s in SCENARIOS if (c, s) not in NOT_RECORDED]
INNER_FIRST = frozenset({"genkit-js", "laminar", "langtrace"})
"""Clients without agents, whose programs note a tool when it returns; it is compared in the order of the calls."""
CONTENTS_IN_LOGS = frozenset({"otel-openai-v2-legacy", "semantic-kernel"})
"""Clients whose contents travel in log records: not in the spans, and nevertheless to be found."""

READ = (
    "agent", "tool", "input", "output", "system_prompt", "documents", "model", "requested_model", "response_id",
    "usage", "cost_usd", "session_id", "user_id", "tags", "metadata", "service", "environment", "release", "error",
)  # fmt: skip
"""Fields of a span that come from somewhere."""
KEPT = Path(__file__).parents[1] / "data" / "otlp"

NO_AGENT = "the program ran a bare model call; the name occurs only as a message's role"
NOT_SENT = "the client sends no token counts for streams"
NO_TYPE = "the client sends the exception's message without its type"
UNORDERED = "the client sends the tags in another order"
NO_TAGS = "the client sends no tags; their words occur in other values"
CAUGHT = "the program catches the exception and returns a text, which is the tool's result"
PAIRS = "the client has no tags but pairs of key and value, which come out as metadata"
PRINTED = "which model answered stands only inside the printed result of an agent's step"
APART = "the client makes a trace of each call, so that none of them reports the whole run"
AS_TEXT = "the client sends every value as text"
COUNTED = "the client counts tokens itself, and others than the model"
OWN_LABEL = "the client sends a label of its own in place of the agent's name"
HANDED_ON = "the client ends a hand-off with the answer, and shows it as a tool"
ONE_TRACE = "all turns are in one trace, which has the first request and the last answer"
IN_A_LOG = "it stands only in a log record of the whole run, and nothing says of which step"
CUT = "the client cuts what it prints at 200 characters, before the name"
NOT_A_SPAN = "the client sends no span of a tool that raises; what it returned says so"
UNTAGGED = ("semantic-kernel", "google-adk-legacy", "litellm-otel", "litellm-otel-parented",
            "openllmetry", "openllmetry-legacy")  # fmt: skip
UNOBTAINABLE: dict[tuple[str, str, str], str] = {
    **{(client, scenario, "tags"): NO_TAGS for client in UNTAGGED for scenario in SCENARIOS},
    **{(client, scenario, "tags"): NO_TAGS for client in ("genkit-js", "openllmetry-js") for scenario in SCENARIOS},
    **{
        (client, scenario, "metadata.ticket"): AS_TEXT for client in ("ag2", "openllmetry-js") for scenario in SCENARIOS
    },
    ("openllmetry-js", "s4_error", "error"): NOT_A_SPAN,
    ("openllmetry-js", "s5_stream", "tokens"): COUNTED,
    **{("openinference-claude-agent", scenario, "tokens"): COUNTED for scenario in SCENARIOS},
    **{("claude-code-otel", scenario, "model"): IN_A_LOG for scenario in SCENARIOS},
    **{("livekit", scenario, "agents"): OWN_LABEL for scenario in SCENARIOS},
    ("livekit", "s2_agents", "tools"): HANDED_ON,
    **{(client, "s6_session", what): ONE_TRACE for client in ("livekit", "pipecat") for what in ("input", "output")},
    **{("llamaindex-otel", "s2_agents", what): CUT for what in ("agents", "tools")},
    ("llamaindex-otel", "s5_stream", "tokens"): NOT_SENT,
    ("pipecat", "s4_error", "error"): CAUGHT,
    ("google-adk-legacy", "s4_error", "error"): CAUGHT,
    **{("mlflow", scenario, "tags"): PAIRS for scenario in SCENARIOS},
    **{
        ("litellm-langfuse-otel", "s2_agents", what): APART for what in ("agents", "tools", "result", "input", "output")
    },
    **{("litellm-langfuse-otel", "s4_error", what): APART for what in ("agents", "error", "input", "output")},
    ("litellm-otel", "s5_stream", "session_id"): APART,
    ("litellm-otel-parented", "s5_stream", "session_id"): APART,
    ("openinference-llama-index", "s2_agents", "model"): PRINTED,
    ("openinference-llama-index", "s4_error", "model"): PRINTED,
    ("langsmith-otel", "s4_error", "tags"): UNORDERED,
    ("langsmith-otel", "s5_stream", "tags"): UNORDERED,
    ("openllmetry-langchain", "s1_plain", "tags"): NO_TAGS,
    ("openllmetry-langchain", "s5_stream", "tags"): NO_TAGS,
    ("haystack", "s1_plain", "agents"): NO_AGENT,
    ("haystack", "s5_stream", "agents"): NO_AGENT,
    ("haystack", "s6_session", "agents"): NO_AGENT,
    ("haystack", "s5_stream", "tokens"): NOT_SENT,
    ("haystack", "s4_error", "error"): NO_TYPE,
    ("openinference-haystack", "s1_plain", "agents"): NO_AGENT,
    ("openinference-haystack", "s5_stream", "agents"): NO_AGENT,
    ("openinference-haystack", "s6_session", "agents"): NO_AGENT,
    ("openinference-llama-index", "s1_plain", "agents"): NO_AGENT,
    ("openinference-llama-index", "s5_stream", "agents"): NO_AGENT,
    ("openinference-llama-index", "s6_session", "agents"): NO_AGENT,
    ("openinference-haystack", "s5_stream", "tokens"): NOT_SENT,
    ("openinference-llama-index", "s5_stream", "tokens"): NOT_SENT,
    ("langfuse-langchain", "s4_error", "error"): NO_TYPE,
    ("openinference-haystack", "s4_error", "error"): NO_TYPE,
    ("langfuse-langchain", "s3_callcentre", "tags"): UNORDERED,
}
"""What a manifest calls present, for its letters occur, and what nevertheless cannot be had; with the reason."""


def _requests(folder: Path) -> list[Path]:
    """Trace requests anywhere under a folder."""
    return [path for path in sorted(folder.rglob("*.pb")) if not path.name.endswith(".logs.pb")]


def _files(folder: Path) -> list[Path]:
    return [path for path in _requests(folder) if path.parent == folder]


def _manifest(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return manifest


def _cases(folder: Path, manifest: dict[str, Any]) -> list[Case]:
    """Cases of a recording, in the order in which the manifest lists the traces."""
    spans: dict[str, list[Any]] = {}
    for raw in read_files(sorted(folder.glob("*.pb"))).spans:
        spans.setdefault(raw.trace_id, []).append(normalise(raw))
    order = [trace["trace_id"] for trace in manifest["traces"]]
    return [extract(Trace.of(trace_id, spans[trace_id], "batch")) for trace_id in order if trace_id in spans]


def differing(folder: Path, cases: list[Case]) -> dict[str, tuple[object, object]]:
    """What is not as the program says, wherever the value was sent at all: what was found, and what is true."""
    return {what: pair for what, pair in _compared(folder, cases).items() if pair[0] != pair[1]}


def _compared(folder: Path, cases: list[Case]) -> dict[str, tuple[object, object]]:
    """What was found and what the program says, of everything that was sent."""
    manifest = _manifest(folder)
    cases = [case for case in cases if _reports(case)]
    truth, present = manifest["truth"], manifest["present_in_spans"]
    if folder.parent.name in CONTENTS_IN_LOGS:
        tools = [dict.fromkeys(tool, True) for tool in truth["tools"]]
        present = present | {"task_input": True, "final_output": True, "tools": tools}
    compared: dict[str, tuple[object, object]] = {}
    if all(present["agents"].values()):
        compared["agents"] = ([agent for case in cases for agent in case.agents_called or ()], truth["agents"])
    tools = [call for case in cases for call in case.tools_used or () if not call.handoff]
    named = [tool["name"] for tool, there in zip(truth["tools"], present["tools"], strict=True) if there["name"]]
    if folder.parent.name in INNER_FIRST:
        tools = sorted(tools, key=lambda call: named.index(call.name) if call.name in named else -1)
    compared["tools"] = ([call.name for call in tools], named)
    if "handoffs" in truth:
        handoffs = [call.name for case in cases for call in case.tools_used or () if call.handoff]
        compared["handoffs"] = (handoffs, truth["handoffs"])
    waiting = list(tools)
    for tool, there in zip(truth["tools"], present["tools"], strict=True):
        if (call := next((call for call in waiting if call.name == tool["name"]), None)) is None:
            continue
        waiting.remove(call)
        found = {"args": call.arguments, "result": call.result, "error": call.error}
        compared |= {key: (value, tool.get(key)) for key, value in found.items() if there.get(key)}
    turns = truth["turns"]
    if present["task_input"]:
        compared["input"] = ([case.input for case in cases], [turn["input"] for turn in turns])
    if present["final_output"]:
        compared["output"] = ([case.model_output for case in cases], [turn["output"] for turn in turns])
    tokens = (sum(case.input_tokens or 0 for case in cases), sum(case.output_tokens or 0 for case in cases))
    compared["tokens"] = (tokens, (truth["tokens"]["input"], truth["tokens"]["output"]))
    compared["model"] = ({case.model for case in cases}, {_model(folder, truth)})
    return compared | _labels(cases, truth, present)


def _model(folder: Path, truth: dict[str, Any]) -> str | None:
    """The model that answered where the client says which, else the one that was asked for; None if it has no name."""
    requested, answered = truth["model_requested"], truth["model_responded"]
    reported = answered and any(answered.encode() in path.read_bytes() for path in folder.glob("*.pb"))
    return answered if reported else requested


def _reports(case: Case) -> bool:
    """Whether the trace is about anything: some clients send traces of their own start-up, which hold nothing."""
    if case.trace is None:  # as the API tells it
        held = (case.input or case.model_output or case.tools_used or None) is not None
    else:
        held = any((span.input or span.output) is not None for span in case.trace.spans)
    return held or bool(case.agents_called or case.input_tokens)


def _labels(cases: list[Case], truth: dict[str, Any], present: dict[str, Any]) -> dict[str, tuple[object, object]]:
    """What the program said of itself; the same for each of its traces."""
    metadata = truth["metadata"]
    wanted = {key: truth[key] for key in ("session_id", "user_id", "tags", "environment") if present[key]}
    wanted |= {f"metadata.{key}": value for key, value in metadata.items() if present["metadata"][key]}
    if present["metadata"].get("expected_outcome"):
        wanted["expected_outcome"] = metadata["expected_outcome"]
    compared: dict[str, tuple[object, object]] = {}
    for key, value in wanted.items():
        found = [
            case.metadata.get(key.removeprefix("metadata.")) if key.startswith("metadata.") else getattr(case, key)
            for case in cases
        ]
        found = [list(item) if isinstance(item, tuple) else item for item in found]
        same = all(item == found[0] for item in found)
        compared[key] = (found[0] if same else found, value)
    return compared


def _check(folder: Path) -> None:
    manifest = _manifest(folder)
    cases = _cases(folder, manifest)
    assert len(cases) == len(manifest["traces"])
    differences = differing(folder, cases)
    excused = {what for client, scenario, what in UNOBTAINABLE if (client, scenario) == folder.parts[-2:]}
    excused |= manifest.get("unobtainable", {}).keys()
    assert {what: pair for what, pair in differences.items() if what not in excused} == {}
    assert excused <= differences.keys(), "an excuse that is no longer needed"
    reported = [case for case in cases if _reports(case)]
    assert len(reported) >= min(len(manifest["truth"]["turns"]), len(manifest["traces"]))
    assert all(case.complete and case.content_captured for case in reported)


@pytest.mark.parametrize(("client", "scenario"), RECORDED)
def test_a_client_s_traffic_comes_out_as_what_its_program_did(shared: Path, client: str, scenario: str) -> None:
    _check(shared / "corpus" / "otlp" / client / scenario)


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in KEPT.rglob("manifest.json")), ids=lambda p: p.parent.name
)
def test_the_recordings_kept_here_come_out_as_what_their_programs_did(folder: Path) -> None:
    _check(folder)


def _in_its_text(folder: Path) -> str:
    return (folder / "001.json").read_text(encoding="utf-8")


PROOFS: dict[str, Callable[..., bool]] = {
    NOT_SENT: lambda found, _, __: bool(found == (0, 0)),
    AS_TEXT: lambda found, wanted, _: bool(found == str(wanted)),
    COUNTED: lambda found, wanted, _: (0, 0) < found < wanted,
    OWN_LABEL: lambda found, _, __: set(found) == {"default_agent"},
    HANDED_ON: lambda found, _, __: bool(found == ["ask_research"]),
    ONE_TRACE: lambda found, wanted, folder: (
        found in (wanted[:1], wanted[-1:]) and len(_manifest(folder)["traces"]) == 1
    ),
    IN_A_LOG: lambda found, _, folder: found in (None, {_manifest(folder)["truth"]["model_requested"]}),
    CUT: lambda _, __, folder: "..." in _in_its_text(folder),
}
"""What shows that a reason holds, by what was found and what is true of a recording."""


def test_what_is_excused_differs_in_nothing_but_the_reason_given(shared: Path) -> None:
    for (client, scenario, what), reason in UNOBTAINABLE.items():
        folder = shared / "corpus" / "otlp" / client / scenario
        found, wanted = differing(folder, _cases(folder, _manifest(folder)))[what]
        if reason in PROOFS:
            assert PROOFS[reason](found, wanted, folder), (client, scenario, what)
        elif reason == NO_TYPE:
            assert str(wanted).partition(": ")[2] in str(found)
        elif reason == UNORDERED:
            assert isinstance(found, list)
            assert isinstance(wanted, list)
            assert sorted(found) == sorted(wanted)
        elif reason in (CAUGHT, NOT_A_SPAN):
            results = [call.result for case in _cases(folder, _manifest(folder)) for call in case.tools_used or ()]
            assert any(str(wanted).partition(": ")[2] in str(result) for result in results)
        elif reason == PRINTED:
            assert found == {_manifest(folder)["truth"]["model_requested"]}
        elif reason == APART:
            manifest = _manifest(folder)
            assert len(manifest["traces"]) > len(manifest["truth"]["turns"])
        elif reason == PAIRS:
            assert all(case.metadata["corpus"] == scenario for case in _cases(folder, _manifest(folder)))
        elif reason == NO_TAGS:
            assert found == []
            spans = read_files(_files(folder)).spans
            assert not any(key.endswith("tags") for raw in spans for key in (*raw.attributes, *raw.resource))
        else:
            assert found == []


def test_every_client_in_the_corpus_is_understood_without_an_exception_or_a_note_of_one(shared: Path) -> None:
    folders = sorted((shared / "corpus" / "otlp").glob("*/*/"))
    assert {folder.parts[-2:] for folder in folders} == set(RECORDED)
    for folder in folders:
        for path in _files(folder):
            assert all("dialect" not in normalise(raw).provenance for raw in decode_spans(path.read_bytes()))
        for case in _cases(folder, _manifest(folder)):
            json.dumps([case.input, case.model_output, case.metadata])


def test_the_table_of_what_is_matched_is_up_to_date(shared: Path) -> None:
    from tests.conformance import matched  # noqa: PLC0415 - which reads this module

    assert matched.PAGE.read_text(encoding="utf-8") == matched.page(shared), "run 'python -m tests.conformance.matched'"


def test_the_json_and_the_protobuf_form_of_a_request_decode_alike(shared: Path) -> None:
    paths = [path for folder in (shared / "corpus" / "otlp").glob("*/*/") for path in _files(folder)]
    assert paths
    for path in paths:
        assert decode(path.read_bytes()) == decode_json(path.with_suffix(".json").read_bytes()), path


@pytest.mark.parametrize("kept", _requests(KEPT), ids=lambda path: "-".join(path.parts[-3:-1]))
def test_every_span_names_what_its_fields_were_read_from(kept: Path) -> None:
    _named(kept)


@pytest.mark.parametrize("client", [*CLIENTS, *LATER])
def test_every_span_of_the_corpus_names_what_its_fields_were_read_from(shared: Path, client: str) -> None:
    for path in _requests(shared / "corpus" / "otlp" / client):
        _named(path)


def _named(path: Path) -> None:
    for raw in decode_spans(path.read_bytes()):
        span = normalise(raw)
        named = {field.partition(".")[0] for field in span.provenance}
        known = {field for field in READ if getattr(span, field) not in (None, (), {})}
        if span.tool is not None:
            known -= {"input", "output"}  # which are the tool's arguments and result
        assert known <= named, (span.name, known - named)
        assert span.dialect == "generic" or "kind" in named, span.name


def test_the_list_of_dialects_names_every_declared_dialect_once_and_ends_with_the_generic_one() -> None:
    folder = Path(sidejudge.integrations.dialects.__file__).parent
    stems = [path.stem for path in folder.glob("[!_]*.py")]
    modules = [importlib.import_module(f"sidejudge.integrations.dialects.{stem}") for stem in stems]
    declared = [held for module in modules for held in vars(module).values() if isinstance(held, Dialect)]
    assert sorted(dialect.name for dialect in (*declared, GENERIC)) == sorted(dialect.name for dialect in DIALECTS)
    assert len({dialect.name for dialect in DIALECTS}) == len(DIALECTS)
    assert DIALECTS[-1] is GENERIC


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_dialect_normalises_a_span_of_which_nothing_is_known(dialect: Dialect) -> None:
    raw = RawSpan(trace_id="1" * 32, span_id="2" * 16, parent_id=None, name="step", start_ns=1, end_ns=2)
    span = dialect.normalise(raw)
    assert (span.trace_id, span.span_id, span.name, span.dialect) == (raw.trace_id, raw.span_id, "step", dialect.name)
    assert span.usage is None
    assert span.input is None
