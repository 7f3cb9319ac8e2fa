"""A reason is whole for those who may see contents, and holds nothing of them for all others."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import (
    GAP,
    Kind,
    Reason,
    ReasonPart,
    Rights,
    cut,
    outline,
    own,
    part,
    quoted,
    together,
)
from sidejudge.scoring.result.result import Method

CARD = "4111 1111 1111 1111"
WHY = Reason(
    "{calls} of {all} calls of {tool} failed: {error}",
    calls=3,
    all=7,
    tool=part("refund"),
    error=quoted(f"card {CARD}"),
)
PARTS = st.lists(st.tuples(st.sampled_from(Kind), st.text(max_size=30)).map(lambda each: ReasonPart(*each)), max_size=8)


def test_a_reason_is_its_text():
    assert f"3 of 7 calls of refund failed: card {CARD}" == WHY
    assert json.loads(json.dumps({"reason": WHY})) == {"reason": str(WHY)}
    assert {WHY: 1}[str(WHY)] == 1


@pytest.mark.parametrize(
    ("rights", "shown"),
    [
        (Rights.CONTENTS, f"3 of 7 calls of refund failed: card {CARD}"),
        (Rights.NAMES, "3 of 7 calls of refund failed: …"),
        (Rights.OWN, "3 of 7 calls of … failed: …"),
    ],
)
def test_who_sees_what_is_decided_by_the_type_of_a_part(rights, shown):
    assert WHY.shown(rights) == shown


def test_what_nobody_marked_is_content():
    assert Reason("{why}", why=CARD).shown() == GAP
    assert (Reason("wrong: ") + CARD).shown() == "wrong: …"
    assert (CARD + Reason(" is wrong")).shown() == "… is wrong"
    assert together(["a", CARD]).shown() == "…; …"
    assert Reason("{number}", number=4111111111111111).shown() == GAP
    assert outline({"reason": CARD}).shown() == GAP
    assert outline({"reason": ""}) == outline({}) == ""


def test_names_and_numbers_of_ours_are_shown_to_everybody():
    why = Reason(
        "{metric} by {method}: {value:.3f} of {most:,}", metric=own("tone"), method=Method.JUDGE, value=0.5, most=2000
    )
    assert why == why.shown(Rights.OWN) == "tone by judge: 0.500 of 2,000"
    assert Reason("{literal} braces {}").shown(Rights.OWN) == "{literal} braces {}"


def test_a_reason_in_another_keeps_its_parts():
    whole = Reason("{metric}: {why}", metric=own("tool_success"), why=WHY)
    assert whole.shown() == "tool_success: 3 of 7 calls of refund failed: …"
    assert together([WHY, Reason("2 more")]).shown() == "3 of 7 calls of refund failed: …; 2 more"
    assert whole.template == "tool_success: {} of {} calls of {} failed: {}"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda why: pickle.loads(pickle.dumps(why))])
def test_a_copy_keeps_its_parts(copied):
    assert copied(WHY) == WHY
    assert copied(WHY).parts == WHY.parts


@pytest.mark.parametrize("changed", [str, lambda why: f"{why}", lambda why: why[:20], lambda why: why.strip()])
def test_what_becomes_a_plain_text_becomes_content(changed):
    assert Reason("{why}", why=changed(WHY)).shown() == GAP


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("get-weather", "get-weather"),
        ("claude-3-5-sonnet-20241022", "claude-3-5-sonnet-20241022"),
        ("gpt-4.1-2025-04-14", "gpt-4.1-2025-04-14"),
        ("Kundenberater (höflich)", "Kundenberater (höflich)"),
        (f"pay {CARD}", "pay #"),
        ("pay_4111111111111111", "pay_#"),
        ("a\nb\u202ec\x00d", "a?b?c?d"),
        ("x" * 500, "x" * 60 + "…"),
        ("ann@example.com <b>'\"", "ann?example.com <b>?"),
    ],
)
def test_a_name_is_short_and_of_plain_characters(name, shown):
    assert Reason("{name}", name=part(name)).shown() == shown


def test_failures_are_alike_by_template_and_names():
    again = Reason(
        "{calls} of {all} calls of {tool} failed: {error}", calls=1, all=2, tool=part("refund"), error="timeout"
    )
    other = Reason(
        "{calls} of {all} calls of {tool} failed: {error}", calls=1, all=2, tool=part("search"), error="timeout"
    )
    assert WHY.alike() == again.alike() == "# of # calls of refund failed: …"
    assert WHY.alike() != other.alike()
    assert WHY.has_own_words
    assert not Reason("{why}", why=quoted("he was rude")).has_own_words


@given(PARTS)
def test_the_outline_holds_all_but_the_contents(parts):
    why = Reason.of(parts)
    kept = outline(json.loads(json.dumps({"reason": why, "reason_parts": why.to_json()})))
    for rights in (Rights.NAMES, Rights.OWN):
        assert kept.shown(rights) == why.shown(rights)
    assert kept.alike() == why.alike()


@pytest.mark.parametrize(
    "held", ["text", 3, [3], [{"content": CARD}], [{"name": 4}], [[CARD]], {"a": CARD}, [None, {}]]
)
def test_an_outline_that_is_none_shows_nothing(held):
    assert outline({"reason": CARD, "reason_parts": held}).shown().strip(GAP) == ""


@given(PARTS, st.integers(min_value=1, max_value=40))
def test_a_cut_reason_is_the_cut_text(parts, most):
    why = Reason.of(parts)
    assert why.cut(most) == cut(why, most) == label(str(why), most)
    assert len(why.cut(most).shown()) <= most + 1 + sum(each.kind is Kind.NAME for each in parts)


@given(st.lists(st.tuples(st.sampled_from(Kind), st.text(alphabet="abc", min_size=1, max_size=5)), max_size=8))
def test_no_content_is_shown_without_rights(found):
    parts = [ReasonPart(kind, text.upper() if kind is Kind.CONTENT else text) for kind, text in found]
    for rights in (Rights.NAMES, Rights.OWN):
        assert Reason.of(parts).shown(rights).islower() or not any(c.isalpha() for c in Reason.of(parts).shown(rights))


def test_a_count_that_is_remembered_is_no_truth_value_and_no_fraction_of_the_same_size():
    assert [Reason("{n} of {all}", n=n, all=2) for n in (1, True, 1.0)] == ["1 of 2", "True of 2", "1.0 of 2"]
    assert Reason("{n} of {all}", all=1, n=2) == "2 of 1"
    assert Reason("{n}", n=4111_1111_1111_1111).shown(Rights.NAMES) == GAP


def test_words_that_follow_words_are_one_part_wherever_they_stand():
    assert Reason("{a}{b} ({c}) {d}", a=own("x"), b=own("y"), c=quoted("z"), d=own("")).parts == (
        own("xy ("), quoted("z"), own(") "),
    )  # fmt: skip
    assert Reason.of([own("a"), own(""), own("b"), own("c"), quoted(""), own("d")]).parts == (own("abcd"),)
