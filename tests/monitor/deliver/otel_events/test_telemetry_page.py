"""The page of what a monitor tells of itself names every attribute that it writes, and no other."""

from __future__ import annotations

import re

from sidejudge.integrations.otel_events.evaluation import EvaluationSubject, report
from sidejudge.integrations.otel_events.own_trace import Call, OwnTrace
from sidejudge.integrations.otel_events.providers import telemetry
from sidejudge.integrations.provider.attempt import Completion
from sidejudge.integrations.provider.errors import ProviderUsage
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.result import Failed, Judgement, Method, Scored
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.verdict import reach_verdict
from tests.running import ROOT

PAGE = ROOT / "docs" / "reference" / "telemetry.md"
NAME = re.compile(r"(?:service|telemetry|deployment|sidejudge|langfuse|gen_ai|error)(?:\.[a-zA-Z_]+)+")


def written() -> set[str]:
    """Every attribute of a judging in which all happens that may."""
    made = telemetry(version="1", environment="own", clock_ns=lambda: 7)
    judged = EvaluationSubject(
        case_id="c", trace_id="a" * 32, root_span_id="b" * 16, session_id="s", service="shop", environment="prod"
    )
    usage = ProviderUsage(input_tokens=1, output_tokens=1, cost_usd=0.1)
    stated = Completion(text="x", model="m", usage=usage, duration_s=1.0, finish_reason="stop", response_id="r")
    own = OwnTrace(made, judged, 1)
    call = Call(
        model="openai/m", start_ns=1, end_ns=2, usage=usage, failure="parse_error", completion=stated,
        prompt=("tone", 3),
    )  # fmt: skip
    own.add(call)
    own.end(3, {"sidejudge.outcome": "scored", "sidejudge.verdict.RUBRIC": "valid"})

    rubric = RUBRICS["qa"]
    by_model = Judgement(model="m", prompt_version="p", call="c", flags=("doubtful",))
    first, *others = [c.metric.id for c in rubric.criteria]
    results = dict.fromkeys(others, Scored(value=1.0, method=Method.JUDGE, reason="why", judgements=(by_model,)))
    case = Case(case_id="c", trace_id="a" * 32, model_output="x")
    verdict = reach_verdict(rubric, case, {first: Failed("parse_error: x"), **results}, created_at="now")
    report(made.logger, judged, verdict, rubric, at_ns=1, own_trace_id=own.trace_id)

    found: set[str] = set()
    for span in (item.body for item in made.spans.waiting(99)):
        found |= {*span.attributes, *span.resource.attributes}
        found |= {key for link in span.links for key in link.attributes}
    for event in (item.body for item in made.events.waiting(99)):
        found |= set(event.log_record.attributes)
    return found


def test_every_attribute_is_on_the_page_and_no_other():
    page = PAGE.read_text()
    short = re.sub(r"`(\.[a-z_]+)`", r"`sidejudge.judged\1`", page)  # as the first row of its table writes them
    named = set(NAME.findall(short))
    other = {"gen_ai.evaluation.result", "sidejudge.judge"}  # an event, and the scope
    assert named - other == written()
