from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sidejudge.integrations.dialects import map_attributes
from sidejudge.monitor.cli import main
from tests.otlp_requests import S, request, span, trace

KEPT = Path(__file__).parents[2] / "data" / "otlp"
SPLIT = sorted((KEPT / "langfuse-v5-split" / "s4_error").glob("*.pb"))


def _inspect(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["inspect", *map(str, arguments)])


def test_several_files_are_one_delivery_and_one_case_a_trace() -> None:
    result = _inspect(*reversed(SPLIT), "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    (line,) = result.stdout.splitlines()
    case = json.loads(line)
    assert case["agents_called"] == ["support"]
    assert case["tools_used"] == [
        {
            "name": "lookup_order",
            "arguments": {"order_id": "A-1001"},
            "error": "ConnectionError: order database unreachable",
            "call_id": "call_lookup_order_1",
        }
    ]
    assert (case["dialects"], case["content_captured"], case["capture_switch"]) == (["langfuse"], True, None)
    assert (case["input"], case["input_tokens"], case["session_id"]) == (
        "Where is my order A-1001?",
        64,
        "session-s4_error",
    )
    assert "provenance" not in case


def test_hand_offs_stand_apart_from_tools() -> None:
    (path,) = (KEPT / "openinference-openai-agents" / "s2_agents").glob("*.pb")
    case = json.loads(_inspect(path).stdout)
    assert [tool["name"] for tool in case["tools_used"]] == ["pdf_retrieval"]
    assert [tool["name"] for tool in case["handoffs"]] == ["transfer_to_research"]


def test_verbose_tells_which_attribute_each_field_was_read_from() -> None:
    case = json.loads(_inspect(*SPLIT, "-v").stdout)
    tool = next(span for span in case["provenance"] if span["kind"] == "tool")
    assert tool["read"]["tool.arguments"] == "langfuse.observation.input"
    assert tool["read"]["environment"] == "langfuse.environment"


def test_the_tree_shows_the_case_to_people() -> None:
    result = _inspect(*SPLIT, "--format", "tree", "-v")
    assert result.exit_code == 0
    for shown in (
        "lookup_order",
        "order database unreachable",
        "support",
        "session-s4_error",
        "← langfuse.observation.input",
    ):
        assert shown in result.stdout


def _recorded(tmp_path: Path, **attributes: object) -> Path:
    span = {
        "traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060708", "name": "step",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }  # fmt: skip
    path = tmp_path / "recorded.json"
    path.write_text(
        json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span, {"name": "nowhere"}]}]}]}), encoding="utf-8"
    )
    return path


def test_spans_without_ids_are_reported_and_make_the_exit_code_one(tmp_path: Path) -> None:
    result = _inspect(_recorded(tmp_path))
    assert (result.exit_code, len(result.stdout.splitlines())) == (1, 1)
    assert "1 span left out: no valid trace or span id" in result.stderr


def test_terminal_escapes_in_a_trace_do_not_reach_the_terminal(tmp_path: Path) -> None:
    result = _inspect(_recorded(tmp_path, input="\x1b[2J\x1b]0;owned\x07[bold]Hi"), "--format", "tree")
    assert "\x1b" not in result.stdout
    assert "[bold]Hi" in result.stdout


