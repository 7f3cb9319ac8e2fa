"""The scorecard's cells: means, blockers, gaps and the final section."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.declared.metric import Sources
from sidejudge.scoring.declared.rubric import declared_rubric
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.runs.final import TASKS
from sidejudge.scoring.runs.tally import ModelTally
from sidejudge.scoring.runs.verdict_line import Revisions, VerdictLineError, read_verdict
from sidejudge.scoring.scorecards.scorecard import Cell, Scorecard, empty_tally, scorecard
from sidejudge.scoring.scorecards.template import RowKind
from tests.verdict_lines import invalid_line, metric_line, verdict_line


def tally(*lines: dict) -> ModelTally:
    found = empty_tally()
    for line in lines:
        found.add(read_verdict(line))
    return found


def cell(card: Scorecard, title: str, model: str = "A", rubric: str | None = None) -> Cell:
    at = card.models.index(model)
    return next(cells[at] for row, cells in card.rows if row.title == title and rubric in (None, row.rubric) and cells)


def card(*lines: dict, **extra: object) -> Scorecard:
    return scorecard({"A": tally(*lines)}, **extra)


def all_tasks(case_id: str, composite: float, **changes: object) -> list[dict]:
    return [verdict_line(case_id, task, composite, **changes) for task in TASKS]


def test_a_score_is_the_mean_over_the_cases_with_the_invalid_at_zero_and_without_the_incomplete() -> None:
    found = cell(
        card(
            verdict_line("1", composite=0.9),
            verdict_line("2", composite=0.6),
            invalid_line("3"),
            verdict_line("4", composite=None, state="incomplete", passed=None),
        ),
        "QA Score",
    )
    assert found.value == 0.5
    assert (found.n, found.blocked, found.rating) == (3, 1, "blocker")
    assert found.notes == ("1 of 4 cases invalid, counted as 0", "1 of 4 cases incomplete, left out")


def test_a_case_that_a_blocker_disqualified_without_a_score_is_counted_and_has_no_part_in_the_mean() -> None:
    lines = (verdict_line("1", composite=0.9), verdict_line("2", composite=None, state="disqualified", passed=False))
    found = cell(card(*lines), "QA Score")
    assert (found.value, found.n, found.blocked, found.rating) == (0.9, 1, 1, "blocker")
    assert found.notes == ("1 of 2 cases disqualified by a blocker", "1 of them without a score, left out of the mean")


def test_a_rubric_with_another_scale_is_rated_on_it_and_shown_from_0_to_1() -> None:
    own = declared_rubric("own", {"extends": "agent"}, Sources(rubrics=RUBRICS))
    lines = [verdict_line("1", "own", 80.0, composite_norm=0.8, pass_mark=75.0)]
    found = empty_tally({"own": own})
    found.add(read_verdict(lines[0]))
    made = scorecard({"A": found}, own={"own": own})
    score, cells = next((row, cells) for row, cells in made.rows if row.kind is RowKind.SCORE)
    assert (score.threshold, cells[0].value, cells[0].rating) == (">= 0.75", 0.8, "acceptable")


def test_a_composite_of_agent_without_its_normal_form_is_divided_by_its_scale() -> None:
    line = verdict_line("1", "agent", 80.0, composite_norm=None)
    assert read_verdict(line).composite == 0.8
    with pytest.raises(VerdictLineError, match="outside"):
        read_verdict({**line, "composite": 101.0})


def test_only_incomplete_cases_make_no_score_and_not_a_zero() -> None:
    found = card(*[verdict_line("1", task, None, state="incomplete", passed=None) for task in TASKS])
    assert cell(found, "QA Score").value is None
    assert cell(found, "QA Score").notes == ("1 of 1 case incomplete, left out",)
    assert cell(found, "Final Score (without benchmarks)").value is None


def test_a_metric_is_the_mean_over_the_cases_that_have_it_and_says_why_the_others_have_not() -> None:
    name = "evidence_backed_reasoning"
    found = cell(
        card(
            verdict_line("1", scores=[metric_line(name, 1.0)]),
            verdict_line("2", scores=[metric_line(name, 0.8)]),
            verdict_line("3", scores=[metric_line(name, None, "unavailable", "no transcript")]),
            verdict_line("4", scores=[metric_line(name, None, "error", "timeout")]),
        ),
        "Evidence-Backed Reasoning",
    )
    assert (found.value, found.n, found.rating) == (0.9, 2, "good")
    assert found.notes == ("2 of 4 cases scored", "unavailable in 1 case (no transcript)", "failed in 1 case (timeout)")


def test_a_metric_that_no_case_has_is_unknown_with_the_reason() -> None:
    line = verdict_line(
        "1", "translation", scores=[metric_line("target_language_fluency", None, "unavailable", "no judge")]
    )
    found = cell(card(line), "Target Language Fluency Score")
    assert (found.value, found.rating, found.notes) == (None, None, ("unavailable in 1 case (no judge)",))


def test_a_rubric_without_verdicts_is_unknown_in_all_its_rows() -> None:
    found = card(verdict_line("1"))
    for row, cells in found.rows:
        if row.rubric == "text" and cells:
            assert cells[0] == Cell(notes=("no verdict of rubric text",))


def test_one_blocked_case_marks_a_mean_that_is_good_by_itself() -> None:
    name = "compliance_false_pass_rate"
    lines = [verdict_line(str(n), scores=[metric_line(name, 0.0)]) for n in range(99)]
    bad = verdict_line("99", state="disqualified", passed=False, blockers=[name], scores=[metric_line(name, 0.5)])
    found = card(*lines, bad)
    rate = cell(found, "Compliance False Pass Rate")
    assert (rate.value, rate.rating, rate.blocked) == (0.005, "blocker", 1)
    assert rate.notes == ("blocks 1 of 100 cases",)
    score = cell(found, "QA Score")
    assert (score.value, score.rating) == (0.9, "blocker")
    assert cell(found, "Any Blocker Triggered?").value is True


def test_without_a_blocked_case_the_answer_is_no_and_names_what_was_not_checked() -> None:
    found = cell(
        card(verdict_line("1", scores=[metric_line("compliance_false_pass_rate", 0.0)])), "Any Blocker Triggered?"
    )
    assert found.value is False
    assert "qa.response_structure_compliance" in found.notes[0]
    assert "qa.compliance_false_pass_rate" not in found.notes[0]
    assert "text.fabrication_free_rate" in found.notes[0]


def test_option_b_ranks_without_benchmarks_and_option_a_with_them() -> None:
    lines = all_tasks("1", 0.8)
    without = card(*lines, costs={"A": 2.0})
    assert cell(without, "Final Score (with benchmarks)").value is None
    assert cell(without, "Final Score (without benchmarks)").value == 0.8
    assert without.places["A"].efficiency == 0.8
    with_them = card(*lines, verdict_line("1", "benchmarks", 0.4), costs={"A": 2.0})
    assert cell(with_them, "Final Score (with benchmarks)").value == pytest.approx(0.68)
    assert cell(with_them, "Final Score (without benchmarks)").value == 0.8
    assert with_them.places["A"].efficiency == pytest.approx(0.68)
    assert "Option A" in cell(with_them, "Cost-Adjusted Rank").notes[0]


def test_models_by_different_options_are_warned_of() -> None:
    lines = all_tasks("1", 0.8)
    mixed = scorecard({"A": tally(*lines), "B": tally(*lines, verdict_line("1", "benchmarks", 0.9))})
    assert any("different formulas" in note for note in mixed.notes)


def test_a_benchmark_keeps_its_raw_mean_beside_the_share_that_passes() -> None:
    found = card(
        verdict_line("1", "benchmarks", scores=[metric_line("faithfulness", 1.0, raw=0.94)]),
        verdict_line("2", "benchmarks", scores=[metric_line("faithfulness", 0.0, raw=0.84)]),
    )
    assert (cell(found, "Faithfulness").value, cell(found, "Faithfulness").raw) == (0.5, pytest.approx(0.89))


def test_the_cost_is_that_of_the_calls_unless_it_is_told() -> None:
    lines = [*all_tasks("1", 0.8, cost_usd=0.001), *all_tasks("2", 0.8, cost_usd=0.003)]
    assert cell(card(*lines), "Cost per 1000 calls").value == 2.0
    assert cell(card(*lines, costs={"A": 9.0}), "Cost per 1000 calls").value == 9.0


def test_a_cost_that_few_verdicts_know_is_unknown() -> None:
    lines = [verdict_line(str(n), cost_usd=0.001 if n else None) for n in range(10)]
    assert cell(card(*lines), "Cost per 1000 calls").value == 1.0
    found = cell(card(*lines, verdict_line("10")), "Cost per 1000 calls")
    assert found.value is None
    assert "only 9 of 11" in found.notes[0]


def test_cases_that_were_drawn_unevenly_count_with_the_inverse_of_their_probability() -> None:
    found = card(
        verdict_line("1", composite=1.0, sampling_probability=0.25),
        verdict_line("2", composite=0.5, sampling_probability=1.0),
    )
    assert cell(found, "QA Score").value == 0.9
    assert any("inverse" in note for note in found.notes)


def test_a_score_is_rated_by_the_pass_mark_that_its_verdicts_were_held_to() -> None:
    assert cell(card(verdict_line("1", composite=0.85)), "QA Score").rating == "fail"
    assert cell(card(verdict_line("1", composite=0.85, pass_mark=0.8)), "QA Score").rating == "acceptable"
    assert cell(card(verdict_line("1"), verdict_line("2", pass_mark=0.8)), "QA Score").rating is None


def test_a_later_revision_stands_for_the_earlier_wherever_it_is() -> None:
    lines = [
        read_verdict(each)
        for each in (
            verdict_line("a", trace_id="t1", composite=0.1),
            verdict_line("b", trace_id="t1", composite=0.9, revision=2),
            verdict_line("c", trace_id="t1", rubric="text"),
            verdict_line("d", trace_id="t2"),
        )
    ]
    revisions = Revisions()
    for line in lines:
        revisions.add(line)
    assert [revisions.stands(line) for line in lines] == [False, True, True, True]


lines_of_many = st.lists(
    st.one_of(
        st.builds(
            lambda name, rubric, value, weight: verdict_line(
                name, rubric, value, sampling_probability=weight, cost_usd=value,
                scores=[metric_line("response_structure_compliance", 1.0)],
            ),
            st.text(min_size=1, max_size=3), st.sampled_from([*TASKS, "benchmarks", "workflow"]), st.floats(0, 1),
            st.sampled_from([1.0, 0.5, 0.01]),
        ),
        st.builds(invalid_line, st.text(min_size=1, max_size=3), st.sampled_from(TASKS)),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


@given(lines_of_many, st.randoms(use_true_random=False))
def test_the_order_of_lines_and_models_does_not_matter(lines, random) -> None:
    mixed = random.sample(lines, len(lines))
    one = scorecard({"A": tally(*lines), "B": tally(*lines[:1])}).to_json()
    other = scorecard({"B": tally(*lines[:1]), "A": tally(*mixed)}).to_json()
    assert {**one, "models": None} == {**other, "models": None}


@given(lines_of_many)
def test_every_number_is_within_its_bounds_and_every_gap_has_a_reason(lines) -> None:
    for row, cells in card(*lines).rows:
        for each in cells:
            if each.value is None:
                assert each.notes, row.title
            elif row.kind in ("metric", "score", "benchmark") or row.title.startswith("Final"):
                assert 0 <= each.value <= 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 1))
def test_a_better_case_never_lowers_a_score(values, better) -> None:
    lines = [verdict_line(str(n), composite=value) for n, value in enumerate(values)]
    raised = [verdict_line("0", composite=max(values[0], better)), *lines[1:]]
    assert cell(card(*raised), "QA Score").value >= cell(card(*lines), "QA Score").value


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_equal_weights_give_the_plain_mean(values) -> None:
    lines = [verdict_line(str(n), composite=value, sampling_probability=0.01) for n, value in enumerate(values)]
    assert cell(card(*lines), "QA Score").value == pytest.approx(math.fsum(values) / len(values), abs=1e-9)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"case_id": None}, "case_id"),
        ({"rubric": 7}, "rubric"),
        ({"state": "good"}, "state"),
        ({"state": ["valid"]}, "state"),
        ({"composite": None, "composite_norm": None}, "composite"),
        ({"composite": 1.5, "composite_norm": 1.5}, "composite"),
        ({"composite": True, "composite_norm": None}, "composite"),
        ({"composite": float("nan"), "composite_norm": None}, "composite"),
        ({"state": "invalid"}, "composite"),
        ({"scores": None}, "scores"),
        ({"scores": [7]}, "scores"),
        ({"scores": [metric_line("x", 1.0, "unavailable")]}, "scores.x.value"),
        ({"scores": [metric_line("x", None)]}, "scores.x.value"),
        ({"scores": [metric_line("x", 1e300)]}, "value"),
        ({"scores": [{"metric": "x", "value": None, "status": "lost"}]}, "scores.x.status"),
        ({"sampling_probability": 0}, "sampling_probability"),
        ({"sampling_probability": 2}, "sampling_probability"),
        ({"revision": 0}, "revision"),
        ({"revision": True}, "revision"),
        ({"cost_usd": -1}, "cost_usd"),
        ({"cost_usd": "1"}, "cost_usd"),
        ({"passed": "yes"}, "passed"),
    ],
)
def test_a_line_that_is_no_verdict_names_its_field(changes, field) -> None:
    with pytest.raises(VerdictLineError, match=field):
        read_verdict({**verdict_line("1"), **changes})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(verdict_line("1"))), json_values)
def test_any_other_value_of_a_field_is_read_or_refused_and_never_more(field, value) -> None:
    try:
        line = read_verdict({**verdict_line("1"), field: value})
    except VerdictLineError:
        return
    found = empty_tally()
    found.add(line)
    scorecard({"A": found})
