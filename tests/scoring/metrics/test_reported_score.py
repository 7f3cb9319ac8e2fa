"""Scores that others report are values only where they are: in bounds, finite, and understood."""

from __future__ import annotations

import math

import pytest

from sidejudge.integrations.dialects.reported import reported
from sidejudge.integrations.raw import EVALUATION, RawEvent
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.reported_score import ReportedMeasure
from sidejudge.scoring.result.result import Method, Scored, Unavailable
from sidejudge.scoring.trace.reported import MOST_REPORTED, WRONG_VALUES, ReportedScore, number


def event(name: object = "helpfulness", at_ns: int = 1, **more: object) -> RawEvent:
    keys = {"value": "score.value", "label": "score.label", "explanation": "explanation"}
    given = {
        f"gen_ai.evaluation.{keys[key]}" if key in keys else key.replace("__", "."): each for key, each in more.items()
    }
    return RawEvent(name=EVALUATION, time_ns=at_ns, attributes={"gen_ai.evaluation.name": name, **given})


def measured(*events: RawEvent, **how):
    case = Case(case_id="1", model_output="ok", reported=tuple(reported(events, "span")))
    return ReportedMeasure(name="helpfulness", **how)(case)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"value": 0.8}, 0.8), ({"value": 1}, 1.0), ({"value": True}, 1.0), ({"value": False}, 0.0),
        ({"value": "0.25"}, 0.25), ({"label": "pass"}, 1.0), ({"label": "Negative"}, 0.0),
    ],
)  # fmt: skip
def test_a_value_is_read(given, value):
    found = measured(event(**given))
    assert isinstance(found, Scored)
    assert found.value == value
    assert found.method is Method.REPORTED


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"value": math.nan}, "not a finite number"), ({"value": "inf"}, "not a finite number"),
        ({"value": -math.inf}, "not a finite number"), ({"value": 10**400}, "not a finite number"),
        ({"value": "great"}, "a text"), ({"value": [0.9]}, "no number"),
        ({"value": 7}, "reported 7, outside of 0 to 1"), ({"value": -0.1}, "outside of 0 to 1"),
        ({"label": "0.9"}, "the label 0.9 alone"), ({"label": "splendid"}, "the label splendid alone"),
        ({}, "neither a value nor a label"), ({"value": 0.9, "error__type": "timeout"}, "an error of the evaluator"),
    ],
)  # fmt: skip
def test_what_is_no_value_is_unavailable_with_the_reason(given, why):
    found = measured(event(**given))
    assert isinstance(found, Unavailable)
    assert why in found.reason


def test_what_a_case_calls_no_value_is_content_unless_the_words_are_ours():
    def why(invalid):
        score = ReportedScore(name="helpfulness", by="ragas", via="case", invalid=invalid)
        return ReportedMeasure(name="helpfulness")(Case(case_id="1", model_output="ok", reported=(score,))).reason

    assert why("card 4111 1111").shown() == "ragas (case) reported no value: …"
    for known in WRONG_VALUES:
        assert why(known).shown() == f"ragas (case) reported no value: {known}"
    found = [event(value=each).attributes["gen_ai.evaluation.score.value"] for each in (math.nan, "great", [0.9])]
    assert {number(each)[1] for each in found} < set(WRONG_VALUES)


def test_what_nobody_reported_is_unavailable():
    assert measured() == Unavailable("nobody reported helpfulness")
    assert isinstance(measured(event("Helpfulness", value=1.0)), Unavailable), "names are compared as they are"


def test_labels_that_pass_are_the_upper_bound():
    labels = {"passes": ("yes, mostly",), "bounds": (1.0, 5.0)}
    assert measured(event(label="yes, mostly"), **labels).value == 5.0
    assert measured(event(label="pass", value=4), **labels).value == 1.0
    assert isinstance(measured(event(value=4), **labels), Unavailable)
    assert measured(event(value=4), bounds=(1.0, 5.0)).value == 4.0


def test_the_latest_of_each_evaluator_counts_and_whose_they_are_stands_beside():
    events = [
        event(value=0.0, at_ns=3, evaluator__name="a", explanation="card 4111"),
        event(value=1.0, at_ns=2, evaluator__name="a"),
        event(value=0.5, at_ns=1, evaluator__name="b"),
        event(value=math.nan, at_ns=9, evaluator__name="c"),
    ]
    for order in (events, events[::-1]):
        found = measured(*order)
        assert found.value == 0.25
        assert found.details == {"by": ["b (telemetry)", "a (telemetry)"], "reported": 2}
    assert str(found.reason) == "reported by b (telemetry), a (telemetry): card 4111"
    assert "4111" not in found.reason.shown(), "an explanation is content"
    assert measured(*events, by=("b *",)).value == 0.5
    assert isinstance(measured(*events, by=("d *",)), Unavailable)


def test_our_own_events_and_feedback_are_not_taken_for_others():
    assert isinstance(measured(event(value=1.0, sidejudge__rubric="run_health")), Unavailable)
    assert not list(reported([event("user feedback", value=1.0)], "span"))


def test_what_strangers_write_is_bounded():
    many = [event(f"n{n}", value=1.0) for n in range(10 * MOST_REPORTED)]
    assert len(list(reported(many, "span"))) == MOST_REPORTED
    (found,) = reported([event("x" * 10**6, value=1.0, explanation="y" * 10**6, evaluator__name="z\n" * 10**5)], "span")
    assert len(found.name) <= 101
    assert len(found.explanation) <= 1001
    assert "\n" not in found.by
    for name in (None, 7, "", "  ", ["a"]):
        assert not list(reported([event(name, value=1.0)], "span"))
