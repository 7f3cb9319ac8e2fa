"""A client that nobody knows is read by shape: most of what its program did, and next to nothing wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.conformance.left_out import Renaming, judged
from tests.conformance.test_dialects import RECORDED


def test_with_every_dialect_left_out_and_every_prefix_renamed_most_facts_are_right_and_few_wrong(shared: Path) -> None:
    grades = Counter(
        grade
        for client, scenario in RECORDED
        for _, grade, _, _ in judged(shared / "corpus" / "otlp" / client / scenario)
    )
    total = grades.total()
    assert total > 3000
    assert grades["right"] / total >= 0.95, grades
    assert grades["wrong"] / total <= 0.005, grades


def test_a_renamed_prefix_is_another_word_each_time_and_plain_words_stay() -> None:
    renaming = Renaming("x")
    names = list(renaming._all(dict.fromkeys(("gen_ai.prompt", "gen_ai.completion", "input.value", "error.type"))))
    prefix = names[0].partition(".")[0]
    assert prefix != "gen_ai"
    assert names == [f"{prefix}.prompt", f"{prefix}.completion", "input.value", "error.type"]
