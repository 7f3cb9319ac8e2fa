"""The prompts as a reader of the repository sees them are the prompts that a judge sees."""

from __future__ import annotations

import pytest

from sidejudge.scoring.rubrics import RUBRICS
from tests.scoring.judging.rendered import FOLDER, rendered


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=RUBRICS)
def test_the_committed_prompts_are_what_is_sent(rubric):
    path = FOLDER / f"{rubric.id}.txt"
    committed = path.read_text(encoding="utf-8") if path.exists() else None
    assert rendered(rubric) == committed, "write them anew: python -m tests.scoring.judging.rendered"


def test_no_file_is_left_of_a_rubric_that_is_gone():
    assert {path.stem for path in FOLDER.glob("*.txt")} <= set(RUBRICS)
