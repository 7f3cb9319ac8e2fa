"""What a client's limit cut off is neither judged as if it were whole nor held against the run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.otlp.wire.recording import read_files
from sidejudge.integrations.raw import AttributeValue, RawSpan
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.span import SpanKind
from sidejudge.scoring.trace.trace import Trace
from tests.conformance.test_dialects import CLIENTS, KEPT, LATER

LIMITS = (512, 1024, 2048)


def raw(span_id: str = "a", parent_id: str | None = None, **attributes: Any) -> RawSpan:
    return RawSpan(
        trace_id="1" * 32, span_id=span_id, parent_id=parent_id, name=span_id, start_ns=1, end_ns=9, scope_name="acme",
        attributes={key.replace("__", "."): value for key, value in attributes.items()},
    )  # fmt: skip


def stepping(kind: str, **values: str) -> RawSpan:
    return raw(openinference__span__kind=kind, **{f"{key}__value": value for key, value in values.items()})


MESSAGES = json.dumps(
    {"messages": [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "At nine."}]}
)


@pytest.mark.parametrize(
    "text",
    [
        MESSAGES[:-12],
        MESSAGES[:-1].removesuffix("]"),
        '{"text": "It leaves at ni',
        json.dumps(json.dumps({"answer": "At nine."}))[:-4],
        "StopEvent(result=AgentOutput(response=ChatMessage(role=<MessageRole.ASSISTANT: 'assistant'>, blocks=[Te",
    ],
)
def test_part_of_an_envelope_is_no_answer_and_is_named(text):
    span = normalise(stepping("AGENT", input="When?", output=text))
    assert (span.output, span.input) == (None, "When?")
    assert [(each.source, each.field, each.client, each.cut) for each in span.unread] == [
        ("output.value", "output", "acme", True)
    ]
    case = extract(Trace.of("1" * 32, [span], "root_ended"))
    assert f"(text of {len(text)} characters, cut off)" in str(reason_of(case, "answered"))


@pytest.mark.parametrize(
    "text", ['{"answer": "At ni', '{"questions": [{"score": 2, "reason": "gr', '"When" is at nine']
)
def test_what_a_model_left_off_is_its_answer(text):
    span = normalise(stepping("LLM", input="When?", output=text))
    assert (span.kind, span.output, span.unread) == (SpanKind.LLM, text, ())


@pytest.mark.parametrize(
    "text", ["Event(name='x') begins at nine.", "[1] says nine.", '{"questions": [{"score": 2, "rea', "{"]
)
def test_prose_and_data_are_answers_of_a_step_too(text):
    assert normalise(stepping("CHAIN", output=text)).output == text


def reason_of(case: Case, metric: str) -> object:
    scores = score(case, RUBRICS["run_health"], created_at="2026-01-01T00:00:00Z").scores
    return next(each.result.reason for each in scores if each.metric == metric)


TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("find", "book")
]


@pytest.mark.parametrize(("cut", "fits"), [(0, "('scored', 0.0)"), (9, "('scored', 1.0)")])
def test_a_tool_may_have_been_offered_in_what_was_cut_off(cut, fits):
    asked = json.dumps(
        [{"role": "assistant", "parts": [{"type": "tool_call", "name": "cancel", "id": "1", "arguments": {}}]}]
    )
    offers = [json.dumps(TOOLS), json.dumps([*TOOLS, {"name": "other"}])]
    steps = [raw("run", gen_ai__operation__name="invoke_agent", gen_ai__agent__name="harbour")]
    steps += [
        raw(
            f"m{at}", "run", gen_ai__operation__name="chat", gen_ai__output__messages=asked,
            gen_ai__tool__definitions=offer[: len(offer) - cut * at],
        )
        for at, offer in enumerate(offers)
    ]  # fmt: skip
    steps += [
        raw(
            "t",
            "run",
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name="cancel",
            gen_ai__tool__call__result="ok",
        )
    ]
    case = extract(Trace.of("1" * 32, [normalise(each) for each in steps], "root_ended"))
    scores = score(case, RUBRICS["run_health"], created_at="2026-01-01T00:00:00Z").scores
    found = next(each.result for each in scores if each.metric == "calls_valid")
    assert str((found.status, getattr(found, "value", None))) == fits


def cut(spans: Sequence[RawSpan], limit: int) -> list[RawSpan]:
    def shorter(values: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
        return {key: value[:limit] if isinstance(value, str) else value for key, value in values.items()}

    return [
        replace(
            span, attributes=shorter(span.attributes),
            events=tuple(replace(event, attributes=shorter(event.attributes)) for event in span.events),
        )
        for span in spans
    ]  # fmt: skip


def findings(case: Case) -> dict[str, float]:
    scores = score(case, RUBRICS["run_health"], created_at="2026-01-01T00:00:00Z").scores
    return {each.metric: each.result.value for each in scores if isinstance(each.result, Scored)}


def blamed(folder: Path, limit: int) -> Iterator[str]:
    """What is held against a run of which a limit cut contents off, and was not against the whole one."""
    by_trace: dict[str, list[RawSpan]] = {}
    for each in read_files([path for path in sorted(folder.glob("[0-9]*.pb")) if ".logs" not in path.name]).spans:
        by_trace.setdefault(each.trace_id, []).append(each)
    for trace_id, spans in by_trace.items():
        whole, part = (
            extract(Trace.of(trace_id, [normalise(each) for each in given], "root_ended"))
            for given in (spans, cut(spans, limit))
        )
        before, after = findings(whole), findings(part)
        yield from (f"{name} of {limit}" for name, value in after.items() if value < min(1.0, before.get(name, 1.0)))
        answer = str(part.model_output or "")
        if not str(whole.model_output).startswith(answer[:40]):
            yield f"answer of {limit}: {answer[:60]}"


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in KEPT.glob("*/*/001.pb")), ids=lambda p: "-".join(p.parts[-2:])
)
def test_nothing_is_held_against_what_is_kept_of_clients_with_a_limit(folder):
    assert [each for limit in LIMITS for each in blamed(folder, limit) if "telemetry" not in each] == []


@pytest.mark.parametrize("client", [*CLIENTS, *LATER])
def test_nothing_is_held_against_what_real_clients_send_with_a_limit(shared, client):
    folders = sorted((shared / "corpus" / "otlp" / client).iterdir())
    found = [each for folder in folders for limit in LIMITS for each in blamed(folder, limit)]
    assert [each for each in found if "telemetry" not in each] == []


@pytest.mark.parametrize(
    ("left_out", "run_failed", "why"),
    [
        (0, False, "the run ended without an answer"),
        (3, False, "the SDK left out 3 attributes, of which one may hold the answer"),
        (3, True, "the run ended without an answer"),
    ],
)
def test_an_answer_may_stand_in_an_attribute_that_the_sdk_left_out(left_out, run_failed, why):
    steps = [
        replace(stepping("AGENT", input="When?"), dropped_attributes=left_out, status_code=2 if run_failed else 0),
        raw("m", "a", openinference__span__kind="LLM", input__value="When?"),
    ]
    steps[1] = replace(steps[1], status_code=2)
    case = extract(Trace.of("1" * 32, [normalise(each) for each in steps], "root_ended"))
    assert str(reason_of(case, "answered")) == why


def test_a_tool_may_have_been_called_in_what_was_cut_off_or_left_out():
    def held_to(span: RawSpan, name: str) -> bool | None:
        case = extract(Trace.of("1" * 32, [normalise(span)], "root_ended"))
        case = case.drawn(1.0, {"name": "sail", "tools_should_include": [name]})
        return score(case, RUBRICS["workflow"], created_at="2026-01-01T00:00:00Z").passed

    ran = raw(openinference__span__kind="AGENT", agent__name="harbour", input__value="When?", output__value="At nine.")
    assert held_to(ran, "find") is False
    assert held_to(replace(ran, dropped_attributes=3), "find") is None
    assert held_to(replace(ran, attributes={**ran.attributes, "output.value": MESSAGES[:-12]}), "find") is None
