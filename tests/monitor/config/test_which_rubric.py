"""Which rubric: what is shown to people who choose follows from the declarations."""

from __future__ import annotations

import pytest

from sidejudge.monitor.config.rubrics import PURPOSES, cards, choice, citation, ready_choices, run_score_json
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.runs.final import RUN_SCORES


def test_every_rubric_that_ships_has_a_purpose() -> None:
    unlike = PURPOSES.keys() ^ RUBRICS.keys()
    assert not unlike, f"PURPOSES (monitor/config/rubrics.py) has a line for each rubric: {sorted(unlike)}"


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("run_health", []), ("workflow", ["scenario"]), ("entity", ["reference"]), ("agent", ["judge"]),
        ("translation", ["reference", "judge", "embeddings"]),
    ],
)  # fmt: skip
def test_what_a_rubric_needs_is_read_from_its_metrics(name: str, needs: list[str]) -> None:
    assert choice(RUBRICS[name]).needs == needs


def test_what_words_do_not_notice_is_stated_where_words_may_decide() -> None:
    stated = {name for name, rubric in RUBRICS.items() if choice(rubric).without_judge}
    assert stated == {"qa", "text", "translation", "benchmarks"}
    for missed in ("invented sentences", "swapped roles", "denials"):
        assert missed in choice(RUBRICS["text"]).without_judge


def test_a_ready_rubric_that_asks_needs_a_judge() -> None:
    needs = {each.id: each.needs for each in ready_choices()}
    assert needs["pii"] == []
    assert needs["faithfulness"] == ["context", "judge"]


def test_no_chapter_of_an_internal_paper_is_shown() -> None:
    shown = [citation(rubric.source) for rubric in RUBRICS.values()]
    shown += [str(card.to_json()["source"]) for card in cards()]
    shown += [str(run_score_json(score)["source"]) for score in RUN_SCORES]
    assert [each for each in shown if "seed" in each or "§" in each or not each] == []
