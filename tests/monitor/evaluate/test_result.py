"""Endings: one reason a trace, and nothing said twice that has not changed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.monitor.evaluate.result import reason_of, records, revise
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.result import Failed, Judgement, Method, NotApplicable, Scored, Unavailable
from sidejudge.scoring.trace.span import SpanKind
from sidejudge.scoring.verdict.verdict import Score, State, Verdict
from tests.spans import span, trace

CASE = Case(case_id="c", model_output=None)
CUT_SHORT = replace(CASE, complete=False)
SILENT = replace(CASE, content_captured=False, agents_called=("a",))
REQUEST = trace(span("r", None, SpanKind.OTHER, name="GET /health"))
STEPS = trace(span("r", None, SpanKind.OTHER, name="POST /ask"), span("s", "r", SpanKind.CHAIN, name="answer"))


def verdict(rubric="qa", *results, **more) -> Verdict:
    stated = {
        "case_id": "c", "rubric": rubric, "rubric_version": f"{rubric}@1", "composite": 0.5, "composite_norm": 0.5,
        "coverage": 1.0, "state": State.VALID, "passed": True, "rating": "good", "blockers": ("a", "b"),
        "pass_mark": 0.4, "sampling_probability": 0.1, "created_at": "2026-01-01T00:00:00.000Z",
        "scores": tuple(
            Score(metric=f"m{n}", weight=1.0, result=result, rating=None) for n, result in enumerate(results)
        ),
    }  # fmt: skip
    return Verdict(**{**stated, **more})


def incomplete(*results, **more) -> Verdict:
    return verdict("qa", *results, state=State.INCOMPLETE, passed=None, composite=None, **more)


def written(*verdicts: Verdict) -> list[dict]:
    """Verdicts as the store gives them back."""
    return [json.loads(json.dumps(each.to_json(), separators=(",", ":"), default=str)) for each in verdicts]


@pytest.mark.parametrize(
    ("case", "verdicts", "expected"),
    [
        *[(CASE, [verdict(state=state)], EndReason.SCORED) for state in State if state is not State.INCOMPLETE],
        (CASE, [incomplete(Failed("f")), verdict("entity")], EndReason.SCORED),
        (CUT_SHORT, [verdict()], EndReason.SCORED),
        (SILENT, [verdict()], EndReason.SCORED),
        (CASE, [incomplete(Unavailable("u"))], EndReason.UNAVAILABLE),
        (CASE, [incomplete(NotApplicable("n"), Scored(value=1))], EndReason.UNAVAILABLE),
        (CASE, [incomplete(Unavailable("u"), Failed("f"))], EndReason.JUDGE_FAILED),
        (CASE, [incomplete(Unavailable("u")), incomplete(Failed("f"))], EndReason.JUDGE_FAILED),
        (SILENT, [incomplete(Failed("f"))], EndReason.NO_CONTENT),
        (replace(SILENT, agents_called=None), [incomplete(Unavailable("u"))], EndReason.NOT_A_RUN),
        (replace(SILENT, agents_called=None, trace=STEPS), [incomplete(Unavailable("u"))], EndReason.NO_CONTENT),
        (replace(SILENT, agents_called=None, trace=REQUEST), [incomplete(Unavailable("u"))], EndReason.NOT_A_RUN),
        (CUT_SHORT, [incomplete(Failed("f"))], EndReason.INCOMPLETE),
        (replace(CUT_SHORT, content_captured=False), [incomplete(Unavailable("u"))], EndReason.INCOMPLETE),
    ],
)
def test_a_trace_has_one_reason_and_the_first_cause_goes_before_its_consequences(case, verdicts, expected):
    assert reason_of(case, verdicts) is expected


def test_a_verdict_on_what_was_not_judged_before_is_new_and_keeps_its_number():
    stated = verdict()
    assert revise([stated], []) == ((stated,), (stated,))
    assert revise([stated], written(verdict("entity"))) == ((stated,), (stated,))


def test_the_same_verdict_said_again_keeps_its_revision_and_its_date_and_is_not_changed():
    first = verdict(revision=3)
    again = verdict(created_at="2026-01-02T00:00:00.000Z")
    assert revise([again], written(first)) == ((first,), ())


@pytest.mark.parametrize(
    "change",
    [
        {"composite": 0.5000000001},
        {"passed": False},
        {"state": State.PARTIAL},
        {"rubric_version": "qa@2"},
        {"reason": "other"},
        {"blockers": ("b", "a")},
        {"sampling_probability": 0.2},
        {"service": "shop"},
        {"cost_usd": 0.5},
        {"extra": {"agents": {"missing": []}}},
    ],
)
def test_a_verdict_that_differs_in_anything_but_its_date_is_the_next_revision(change):
    now = verdict(created_at="2026-01-02T00:00:00.000Z", **change)
    current, changed = revise([now], written(verdict(revision=2)))
    assert current == changed == (replace(now, revision=3),)


def test_an_answer_out_of_the_cache_is_the_answer_that_was_paid_for():
    paid = Judgement(model="m", prompt_version="p", cost_usd=0.5, call="c")
    cached = replace(paid, cost_usd=0.0, call="")
    other = replace(paid, model="n")
    before, again, differs = (
        verdict("qa", Scored(value=1.0, method=Method.JUDGE, judgements=(each,))) for each in (paid, cached, other)
    )
    assert revise([again], written(before))[1] == ()
    assert len(revise([differs], written(before))[1]) == 1


def test_what_was_paid_for_a_verdict_stays_with_it_when_it_is_reached_again_out_of_the_cache():
    paid = Judgement(model="m", prompt_version="p", cost_usd=0.5, call="c")
    cached = replace(paid, cost_usd=0.0, call="")
    before = written(verdict("qa", Scored(value=1.0, method=Method.JUDGE, judgements=(paid,))), verdict("entity"))
    again = verdict("qa", Scored(value=1.0, method=Method.JUDGE, judgements=(cached,)))
    current, changed = revise([again, verdict("entity", passed=False)], before)
    same, revised = records(current, changed, before)
    assert json.loads(json.dumps(same, default=str)) == before[0]
    assert revised == current[1].to_json()


def test_each_rubric_is_compared_with_its_own_past_whatever_the_order():
    before = written(verdict("entity", revision=2), verdict("qa"))
    now = [verdict("qa"), verdict("entity", passed=False), verdict("answer")]
    current, changed = revise(now, before)
    assert [(each.rubric, each.revision) for each in current] == [("qa", 1), ("entity", 3), ("answer", 1)]
    assert [each.rubric for each in changed] == ["entity", "answer"]


JSONLIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(), JSONLIKE, max_size=4),
    st.dictionaries(st.sampled_from(["agents", "tools", "x"]), JSONLIKE),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_what_comes_back_from_the_store_is_known_again_whatever_its_details_are_made_of(details, extra, value):
    judgement = Judgement(model="m", prompt_version="p", cost_usd=0.1 + 0.2, call="c", flags=("f",))
    scored = Scored(value=value, method=Method.LEXICAL, details=details, judgements=(judgement,))
    stated = verdict("qa", scored, Unavailable("u\ud800"), extra=extra)
    assert revise([stated], written(stated)) == ((stated,), ())


def test_two_halves_of_one_character_are_the_character_once_they_were_written():
    stated = verdict(reason="\ud83d" + "\ude00")
    assert revise([stated], written(stated))[1] == ()
