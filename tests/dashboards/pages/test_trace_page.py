"""The page of one trace: its end, verdicts, words and spans, or an honest word on why they are not there."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.dashboards.pages.rendering import render
from sidejudge.dashboards.pages.span_tree import MOST
from sidejudge.dashboards.pages.span_tree import span_tree as tree_of
from sidejudge.dashboards.pages.trace_page import TracePage, trace_page
from sidejudge.dashboards.pages.transcript import MOST_CHARACTERS, MOST_TURNS
from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.trace.span import Span, SpanKind, ToolCall, Unread
from sidejudge.scoring.trace.trace import Trace

TRACE = "ab" * 16
NOW = 1_790_000_000 * 10**9


def span(number: int, parent: int | None = None, **more) -> Span:
    fields = {
        "trace_id": TRACE, "span_id": f"{number:016x}", "parent_id": None if parent is None else f"{parent:016x}",
        "name": f"step {number}", "kind": SpanKind.TOOL, "dialect": "generic",
        "start_ns": 10**9 + number, "end_ns": 2 * 10**9,
    }  # fmt: skip
    return Span(**{**fields, **more})


def traced(*spans: Span) -> Trace:
    return Trace.of(TRACE, spans, "root_ended")


def span_tree(trace: Trace) -> str:
    return render("spans.html", tree=tree_of(trace))


def verdict(**more) -> dict:
    return {
        "rubric": "agent", "rubric_version": "agent@1", "passed": False, "composite": 0.4, "pass_mark": 0.7,
        "state": "valid", "coverage": 1.0, "revision": 1, "created_at": "2026-01-01T00:00:00.000Z", "reason": "why",
        "scores": [{
            "metric": "tone", "value": 1, "rating": "fail", "weight": 1.0, "status": "scored", "method": "judge",
            "reason": 'it said "no way"', "details": {"turns": [0]},
        }],
        **more,
    }  # fmt: skip


def page(**more) -> str:
    story = {"trace_id": TRACE, "name": "support", "reason": "scored", "verdicts": [verdict()], **more.pop("story", {})}
    return trace_page(TracePage(**{"details": story, "happened": ["it ended"], "now_ns": NOW, **more}))


CASE = Case(case_id="1", model_output="sorry", transcript=(Utterance("Refund?", "user"), Utterance("No way!", "agent")))


def test_evidence_is_marked_in_what_was_said_and_the_verdict_points_to_it():
    shown = page(case=CASE, trace=traced(span(1)))
    assert '<mark id="evidence-1">No way<sup>1</sup></mark>!' in shown
    assert '<a href="#evidence-1">quote 1</a>' in shown
    assert '<a href="#evidence-2">turn 2</a>' in shown
    assert '<li class="named"><span id="evidence-2"></span>' in shown
    assert "1 of 1 quotations" in shown


def test_it_begins_with_what_the_run_took_its_error_its_answer_and_its_spans():
    took = {"values": {"latency": 2.5, "tokens": 1234.0, "cost": 0.0123}, "models": {}, "version": "2.3.1"}
    case = Case(case_id="1", model_output="<b>sorry", error="TimeoutError: <i>5 s")
    shown = page(case=case, trace=traced(span(1)), story={"service": "shop", "environment": "prod", "figures": took})
    head = shown[shown.index('id="head"') : shown.index("</header>", shown.index('id="head"'))]
    assert re.findall(r"<dd>(.*?)</dd>", head) == ["shop", "prod", "2.5 s", "1,234", "$0.0123", "2.3.1"]
    order = ["</dl>", "TimeoutError: &lt;i&gt;5 s", "&lt;b&gt;sorry", 'id="spans"', 'id="verdict-agent"']
    places = [shown.index(each) for each in order]
    assert places == sorted(places)


def test_of_a_run_of_which_nothing_is_known_the_header_claims_nothing():
    shown = page(story={"figures": {"values": {}, "models": {}, "version": None}})
    head = shown[shown.index('id="head"') : shown.index("</header>", shown.index('id="head"'))]
    assert "<dl>" not in head
    assert 'id="answer"' not in shown


def test_without_the_spans_nothing_points_to_what_is_not_there():
    shown = page(absent="gone")
    assert "#evidence" not in shown
    assert "only until late spans can no longer come" in shown
    assert 'id="spans"' not in shown


@pytest.mark.parametrize(
    ("absent", "stated"),
    [("withheld", "port-forward"), ("never", "never kept"), ("session", "turns"), ("unreadable", "cannot be read")],
)
def test_it_says_why_the_words_are_not_there(absent, stated):
    assert stated in page(absent=absent)


def test_an_open_trace_looks_again_and_one_that_ended_does_not():
    assert 'http-equiv="refresh"' in page(story={"reason": None, "verdicts": []}, absent="gone")
    assert 'http-equiv="refresh"' not in page(absent="gone")


def test_a_revision_says_what_it_stands_in_place_of():
    assert "2, in place of 1" in page(story={"verdicts": [verdict(revision=2)]}, absent="gone")


def test_a_verdict_that_fails_above_its_mark_names_what_failed_it():
    above = page(story={"verdicts": [verdict(composite=0.9, blockers=["completed"])]}, absent="gone")
    assert re.search(r"fails all the same by\W.*?completed", above, re.DOTALL)
    assert "fails all the same" not in page(absent="gone")


def test_a_failing_trace_whose_input_is_nested_without_end_has_a_page_without_a_test_of_it():
    nested = []
    for _ in range(900):
        nested = [nested]
    assert "what would have been right" in page(case=replace(CASE, input="Refund?"))
    assert "what would have been right" not in page(case=replace(CASE, input=nested))


def test_a_session_lists_its_traces_and_a_turn_its_session():
    other = "cd" * 16
    assert f'href="/traces/{other}"' in page(story={"kind": "session", "traces": [other]}, absent="session")
    assert f'href="/traces/{other}"' in page(story={"session": other}, absent="gone")


def test_the_tree_stands_as_spans_called_each_other():
    shown = span_tree(traced(span(1), span(2, 1), span(3, 2), span(4, 1, error="it broke")))
    assert [shown.index(f"step {n}") for n in (1, 2, 3, 4)] == sorted(shown.index(f"step {n}") for n in (1, 2, 3, 4))
    assert shown.count("<ul>") == shown.count("</ul>") == 3
    assert shown.count("<li>") == shown.count("</li>") == 4
    assert "it broke" in shown


def test_a_tools_call_is_folded_below_its_span():
    shown = span_tree(traced(span(1, tool=ToolCall(name="find", arguments={"q": "<b>"}, result="42"))))
    assert "step 1 · find" in shown
    assert "{&#34;q&#34;: &#34;&lt;b&gt;&#34;}" in shown


def test_cycles_orphans_and_thousands_of_spans_are_shown_as_far_as_a_page_can():
    circle = span_tree(traced(span(1, 2), span(2, 1), span(3, 99)))
    assert all(circle.count(f"step {n}") == 1 for n in (1, 2, 3))
    chain = span_tree(traced(*(span(n, n - 1 if n else None) for n in range(1000))))
    assert chain.count("<li>") == MOST
    assert "800 more spans" in chain
    assert chain.count("<ul>") == chain.count("</ul>") == 12


hostile = st.one_of(
    st.text(max_size=200),
    st.sampled_from(["<script>x</script>", "'\"><img src=x onerror=x>", "</style>", "]]>", "javascript:x", "\ud800"]),
)


@given(hostile)
def test_nothing_that_a_trace_says_becomes_markup(text):
    def shown(stated: str) -> str:
        score = {**verdict()["scores"][0], "reason": stated, "metric": stated, "rating": stated, "method": stated}
        reported = verdict(
            reason=stated, scores=[{**score, "details": {"note": stated}}], rubric_version=stated, state=stated
        )
        call = ToolCall(name="tool", arguments=stated or "x", result=stated or "x", error=stated or "x")
        return page(
            story={"name": stated or "x", "trace_url": stated, "verdicts": [reported], "service": stated},
            happened=[stated],
            case=Case(case_id="1", model_output=stated or "x", system_prompt=stated or "x", context=(stated,),
                      expected_outcome=stated or "x", transcript=(Utterance(stated, stated, stated),)),
            trace=traced(span(1, name=stated, model=stated or "x", error=stated or "x", tool=call)),
        )  # fmt: skip

    def tags(text: str) -> list[str]:
        return [part.split(">")[0].split()[0] for part in text.partition("</style>")[2].split("<")[1:]]

    def outline(text: str) -> set[str]:
        return set(tags(text)) - {"mark", "/mark", "sup", "/sup"}

    assert outline(shown(text)) <= outline(shown("plain words")) | {"div", "/div"}
    assert 'javascript:x"' not in shown(text)


def test_a_very_long_conversation_is_cut_and_the_rest_is_counted():
    many = tuple(Utterance(f"turn {n}.", "agent") for n in range(500))
    shown = page(case=Case(case_id="1", model_output=None, transcript=many))
    assert shown.count('class="speaker"') == MOST_TURNS
    assert "300 more turns" in shown
    long = tuple(Utterance("word " * 2000, "agent") for _ in range(150))
    shown = page(case=Case(case_id="1", model_output=None, transcript=long))
    assert len(shown) < 2 * MOST_CHARACTERS
    assert "100 more turns" in shown


def test_a_trace_that_is_kept_elsewhere_links_there():
    shown = page(story={"trace_url": "https://langfuse.example/trace/1"}, absent="gone")
    assert '<a href="https://langfuse.example/trace/1" rel="noreferrer" class="out">Open in Langfuse</a>' in shown


def test_what_was_seen_and_not_understood_is_listed_with_its_client_and_counts():
    odd = Unread(source="acme.answer<b>", shape="object with a, b", field="output", client="acme.sdk")
    shown = page(case=CASE, trace=traced(span(1, unread=(odd,)), span(2, 1, unread=(odd,))))
    assert "Seen and not understood" in shown
    assert "acme.answer&lt;b&gt;" in shown
    assert "acme.sdk" in shown
    assert '<td class="number">2</td>' in shown
    assert "Seen and not understood" not in page(case=CASE, trace=traced(span(1)))
