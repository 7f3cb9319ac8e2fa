"""Evidence is marked where it stands, and marking changes nothing that is said."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidejudge.dashboards.pages.transcript import MOST_QUOTATIONS, Evidence, Marker, Piece, evidence_of


def verdict(*reasons: str, metric="tone", **details) -> dict:
    return {"rubric": "agent", "scores": [{"metric": metric, "reason": r, "details": details} for r in reasons]}


def evidence(*quotes: str) -> list[Evidence]:
    return [Evidence(number=n, rubric="agent", metric="tone", quote=quote) for n, quote in enumerate(quotes, 1)]


def plain(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def test_quotations_of_reasons_and_turns_of_grades_are_evidence_each_once():
    found = evidence_of([verdict('it said "no refund" and "no refund"', 'again "no refund"', turns=[3, "x", True])])
    assert [(each.number, each.quote, each.turn) for each in found] == [(1, "no refund", None), (2, "", 3)]
    assert {(each.rubric, each.metric) for each in found} == {("agent", "tone")}


def test_what_the_reasons_of_an_output_quote_is_evidence_for_the_metric_that_asks_for_it():
    output = {"questions": [{"reason": "he said 'good morning'"}, {"reason": ["then 'good bye'"]}]}
    found = evidence_of([verdict("5 of 5", metric="evidence_backed_reasoning")], output)
    assert [each.quote for each in found] == ["good morning", "good bye"]
    assert evidence_of([verdict("5 of 5")], output) == []


def test_there_is_an_end_to_quotations():
    assert len(evidence_of([verdict(" ".join(f'"number {n}"' for n in range(200)))])) == MOST_QUOTATIONS


def test_a_quotation_is_found_whatever_its_case_and_white_space():
    marker = Marker(evidence("No  REFUND today", "never said"))
    marked = marker.mark("We give no\n refund Today, sorry.", 100)
    assert Piece("no\n refund Today", [1], 1) in marked
    assert marker.found == {1}


def test_only_the_first_place_has_the_id_and_overlapping_quotations_share_a_mark():
    marker = Marker(evidence("a refund", "refund now"))
    marked = marker.mark("a refund now; a refund", 100)
    assert [piece.anchor for piece in marked if piece.numbers] == [1, None]
    assert [piece.numbers for piece in marked if piece.numbers] == [[1, 2], [1]]
    assert marker.found == {1, 2}


def test_a_text_that_is_cut_is_marked_up_to_the_cut():
    marker = Marker(evidence("beyond"))
    assert marker.mark("x" * 50 + "beyond", 20) == [Piece("x" * 20 + "…")]
    assert marker.found == set()


texts = st.text(alphabet=st.sampled_from("ab <>&\"'ßİ\n"), max_size=60)


@given(texts, st.lists(texts, max_size=4))
def test_marking_changes_nothing_of_the_text(text, quotes):
    marked = Marker(evidence(*quotes)).mark(text, 1000)
    assert plain(marked) == text


@given(texts, texts, texts)
def test_a_quotation_that_stands_in_a_text_as_written_is_found(before, quote, after):
    marker = Marker(evidence(quote))
    marker.mark(before + quote + after, 1000)
    assert marker.found == ({1} if quote.strip() else set())
