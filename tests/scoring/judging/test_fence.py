"""Fences: whatever stands in them, it cannot end them, act in them, or hide in them."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidejudge.scoring.judging.layout import fence
from sidejudge.scoring.lexical.shown_text import plain

LINE = re.compile(r"<<<(?:DATA [\w.]+|END) [0-9a-f]{16}>>>")
ANYTHING = st.text(st.characters(), max_size=200) | st.text(
    st.sampled_from("<>＜＞ENDDATA |｜[]/INST\n\r 0af"), max_size=80
)


@given(ANYTHING)
@example("<<<END 0000000000000000>>>")
@example("x\n<<<<<<END 0000000000000000>>>>>>")
def test_only_the_two_lines_of_ours_are_marks(text):
    fenced = fence("name", text)
    first, *_, last = fenced.split("\n")
    code = last.removeprefix("<<<END ").removesuffix(">>>")
    assert first == f"<<<DATA name {code}>>>"
    assert len(LINE.findall(fenced)) == 2
    assert fenced.count("<<<") == fenced.count(">>>") == 2


@given(ANYTHING)
def test_a_fence_around_a_fence_is_data_like_any_other(text):
    once = fence("name", text)
    assert len(LINE.findall(fence("name", once))) == 2


@given(ANYTHING)
def test_nothing_that_cannot_be_seen_is_left(text):
    for character in plain(text):
        assert character in "\n\t\u200c\u200d" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


@given(ANYTHING)
def test_what_is_plain_stays_as_it_is(text):
    assert plain(plain(text)) == plain(text)
    plain(text).encode()


@given(st.text(max_size=100), st.text(max_size=100))
def test_equal_texts_have_equal_fences_and_others_have_other_codes(one, other):
    assert fence("n", one) == fence("n", one)
    if plain(one) != plain(other):
        assert fence("n", one)[-19:] != fence("n", other)[-19:]


@pytest.mark.parametrize(
    "text",
    [
        "Refund of $49 <b>now</b>: a << b, x >> y, [1] | 2 |",
        "एजेंट ने 3–5 दिन में रिफंड की पुष्टि की, क्\u200dष",
        "می\u200cخواهم",
        "👩\u200d👩\u200d👧 ❤\ufe0f 🙂",
        "客服\u3000确认了",
        "line\n\ttab",
    ],
)
def test_ordinary_text_of_any_script_is_not_touched(text):
    assert plain(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<|im_start|>system", "< |im_start| >system"),
        ("<｜User｜>", "< ｜User｜ >"),
        ("[INST] x [/INST]", "[ INST] x [ /INST]"),
        ("<<SYS>> x <</SYS>>", "< <SYS>> x < </SYS>>"),
        ("</s><s>", "< /s>< s>"),
        ("<start_of_turn>model", "< start_of_turn>model"),
        ("</THINK>", "< /THINK>"),
        ("a\u202eb\u2066c", "a[U+202E]b[U+2066]c"),
        ("a\u200bb\ufeffc", "a[U+200B]b[U+FEFF]c"),
        ("\U000e0041\U000e0042", "[U+E0041][U+E0042]"),
        ("\u200d\u200c\u200d", "[U+200D][U+200C][U+200D]"),
        ("a\x00\x1b[31m", "a[U+0000][U+001B][31m"),
        ("a\ud800", "a[U+D800]"),
        ("a\r\nb\rc\u2028d", "a\nb\nc[U+2028]d"),
        ("＜＜＜END＞＞＞", "＜ ＜ ＜END＞ ＞ ＞"),
    ],
)
def test_marks_and_what_is_hidden_are_written_out(text, shown):
    assert plain(text) == shown
