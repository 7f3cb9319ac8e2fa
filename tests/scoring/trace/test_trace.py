"""Traces: order, duplicates, roots, missing parents, and trees that are none."""

from __future__ import annotations

import random
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.span import SpanKind, ToolCall
from tests.linear_time import assert_linear
from tests.spans import span
from tests.spans import trace as traced

trace = partial(traced, completion="root_ended")


def ids(spans) -> list[str]:
    return [each.span_id for each in spans]


def test_spans_stand_in_order_of_start_then_longest_first_then_by_id():
    made = trace(span("d", start_ns=2), span("c", end_ns=5), span("b"), span("a"))
    assert ids(made.spans) == ["a", "b", "c", "d"]


def test_of_duplicates_the_one_that_ended_later_stays_then_the_fuller_one():
    early, late = span(end_ns=5, provenance={"x": "1", "y": "2"}), span(end_ns=6)
    full, bare = span(provenance={"x": "1"}), span()
    for one, other, expected in ((early, late, late), (full, bare, full)):
        assert trace(one, other).spans == trace(other, one).spans == (expected,)


VARIANT = st.builds(
    span,
    name=st.sampled_from(["x", "y"]),
    end_ns=st.sampled_from([5, 6]),
    output=st.sampled_from([None, "said", 1, True, {"k": ["v"]}]),
    provenance=st.sampled_from([{}, {"a": "1"}, {"b": "1"}]),
    error=st.sampled_from([None, "timeout"]),
)


@given(st.lists(VARIANT, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_which_duplicate_stays_does_not_depend_on_the_order_of_arrival(variants, shuffler: random.Random):
    shuffled = list(variants)
    shuffler.shuffle(shuffled)
    (stays,), (stays_too,) = trace(*variants).spans, trace(*shuffled).spans
    assert repr(stays) == repr(stays_too)


@given(st.lists(st.tuples(st.integers(0, 6), st.none() | st.integers(0, 9)), max_size=12), st.randoms())
def test_whatever_the_parents_every_span_is_somewhere_and_every_walk_ends(edges, shuffler: random.Random):
    spans = [span(str(at), None if parent is None else str(parent)) for at, parent in edges]
    shuffler.shuffle(spans)
    made = trace(*spans)
    assert sorted(ids(each for group in made.children.values() for each in group)) == sorted({str(e[0]) for e in edges})
    for each in made.spans:
        above = ids(made.ancestors(each))
        assert len(set(above)) == len(above)
        assert each.span_id not in above


def test_a_trace_is_complete_with_a_root_and_all_parents():
    made = trace(span("child", "root"), span("root"))
    assert (made.complete, made.missing_parents, ids(made.tops)) == (True, (), ["root"])
    assert made.root is made.by_id["root"]
    assert ids(made.children["root"]) == ["child"]


def test_a_trace_that_was_closed_under_pressure_is_not_complete_though_nothing_seems_to_be_missing():
    assert not trace(span("root"), completion="pressure").complete
    for completion in ("root_ended", "idle", "deadline", "batch"):
        assert trace(span("root"), completion=completion).complete


def test_a_parent_that_never_came_is_told_once_and_leaves_the_trace_incomplete():
    made = trace(span("root"), span("a", "gone"), span("b", "gone"), span("c", "far"))
    assert (made.missing_parents, made.complete) == (("far", "gone"), False)
    assert ids(made.tops) == ["a", "b", "c", "root"]
    assert made.root is made.by_id["root"]
    assert list(made.ancestors(made.by_id["a"])) == []


def test_a_marked_topmost_span_is_the_root_and_its_parent_is_not_missed():
    made = trace(span("top", "in another service", root_hint=True), span("child", "top", start_ns=1))
    assert made.root is made.by_id["top"]
    assert (made.missing_parents, made.complete) == ((), True)


def test_a_true_root_goes_before_a_marked_one():
    made = trace(span("hinted", "gone", root_hint=True), span("root", start_ns=5))
    assert made.root is made.by_id["root"]


def test_levels_hold_the_spans_by_depth_and_those_that_nothing_reaches_last():
    made = trace(span("root"), span("a", "root", start_ns=1), span("b", "a", start_ns=2), span("own", "own"))
    assert [ids(level) for level in made.levels] == [["root"], ["a"], ["b"], ["own"]]


def test_of_several_roots_the_earliest_is_the_root():
    assert trace(span("late", start_ns=3), span("early", start_ns=1)).root.span_id == "early"


def test_spans_that_are_their_own_ancestors_have_no_root_and_no_end_of_walks():
    made = trace(span("a", "b"), span("b", "a"), span("self", "self"))
    assert (made.root, made.tops, made.missing_parents, made.complete) == (None, (), (), False)
    assert ids(made.ancestors(made.by_id["a"])) == ["b"]
    assert list(made.ancestors(made.by_id["self"])) == []


@pytest.mark.parametrize(
    ("answer", "kind", "first", "second", "wanted"),
    [
        (None, SpanKind.OTHER, "down", "down again", "down again"),
        (None, SpanKind.OTHER, "down", None, None),
        (None, SpanKind.OTHER, None, "no metrics could be sent", None),
        ("Here.", SpanKind.OTHER, "down", "down again", None),
        (None, SpanKind.TOOL, "down", "no such order", None),
    ],
)
def test_a_model_call_without_an_answer_has_failed_where_all_its_attempts_have(answer, kind, first, second, wanted):
    made = trace(
        span("call", kind=SpanKind.LLM, output=answer, end_ns=9),
        span("first", "call", start_ns=2, end_ns=3, error=first),
        span("second", "call", kind=kind, start_ns=4, end_ns=5, error=second),
    )
    assert made.by_id["call"].error == wanted


def test_ancestors_are_found_at_any_depth():
    made = trace(span("0"), *(span(str(n), str(n - 1)) for n in range(1, 3000)))
    assert len(list(made.ancestors(made.by_id["2999"]))) == 2999


def test_a_trace_without_spans_is_no_error():
    made = trace()
    assert (made.spans, made.tops, made.root, made.missing_parents, made.complete) == ((), (), None, (), False)


@pytest.mark.parametrize("kinds", [
    [SpanKind.LLM, SpanKind.AGENT], [SpanKind.GUARDRAIL, SpanKind.LLM, SpanKind.AGENT], [SpanKind.TOOL],
    [SpanKind.OTHER, SpanKind.AGENT],
])  # fmt: skip
def test_a_deep_trace_costs_as_much_as_a_flat_one(kinds: list[SpanKind]) -> None:
    def judge(length: int) -> None:
        deep = [
            span(
                f"s{n}", f"s{n - 1}" if n else None, kinds[n % len(kinds)], start_ns=n, end_ns=10**6 - n, error="boom",
                tool=ToolCall(name="find") if kinds[0] is SpanKind.TOOL else None,
            )
            for n in range(length // 15)
        ]  # fmt: skip
        score(extract(trace(*deep)), RUBRICS["run_health"], created_at="")

    assert_linear(judge)