def test_missing_contents_are_a_result_with_the_switch_that_would_capture_them(tmp_path: Path) -> None:
    path = _recorded(tmp_path, **{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    case = json.loads(_inspect(path).stdout)
    assert (case["content_captured"], case["tools_used"]) == (False, None)
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in case["capture_switch"]
    assert "to capture them" in _inspect(path, "--format", "tree").stdout


def test_log_requests_without_any_span_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "001.logs.json"
    path.write_text('{"resourceLogs": [{"scopeLogs": [{"logRecords": [{}, {}]}]}]}', encoding="utf-8")
    result = _inspect(path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "there is no span in these files, only 2 log records" in result.stderr
    (cause, remedy) = result.stderr.splitlines()
    assert (cause[:8], remedy[:7]) == ("warning:", "remedy:")


def _logged(folder: Path, *records: dict[str, object]) -> Path:
    path = folder / "001.logs.json"
    path.write_text(json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": list(records)}]}]}), encoding="utf-8")
    return path


def test_contents_that_travel_in_log_records_are_shown_with_their_spans(tmp_path: Path) -> None:
    chat = _recorded(tmp_path, **{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    span = json.loads(chat.read_text(encoding="utf-8"))["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    place = {"traceId": span["traceId"], "spanId": span["spanId"]}
    requested = {"eventName": "gen_ai.user.message", "timeUnixNano": "1", "body": {"stringValue": '{"content": "Hi?"}'}}
    answer = {"eventName": "gen_ai.choice", "timeUnixNano": "2", "body": {"stringValue": '{"message": "Hello."}'}}
    result = _inspect(_logged(tmp_path, place | answer, place | requested), chat)
    case = json.loads(result.stdout)
    assert (case["input"], case["model_output"]) == ("Hi?", "Hello.")
    assert "log record" not in result.stderr


def test_events_whose_spans_are_not_there_are_counted_and_plain_log_lines_are_not(tmp_path: Path) -> None:
    stray = {"eventName": "gen_ai.choice", "traceId": "f" * 32, "spanId": "f" * 16}
    result = _inspect(*SPLIT, _logged(tmp_path, stray, {"body": {"stringValue": "a line"}}))
    assert result.exit_code == 0
    assert "1 event in log records not seen: their spans are not in these files" in result.stderr


def test_contents_that_are_not_understood_are_named_and_not_called_not_captured(tmp_path: Path) -> None:
    path = _recorded(tmp_path, **{
        "gen_ai.request.model": "m", "ai.prompt.messages": '[{"turn": "Where is it?"}]',
        "gen_ai.output.type": "text", "db.query.text": "select 1", "ai.telemetry.metadata.input": "x",
        "ai.prompt": "{}",
    })  # fmt: skip
    case = json.loads(_inspect(path).stdout)
    assert (case["content_captured"], case["capture_switch"]) == (False, None)
    assert case["remarks"] == [
        "contents may be there that this version does not understand: ai.prompt.messages (list of 1 object with turn)"
    ]
    tree = _inspect(path, "--format", "tree").stdout
    assert "not captured" not in tree
    assert "ai.prompt.messages" in " ".join(tree.split())


def test_standard_input_is_not_read_and_the_error_says_so() -> None:
    result = _inspect("-")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "standard input is not read" in result.stderr


def test_a_compressed_file_is_called_compressed(tmp_path: Path) -> None:
    path = tmp_path / "001.pb.gz"
    path.write_bytes(gzip.compress(SPLIT[0].read_bytes()))
    result = _inspect(path)
    assert result.exit_code == 2
    assert "is compressed with gzip" in result.stderr
    assert "gunzip" in result.stderr.splitlines()[-1]


def test_a_file_named_as_json_that_is_none_is_not_called_protobuf_that_cannot_be_parsed(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(b"<html>")
    result = _inspect(path)
    assert result.exit_code == 2
    assert f"{path}: is not JSON with an OTLP export request" in result.stderr


@pytest.mark.parametrize("content", [b"\x00\x01not otlp", b"{}x", b'{"a": 1}'])
def test_unreadable_files_are_named_with_a_remedy_and_exit_code_two(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.pb"
    path.write_bytes(content)
    result = _inspect(path, tmp_path / "absent.pb", *SPLIT)
    assert (result.exit_code, result.stdout) == (2, "")
    *causes, remedy = result.stderr.splitlines()
    assert len(causes) == 2
    assert [name in cause for name, cause in zip(("bad.pb", "absent.pb"), causes, strict=True)] == [True, True]
    assert remedy.startswith("remedy:")


def test_files_without_any_span_make_the_exit_code_one(tmp_path: Path) -> None:
    path = tmp_path / "empty.pb"
    path.write_bytes(b"")
    result = _inspect(path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no span" in result.stderr


def test_unread_lists_what_was_not_understood_and_a_mapping_makes_it_understood(tmp_path: Path) -> None:
    path = _recorded(tmp_path, **{"gen_ai.operation.name": "chat", "acme.reply": '[{"turn": "Here."}]'})
    (line,) = _inspect(path, "--unread", "--format", "json").stdout.splitlines()
    assert json.loads(line) == {
        "client": "", "source": "acme.reply", "shape": "list of 1 object with turn", "may_be": "output", "spans": 1,
    }  # fmt: skip
    assert "acme.reply" in _inspect(path, "--unread", "--format", "tree").stdout

    config = tmp_path / "sidejudge.yaml"
    config.write_text("sources: {attributes: {acme.reply: output}}\n", encoding="utf-8")
    try:
        understood = _inspect(path, "--unread", "--format", "tree", "--config", config).stdout
        assert understood == "all contents that were seen are understood\n"
        case = json.loads(_inspect(path, "--format", "json", "--config", config).stdout)
        assert case["model_output"] == '[{"turn": "Here."}]'
    finally:
        map_attributes({})
    config.write_text("sources: {attributes: {acme.reply: answer}}\n", encoding="utf-8")
    refused = _inspect(path, "--config", config)
    assert (refused.exit_code, "sources.attributes" in refused.stderr) == (2, True)


def test_marks_that_a_terminal_acts_upon_are_escaped_and_read_back_as_they_were(tmp_path: Path) -> None:
    hostile = "a\x9b31m b\u202ec d\u2066e \x85 \u200f \U000e0041\x7f"
    spans = [S(trace_id=trace(1), span_id=span(1), attributes={"langfuse.observation.input": hostile})]
    path = tmp_path / "hostile.pb"
    path.write_bytes(request(spans))
    for form in ("json", "tree"):
        shown = _inspect(path, "--format", form).stdout
        assert not set(shown) & set("\x9b\u202e\u2066\x85\u200f\U000e0041\x7f"), form
    (found,) = map(json.loads, _inspect(path, "--format", "json").stdout.splitlines())
    assert found["input"] == hostile
