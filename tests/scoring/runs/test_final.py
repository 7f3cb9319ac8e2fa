"""The final score: the seed's two tables, what is missing, and the workload's own weights."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.runs.final import OPTION_A, OPTION_B, Option, final_score, with_split

NAMES = {"QA": "qa", "Entity": "entity", "Text": "text", "Translation": "translation", "Benchmark": "benchmarks"}
ratios = st.floats(0, 1)
scores = st.fixed_dictionaries({part: ratios | st.none() for part in OPTION_A.weights})


def test_the_weights_are_those_of_the_seeds_tables(shared: Path) -> None:
    seed = next((shared / "seeds").glob("000_*")).read_text(encoding="utf-8").partition("# Final Scoring")[2]
    with_benchmarks, _, without = seed.partition("## Option B")
    for option, text in ((OPTION_A, with_benchmarks), (OPTION_B, without)):
        rows = re.findall(r"^\| (\w+) Score \| (\d+)% \|$", text, re.MULTILINE)
        assert {NAMES[name]: int(weight) / 100 for name, weight in rows} == dict(option.weights)
        factors = re.findall(r"\((\w+) Score\s+× (0\.\d\d)\)|(\w+) Score\s+× (0\.\d\d)\)", text)
        found = {NAMES[a or c]: float(b or d) for a, b, c, d in factors}
        assert found == dict(option.weights)


def test_the_seeds_worked_examples_make_a_final_score_by_hand() -> None:
    # the four tasks' worked examples of the seed: 0.882, 0.9142, 0.842, 0.897
    tasks = {"qa": 0.882, "entity": 0.9142, "text": 0.842, "translation": 0.897}
    assert final_score(OPTION_B, tasks).value == pytest.approx(0.3087 + 0.27426 + 0.1684 + 0.13455, abs=1e-12)
    found = final_score(OPTION_A, {**tasks, "benchmarks": 10 / 11})
    assert found.value == pytest.approx(0.2205 + 0.18284 + 0.1263 + 0.0897 + 3 / 11, abs=1e-11)
    assert (found.coverage, found.reason) == (1.0, "")


def test_option_a_bears_that_the_smallest_part_is_missing_and_says_so() -> None:
    found = final_score(OPTION_A, {"qa": 0.8, "entity": 0.8, "text": 0.8, "translation": None, "benchmarks": 0.6})
    assert found.value == pytest.approx((0.6 * 0.8 + 0.3 * 0.6) / 0.9)
    assert found.coverage == 0.9
    assert "translation" in found.reason
    assert "renormalised" in found.reason


def test_the_workloads_split_divides_what_the_tasks_weigh() -> None:
    split = {"qa": 0.5, "entity": 0.5}
    a, b = with_split(OPTION_A, split), with_split(OPTION_B, split)
    assert (a.weights["qa"], a.weights["text"], a.weights["benchmarks"]) == (0.35, 0, 0.3)
    assert (b.weights["qa"], b.weights["translation"]) == (0.5, 0)
    assert final_score(b, {"qa": 0.9, "entity": 0.7}).value == 0.8


@pytest.mark.parametrize(
    "split", [{"qa": 0.5}, {"qa": 1.5, "entity": -0.5}, {"benchmarks": 1.0}, {"qa": float("nan")}, {}]
)
def test_a_split_that_is_none_is_refused(split: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"share|task"):
        with_split(OPTION_B, split)


def test_weights_that_do_not_sum_to_one_are_refused() -> None:
    with pytest.raises(ValueError, match="sum to"):
        Option(id="X", title="x", weights={"qa": 0.5})


@given(scores)
def test_it_lies_between_the_lowest_and_the_highest_part(parts) -> None:
    for option in (OPTION_A, OPTION_B):
        found = final_score(option, parts)
        known = [parts[part] for part in option.weights if parts[part] is not None]
        if found.value is not None:
            assert min(known) - 1e-9 <= found.value <= max(known) + 1e-9
            assert found.coverage >= 0.9
        else:
            assert found.coverage < 0.9
            assert found.reason


@given(scores, st.sampled_from(list(OPTION_A.weights)), ratios)
def test_a_better_part_never_lowers_it(parts, part, better) -> None:
    if parts[part] is None:
        return
    raised = {**parts, part: max(parts[part], better)}
    for option in (OPTION_A, OPTION_B):
        before, after = final_score(option, parts).value, final_score(option, raised).value
        assert (before is None) == (after is None)
        if before is not None and after is not None:
            assert after >= before


@given(scores, st.permutations(list(OPTION_A.weights)))
def test_the_order_of_the_parts_does_not_matter(parts, order) -> None:
    assert final_score(OPTION_A, parts) == final_score(OPTION_A, {part: parts[part] for part in order})
