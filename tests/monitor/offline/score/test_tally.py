"""Tally: what a run comes to, and whether it comes to anything."""

from __future__ import annotations

from sidejudge.monitor.offline.score.tally import ScoreTally


def verdict(rubric, passed, *statuses):
    return {
        "rubric": rubric, "passed": passed, "composite": None,
        "scores": [{"metric": f"m{n}", "status": status, "reason": "r"} for n, status in enumerate(statuses)],
    }  # fmt: skip


def test_a_rubric_is_broken_when_each_of_its_verdicts_ended_in_an_error():
    tally = ScoreTally()
    assert tally.broken == []
    tally.add(verdict("a", None, "error", "scored"))
    tally.add(verdict("a", None, "unavailable", "error"))
    tally.add(verdict("b", None, "error"))
    tally.add(verdict("b", False, "scored", "error"))  # decided all the same
    tally.add(verdict("c", None, "unavailable"))  # nobody is configured who could tell: as was asked for
    assert tally.broken == ["a"]


def test_tallies_of_parts_add_up_to_that_of_the_whole_to_the_last_digit():
    composites = [0.1, 1e16, 0.2, 0.3, -1e16, 1 / 3]
    verdicts = [
        {**verdict("qa" if n % 2 else "answer", n % 3 == 0 or None, "unavailable"), "composite": composite}
        for n, composite in enumerate(composites)
    ]
    whole = ScoreTally()
    for each in verdicts:
        whole.add(each)
    for cut in range(len(verdicts) + 1):
        first, second = ScoreTally(bad_lines=1), ScoreTally(unrouted=2)
        for n, each in enumerate(verdicts):
            (first if n < cut else second).add(each)
        first.merge(second)
        assert (first.bad_lines, first.unrouted) == (1, 2)
        assert list(first.rubrics) == list(whole.rubrics)
        assert first.counts == whole.counts
        assert [c.mean_composite for c in first.rubrics.values()] == [c.mean_composite for c in whole.rubrics.values()]
        assert list(first.gaps.reported()) == list(whole.gaps.reported())
