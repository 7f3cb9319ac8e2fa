"""Sample traffic: what is right passes, what was spoilt fails, and no id comes twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.monitor.config import load
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.demo.scene import CONFIG
from sidejudge.monitor.demo.traffic import ENVIRONMENT, SampleTrace, SampleTraffic
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.monitor.route.router import Route, Router
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.statistics.estimate import estimate
from sidejudge.scoring.status.status import Drops, Policy, appraise
from sidejudge.scoring.trace.trace import Trace
from tests.docs.blocks import ROOT, blocks

NOW = 1_790_000_000_000_000_000
DEMO = load(CONFIG, {})
RUBRIC_OF = {"research-assistant": "workflow", "call-quality": "qa", "call-entities": "entity"}


def judged(sent: SampleTrace):
    """The verdict on a trace, the way a monitor with the demo's configuration reaches it."""
    spans = [normalise(raw) for raw in decode_spans(sent.body)]
    (trace_id,) = {each.trace_id for each in spans}
    case = extract(Trace.of(trace_id, spans, "root_ended"), reference_keys=DEMO.reference_keys)
    route = Router(DEMO.routes, DEMO.scenarios).route(case)
    assert isinstance(route, Route), case
    case = replace(case, scenario=route.scenario)
    (verdict,) = Evaluator(configured(DEMO)).evaluate(case, route.rubrics, created_at="2026-01-01T00:00:00Z")
    return verdict


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("wrong", [0.0, 0.5, 1.0])
def test_what_is_right_passes_and_what_was_spoilt_fails(seed, wrong):
    traffic = SampleTraffic(seed)
    misjudged = []
    services = set()
    for _ in range(120):
        sent = traffic.next(NOW, wrong)
        verdict = judged(sent)
        services.add(sent.service)
        assert (verdict.service, verdict.environment, verdict.rubric) == (
            sent.service, ENVIRONMENT, RUBRIC_OF[sent.service],
        )  # fmt: skip
        if verdict.passed is not (not sent.spoilt):
            misjudged.append((sent.service, sent.spoilt, verdict.passed, verdict.composite, verdict.reason))
    assert misjudged == []
    assert services == set(RUBRIC_OF)


def test_every_call_passes_under_both_its_rubrics_and_every_agent_recording_too():
    traffic = SampleTraffic()
    for call in traffic._calls:
        traffic._calls = [call]
        for task in ("qa", "entity"):
            verdict = judged(traffic._call(task, NOW, spoilt=False))
            # Whether a reason in other words is borne out is left to a judge, which the demo has not.
            least = 0.9 if task == "qa" else 1.0
            assert (verdict.passed, verdict.blockers) == (True, ()), (call["call"], verdict)
            assert verdict.coverage >= least, (call["call"], verdict)
    for recording in traffic._agents:
        traffic._agents = [recording]
        assert judged(traffic._agent(NOW, spoilt=False)).passed is True
        assert judged(traffic._agent(NOW, spoilt=True)).passed is False


def test_the_share_of_wrong_call_centre_answers_is_what_was_asked_for():
    for wrong, expected in ((0.0, set()), (1.0, {True})):
        traffic = SampleTraffic()
        sent = [traffic.next(NOW, wrong) for _ in range(100)]
        assert {each.spoilt for each in sent if each.service != "research-assistant"} == (expected or {False})


def test_the_readme_shows_a_verdict_and_an_alert_as_they_are_printed():
    (shown,) = (each.text.splitlines() for each in blocks(ROOT / "README.md") if each.language == "text")
    traffic = SampleTraffic()
    reached = [judged(traffic._agent(NOW, spoilt=True)) for _ in range(5)]
    assert shown[0].rpartition("  ")[0] in {
        f"✗ {each.service} · {each.rubric} {each.composite:.3f}  {each.reason}" for each in reached
    }
    found = estimate(((True, 1.0), (False, 1.0)))
    critical = appraise(found, Policy(mode="adaptive"), drops=Drops(collapse=0.5))
    assert shown[1] == f"● call-quality · qa: warning → {critical.status.value}  {critical.reason}"


def test_ids_are_fresh_parents_are_kept_and_the_trace_ends_now():
    seen = set()
    for traffic in (SampleTraffic(5), SampleTraffic(5)):  # the same seed: the same stories, other ids
        for _ in range(40):
            raws = decode_spans(traffic.next(NOW, 0.3).body)
            made = Trace.of(raws[0].trace_id, [normalise(raw) for raw in raws], "root_ended")
            ids = {raw.span_id for raw in raws} | {made.trace_id}
            assert len(ids) == len(raws) + 1
            assert not ids & seen
            seen |= ids
            assert made.complete
            assert made.missing_parents == ()
            assert max(raw.end_ns for raw in raws) == NOW
            assert all(raw.start_ns <= raw.end_ns for raw in raws)
            assert all(raw.start_ns <= event.time_ns <= NOW for raw in raws for event in raw.events)


def test_the_same_seed_tells_the_same_stories():
    one, other = SampleTraffic(9), SampleTraffic(9)
    for _ in range(30):
        a, b = one.next(NOW, 0.5), other.next(NOW, 0.5)
        assert (a.service, a.spoilt) == (b.service, b.spoilt)
        assert len(a.body) == len(b.body)
        assert judged(a).composite == judged(b).composite
