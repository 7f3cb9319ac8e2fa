from __future__ import annotations

import pytest

from sidejudge.monitor.offline.test.judge import AnswerError, read_answer


def test_text_and_an_object_with_output_are_answers() -> None:
    assert read_answer("x") == {"model_output": "x"}
    assert read_answer("") == {"model_output": ""}
    reported = {
        "output": {"any": ["json"]},
        "tools_used": ["a"],
        "agents_called": [],
        "input_tokens": 3,
        "cost_usd": None,
    }
    assert read_answer({**reported, "unknown": object}) == {
        "model_output": {"any": ["json"]}, "tools_used": ["a"], "agents_called": [], "input_tokens": 3,
    }  # fmt: skip


def test_tuples_are_lists_and_an_answer_may_be_a_hundred_levels_deep() -> None:
    assert read_answer({"output": ({"a": (1, 2)},), "tools_used": ("x",)}) == {
        "model_output": [{"a": [1, 2]}], "tools_used": ["x"],
    }  # fmt: skip
    assert read_answer({"output": nested(100)}) == {"model_output": nested(100)}


def nested(levels: int) -> object:
    found: object = 1
    for _ in range(levels):
        found = [found]
    return found


def looped() -> list[object]:
    loop: list[object] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("stated", "why"),
    [
        (None, "the answer is null"),
        (3, "the answer is a number"),
        (["x"], "the answer is a list"),
        ({"answer": "x"}, "the answer has no output"),
        ({"output": None}, "output is null"),
        ({"output": "x", "tools_used": "search"}, "tools_used is text; write a list"),
        ({"output": "x", "tools_used": [{"name": "a", "argument": 1}]}, "tools_used[0].argument unknown field"),
        ({"output": "x", "input_tokens": -1}, "input_tokens is not a whole number of at least 0"),
        ({"output": object()}, "output holds a object, which JSON does not have"),
        ({"output": {"a": float("nan")}}, "output holds the number nan"),
        ({"output": {1: "a"}}, "output holds a dict"),
        ({"output": nested(101)}, "output is nested more than 100 levels deep"),
        ({"output": looped()}, "output is nested more than 100 levels deep"),
        ({"output": "x", "context": [{"a": {1, 2}}]}, "context holds a set"),
    ],
)
def test_anything_else_is_told_with_its_place(stated, why) -> None:
    with pytest.raises(AnswerError) as reported:
        read_answer(stated)
    assert why in str(reported.value)
