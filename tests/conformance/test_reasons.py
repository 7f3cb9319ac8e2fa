"""What every reason must keep to: it is a record, and shows nothing of contents to those without rights to them."""

from __future__ import annotations

import ast
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from sidejudge.monitor.alerting.failures import illustrated
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.runtime.logging import TraceLog
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.lexical.shown_text import MAX_LABEL
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.reason import Kind, Reason, Rights, outline
from sidejudge.scoring.result.result import Failed, Method
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.rubrics.open_verdict import open_verdict
from sidejudge.scoring.status.failure_groups import failure_groups, without_contents
from sidejudge.scoring.trace.span import Message, Span, SpanKind, ToolCall
from sidejudge.scoring.trace.trace import Trace
from sidejudge.scoring.verdict.verdict import reach_verdict
from tests.alert_events import event
from tests.conformance.test_metrics import CRITERIA, HONEST, HOSTILE, evaluate, yes
from tests.golden.test_cases import STORIES
from tests.scoring.rubrics.test_open_verdict import CANARY, MARKED, verdict_on

ROOT = Path(__file__).parents[2]
WROTE = {"ok", "nobody", "", CANARY}
"""What the answerers of these tests write."""


def everything_shown(verdict: dict) -> list[str]:
    """All that readers without rights to contents may be shown of a verdict, as texts."""
    stated = {**verdict, "closed_ns": 1, "trace_id": "1" * 32, "service": "shop", "environment": "prod"}
    kept = [outline(each) for each in (stated, *stated["scores"])]
    groups = [without_contents(each) for each in failure_groups([stated], 0)]
    store = SimpleNamespace(verdicts=lambda **_: [stated] * 3, compared=lambda _: [])
    alert = illustrated(store, event(labels=(("rubric", stated["rubric"]),)), 0)
    sent = [*alert.examples, *([alert.failure] if alert.failure else [])]
    return [
        json.dumps(open_verdict(stated)),
        *(each.shown(rights) for each in kept for rights in (Rights.NAMES, Rights.OWN)),
        *(each.alike() for each in kept),
        *(group.words for group in groups),
        *(text for each in sent for text in (each.reason, each.nameless or "")),
    ]


@pytest.mark.parametrize("path", STORIES, ids=[f"{path.parent.name}/{path.stem}" for path in STORIES])
def test_pages_notices_and_groups_show_nothing_that_people_or_models_wrote(path):
    for fields in (set(), {"model_output"}, MARKED):
        verdict = verdict_on(path, fields=fields, judge_too=True)
        assert [text for text in everything_shown(verdict) if CANARY in text] == []


@pytest.mark.parametrize(("rubric", "criterion"), CRITERIA)
def test_every_reason_is_a_record_but_what_somebody_wrote(rubric, criterion):
    for case in (*HONEST, *HOSTILE[::5]):
        for answer in (yes, lambda _: NoAnswer("nobody"), lambda question, case=case: lexical.answer(case, question)):
            reason = evaluate(criterion.metric, case, answer).reason
            assert isinstance(reason, Reason) or reason in WROTE, f'give this as Reason("…"): {reason}'


@pytest.mark.parametrize(("rubric", "criterion"), CRITERIA)
def test_what_a_judge_writes_is_shown_to_nobody_without_rights(rubric, criterion):
    def judged(question):
        value = yes(question).value
        marked = (
            {**value, "reason": CANARY, "rationale": CANARY, "reasoning": CANARY} if isinstance(value, dict) else value
        )
        return Answer(value=marked, method=Method.JUDGE, reason=CANARY)

    for answer in (
        judged,
        lambda _: NoAnswer(CANARY, failed=True),
        lambda _: Answer(value=CANARY, method=Method.JUDGE),
    ):
        for case in HONEST:
            reason = Reason("{why}", why=evaluate(criterion.metric, case, answer).reason)
            for text in (reason.shown(), reason.shown(Rights.OWN), reason.alike(), json.dumps(reason.to_json())):
                assert CANARY not in text


@pytest.mark.parametrize(("rubric", "criterion"), CRITERIA)
def test_names_are_short_and_of_plain_characters(rubric, criterion):
    for case in HOSTILE[-60:]:
        reason = evaluate(criterion.metric, case).reason
        shown = Reason("{why}", why=reason).shown()
        assert not any(char in shown for char in '\u202e\x00"')
        for name in (each.text for each in getattr(reason, "parts", ()) if each.kind is Kind.NAME):
            assert len(Reason("{name}", name=name).shown()) <= MAX_LABEL + 1


