"""Tally: what a run comes to, and whether it comes to anything."""

from __future__ import annotations

from monitor.offline.score.tally import ScoreTally


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
