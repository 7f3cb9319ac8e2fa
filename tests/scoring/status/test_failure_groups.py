"""Failure groups: what is alike is one group, whatever figures and quotations differ; what is not stays apart."""

from __future__ import annotations

from sidejudge.scoring.status.failure_groups import COMPOSITE, alike, failure_groups, reasons, without_contents

SINCE = 1_000


def verdict(number, *scores, closed_ns=2_000, reason="", rubric="agent"):
    listed = [
        {"metric": metric, "rating": rating, "reason": why, "details": {"failure_code": code} if code else {}}
        for metric, rating, code, why in scores
    ]
    return {
        "trace_id": f"{number:032x}", "rubric": rubric, "passed": False, "closed_ns": closed_ns, "reason": reason,
        "scores": listed,
    }  # fmt: skip


ROUTING = ("tool_routing", "fail", "wrong_tool")


def groups(*verdicts, **more):
    return {(each.metric, each.code, each.count, each.before) for each in failure_groups(verdicts, SINCE, **more)}


def test_a_code_makes_one_group_whatever_the_reasons_are_and_what_is_older_counts_as_before():
    found = failure_groups(
        [
            verdict(4, (*ROUTING, "called cancel in place of book")),
            verdict(3, (*ROUTING, "two calls too many"), ("grounding_fidelity", "blocker", "made_up", "a made-up fee")),
            verdict(
                2, ("tool_routing", "good", None, "well done"), ("response_delivery", "fail", None, "reads a table")
            ),
            verdict(1, (*ROUTING, "again"), closed_ns=900),
        ],
        SINCE,
    )
    first, *others = found
    assert (first.metric, first.code, first.count, first.before) == ("tool_routing", "wrong_tool", 2, 1)
    assert first.examples == (f"{4:032x}", f"{3:032x}")
    assert first.words == "called cancel in place of book"
    assert {(each.metric, each.code) for each in others} == {
        ("grounding_fidelity", "made_up"),
        ("response_delivery", None),
    }
    assert len({each.group for each in found}) == 3


def test_reasons_are_alike_when_only_figures_quotations_and_capitals_differ():
    assert groups(
        verdict(1, ("facts", "fail", None, '3 of 4 facts are missing, such as "$49"')),
        verdict(2, ("facts", "fail", None, "1 of 7 facts are missing, such as “Tuesday at 10:30”")),
        verdict(3, ("facts", "fail", None, "no fact was asked for")),
        verdict(4, ("other", "fail", None, "no fact was asked for")),
    ) == {("facts", None, 2, 0), ("facts", None, 1, 0), ("other", None, 1, 0)}


def test_a_verdict_without_a_failing_metric_failed_by_its_composite():
    assert groups(verdict(1, ("facts", "acceptable", None, "so"), reason="0.64 is below 0.7")) == {
        (COMPOSITE, None, 1, 0)
    }


def test_embeddings_join_reasons_that_mean_the_same_within_a_metric():
    one, other = "the greeting is missing", "it does not say hello"
    found = [verdict(1, ("tone", "fail", None, one)), verdict(2, ("tone", "fail", None, other)),
             verdict(3, ("style", "fail", None, other))]  # fmt: skip
    assert reasons(found) == {("agent", "tone"): [one, other], ("agent", "style"): [other]}
    leaders = alike([one, other], {one: [1.0, 0.0], other: [0.9, 0.43]}, 0.8)
    same = {("agent", "tone", text): leader for text, leader in leaders.items()}
    assert groups(*found, alike=same) == {("tone", None, 2, 0), ("style", None, 1, 0)}


def test_without_contents_nothing_of_a_judge_or_a_person_is_left():
    (group,) = failure_groups([verdict(1, (*ROUTING, "Ann Smith was not called back"))], SINCE)
    opened = without_contents(group)
    assert "Ann" not in opened.words
    assert opened.code == "…"
    assert (opened.group, opened.examples) == (group.group, group.examples)
