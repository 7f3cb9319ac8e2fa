"""Scores of a verdict: names, types, ids, and what stands beside the number."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.langfuse.declared_scores import MOST_IN_SUMMARY, declared, names_of
from sidejudge.integrations.langfuse.normalise import raw_spans, span_id
from sidejudge.integrations.langfuse.observations import instant
from sidejudge.integrations.langfuse.scores import (
    MAX_COMMENT,
    environment,
    metric_of,
    pass_comment,
    score_id,
    scores_of,
)
from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.integrations.otlp.wire.encode import encode_spans
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.declared.metric import Sources
from sidejudge.scoring.declared.rubric import declared_rubric
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.result.result import Judgement, Method, Scored, Unavailable, details_of_steps
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.loop_guard import own_trace_id
from sidejudge.scoring.trace.trace import Trace
from sidejudge.scoring.verdict.rubric import all_criteria
from sidejudge.scoring.verdict.score import score_name
from sidejudge.scoring.verdict.verdict import reach_verdict

TRACE = "36524d221566b94755e27265a6220988"
JUDGED = Judgement(
    model="openai/m-2026-01-01", prompt_version="ab" * 32, cost_usd=0.1, call="c", flags=("disagreement",)
)


def verdict(rubric, value=1.0, **more):
    results = {
        c.metric.id: Scored(value=value, method=Method.JUDGE, reason="why " + "w" * 3000, judgements=(JUDGED,))
        for c in rubric.criteria
    } | more  # fmt: skip
    case = Case(case_id=TRACE, trace_id=TRACE, model_output="x", environment="Production", sampling_probability=0.25)
    return reach_verdict(rubric, case, results, created_at="2026-11-20T00:00:00.000Z", revision=3)


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=RUBRICS.keys())
def test_every_score_of_every_rubric_is_declared_and_fits_what_langfuse_takes(rubric):
    known = {each.name: each for each in declared(rubric)}
    for body in scores_of(verdict(rubric), rubric):
        kind = known[body["name"]].data_type
        assert body["dataType"] == kind
        assert isinstance(body["value"], str if kind == "CATEGORICAL" else float)
        assert kind != "BOOLEAN" or body["value"] in (0.0, 1.0)
        assert body["environment"] == "production"
        assert len(body["comment"] or "") <= MAX_COMMENT + 1


def test_a_comment_holds_nothing_that_cannot_be_seen_or_turns_others_round():
    reason = "</td><script>\x9b31m\u202egnp\u2066 \x1b]0;x\x07 \r\nnext \ud800"
    hostile = Scored(value=1.0, method=Method.JUDGE, reason=reason, judgements=(JUDGED,))
    rubric = RUBRICS["qa"]
    comments = [body["comment"] or "" for body in scores_of(verdict(rubric, question_score_accuracy=hostile), rubric)]
    assert any("<script>[U+009B]31m[U+202E]gnp[U+2066] [U+001B]]0;x[U+0007] \nnext" in each for each in comments)
    assert all(each.replace("\n", "").isprintable() for each in comments)


def test_a_score_tells_method_version_judge_prompt_probability_coverage_flags_and_revision():
    rubric = RUBRICS["qa"]
    (body,) = [b for b in scores_of(verdict(rubric), rubric) if b["name"] == "qa_question_score_accuracy"]
    reported = verdict(rubric)
    (score,) = [s for s in reported.scores if s.metric == "question_score_accuracy"]
    assert body["metadata"] == {
        "method": "judge", "rating": score.rating, "weight": score.weight, "state": reported.state.value,
        "coverage": 1.0, "revision": 3, "rubric_version": rubric.version, "sampling_probability": 0.25,
        "selection": "random", "judge": "openai/m-2026-01-01", "prompt_hash": "ab" * 32, "flags": "disagreement",
        "prompt": None, "prompt_label": None, "judge_trace_id": None,
    }  # fmt: skip


PROMPT = {"prompt": "tone v3", "prompt_label": "production"}


def test_a_judged_score_names_the_trace_of_its_judging_and_its_prompt_and_no_other_does():
    prompted = Scored(value=1.0, method=Method.JUDGE, judgements=(JUDGED,), details=PROMPT)
    reached = verdict(QA, **{metric: Scored(value=1.0) for metric in METRICS[1:]}, **{METRICS[0]: prompted})
    found = {b["name"]: b["metadata"] for b in scores_of(reached, QA, judge_traces=True)}
    judged = {"qa_score", "qa_pass", "qa_state", score_name("qa", QA.criteria[0].metric)}
    for name, metadata in found.items():
        linked = tuple(metadata[key] for key in ("judge_trace_id", "prompt", "prompt_label"))
        stated = (own_trace_id(TRACE), "tone v3", "production")
        assert linked == (stated if name in judged else (None, None, None)), name
    assert found.keys() > judged


def test_every_score_has_the_same_keys_of_metadata_for_langfuse_merges_them():
    rubric = RUBRICS["qa"]
    plain = verdict(rubric, **{c.metric.id: Scored(value=1.0) for c in rubric.criteria})
    for name in {b["name"] for b in scores_of(plain, rubric)}:
        keys = {
            frozenset(b["metadata"])
            for v in (verdict(rubric), plain)
            for b in scores_of(v, rubric)
            if b["name"] == name
        }
        assert len(keys) == 1, name


def rows_of_an_older_sdk():
    names = [("0a3c1c2e-7a36-4d0e-9a55-3d3a4a0c1f5e", None), ("generation-7", 0), ("b" * 16, 0)]
    return [
        {
            "id": name, "traceId": TRACE, "type": "GENERATION", "name": f"step {index}",
            "startTime": f"2026-11-21T00:56:39.00{index}Z", "endTime": "2026-11-21T00:56:39.010Z",
            "parentObservationId": None if above is None else names[above][0], "input": "hi", "output": "ho",
        }
        for index, (name, above) in enumerate(names)
    ]  # fmt: skip


def test_the_score_of_a_step_is_on_the_observation_that_langfuse_has_whatever_its_id():
    spans = decode_spans(encode_spans(raw_spans(rows_of_an_older_sdk())))
    case = extract(Trace.of(TRACE, [normalise(span) for span in spans], "batch"))
    stated = {"judges": "spans", "metrics": [{"id": "found", "check": {"contains": "no such text"}}]}
    rubric = declared_rubric("steps", stated, Sources(rubrics=RUBRICS))
    reached = score(case, rubric, created_at="2026-11-20T00:00:00.000Z")
    found = [body for body in scores_of(reached, rubric) if "observationId" in body]
    assert {body["observationId"] for body in found} == {row["id"] for row in rows_of_an_older_sdk()}
    for body in found:
        assert body["id"] == score_id(TRACE, body["name"], observation_id=body["observationId"])
    assert not {key for each in case.trace.spans for key in (*each.metadata, *each.provenance) if "observation" in key}


def test_a_step_whose_id_in_langfuse_was_redacted_has_no_score_there():
    metric = QA.criteria[0].metric
    step = span_id("+49 30 1234567")
    details = details_of_steps(2, {step: 0.2, "b" * 16: 0.3}, {step: "[phone]"})
    reached = verdict(QA, **{metric.id: Scored(value=0.25, details=details)})
    found = [body["observationId"] for body in scores_of(reached, QA) if "observationId" in body]
    assert found == ["b" * 16]


@pytest.mark.parametrize(
    ("which", "steps"), [("summary", {}), ("failing", {"b": 0.2, "c": 1.0}), ("all", {"b": 0.2, "c": 1.0})]
)
def test_a_step_that_fails_has_a_score_on_its_observation_under_a_name_of_its_own(which, steps):
    metric = QA.criteria[0].metric
    stepped = Scored(value=0.95, details={"spans": 2, "matching": 2, "lowest": {"b": 0.2, "c": 1.0}})
    reached = verdict(QA, **{name: Scored(value=1.0) for name in METRICS} | BLOCKING | {metric.id: stepped})
    found = [body for body in scores_of(reached, QA, which) if "observationId" in body]
    assert {body["observationId"]: body["value"] for body in found} == steps
    name = f"{score_name('qa', metric)}_step"
    for body in found:
        assert (body["name"], body["dataType"], body["traceId"]) == (name, "NUMERIC", TRACE)
        assert body["id"] == score_id(TRACE, name, observation_id=body["observationId"])
    if which == "summary":
        return
    first = next(body for body in found if body["observationId"] == "b")
    assert first["metadata"]["rating"] == "fail"
    assert first["comment"].endswith("0.2, fail; one of 2 steps")
    in_a_session = replace(reached, trace_id=None, session_id="s")
    assert not any("observationId" in body for body in scores_of(in_a_session, QA, which))


def test_a_first_verdict_has_no_nulls_in_its_metadata():
    rubric = RUBRICS["qa"]
    first = replace(verdict(rubric, **{c.metric.id: Scored(value=1.0) for c in rubric.criteria}), revision=1)
    assert all(None not in b["metadata"].values() for b in scores_of(first, rubric))
    assert any(None in b["metadata"].values() for b in scores_of(replace(first, revision=2), rubric))


def test_what_could_not_be_told_has_no_score_and_the_state_says_so():
    rubric = RUBRICS["qa"]
    untold = verdict(rubric, **{c.metric.id: Unavailable("no reference") for c in rubric.criteria})
    (body,) = scores_of(untold, rubric)
    assert (body["name"], body["value"]) == ("qa_state", "not counted")
    assert body["comment"].startswith("incomplete: ")
    assert "no reference" in body["comment"]


QA = RUBRICS["qa"]
BLOCKING = {"compliance_false_pass_rate": Scored(value=0.0)}
METRICS = [c.metric.id for c in QA.criteria]
GOOD = {name: Scored(value=1.0) for name in METRICS} | BLOCKING
WEAK = GOOD | {"score_gap_accuracy": Scored(value=0.79)}
FAILING = GOOD | {"question_score_accuracy": Scored(value=0.2, reason="2 of 10")}
PARTIAL = GOOD | {"evidence_backed_reasoning": Unavailable("no judge")}
SHORT = {"pass", "score"}
EVERY = {*SHORT, "state", *METRICS}


@pytest.mark.parametrize(
    ("results", "which", "names"),
    [
        (results, which, names)
        for results in (GOOD, WEAK, FAILING)
        for which, names in (("summary", SHORT), ("failing", EVERY), ("all", EVERY))
    ],
)  # fmt: skip
def test_a_setting_selects_the_scores_of_a_verdict(results, which, names):
    reached = verdict(QA, **results)
    found = [b["name"].removeprefix("qa_") for b in scores_of(reached, QA, which)]
    assert sorted(found) == sorted({score_name("qa", m).removeprefix("qa_") if (m := _of(n)) else n for n in names})
    assert {b["id"] for b in scores_of(reached, QA, which)} <= {b["id"] for b in scores_of(reached, QA)}
    held = next(b for b in scores_of(reached, QA, which) if b["name"] == "qa_pass")["metadata"]
    assert metric_of(held, "question_score_accuracy")[0] == results["question_score_accuracy"].value


@pytest.mark.parametrize("value", [str(10**400), "NaN", "1e999", '"1"', "[" * 100_000], ids=lambda value: value[:5])
def test_a_metric_that_somebody_made_no_number_has_no_value(value):
    assert metric_of({"metrics": f'{{"a": [{value}, "good"]}}'}, "a") is None


def _outcomes(rubric):
    """A verdict of each outcome: everything at its best, at its worst, and half of it unknown."""
    metrics = [c.metric for c in all_criteria(rubric)]
    ends = {m.id: [10_000.0 if b is None or math.isinf(b) else b for b in m.bounds] for m in metrics}
    rising = {m.id: m.bands is None or m.bands.higher_is_better for m in metrics}
    best, worst = ({name: Scored(value=ends[name][rising[name] is top]) for name in ends} for top in (True, False))
    half = {name: best[name] if place % 2 else Unavailable("no judge") for place, name in enumerate(ends)}
    return [best, worst, half]


@pytest.mark.parametrize("which", ["summary", "all"])
@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=RUBRICS)
def test_a_score_is_written_of_every_verdict_that_has_a_value_for_it_or_of_none(rubric, which):
    names = names_of(rubric, which)
    assert which == "all" or len(names) <= MOST_IN_SUMMARY
    for results in _outcomes(rubric):
        reached = verdict(rubric, **results)
        known = {b["name"] for b in scores_of(reached, rubric, "all")}
        assert {b["name"] for b in scores_of(reached, rubric, which)} == known & names


def test_every_score_that_seed_003_names_is_in_the_summary():
    assert names_of(RUBRICS["workflow"], "summary") >= {"workflow_pass", "workflow_agents", "workflow_tools"}
    quality = {"quality_answer_quality", "quality_factual_correctness", "quality_completeness"}
    assert names_of(RUBRICS["quality"], "summary") == quality | {"quality_pass"}


def _of(name):
    return next((c.metric for c in QA.criteria if c.metric.id == name), None)


def test_a_verdict_says_whether_it_counts():
    partial = replace(QA, min_coverage=0.5)
    (state,) = [b for b in scores_of(verdict(partial, **PARTIAL), partial) if b["name"] == "qa_state"]
    assert (state["value"], state["comment"]) == ("counted", "partial: evidence_backed_reasoning unavailable: no judge")


@pytest.mark.parametrize(
    ("results", "passes", "composite"),
    [
        (GOOD, "1.00 ≥ 0.87; all good", "question_score_accuracy 1, "),
        (WEAK, "0.96 ≥ 0.87; score_gap_accuracy 0.79 fail", "question_score_accuracy 1, score_gap_accuracy 0.79"),
        (FAILING, "question_score_accuracy: 2 of 10", "question_score_accuracy 0.2, "),
    ],
)
def test_comments_give_the_reason_of_a_pass_too_and_no_two_are_the_same(results, passes, composite):
    found = {b["name"]: b["comment"] for b in scores_of(verdict(QA, **results), QA, "summary")}
    assert found["qa_pass"] == passes
    assert found["qa_score"].startswith(composite)
    assert found["qa_pass"] != found["qa_score"]
    assert None not in found.values()


def test_a_number_is_written_long_enough_to_differ_from_the_pass_mark():
    near = replace(verdict(QA, **GOOD), composite=0.8749)
    assert pass_comment(near, QA).startswith("0.8749 ≥ 0.87; ")


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=RUBRICS.keys())
def test_a_description_says_which_way_is_good(rubric):
    words = ("is better", "is good", "not rated", "whether the verdict counts")
    for each in declared(rubric):
        assert any(word in each.description for word in words), each


def test_metrics_with_two_values_are_truth_values():
    kinds = {each.name: each.data_type for rubric in RUBRICS.values() for each in declared(rubric)}
    for name in ("qa_response_structure_compliance", "run_health_completed", "text_dominant_emotion_correctness"):
        assert kinds[name] == "BOOLEAN", name
    assert kinds["run_health_tool_success"] == "NUMERIC"


def test_a_share_of_a_truth_value_is_a_number():
    rubric = next(r for r in RUBRICS.values() if any(c.metric.unit == "pass or fail" for c in r.criteria))
    metric = next(c.metric for c in rubric.criteria if c.metric.unit == "pass or fail")
    bodies = {b["name"]: b for b in scores_of(verdict(rubric, **{metric.id: Scored(value=0.5)}), rubric)}
    assert bodies[score_name(rubric.id, metric)]["dataType"] == "NUMERIC"


def test_a_conversation_that_was_judged_as_one_is_scored_as_a_session():
    rubric = RUBRICS["qa"]
    bodies = list(scores_of(replace(verdict(rubric), trace_id=None, session_id="s-1"), rubric))
    assert bodies
    assert all(body["sessionId"] == "s-1" and "traceId" not in body for body in bodies)


def test_without_anything_to_put_it_to_there_is_no_score():
    rubric = RUBRICS["qa"]
    assert list(scores_of(replace(verdict(rubric), trace_id=None, session_id=None), rubric)) == []


texts = st.text(min_size=1, max_size=40)


@given(a=st.tuples(texts, texts), b=st.tuples(texts, texts))
def test_no_two_scores_share_an_id(a, b):
    assert (score_id(*a) == score_id(*b)) is (a == b) or "\x00" in "".join(a + b)


@given(name=st.text(max_size=60))
def test_an_environment_is_one_that_langfuse_keeps_as_it_is(name):
    stated = environment(name)
    assert stated is None or (stated == stated.lower() and len(stated) <= 40 and not stated.startswith("langfuse"))


@given(at_ns=st.integers(0, 4_000_000_000 * 10**9))
def test_times_are_written_to_the_millisecond_in_utc(at_ns):
    read = datetime.fromisoformat(instant(at_ns))
    assert abs(read.timestamp() - at_ns // 10**6 / 1000) < 1e-4


def test_every_score_of_a_trace_links_to_its_explanation_where_the_pages_have_an_address():
    reached = verdict(QA, **GOOD)
    plain = list(scores_of(reached, QA))
    linked = list(scores_of(reached, QA, link_base="https://monitor.example/"))
    page = f"https://monitor.example/traces/{TRACE}"
    assert [body["comment"].splitlines()[-1] for body in linked] == [page] * len(plain)
    assert {body["metadata"]["explanation"] for body in linked} == {page}
    assert all("explanation" not in body["metadata"] for body in plain)
    in_a_session = replace(reached, trace_id=None, session_id="s")
    bodies = scores_of(in_a_session, QA, link_base="https://monitor.example")
    assert all("explanation" not in body["metadata"] for body in bodies)


def test_truth_values_of_workflow_are_truth_values_in_langfuse():
    kinds = {each.name: each.data_type for each in declared(RUBRICS["workflow"])}
    assert (kinds["workflow_agents"], kinds["workflow_tools"], kinds["workflow_pass"]) == ("BOOLEAN",) * 3
