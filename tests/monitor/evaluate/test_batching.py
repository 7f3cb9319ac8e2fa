"""In step: walks are carried on stage by stage, each to its end."""

from __future__ import annotations

import pytest

from sidejudge.monitor.evaluate.stages import in_step


def walk(name, stages, done):
    for stage in range(stages):
        done.append(f"{name}{stage}")
        yield
    done.append(f"{name}.")


def test_each_stage_is_done_by_all_before_the_next_begins():
    done = []
    in_step([walk("a", 2, done), walk("b", 2, done)])
    assert done == ["a0", "b0", "a1", "b1", "a.", "b."]


def test_a_walk_that_is_over_early_leaves_the_others_to_theirs():
    done = []
    in_step([walk("a", 0, done), walk("b", 2, done), walk("c", 1, done)])
    assert done == ["a.", "b0", "c0", "b1", "c.", "b."]


def test_what_a_walk_raises_is_raised():
    def broken():
        yield
        raise OSError("the store cannot be read")

    with pytest.raises(OSError, match="cannot be read"):
        in_step([walk("a", 3, []), broken()])


def test_nothing_to_do_is_done():
    in_step([])