def failing_run(spot: str) -> Trace:
    """A run in which everything goes wrong, with a canary in one kind of content."""

    def text(kind, otherwise=""):
        return f"{otherwise} {CANARY}".strip() if kind == spot else otherwise

    def tool(number, **given):
        arguments = {"city": text("argument", "Rome"), "page": text("argument", "one")}
        return Span(
            span_id=f"t{number}", parent_id="a", name="find", kind=SpanKind.TOOL, start_ns=number + 2, **AT,
            end_ns=number + 3, tool=ToolCall(name="find", arguments=arguments, **given), error=given.get("error"),
        )  # fmt: skip

    offered = '{"name": "find", "parameters": {"type": "object", "properties": {"page": {"type": "integer"}}}}'
    said = Message(
        role="assistant", text=text("message", "I look."),
        tool_calls=(ToolCall(name="find", arguments={"page": text("argument", "one")}),),
    )  # fmt: skip
    spans = [
        Span(
            span_id="a", parent_id=None, name="desk", agent="desk", kind=SpanKind.AGENT, start_ns=1, end_ns=90, **AT,
            input=text("input", "Where is my order?"), output=text("output", "RateLimitError: too many requests"),
            error=text("error", "RuntimeError: it is down"),
        ),
        Span(
            span_id="m", parent_id="a", name="chat", kind=SpanKind.LLM, start_ns=2, end_ns=3, **AT,
            tool_definitions=(offered,), output_messages=(said,), error=text("error", "TimeoutError: no answer"),
        ),
        *(tool(number, error=text("error", "ValueError: no such city")) for number in range(3)),
        tool(4, result=text("result", "Error: no such page")),
        Span(
            span_id="s", parent_id="a", name="sub", agent="sub", kind=SpanKind.AGENT, start_ns=20, end_ns=21, **AT,
            output=text("output", "Internal Server Error"), error=text("error", "KeyError: 'order'"),
        ),
    ]  # fmt: skip
    return Trace.of("1" * 32, spans, "batch")


AT = {"trace_id": "1" * 32, "dialect": "test"}


def reasons_of_runs(spot: str) -> Iterator[tuple[str, str]]:
    """Reasons on the failing run, by metric, of every rubric; each metric is answered by words, and by a judge."""
    case = extract(failing_run(spot)).drawn(
        1.0, {"tools_should_include": ["search"], "arguments": {"find": {"city": 7}}}
    )
    for rubric, criterion in (param.values for param in CRITERIA):
        for answer in (yes, lambda question: lexical.answer(case, question)):
            yield f"{rubric.id}.{criterion.metric.id}", evaluate(criterion.metric, case, answer).reason


def test_no_reason_about_a_run_shows_what_it_holds():
    quoting = set()
    for spot in ("input", "output", "message", "argument", "result", "error"):
        for metric, reason in reasons_of_runs(spot):
            shown = Reason("{why}", why=reason)
            texts = (shown.shown(), shown.shown(Rights.OWN), shown.alike(), json.dumps(shown.to_json()))
            assert [text for text in texts if CANARY in text] == [], (metric, spot)
            quoting |= {(metric, spot)} if CANARY in reason else set()
    stated = {
        ("run_health.completed", "error"),
        ("run_health.tool_success", "error"),
        ("run_health.tool_success", "result"),
    }
    assert stated <= quoting, "whole reasons do quote, so that the canaries prove something"


def test_a_log_line_about_a_judge_quotes_nothing(caplog):
    rubric = RUBRICS["quality"]
    failed = Failed(Reason("judge unavailable: {why}", why=CANARY))
    verdict = reach_verdict(rubric, HONEST[0], {c.metric.id: failed for c in rubric.criteria}, created_at="")
    result = SimpleNamespace(
        trace_id=bytes(16), service="shop", reason=EndReason.JUDGE_FAILED, changed=(verdict,), verdicts=(verdict,),
        ended_ns=1, completion="batch", revision=1, details={},
    )  # fmt: skip
    with caplog.at_level(logging.WARNING, "sidejudge.traces"):
        TraceLog().committed(result)
    (record,) = caplog.records
    assert record.cause == "quality.answer_quality: judge unavailable: …"


def is_literal(node: ast.expr, assigned: dict[str, list[ast.expr]]) -> bool:
    match node:
        case ast.Constant(value=str()):
            return True
        case ast.IfExp(body=one, orelse=other):
            return is_literal(one, assigned) and is_literal(other, assigned)
        case ast.Name(id=name):
            return name in assigned and all(is_literal(each, {}) for each in assigned[name])
    return False


def templates(function: ast.AST) -> Iterator[tuple[int, bool]]:
    """The line of each template, and whether it is a literal."""
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, []).append(node.value)
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Reason" and node.args:
            yield node.lineno, is_literal(node.args[0], assigned)


def test_every_template_is_a_literal_of_the_code() -> None:
    rooms = (path for room in ("scoring", "integrations", "monitor") for path in (ROOT / room).rglob("*.py"))
    seen = [
        (f"{path.relative_to(ROOT)}:{line}", literal)
        for path in rooms
        if path.name != "reason.py"
        if "Reason(" in (text := path.read_text())
        for node in ast.parse(text).body
        for line, literal in templates(node)
    ]
    assert len(seen) > 300
    wrong = [where for where, literal in seen if not literal]
    assert wrong == [], "what is no literal may be content: give it as a value, with part(...) or quoted(...)"


@pytest.mark.parametrize("code", ["Reason(f'{x}')", "Reason(x)", "x = f(); Reason(x)", "x = 'a'; x = b; Reason(x)"])
def test_a_template_that_is_no_literal_is_found(code: str) -> None:
    assert [literal for _, literal in templates(ast.parse(code))] == [False]
