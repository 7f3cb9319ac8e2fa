from __future__ import annotations

import pytest

from sidejudge.monitor.offline.test.test_file import SelectionError, selected
from sidejudge.scoring.runs.test_set import TestSet

SET = TestSet(
    name="s",
    tests=(
        {"id": "a", "tags": ["geo", "easy"], "complexity": "low", "priority": 1, "metadata": {"lang": "de"}},
        {
            "id": "b",
            "tags": ["geo"],
            "complexity": "high",
            "priority": "1",
            "metadata": {"lang": "en", "x": {"y": True}},
        },
        {"id": "0003", "complexity": "high", "metadata.lang": "hi"},
    ),
)


@pytest.mark.parametrize(
    ("tags", "where", "ids"),
    [
        ([], [], ["a", "b", "0003"]),
        (["geo"], [], ["a", "b"]),
        (["geo", "easy"], [], ["a"]),
        ([], [("complexity", "high")], ["b", "0003"]),
        (["geo"], [("complexity", "high")], ["b"]),
        ([], [("priority", "1")], ["a", "b"]),
        ([], [("priority", "null")], ["0003"]),
        ([], [("id", "0003")], ["0003"]),
        ([], [("metadata.lang", "de")], ["a"]),
        ([], [("metadata.lang", "hi")], ["0003"]),
        ([], [("metadata.x.y", "true")], ["b"]),
        ([], [("complexity", "high"), ("priority", "2")], []),
    ],
)
def test_tags_and_fields_narrow_the_set_and_keep_its_order(tags, where, ids) -> None:
    assert [test["id"] for test in selected(SET, tags, where).tests] == ids


def test_a_tag_or_a_field_that_no_test_has_is_a_mistake_and_not_an_empty_run() -> None:
    with pytest.raises(SelectionError, match=r"no test carries 'gee'; did you mean geo\?"):
        selected(SET, ["gee"], [])
    with pytest.raises(SelectionError, match=r"no test has 'complexty'; did you mean complexity\?"):
        selected(SET, [], [("complexty", "x")])
    with pytest.raises(SelectionError, match=r"no test has 'metadata\.nowhere'"):
        selected(SET, [], [("metadata.nowhere", "x")])
